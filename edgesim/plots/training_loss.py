"""Training loss over rounds (FedDance, figs. 9 and 14), and over simulated seconds."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from edgesim.analysis.accuracy_series import Over
from edgesim.analysis.needed import need_runs
from edgesim.analysis.runs import RunFolder
from edgesim.analysis.statistics import Interval
from edgesim.base.arrays import Floats
from edgesim.base.errors import EdgesimError
from edgesim.plots import style
from edgesim.plots.accuracy import LABELS
from edgesim.plots.common_past import COMMON_PAST, left_past, mark_past, past_text
from edgesim.plots.groups import Panel, runs_of
from edgesim.plots.intervals import LEAST_SEEDS, counts_text, drawn_interval
from edgesim.plots.panel_figures import draw_means, line_panels

_SMOOTHED = 20
"""Most points of a line: each is a mean over equal stretches, since the devices that train differ between rounds."""


def has_training_loss(runs: Sequence[RunFolder]) -> bool:
    """Whether every run has trained at all."""
    return all(run.rounds["train_loss"].notna().any() for run in runs)


def draw_training_loss(panels: Sequence[Panel], over: Over = "rounds") -> Figure:
    """Mean loss of the updates merged, over rounds or simulated seconds and seeds, a line per series; at most 20 points
    each, of how many rounds the axis says.

    Bands are the 95 % t interval over seeds, from three seeds on. A dotted line stands where forks leave the past that
    they have in common with other runs. Raises `EdgesimError` for a run that has trained nothing.
    """
    _need_training(runs_of(panels))
    column = "round" if over == "rounds" else "t_end_s"
    has_bands = any(len(series.runs) >= LEAST_SEEDS for panel in panels for series in panel.series)
    bands = ["95 % band"] * has_bands
    further = [*past_text(runs_of(panels)), *bands]
    with line_panels(panels, "training loss (nat)" + _note(panels), further=further) as drawn:
        for axes, panel in drawn.each:
            for series in panel.series:
                at, means = smoothed([run.rounds[[column, "train_loss"]].to_numpy(np.float64) for run in series.runs])
                look = drawn.styles[series.label].marked(every=3)
                banded = len(series.runs) >= LEAST_SEEDS
                drawn.lines[series.label] = draw_means(axes, at, means, banded=banded, **look)
            left = {place for series in panel.series for place in left_past(series.runs, over)}
            if line := mark_past(axes, left):
                drawn.lines[COMMON_PAST] = line
            axes.xaxis.set_major_locator(MaxNLocator(6, integer=over == "rounds"))
            axes.set_xlabel(LABELS[over])
        drawn.lines.update({text: style.band_patch() for text in bands})
        axes.set(xlim=(0, None), ylim=(0, None))
    return drawn.figure


def _need_training(runs: Sequence[RunFolder]) -> None:
    need_runs(runs)
    if idle := [run for run in runs if not has_training_loss([run])]:
        raise EdgesimError(f"{idle[0].folder}: nothing was trained; expected a run that trains")


def _note(panels: Sequence[Panel]) -> str:
    """Note below the axis label that says of how many rounds and seeds a point is the mean; empty if of one."""
    every = [series.runs for panel in panels for series in panel.series]
    rounds = {_stretch(min(len(run.rounds) for run in runs)) for runs in every}
    counts = {"rounds": rounds, "seeds": {len(runs) for runs in every}}
    means = [f"{counts_text(of)} {name}" for name, of in counts.items() if max(of) > 1]
    # All on one line would be longer than a panel is high.
    return "\nmean of " + "\nand ".join(means) if means else ""


def _stretch(rounds: int) -> int:
    """Rounds of which a point is the mean; the last one of a line may be of fewer."""
    return -(-rounds // _SMOOTHED)


def smoothed(losses: Sequence[Floats]) -> tuple[Floats, list[Interval]]:
    """Middles of equal stretches of rounds, and in each the mean loss over seeds with its interval.

    ``losses`` are the places and losses by round, [rounds, 2], of each seed; only rounds that all seeds have are used.
    The last stretch may be shorter. A seed's loss in a stretch is the mean over its rounds that have updates.
    """
    rounds = min(len(loss) for loss in losses)
    table = np.stack([loss[:rounds] for loss in losses])
    at, means = [], []
    for begin in range(0, rounds, _stretch(rounds)):
        part = table[:, begin : begin + _stretch(rounds)]
        each = [seed[~np.isnan(seed)].mean() for seed in part[:, :, 1] if not np.isnan(seed).all()]
        if each:
            at.append(float(part[:, :, 0].mean()))
            means.append(drawn_interval(each).within(0))
    return np.array(at), means
