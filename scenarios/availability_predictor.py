"""Does FedDance's predictor of availability keep its promise?

Judges predictors that know nothing but check-ins on recorded and generated phones: accuracy, precision, recall and F1,
against the windows K_h and K too, over time, and what a prediction costs (FedDance, table 4, figs. 10, 11 and 18).
"""

import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import torch
import typer
from feddance import availability
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from edgesim.arrays import Booleans
from edgesim.config import AvailabilityConfig
from edgesim.errors import EdgesimError
from edgesim.files.content import find
from edgesim.learning.models import new_model
from edgesim.learning.selection_overhead import of_feddance, of_oort
from edgesim.plots import style
from edgesim.plots.prediction import Score, draw_costs, draw_over_time, draw_sensitivity
from edgesim.prediction import PREDICTORS, Backtest, CheckInLog, backtest, make_predictor
from edgesim.scenario import counts, names, plain_errors, quick_option, short_names, start
from edgesim.streams import Streams
from edgesim.terminal.table_text import print_whole
from edgesim.traces.interval_file import read_intervals
from edgesim.traces.models import make_availability

IMAGE, CLASSES, SAMPLES, BATCH = (1, 28, 28), 47, 131, 32
"""Behind fig. 18: EMNIST's images and classes, samples of one of 1,000 devices, and the batch of its one local step."""
DEVICES = 40
"""On how many devices the overhead is taken."""
WITHOUT = ("random", "SAFA", "FedCS", "availability-first")
"""Selectors that ask nothing of a device but its update."""
QUICK = quick_option(
    predictors="poisson,persistence,arima", devices=20, minutes=100, history=20, every=10,
    out="runs/availability-predictor-quick",
)  # fmt: skip


def availability_log(trace: str, devices: int, round_s: float, rounds: int, seed: int) -> Booleans:
    """Who is there at the start of each round, [rounds, devices]; all devices of a file that holds fewer."""
    if trace not in ("synthetic", "always"):
        devices = min(devices, read_intervals(find("traces", trace, ".parquet")).device_count)
    there = make_availability(AvailabilityConfig(**availability(trace, "given")), devices, Streams(seed))
    ids = np.arange(devices)
    return np.stack([there.available(ids, number * round_s) for number in range(rounds)])


def device_overheads(present: Booleans, history: int, future: int) -> dict[str, NDArray[np.float64]]:
    """Wall seconds of what each selector makes a device do beyond training, over devices (fig. 18).

    FedDance: loss and accuracy of the mini-batch, whose logits training has left. Oort: the losses of all local
    samples. REFL: fitting an own ARIMA model to the history and forecasting by it, on devices that came and went in it;
    left out where none did, and without statsmodels.
    """
    model = new_model("small-cnn", IMAGE, CLASSES, 0).eval()
    random = torch.Generator().manual_seed(0)
    images = torch.rand(DEVICES, SAMPLES, *IMAGE, generator=random)
    labels = torch.randint(CLASSES, (DEVICES, SAMPLES), generator=random)
    with torch.inference_mode():
        logits = [model(some[:BATCH]) for some in images]
    work: dict[str, Callable[[int], object]] = {
        "FedDance": lambda device: of_feddance(logits[device], labels[device, :BATCH]),
        "Oort": lambda device: of_oort(model, images[device], labels[device], BATCH),
    }
    changing = np.flatnonzero(present[:history].any(axis=0) & ~present[:history].all(axis=0))
    if find_spec("statsmodels") and len(changing):
        log = CheckInLog.empty(present.shape[1], history)
        for row in present[:history]:
            log.append(np.flatnonzero(row))
        ids = np.resize(changing, DEVICES)
        work["REFL"] = lambda device: make_predictor("arima")(log, ids[device : device + 1], future)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        for act in work.values():
            act(0)  # imports and first calls are no device's
        overheads = {name: np.array([_wall_s(act, device) for device in range(DEVICES)]) for name, act in work.items()}
    torch.set_num_threads(threads)
    return overheads


def _wall_s(act: Callable[[int], object], device: int) -> float:
    started = time.perf_counter()
    act(device)
    return time.perf_counter() - started


def overhead_table(overheads: dict[str, NDArray[np.float64]]) -> pd.DataFrame:
    """Mean and 90th percentile over devices in milliseconds, by selector, as section 6.4 gives them."""
    rows = [(name, 1e3 * wall_s.mean(), 1e3 * np.quantile(wall_s, 0.9)) for name, wall_s in overheads.items()]
    return pd.DataFrame(rows + [(name, 0.0, 0.0) for name in WITHOUT], columns=["selector", "mean_ms", "p90_ms"])


def row_of(trace: str, predictor: str, result: Backtest, devices: int) -> dict[str, object]:
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


@plain_errors
def main(
    traces: Annotated[str, typer.Option(help="FILEs, synthetic.")] = "synthetic,sample-week",
    predictors: Annotated[str, typer.Option(help=f"{', '.join(PREDICTORS)}.")] = "poisson,persistence",
    devices: Annotated[int, typer.Option(min=1, help="Devices, at most.")] = 500,
    minutes: Annotated[float, typer.Option(min=1, help="Minutes of the trace.")] = 1000.0,
    round_s: Annotated[float, typer.Option(min=1, help="Length of a round in seconds.")] = 100.0,
    history: Annotated[int, typer.Option(min=1, help="K_h, rounds looked back on.")] = 50,
    future: Annotated[int, typer.Option(min=1, help="K, rounds looked ahead.")] = 5,
    histories: Annotated[str, typer.Option(help="K_h of the sensitivity figure.")] = "5,10,25,50,100,200",
    futures: Annotated[str, typer.Option(help="K of the sensitivity figure.")] = "1,2,5,10,20,40",
    every: Annotated[int, typer.Option(min=1, help="Judge every so many rounds (arima takes long).")] = 1,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of the synthetic trace; the table is over all.")] = 1,
    quick: Annotated[bool, QUICK] = False,
    out: Annotated[Path, typer.Option(help="Folder of the tables and figures.")] = Path("runs/availability-predictor"),
) -> None:
    """Judge predictors of availability."""
    chosen, rounds = names(predictors), round(60 * minutes / round_s)
    for name in chosen:
        if name not in PREDICTORS:
            raise EdgesimError(f"--predictors: unknown {name!r}; known: {', '.join(PREDICTORS)}")
    rows: list[dict[str, object]] = []
    scores: dict[str, dict[tuple[int, int], Score]] = {}
    others = {(past, future) for past in counts(histories)} | {(history, ahead) for ahead in counts(futures)}
    # What does not fit into a short log is left out of the figure; the windows of the table must fit.
    windows = sorted({pair for pair in others if sum(pair) <= rounds} | {(history, future)})
    first: tuple[Booleans, dict[str, Backtest]] | None = None
    for label, trace in zip(short_names(names(traces)), names(traces), strict=True):
        logs = [
            availability_log(trace, devices, round_s, rounds, seed)
            for seed in range(seeds if trace == "synthetic" else 1)
        ]
        present = np.concatenate(logs, axis=1)
        results = {name: backtest(present, make_predictor(name), history, future, every) for name in chosen}
        rows += [row_of(label, name, result, present.shape[1]) for name, result in results.items()]
        first = first or (present, results)
        scores[label] = {}
        for past, ahead in windows:
            judged = backtest(present, make_predictor(chosen[0]), past, ahead, every).overall
            scores[label][past, ahead] = Score(judged.accuracy, judged.f1)
    console = Console()
    _print(console, pd.DataFrame(rows), f"K_h {history}, K {future} rounds of {round_s:g} s, {minutes:g} minutes")
    out.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(rows).to_csv(out / "predictors.csv", index=False, lineterminator="\n")
    flat = [(trace, *pair, *score) for trace, found in scores.items() for pair, score in found.items()]
    columns = ["trace", "history_rounds", "future_rounds", "accuracy", "f1"]
    pd.DataFrame(flat, columns=columns).to_csv(out / "sensitivity.csv", index=False, lineterminator="\n")
    assert first is not None
    present, results = first
    hours = round_s / 3600
    accuracy = {
        name: (hours * np.array(result.rounds), np.array([each.accuracy for each in result.confusions]))
        for name, result in results.items()
    }
    costs = {name: np.array(result.wall_s) / present.shape[1] for name, result in results.items()}
    overheads = device_overheads(present, history, future)
    table = overhead_table(overheads)
    _print(console, table, "on a device, per selection")
    table.to_csv(out / "overheads.csv", index=False, lineterminator="\n")
    figures = {
        "sensitivity": draw_sensitivity(scores, history, future),
        "over_time": draw_over_time(hours * np.arange(rounds), present.mean(axis=1), accuracy),
        "costs": draw_costs(costs, overheads, WITHOUT),
    }
    for name, figure in figures.items():
        style.save(figure, out / "plots" / name)
    console.print(f"figures in {out / 'plots'}; tables in {out}", highlight=False)


def _print(console: Console, table: pd.DataFrame, title: str) -> None:
    shown = Table(title=title, title_justify="left")
    for name in table.columns:
        shown.add_column(name, justify="left" if name in ("trace", "predictor", "selector") else "right", no_wrap=True)
    for row in table.itertuples(index=False):
        shown.add_row(*(f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in row))
    print_whole(console, shown)


if __name__ == "__main__":
    start(main)
