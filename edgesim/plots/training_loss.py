"""Training loss over rounds (FedDance, figs. 9 and 14), and over simulated seconds."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from edgesim.analysis.needed import need_runs
from edgesim.analysis.runs import RunFolder
from edgesim.base.arrays import Floats
from edgesim.base.errors import EdgesimError
from edgesim.plots.common_past import COMMON_PAST, left_past, mark_past, past_text
from edgesim.plots.groups import Panel, runs_of
from edgesim.plots.intervals import mean_note
from edgesim.plots.panel_figures import line_panels

_SMOOTHED = 20
"""Most points of a line: each is a mean over several rounds, since the devices that train differ between rounds."""


def has_training_loss(runs: Sequence[RunFolder]) -> bool:
    """Whether every run has trained at all."""
    return all(run.rounds["train_loss"].notna().any() for run in runs)


def draw_training_loss(panels: Sequence[Panel]) -> Figure:
    """Mean loss of the updates merged, over rounds and seeds, a line per series; at most 20 points each.

    A dotted line stands where forks leave the past that they have in common with other runs. Raises `EdgesimError` for
    a run that has trained nothing.
    """
    _need_training(runs_of(panels))
    forks = past_text(runs_of(panels))
    with line_panels(panels, "training loss (nat)" + mean_note(panels), further=forks) as drawn:
        for axes, panel in drawn.each:
            for series in panel.series:
                at, loss = smoothed([run.rounds["train_loss"].to_numpy(dtype=np.float64) for run in series.runs])
                (drawn.lines[series.label],) = axes.plot(at, loss, **drawn.styles[series.label].marked(every=3))
            left = {place for series in panel.series for place in left_past(series.runs, "rounds")}
            if line := mark_past(axes, left):
                drawn.lines[COMMON_PAST] = line
            axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
            axes.set_xlabel("communication round")
        axes.set(xlim=(0, None), ylim=(0, None))
    return drawn.figure


def draw_loss_seconds(panels: Sequence[Panel]) -> Figure:
    """Mean loss of the updates merged, over simulated seconds and seeds, a line per series; at most 20 points each.

    Raises `EdgesimError` for a run that has trained nothing.
    """
    _need_training(runs_of(panels))
    with line_panels(panels, "training loss (nat)" + mean_note(panels)) as drawn:
        for axes, panel in drawn.each:
            for series in panel.series:
                _, loss = smoothed([run.rounds["train_loss"].to_numpy(dtype=np.float64) for run in series.runs])
                _, at_s = smoothed([run.rounds["t_end_s"].to_numpy(dtype=np.float64) for run in series.runs])
                (drawn.lines[series.label],) = axes.plot(at_s, loss, **drawn.styles[series.label].marked(every=3))
            axes.set_xlabel("simulated time (s)")
        axes.set(xlim=(0, None), ylim=(0, None))
    return drawn.figure


def _need_training(runs: Sequence[RunFolder]) -> None:
    need_runs(runs)
    if idle := [run for run in runs if not has_training_loss([run])]:
        raise EdgesimError(f"{idle[0].folder}: nothing was trained; expected a run that trains")


def smoothed(losses: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Middles of equal blocks of rounds and the mean loss in each, over all seeds, without rounds that have no updates.

    ``losses`` are the losses by round, [rounds], of each seed; only rounds that all seeds have are used.
    """
    rounds = min(len(loss) for loss in losses)
    table = np.stack([loss[:rounds] for loss in losses])
    at, means = [], []
    for stretch in np.array_split(np.arange(rounds), min(_SMOOTHED, rounds)):
        values = table[:, stretch]
        if not np.isnan(values).all():
            at.append(stretch.mean() + 1)
            means.append(float(np.nanmean(values)))
    return np.array(at), np.array(means)
