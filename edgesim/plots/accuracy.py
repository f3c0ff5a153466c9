"""Test accuracy over rounds and over simulated seconds: means over seeds, with 95 % bands for the compared series."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from edgesim.analysis.accuracy_series import Over, accuracy_series
from edgesim.analysis.metrics import final_accuracy
from edgesim.analysis.needed import need_tests
from edgesim.plots import style
from edgesim.plots.common_past import COMMON_PAST, left_past, mark_past, past_text
from edgesim.plots.groups import Panel, labels_of, runs_of
from edgesim.plots.intervals import LEAST_SEEDS, drawn_interval, mean_note
from edgesim.plots.panel_figures import draw_means, line_panels

_MOST_BANDS = 3
"""Most series that all get a band; of more, two are compared and the others are thin lines."""

LABELS = {"rounds": "communication round", "seconds": "simulated time (s)"}
HOUR_S = 3600.0


def draw_accuracy(
    panels: Sequence[Panel], over: Over, target: float | None = None, reference: str = "random"
) -> Figure:
    """Accuracy curves from the start accuracy on, a line per series, the target as a thin line.

    Over rounds: the rounds that every seed of a series evaluated. Over seconds: each seed keeps its last value until
    the next evaluation, up to the time that every seed reached. Seconds are shown as hours if a run lasts an hour or
    more. A dotted line stands where forks leave the past that they have in common with other runs. The series that are
    `compared` have bands of the 95 % t interval over seeds, from three seeds on; the others are thin lines with few
    markers.
    """
    need_tests(runs_of(panels))
    foremost = compared(panels, reference)
    has_bands = any(len(series.runs) >= LEAST_SEEDS for panel in panels for series in panel.series)
    bands = ["95 % band" if len(foremost) == len(labels_of(panels)) else "95 % band of thick lines"] * has_bands
    texts = [] if target is None else [f"target {target:g}"]
    forks = past_text(runs_of(panels))
    with line_panels(panels, "test accuracy" + mean_note(panels), further=[*texts, *forks, *bands]) as drawn:
        in_hours = over == "seconds" and longest_s(panels) >= HOUR_S
        for axes, panel in drawn.each:
            for series in panel.series:
                places, values = accuracy_series(series.runs, over)
                places = places / HOUR_S if in_hours else places
                intervals = [drawn_interval(column).within(0, 1) for column in values.T]
                look, thick = drawn.styles[series.label], series.label in foremost
                step_between = max(1, places.size // (6 if thick else 3))
                # The markers of each series are shifted, so that they do not hide those of another.
                first_mark = int(step_between * drawn.labels.index(series.label) / len(drawn.labels))
                drawn.lines[series.label] = draw_means(
                    axes,
                    places,
                    intervals,
                    banded=thick and len(series.runs) >= LEAST_SEEDS,
                    steps=over == "seconds",
                    label=series.label,
                    linewidth=1.2 if thick else 0.6,
                    markersize=3.5 if thick else 2.8,
                    zorder=2.5 if thick else 2,
                    **look.marked((first_mark, step_between)),
                )
            if target is not None:
                drawn.lines[texts[0]] = axes.axhline(target, color="#555555", linewidth=0.7, zorder=1.5)
            left = {place for series in panel.series for place in left_past(series.runs, over)}
            if line := mark_past(axes, [place / HOUR_S if in_hours else place for place in left]):
                drawn.lines[COMMON_PAST] = line
            axes.xaxis.set_major_locator(MaxNLocator(6, integer=over == "rounds"))
            axes.set_xlabel("simulated time (h)" if in_hours else LABELS[over])
        drawn.lines.update({text: style.band_patch() for text in bands})
        axes.set_xlim(left=0)
    return drawn.figure


def compared(panels: Sequence[Panel], reference: str) -> set[str]:
    """Labels of the series that a figure highlights: all of them if there are at most `_MOST_BANDS`.

    Otherwise two: the first series of the reference policy (or the first of all if the policy has none) and the one
    with the highest final accuracy, as a mean over panels and seeds.
    """
    labels = labels_of(panels)
    if len(labels) <= _MOST_BANDS:
        return set(labels)
    each = [series for panel in panels for series in panel.series]
    own = (series.label for series in each if all(run.knobs.get("policy") == reference for run in series.runs))
    accuracy = {
        label: np.mean([final_accuracy(run.rounds) for series in each if series.label == label for run in series.runs])
        for label in labels
    }
    return {next(own, labels[0]), max(labels, key=lambda label: float(accuracy[label]))}


def longest_s(panels: Sequence[Panel]) -> float:
    """Simulated seconds of the longest run."""
    return max(float(run.rounds["t_end_s"].iloc[-1]) for run in runs_of(panels))
