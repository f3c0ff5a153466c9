"""Energy of a round by activity."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure

from edgesim.activities import ACTIVITIES, COMPUTE, UPLOAD
from edgesim.analysis.energy_use import IDLE, energy_by_activity_j
from edgesim.analysis.runs import RunFolder
from edgesim.plots import palette
from edgesim.plots.common_past import left_past
from edgesim.plots.groups import Panel
from edgesim.plots.stacks import Part, draw_stacks, draw_stacks_over_rounds

_LABEL = "energy (J per round)"
_PARTS = {
    **{name: Part(name, ACTIVITIES[name].color, ACTIVITIES[name].hatch) for name in (COMPUTE, UPLOAD, *ACTIVITIES)},
    IDLE: Part("idle", palette.PALETTE["grey"], "xxxx"),
}


def draw_energy(panels: Sequence[Panel]) -> Figure:
    """Stacked bars of the mean joules of a round by activity, over rounds and seeds, a bar per series.

    The 95 % t interval over seeds is that of all activities together.
    """
    return draw_stacks(panels, _PARTS, joules_per_round, _LABEL)


def draw_energy_over_rounds(run: RunFolder) -> Figure:
    """Joules of one run by activity, round by round."""
    return draw_stacks_over_rounds(_by_round(run), _PARTS, _LABEL, share=False, past=left_past([run], "rounds"))


def joules_per_round(run: RunFolder) -> dict[str, float]:
    """Mean joules of a round by activity."""
    spent = _by_round(run).sum()
    return {name: float(spent[name]) / len(run.rounds) for name in _PARTS}


def _by_round(run: RunFolder) -> pd.DataFrame:
    """Joules by round and activity, without work that the end of the run cancelled, which belongs to no round."""
    return energy_by_activity_j(run.activities, run.metrics).reindex(pd.Index(run.rounds["round"]), fill_value=0.0)
