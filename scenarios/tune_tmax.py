"""Which deadline and which band? Simulated seconds and joules to a target accuracy, with learning.

All runs last equally many simulated seconds. First a coarse grid of Tmax x band, then, around the cells that need the
fewest seconds and the fewest joules to the target, deadlines and bands half-way to their neighbours. The best of many
cells owes part of its lead to its seeds' luck, so the best few are run once more on seeds that chose nothing.
"""

from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from rich.console import Console

import edgesim
from edgesim.analysis.summary import summarise
from edgesim.errors import EdgesimError
from edgesim.scenario import Fresh, Jobs, Out, Set, conclude, numbers, plain_errors, quick_option, start, stop_if_failed
from edgesim.terminal.show import mean_text

PAPER_CNN_BITS = 17_881_664.0


MEASURES = {"seconds_to_target": "s", "joules_to_target": "J"}
RUNNERS_UP = 2
"""Cells beside the best one that are judged on fresh seeds."""

Cell = tuple[float, float]
"""A deadline in s and a band in Hz."""
QUICK = quick_option(tmax="0.6,1.2", band_mhz="40", simulated_s=4, target=0.6, seeds=2, out="runs/tune-tmax-quick")


def cells(base: dict[str, Any], chosen: list[Cell], seeds: range, set_: Set) -> list[edgesim.PlannedRun]:
    """Runs of some cells of the grid."""
    axes = [{"radio.bandwidth_hz": [band_hz], "round.tmax_s": [deadline_s]} for deadline_s, band_hz in chosen]
    return [run for axis in axes for run in edgesim.grid(base, axis, seeds, set_)]


def around(tried: set[Cell], deadline_s: float, band_hz: float) -> set[Cell]:
    """Half-way points from a cell to its neighbours: other deadlines on its band, other bands at its deadline."""
    deadlines_s = between({other_s for other_s, other_hz in tried if other_hz == band_hz}, deadline_s)
    bands_hz = between({other_hz for other_s, other_hz in tried if other_s == deadline_s}, band_hz)
    return {(finer_s, band_hz) for finer_s in deadlines_s} | {(deadline_s, finer_hz) for finer_hz in bands_hz}


def between(values: set[float], best: float) -> list[float]:
    """Half-way points from the best value to its neighbours on the grid."""
    ordered = sorted(values)
    place = ordered.index(best)
    return [round((best + ordered[near]) / 2, 6) for near in (place - 1, place + 1) if 0 <= near < len(ordered)]


def ranked(summary: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Rows of the summary, the best first: those in which all seeds reached the target, soonest first.

    Then those of which the fewest did not; cells in which a seed could not be run at all, as its band serves nobody,
    come last.
    """
    bound = summary[f"{measure}_bound"].fillna(summary[measure])
    order = ["left_out", "not_reached", "_bound"]
    return summary.assign(_bound=bound).sort_values(order, kind="stable").drop(columns="_bound")


def best(summary: pd.DataFrame, measure: str, count: int = 1) -> list[Cell]:
    """Deadlines and bands of the first cells of `ranked`."""
    rows = ranked(summary, measure).head(count)
    return list(zip(rows["tmax_s"].astype(float), rows["bandwidth_hz"].astype(float), strict=True))


def answer(found: pd.DataFrame, fresh: pd.DataFrame, measure: str, tried: set[Cell]) -> str:
    """The best cells by a measure, on the seeds that chose them and on fresh ones; whether a wider grid may do more.

    ``found`` and ``fresh`` are the summaries of the two.
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
        texts.append(f"{mean_text(row, measure, '{:.1f}') or 'no run'} {MEASURES[measure]}")
    return f"{texts[0]} on the seeds that chose it, {texts[1]} on fresh ones"


def of_row(row: Any) -> Cell:
    """The cell that a row of a summary is about."""
    return float(row["tmax_s"]), float(row["bandwidth_hz"])


def name(cell: Cell) -> str:
    """A cell as it is told."""
    return f"Tmax {cell[0]:g} s on {cell[1] / 1e6:g} MHz"


@plain_errors
def main(
    policy: Annotated[str, typer.Option(help="Scheduling policy.")] = "fedteddi",
    tmax: Annotated[str, typer.Option(help="Coarse deadlines in seconds.")] = "0.25,0.4,0.6,0.9,1.4",
    band_mhz: Annotated[str, typer.Option(help="Bands in MHz.")] = "10,20,40,80,160",
    simulated_s: Annotated[float, typer.Option(min=1, help="Simulated seconds of every run.")] = 45.0,
    target: Annotated[float, typer.Option(min=0, max=1, help="Accuracy to race to.")] = 0.75,
    refinements: Annotated[int, typer.Option(min=0, help="How often to refine around the best cells.")] = 1,
    seeds: Annotated[int, typer.Option(min=2, help="Number of seeds.")] = 5,
    set_: Set = None,
    quick: Annotated[bool, QUICK] = False,
    jobs: Jobs = None,
    fresh: Fresh = False,
    out: Out = Path("runs/tune-tmax"),
) -> None:
    """Find the deadline and the band that reach a target accuracy soonest, and judge them on fresh seeds."""
    base = {
        "stop_at_s": simulated_s,
        "selection": {"policy": policy},
        "round": {"payload_bits": PAPER_CNN_BITS},
    }
    deadlines_s, bands_mhz = numbers(tmax), numbers(band_mhz)
    for option, values in (("--tmax", deadlines_s), ("--band-mhz", bands_mhz)):
        if min(values) <= 0:
            raise EdgesimError(f"{option}: expected numbers above 0 (got {min(values):g})")
    tried = {(deadline_s, 1e6 * mhz) for deadline_s in deadlines_s for mhz in bands_mhz}
    runs = cells(base, sorted(tried), range(seeds), set_)
    edgesim.study(runs, out=out, target=target, jobs=jobs, fresh=fresh)
    for _ in range(refinements):
        found = summarise(out)
        finer = {cell for measure in MEASURES for cell in around(tried, *best(found, measure)[0])} - tried
        added = cells(base, sorted(finer), range(seeds), set_)
        runs += added
        tried |= finer
        edgesim.study(runs, out=out, target=target, jobs=jobs, fresh=fresh and [run.folder for run in added])
    found = summarise(out)
    chosen = {cell for measure in MEASURES for cell in best(found, measure, 1 + RUNNERS_UP)}
    judged_out = out.with_name(f"{out.name}-fresh")
    again = cells(base, sorted(chosen), range(seeds, 2 * seeds), set_)
    edgesim.study(again, out=judged_out, target=target, jobs=jobs, fresh=fresh)
    anew = summarise(judged_out)
    conclude(out, answers=[answer(found, anew, measure, tried) for measure in MEASURES])
    stop_if_failed(judged_out, Console())


if __name__ == "__main__":
    start(main)
