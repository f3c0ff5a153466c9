"""Which deadline and which band? Simulated seconds and joules to a target accuracy, with learning.

All runs last equally many simulated seconds. An optimiser (Optuna) proposes cells of Tmax x band, to need few seconds
and few joules to the target. The best of many cells owes part of its lead to its seeds' luck, so the best few are run
once more on seeds that chose nothing.
"""

import itertools
from typing import Annotated, Any

import pandas as pd
from typer import Option

import edgesim
from edgesim.scenario import Runs, Target, conclude, numbers, scenario, start, stop_if_failed, tables

PAPER_CNN_BITS = 17_881_664.0
MEASURES = {"seconds_to_target": "s", "joules_to_target": "J"}
RUNNERS_UP = 2
"""Cells beside the best one that are judged on fresh seeds."""

Cell = tuple[float, float]
"""A deadline in s and a band in Hz."""


def deadlines(text: str) -> tuple[float, float] | list[float]:
    """A range of deadlines or a list of them, in s; raises `EdgesimError`."""
    values = numbers(text.replace(":", ","))
    if min(values) <= 0:
        raise edgesim.EdgesimError(f"--tmax: expected numbers above 0 (got {min(values):g})")
    return (values[0], values[-1]) if text.count(":") == 1 and len(values) == 2 else numbers(text)


def best(summary: pd.DataFrame, measure: str, count: int = 1) -> list[Cell]:
    """Deadlines and bands of the first cells of `tables.ranked`."""
    rows = tables.ranked(summary, measure).head(count)
    return list(zip(rows["tmax_s"].astype(float), rows["bandwidth_hz"].astype(float), strict=True))


def answer(found: pd.DataFrame, fresh: pd.DataFrame, measure: str, tried: set[Cell]) -> str:
    """The best cells by a measure, on the seeds that chose them and on fresh ones; whether a wider grid may do more.

    ``found`` and ``fresh`` are the summaries of the two, ``tried`` cells with the ends of what was searched.
    """
    chosen = best(found, measure, 1 + RUNNERS_UP)
    deadline_s, band_hz = chosen[0]
    tried_s, tried_hz = (sorted({cell[axis] for cell in tried}) for axis in (0, 1))
    axes = (("--tmax", tried_s, deadline_s), ("--band-mhz", tried_hz, band_hz))
    at_edge = [option for option, values, value in axes if len(values) > 1 and value in (values[0], values[-1])]
    lines = [
        f"Least {measure.replace('_', ' ')} (mean ± 95 %): "
        f"{name(chosen[0])}, {judged(found, fresh, chosen[0], measure)}"
        + (f"; that is the grid's edge, widen {' and '.join(at_edge)}." if at_edge else ".")
    ]
    lines += [f"  Next: {name(cell)}, {judged(found, fresh, cell, measure)}." for cell in chosen[1:]]
    if (first := best(fresh[fresh.apply(lambda row: of_row(row) in chosen, axis=1)], measure)[0]) != chosen[0]:
        lines.append(f"  On the fresh seeds {name(first)} comes first of these.")
    return "\n".join(lines)


def judged(found: pd.DataFrame, fresh: pd.DataFrame, cell: Cell, measure: str) -> str:
    """What a cell needs on the seeds that chose it and on fresh ones."""
    texts = []
    for summary in (found, fresh):
        (row,) = [row for row in summary.to_dict("records") if of_row(row) == cell]
        texts.append(f"{tables.mean_text(row, measure, '{:.1f}') or 'no run'} {MEASURES[measure]}")
    return f"{texts[0]} on the seeds that chose it, {texts[1]} on fresh ones"


def of_row(row: Any) -> Cell:
    """The cell that a row of a summary is about."""
    return float(row["tmax_s"]), float(row["bandwidth_hz"])


def name(cell: Cell) -> str:
    """A cell as it is told."""
    return f"Tmax {cell[0]:g} s on {cell[1] / 1e6:g} MHz"


@scenario(
    "runs/tune-tmax",
    quick={"tmax": "0.6,1.2", "band_mhz": "20,40", "simulated_s": 4, "target": 0.6, "trials": 3, "seeds": 2},
)
def main(
    runs: Runs,
    policy: Annotated[str, Option(help="Scheduling policy.")] = "fedteddi",
    tmax: Annotated[str, Option(help="Deadlines in seconds: a list, or a range such as 0.2:1.4.")] = (
        "0.2,0.25,0.3,0.4,0.5,0.6,0.75,0.9,1.1,1.4"
    ),
    band_mhz: Annotated[str, Option(help="Bands in MHz, a list.")] = "10,20,40,80,160",
    simulated_s: Annotated[float, Option(min=1, help="Simulated seconds of every run.")] = 45.0,
    target: Target = 0.75,
    trials: Annotated[int, Option(min=1, help="Cells to try.")] = 17,
    seeds: Annotated[int, Option(min=2, help="Number of seeds.")] = 5,
) -> None:
    """Find the deadline and the band that reach a target accuracy soonest, and judge them on fresh seeds."""
    base = {
        "stop_at_s": simulated_s,
        "selection": {"policy": policy},
        "round": {"payload_bits": PAPER_CNN_BITS},
        "data": {"partition": "fedteddi", "folder": str(runs.folder)},
        "learning": {"pretrain": True},
    }
    knobs = {"round.tmax_s": deadlines(tmax), "radio.bandwidth_hz": [1e6 * mhz for mhz in numbers(band_mhz)]}
    names = [measure.replace("_", "-") for measure in MEASURES]
    # Runners-up are told too, so none is given up.
    how: dict[str, Any] = {"target": target, "seeds": seeds, "prune": False, "judge": 0, "set": runs.set_}
    how["format"] = ",".join(runs.formats)
    tuned = edgesim.tune(base, knobs, names, trials, runs.out, jobs=runs.jobs, fresh=runs.fresh, **how)
    # With --fresh the study may have cells of trials that were forgotten.
    asked = tuned.trials.loc[tuned.trials["status"] == "complete", ["tmax_s", "bandwidth_hz"]]
    found = edgesim.StudyResult(runs.out).table().merge(asked.astype(float))
    for deadline_s, band_hz in sorted({cell for measure in MEASURES for cell in best(found, measure, 1 + RUNNERS_UP)}):
        axes = {"round.tmax_s": [deadline_s], "radio.bandwidth_hz": [band_hz]}
        runs.add(base, axes, seeds=range(seeds, 2 * seeds))
    anew = runs.study(runs.out.with_name(f"{runs.out.name}-fresh"), target=target)
    searched = set(itertools.product(*knobs.values()))
    conclude(
        runs.out, answers=[answer(found, anew.table(), measure, searched) for measure in MEASURES], formats=runs.formats
    )
    stop_if_failed(anew.folder)


if __name__ == "__main__":
    start(main)
