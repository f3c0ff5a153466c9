"""Which deadline and which band? Simulated seconds and joules to a target accuracy, with learning.

All runs last equally many simulated seconds. First a coarse grid of Tmax x band, then, around the cells that need the
fewest seconds and the fewest joules to the target, deadlines and bands half-way to their neighbours.
"""

from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer

from edgesim.analysis.summary import summarise
from edgesim.errors import EdgesimError
from edgesim.scenario import conclude, numbers, plain_errors
from edgesim.study import PlannedRun, Study, grid, run_study

PAPER_CNN_BITS = 17_881_664.0


MEASURES = {"seconds_to_target": "s", "joules_to_target": "J"}

Cell = tuple[float, float]
"""A deadline in s and a band in Hz."""


def cells(base: dict[str, Any], chosen: list[Cell], seeds: int) -> list[PlannedRun]:
    """Runs of some cells of the grid."""
    axes = [{"radio.bandwidth_hz": [band_hz], "round.tmax_s": [deadline_s]} for deadline_s, band_hz in chosen]
    return [run for axis in axes for run in grid(base, axis, range(seeds))]


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


def best_cell(study_folder: Path, measure: str) -> pd.Series:
    """The row of the summary in which all seeds reached the target soonest; of those that did not, the nearest.

    Cells in which a seed could not be run at all, as its band serves nobody, come last.
    """
    summary = summarise(study_folder)
    return summary.sort_values(["left_out", "not_reached", measure], kind="stable").iloc[0]


def best_of(study_folder: Path, measure: str) -> Cell:
    """The deadline and the band of `best_cell`."""
    best = best_cell(study_folder, measure)
    return float(best["tmax_s"]), float(best["bandwidth_hz"])


def answer(study_folder: Path, measure: str, tried: set[Cell]) -> str:
    """The best cell by a measure, and whether a wider grid might hold a better one."""
    best = best_cell(study_folder, measure)
    tried_s, tried_hz = (sorted({cell[axis] for cell in tried}) for axis in (0, 1))
    axes = (("--tmax", tried_s, best["tmax_s"]), ("--band-mhz", tried_hz, best["bandwidth_hz"]))
    at_edge = [option for option, values, value in axes if len(values) > 1 and value in (values[0], values[-1])]
    return (
        f"Least {measure.replace('_', ' ')}: Tmax {best['tmax_s']:g} s on {best['bandwidth_hz'] / 1e6:g} MHz, "
        f"{best[measure]:.1f} ± {best[f'{measure}_high'] - best[measure]:.1f} {MEASURES[measure]} "
        f"(95 % over {best['seeds']:.0f} seeds"
        + (f", {best['not_reached']:.0f} of which never reached the target)" if best["not_reached"] else ")")
        + (f"; that is the grid's edge, widen {' and '.join(at_edge)}." if at_edge else ".")
    )


@plain_errors
def main(
    policy: Annotated[str, typer.Option(help="Scheduling policy.")] = "fedteddi",
    tmax: Annotated[str, typer.Option(help="Coarse deadlines in seconds.")] = "0.25,0.4,0.6,0.9,1.4",
    band_mhz: Annotated[str, typer.Option(help="Bands in MHz.")] = "10,20,40,80,160",
    simulated_s: Annotated[float, typer.Option(min=1, help="Simulated seconds of every run.")] = 45.0,
    target: Annotated[float, typer.Option(min=0, max=1, help="Accuracy to race to.")] = 0.75,
    refinements: Annotated[int, typer.Option(min=0, help="How often to refine around the best cells.")] = 1,
    seeds: Annotated[int, typer.Option(min=2, help="Number of seeds.")] = 5,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; one per core when absent.")] = None,
    out: Annotated[Path, typer.Option(help="Study folder.")] = Path("runs/tune-tmax"),
) -> None:
    """Find the deadline and the band that reach a target accuracy soonest."""
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
    runs = cells(base, sorted(tried), seeds)
    run_study(Study(out.name, runs, target), out, jobs)
    for _ in range(refinements):
        finer = {cell for measure in MEASURES for cell in around(tried, *best_of(out, measure))} - tried
        runs += cells(base, sorted(finer), seeds)
        tried |= finer
        run_study(Study(out.name, runs, target), out, jobs)
    conclude(out, answers=[answer(out, measure, tried) for measure in MEASURES])


if __name__ == "__main__":
    typer.run(main)
