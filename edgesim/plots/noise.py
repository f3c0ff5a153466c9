"""Accuracy against the noise multiplier of privacy, and against epsilon."""

from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from edgesim.analysis.metrics import final_accuracy
from edgesim.analysis.needed import need_knobs, need_tests
from edgesim.analysis.runs import RunFolder
from edgesim.plots import palette, style
from edgesim.plots.intervals import LEAST_SEEDS, drawn_interval, note_of_seeds

_PANELS = {"noise": "noise multiplier $z$", "epsilon": "privacy loss $\\varepsilon$"}


def draw_noise(runs: Sequence[RunFolder]) -> Figure:
    """Final accuracy, mean over seeds with its 95 % t interval, a line per mechanism; runs by ``mechanism`` and
    ``noise``, without which they are clipped alone.

    The first panel is over the noise multiplier, the second over epsilon, the mean over seeds, of the settings that
    have one. A grey line is the accuracy of clipping alone.
    """
    need_knobs(runs, "mechanism")
    need_tests(runs)
    groups: dict[tuple[str, float], list[RunFolder]] = {}
    for run in runs:
        groups.setdefault((str(run.knobs["mechanism"]), float(run.knobs.get("noise", 0))), []).append(run)
    noisy = list(dict.fromkeys(name for name, noise in groups if noise))
    styles = palette.line_styles(noisy)
    clipped = [run for (_, noise), group in groups.items() if not noise for run in group]
    banded = max(map(len, groups.values())) >= LEAST_SEEDS
    texts = [*noisy, *(["clipping alone"] if clipped else []), *(["95 % band"] if banded else [])]
    with style.figure(style.PAGE_IN, 2.2, texts) as figure:
        for axes, (place, label) in zip(style.panel_grid(figure, [""] * 2), _PANELS.items(), strict=True):
            for name in noisy:
                points = []
                for (of, noise), group in groups.items():
                    at = noise if place == "noise" else float(np.mean([run.epsilon for run in group]))
                    if of == name and noise and not np.isnan(at):
                        band = drawn_interval([final_accuracy(run.rounds) for run in group]).within(0, 1)
                        points.append((at, *band))
                if points:
                    at, mean, low, high = np.array(sorted(points)).T
                    axes.plot(at, mean, **styles[name].marked(1))
                    axes.fill_between(at, low, high, color=styles[name].color, alpha=0.2, linewidth=0)
            if clipped:
                axes.axhline(
                    float(np.mean([final_accuracy(run.rounds) for run in clipped])), color="grey", linewidth=0.8
                )
            axes.set(xscale="log", xlabel=label)
        figure.axes[0].set_ylabel("final test accuracy" + note_of_seeds([len(group) for group in groups.values()]))
        handles: list[Artist] = [Line2D([], [], **styles[name].marked(1)) for name in noisy]
        handles += [Line2D([], [], color="grey")] if clipped else []
        handles += [style.band_patch()] if banded else []
        style.legend_below(figure, handles, texts)
    return figure
