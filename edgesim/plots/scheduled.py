"""Clients that a policy schedules, with and without a new class (FedTeddi, fig. 4)."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from edgesim.analysis.needed import need_runs
from edgesim.analysis.runs import RunFolder
from edgesim.plots.groups import Panel, runs_of
from edgesim.plots.stacks import Part, draw_stacks

_NEW, _OLD = Part("with a new class", "#444444", "////"), Part("only old classes", "#bbbbbb")


def draw_scheduled(panels: Sequence[Panel]) -> Figure:
    """Stacked bars of mean scheduled clients per round, over rounds and seeds, a bar per series.

    The 95 % t interval over seeds is that of all scheduled clients together. If no device ever gets a new class, or the
    runs have no classes, the bars are not divided.
    """
    need_runs(runs_of(panels))
    parts = {"new": _NEW, "old": _OLD} if _is_split(runs_of(panels)) else {"all": Part("scheduled", _OLD.color)}
    return draw_stacks(panels, parts, scheduled_per_round, "scheduled clients per round")


def scheduled_per_round(run: RunFolder) -> dict[str, float]:
    """Mean scheduled clients of a run's rounds: those with a new class, those without, and all."""
    counts = run.scheduled_by_class
    new, old = float(counts["with_new"].mean()), float(counts["only_old"].mean())
    return {"new": new, "old": old, "all": new + old}


def _is_split(runs: Sequence[RunFolder]) -> bool:
    """Whether all runs have the classes that their devices hold in each frame, and some device gets a new one."""
    newcomers = [run.has_newcomers for run in runs]
    return None not in newcomers and any(newcomers)
