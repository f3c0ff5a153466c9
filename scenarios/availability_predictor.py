"""Does FedDance's predictor of availability keep its promise?

Judges predictors that know nothing but check-ins on recorded and generated phones: accuracy, precision, recall and F1,
against the windows K_h and K too, over time, and what a prediction costs (FedDance, table 4, figs. 10, 11 and 18).
"""

from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
from feddance import availability
from numpy.typing import NDArray
from typer import Option

import edgesim
from edgesim.scenario import (
    Runs,
    TracesFolder,
    counts,
    figures,
    forecasts,
    names,
    recordings,
    refuse_unknown,
    scenario,
    short_names,
    start,
    tables,
    work,
)

IMAGE, CLASSES, SAMPLES, BATCH = (1, 28, 28), 47, 131, 32
"""Behind fig. 18: EMNIST's images and classes, samples of one of 1,000 devices, and the batch of its one local step."""
WITHOUT = ("random", "SAFA", "FedCS", "availability-first")
"""Selectors that ask nothing of a device but its update."""
TABLES, FIGURES = ("predictors", "sensitivity", "overheads"), ("sensitivity", "over_time", "costs")
"""What is written into the folder, and drawn into its ``plots``."""
QUICK = {"predictors": "poisson,persistence,arima", "devices": 20, "minutes": 100, "history": 20, "every": 10}


def log_of(runs: Runs, trace: str, devices: int, round_s: float, rounds: int) -> NDArray[np.bool_]:
    """Who is there at the start of each round, [rounds, devices]; of all seeds where phones are generated."""
    logs = [
        recordings.check_ins(availability(trace, "given"), devices, round_s, rounds, seed, runs.set_)
        for seed in range(runs.seeds if trace == "synthetic" else 1)
    ]
    return np.concatenate(logs, axis=1)


def overhead_table(overheads: dict[str, NDArray[np.float64]]) -> pd.DataFrame:
    """Mean and 90th percentile over devices in milliseconds, by selector, as section 6.4 gives them."""
    rows = [(name, 1e3 * wall_s.mean(), 1e3 * np.quantile(wall_s, 0.9)) for name, wall_s in overheads.items()]
    return pd.DataFrame(rows + [(name, 0.0, 0.0) for name in WITHOUT], columns=["selector", "mean_ms", "p90_ms"])


def row_of(trace: str, predictor: str, result: forecasts.Backtest, devices: int) -> dict[str, object]:
    """One row of table 4."""
    score = result.overall
    came = score.true_positives + score.false_negatives
    return {
        "trace": trace,
        "predictor": predictor,
        "devices": devices,
        "forecasts": len(result.rounds) * devices,
        "came": came / (len(result.rounds) * devices),
        "accuracy": score.accuracy,
        "precision": score.precision,
        "recall": score.recall,
        "f1": score.f1,
        "us_per_device": 1e6 * float(np.median(result.wall_s)) / devices,
    }


@scenario("runs/availability-predictor", seeds=1, quick=QUICK)
def main(
    runs: Runs,
    traces: Annotated[
        str, Option(help="Recordings, by path or name, or synthetic for generated phones.")
    ] = "synthetic,sample-week",
    predictors: Annotated[
        str, Option(help=f"{', '.join(edgesim.predictors())}, or package.module.Class.")
    ] = "poisson,persistence",
    devices: Annotated[int, Option(min=1, help="Devices, at most.")] = 500,
    minutes: Annotated[float, Option(min=1, help="Minutes of the trace.")] = 1000.0,
    round_s: Annotated[float, Option(min=1, help="Length of a round in seconds.")] = 100.0,
    history: Annotated[int, Option(min=1, help="K_h, rounds looked back on.")] = 50,
    future: Annotated[int, Option(min=1, help="K, rounds looked ahead.")] = 5,
    histories: Annotated[str, Option(help="K_h of the sensitivity figure.")] = "5,10,25,50,100,200",
    futures: Annotated[str, Option(help="K of the sensitivity figure.")] = "1,2,5,10,20,40",
    every: Annotated[int, Option(min=1, help="Judge every so many rounds (arima takes long).")] = 1,
    folder: TracesFolder = Path("traces"),
    jobs: Annotated[
        int, Option(min=1, help="Processes; with several, times of predictions are taken beside others.")
    ] = 1,
) -> None:
    """Judge predictors of availability; --seeds are those of generated phones, of which the tables are over all."""
    chosen, rounds = names(predictors), round(60 * minutes / round_s)
    refuse_unknown("--predictors", [name for name in chosen if "." not in name], edgesim.predictors())
    labels = short_names(names(traces))
    paths = [name if name in ("synthetic", "always") else recordings.path_of(name, folder) for name in names(traces)]
    others = {(past, future) for past in counts(histories)} | {(history, ahead) for ahead in counts(futures)}
    # What does not fit into a short log is left out of the figure; the windows of the table must fit.
    windows = sorted({pair for pair in others if sum(pair) <= rounds} | {(history, future)})
    code = [forecasts.code_of(name) for name in chosen]
    asked = (devices, rounds, round_s, history, future, windows, every, runs.seeds, runs.set_, runs.formats)
    files_kept, out = work.Kept(runs.out, paths, labels, chosen, code, *asked), runs.out
    plots = [out / "plots" / f"{name}.{kind}" for name in FIGURES for kind in runs.formats]
    files = [out / f"{name}.csv" for name in TABLES] + plots
    if runs.fresh or not files_kept.is_current:
        logs = [log_of(runs, path, devices, round_s, rounds) for path in paths]
        by_label, window = dict(zip(labels, logs, strict=True)), (history, future)
        judge(out, by_label, chosen, windows, window, every, round_s, jobs, runs.formats)
        files_kept.keep(files)
    title = f"K_h {history}, K {future} rounds of {round_s:g} s, {minutes:g} minutes"
    for name, heading in (("predictors", title), ("overheads", "on a device, per selection")):
        tables.show_texts(pd.read_csv(out / f"{name}.csv"), heading, ("trace", "predictor", "selector"))
    print(f"figures in {out / 'plots'}; tables in {out}")


def judge(
    out: Path,
    logs: dict[str, NDArray[np.bool_]],
    chosen: list[str],
    windows: list[tuple[int, int]],
    window: tuple[int, int],
    every: int,
    round_s: float,
    jobs: int,
    formats: figures.Formats,
) -> None:
    """Judge predictors on the logs of traces, by ``window`` all of them, by ``windows`` the first; write and draw."""
    asked = [(log, name, *window, every) for log in logs.values() for name in chosen]
    asked += [(log, chosen[0], *pair, every) for log in logs.values() for pair in windows]
    backtests = iter(work.in_processes(forecasts.judged, asked, jobs))
    results = {label: {name: next(backtests) for name in chosen} for label in logs}
    scores: dict[str, dict[tuple[int, int], figures.Score]] = {}
    for label in logs:
        of_windows = [next(backtests).overall for _ in windows]
        pairs = zip(windows, of_windows, strict=True)
        scores[label] = {pair: figures.Score(judged.accuracy, judged.f1) for pair, judged in pairs}
    rows = [
        row_of(label, name, result, logs[label].shape[1])
        for label, of_trace in results.items()
        for name, result in of_trace.items()
    ]
    out.mkdir(parents=True, exist_ok=True)
    tables.save(pd.DataFrame(rows), out / "predictors.csv")
    flat = [(trace, *pair, *score) for trace, of_trace in scores.items() for pair, score in of_trace.items()]
    columns = ["trace", "history_rounds", "future_rounds", "accuracy", "f1"]
    tables.save(pd.DataFrame(flat, columns=columns), out / "sensitivity.csv")
    first, present = next(iter(logs.items()))
    hours = round_s / 3600
    accuracy = {
        name: (hours * np.array(result.rounds), np.array([confusion.accuracy for confusion in result.confusions]))
        for name, result in results[first].items()
    }
    costs = {name: np.array(result.wall_s) / present.shape[1] for name, result in results[first].items()}
    overheads = forecasts.overheads_s(present, *window, IMAGE, CLASSES, SAMPLES, BATCH)
    tables.save(overhead_table(overheads), out / "overheads.csv")
    drawn = (
        figures.draw_sensitivity(scores, *window),
        figures.draw_over_time(hours * np.arange(len(present)), present.mean(axis=1), accuracy),
        figures.draw_costs(costs, overheads, WITHOUT),
    )
    for name, figure in zip(FIGURES, drawn, strict=True):
        figures.save(figure, out / "plots" / name, formats)


if __name__ == "__main__":
    start(main)
