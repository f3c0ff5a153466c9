"""Loss of accuracy of each algorithm by dynamic participation: IDP as bars."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from edgesim.analysis.runs import RunFolder
from edgesim.analysis.static_pairs import Pair
from edgesim.plots.groups import Panel, Series, knob_text
from edgesim.plots.intervals import drawn_interval, spread_note
from edgesim.plots.panel_figures import row_panels


def draw_participation_loss(pairs: Sequence[Pair]) -> Figure:
    """Mean IDP with the 95 % t interval over three seeds or more: a panel per law of participation, a bar per series.

    A bar to the right of zero is accuracy lost against the static run of the same seed, mean over rounds.
    """
    of = {pair.run.folder: pair.idp_points for pair in pairs}
    panels = panels_of_pairs(pairs)
    least = most = 0.0
    label = "accuracy lost against static, IDP (percentage points)"
    with row_panels(panels, label + spread_note(panels)) as drawn:
        for axes, panel in drawn.each:
            axes.axvline(0, color="black", linewidth=0.7)
            for series in panel.series:
                lost = drawn_interval([of[run.folder] for run in series.runs])
                low, high = drawn.bar(axes, series.label, lost, "{:+.2f}")
                least, most = min(least, low), max(most, high)
        spread = most - least or 1.0
        # Room for the number beside the longest bar.
        axes.set_xlim(least - 0.05 * spread, most + (0.2 if len(panels) == 1 else 0.3) * spread)
    return drawn.figure


def panels_of_pairs(pairs: Sequence[Pair]) -> list[Panel]:
    """A panel per law of participation, with a series per combination of the other knobs that vary.

    The knobs of the law are those in which a run differs from its static run.
    """
    runs = [pair.run for pair in pairs]
    names = list(dict.fromkeys(name for pair in pairs for name in [*pair.run.knobs, *pair.static.knobs]))
    laws = {name for name in names for run, static, _ in pairs if run.knobs.get(name) != static.knobs.get(name)}
    others = [name for name in names if name not in laws and len({run.knobs.get(name) for run in runs}) > 1]
    members: dict[str, dict[str, list[RunFolder]]] = {}
    for run in runs:
        title = _text(run, [name for name in names if name in laws])
        members.setdefault(title, {}).setdefault(_text(run, others) or "all runs", []).append(run)
    return [
        Panel(title, tuple(Series(label, tuple(group)) for label, group in series.items()))
        for title, series in members.items()
    ]


def _text(run: RunFolder, names: Sequence[str]) -> str:
    return ", ".join(knob_text(name, run.knobs[name]) for name in names if name in run.knobs)
