"""Which share of the energy led somewhere, and why the rest did not."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from edgesim.analysis.runs import Run
from edgesim.analysis.waste import KINDS, totals, work_by_kind
from edgesim.plots import style
from edgesim.plots.groups import Panel
from edgesim.plots.stacks import Part, draw_stacks, draw_stacks_over_rounds

_LABEL = "share of energy (1)"
_PARTS = {
    "useful": Part("useful", style.PALETTE["green"]),
    "late": Part("late", style.PALETTE["orange"], "////"),
    "dropped": Part("dropped", style.PALETTE["vermilion"], "xxxx"),
    "unscheduled": Part("unscheduled", style.PALETTE["grey"]),
    "unused": Part("unused", style.PALETTE["purple"], "...."),
}


def draw_waste(panels: Sequence[Panel]) -> Figure:
    """Stacked bars of the share of a run's joules by what came of the work: mean over seeds, a bar per series."""
    return draw_stacks(panels, _PARTS, shares, _LABEL)


def draw_waste_over_rounds(run: Run) -> Figure:
    """The same shares of one run, round by round; a round without any work stays empty."""
    work = work_by_kind(run.activities, run.updates).pivot(index="round", columns="kind", values="joules")
    table = work.reindex(index=pd.Index(run.rounds["round"]), columns=list(KINDS)).fillna(0.0)
    return draw_stacks_over_rounds(table, _PARTS, _LABEL, share=True)


def shares(run: Run) -> dict[str, float]:
    """Share of the run's joules by kind; zeros when none were spent."""
    joules = totals(work_by_kind(run.activities, run.updates))["joules"]
    spent = float(joules.sum()) or 1.0
    return {str(kind): float(amount) / spent for kind, amount in joules.items()}
