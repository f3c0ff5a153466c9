"""Share of the devices' time, bits and energy that was useful, and how the rest was wasted."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from edgesim.analysis.runs import RunFolder
from edgesim.analysis.waste import shares
from edgesim.folder.work_kinds import KINDS
from edgesim.plots import palette
from edgesim.plots.common_past import left_past
from edgesim.plots.groups import Panel
from edgesim.plots.stacks import Part, draw_stacks, draw_stacks_over_rounds

_LABELS = {"seconds": "share of device time", "bits": "share of bits", "joules": "share of energy"}
_HATCHES = {"late": "////", "dropped": "xxxx", "unused": "...."}
_PARTS = {kind: Part(kind, color, _HATCHES.get(kind, "")) for kind, color in palette.KIND_COLORS.items()}


def draw_waste(panels: Sequence[Panel], amount: str) -> Figure:
    """Stacked bars of the share of a run's ``seconds``, ``bits`` or ``joules`` by what came of the work.

    Means over seeds, a bar per series, with the 95 % t interval of the useful share.
    """
    return draw_stacks(panels, _PARTS, lambda run: shares(run.work_by_kind, amount), _LABELS[amount], of_whole=False)


def draw_waste_over_rounds(run: RunFolder, amount: str) -> Figure:
    """The same shares of one run, round by round; a round without any such work stays empty."""
    work = run.work_by_kind.pivot(index="round", columns="kind", values=amount)
    table = work.reindex(index=pd.Index(run.rounds["round"]), columns=list(KINDS)).fillna(0.0)
    return draw_stacks_over_rounds(table, _PARTS, _LABELS[amount], share=True, past=left_past([run], "rounds"))
