"""Which deadline and which band? Simulated seconds and joules to a target accuracy, with learning.

All runs last equally many simulated seconds. First a coarse grid of Tmax x band, then, around the cell that is fastest
to the target, deadlines half-way to its neighbours.
"""

from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from rich.console import Console

from edgesim.analysis.summary import summarise
from edgesim.scenario import conclude, numbers, plain_errors
from edgesim.study import PlannedRun, Study, grid, run_study

PAPER_CNN_BITS = 17_881_664.0


def cells(base: dict[str, Any], deadlines_s: list[float], bands_hz: list[float], seeds: int) -> list[PlannedRun]:
    """Runs of every deadline on every band."""
    return grid(base, {"radio.bandwidth_hz": bands_hz, "round.tmax_s": deadlines_s}, range(seeds))


def between(values: list[float], best: float) -> list[float]:
    """Half-way points from the best value to its neighbours on the grid."""
    values = sorted(values)
    place = values.index(best)
    return [round((best + values[near]) / 2, 6) for near in (place - 1, place + 1) if 0 <= near < len(values)]


def best_cell(study_folder: Path, measure: str) -> pd.Series:
    """The row of the summary in which all seeds reached the target soonest; of those that did not, the nearest."""
    summary = summarise(study_folder)
    return summary.sort_values(["not_reached", measure], kind="stable").iloc[0]


@plain_errors
def main(
    policy: Annotated[str, typer.Option(help="Scheduling policy.")] = "fedteddi",
    tmax: Annotated[str, typer.Option(help="Coarse deadlines in seconds.")] = "0.4,0.6,0.9,1.4,2.2",
    band_mhz: Annotated[str, typer.Option(help="Bands in MHz.")] = "10,20,40",
    simulated_s: Annotated[float, typer.Option(min=1, help="Simulated seconds of every run.")] = 45.0,
    target: Annotated[float, typer.Option(min=0, max=1, help="Accuracy to race to.")] = 0.75,
    refinements: Annotated[int, typer.Option(min=0, help="How often to refine around the best cell.")] = 2,
    seeds: Annotated[int, typer.Option(min=2, help="Number of seeds.")] = 3,
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; one per core when absent.")] = None,
    out: Annotated[Path, typer.Option(help="Study folder.")] = Path("runs/tune-tmax"),
) -> None:
    """Find the deadline and the band that reach a target accuracy soonest."""
    base = {
        "stop_at_s": simulated_s,
        "selection": {"policy": policy},
        "round": {"payload_bits": PAPER_CNN_BITS},
    }
    bands_hz = [mhz * 1e6 for mhz in numbers(band_mhz)]
    tried = numbers(tmax)
    runs = cells(base, tried, bands_hz, seeds)
    run_study(Study(out.name, runs, target), out, jobs)
    for _ in range(refinements):
        best = best_cell(out, "seconds_to_target")
        finer = between(tried, best["tmax_s"])
        runs += cells(base, finer, [best["bandwidth_hz"]], seeds)
        tried += finer
        run_study(Study(out.name, runs, target), out, jobs)
    conclude(out)
    for measure, unit in (("seconds_to_target", "s"), ("joules_to_target", "J")):
        best = best_cell(out, measure)
        half = best[f"{measure}_high"] - best[measure]
        Console().print(
            f"Least {measure.replace('_', ' ')}: Tmax {best['tmax_s']:g} s on {best['bandwidth_hz'] / 1e6:g} MHz, "
            f"{best[measure]:.1f} ± {half:.1f} {unit} (95 % over {seeds} seeds)"
            + ("." if min(tried) < best["tmax_s"] < max(tried) else "; that is the grid's edge, widen --tmax."),
            highlight=False,
        )


if __name__ == "__main__":
    typer.run(main)
