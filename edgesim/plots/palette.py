"""The colours of all figures, and the look of each policy's line; the pages of reports have them too."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

PALETTE = {
    "black": "#000000",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "green": "#009E73",
    "yellow": "#F0E442",
    "blue": "#0072B2",
    "vermilion": "#D55E00",
    "purple": "#CC79A7",
    "grey": "#999999",
    "brown": "#5E3A00",
    "violet": "#8E3BA0",
    "petrol": "#12586B",
    "crimson": "#B5123B",
    "olive": "#B0A93F",
    "slate": "#66605C",
    "ultramarine": "#2410E0",
    "leaf": "#18C000",
    "azure": "#0078FC",
}
"""Okabe and Ito, "Color Universal Design", 2008, then grey, which stands in for yellow in thin lines.

Nine more, so that every policy has a colour of its own: any two are at least 7 apart in CIELAB (as far as purple and
grey above) also as seen without red or green cones (Machado, Oliveira and Fernandes, IEEE TVCG 15(6), 2009).
"""


KIND_COLORS = {
    "useful": PALETTE["green"],
    "late": PALETTE["olive"],
    "dropped": PALETTE["vermilion"],
    "unscheduled": PALETTE["grey"],
    "unused": PALETTE["purple"],
}
"""Colours of the kinds of the devices' work (`edgesim.folder.work_kinds.KINDS`); orange is computing everywhere."""


@dataclass(frozen=True)
class LineStyle:
    """The look of one policy in every figure."""

    color: str
    marker: str
    linestyle: str | tuple[int, tuple[float, ...]]

    def line(self) -> dict[str, Any]:
        """Keyword arguments for a line without markers."""
        return {"color": self.color, "linestyle": self.linestyle}

    def marked(self, every: int | tuple[int, int]) -> dict[str, Any]:
        """Keyword arguments for a line with markers at every ``every``-th point, or at (first, step)."""
        return self.line() | {"marker": self.marker, "markevery": every}


_DASH_DOT_DOT = (0, (4.0, 1.0, 1.0, 1.0, 1.0, 1.0))
_LONG_DASH = (0, (6.0, 1.5))
_DENSE_DOT = (0, (1.0, 0.8))
_LONG_DASH_DOT = (0, (6.0, 1.0, 1.0, 1.0))

POLICIES = {
    "random": LineStyle(PALETTE["black"], "o", "--"),
    "best-channel": LineStyle(PALETTE["grey"], "s", "-."),
    "best-norm": LineStyle(PALETTE["orange"], "^", ":"),
    "power-of-choice": LineStyle(PALETTE["sky"], "D", _DASH_DOT_DOT),
    "pure-drift": LineStyle(PALETTE["purple"], "v", _LONG_DASH),
    "fed-cbs": LineStyle(PALETTE["green"], "P", _DENSE_DOT),
    "fedcgd": LineStyle(PALETTE["blue"], "X", _LONG_DASH_DOT),
    "fedteddi": LineStyle(PALETTE["vermilion"], "*", "-"),
    "oort": LineStyle(PALETTE["brown"], "<", _DASH_DOT_DOT),
    "refl": LineStyle(PALETTE["violet"], ">", "-."),
    "safa-lite": LineStyle(PALETTE["petrol"], "p", _LONG_DASH),
    "safa": LineStyle(PALETTE["crimson"], "d", _DENSE_DOT),
    "fedcs": LineStyle(PALETTE["olive"], "H", _LONG_DASH_DOT),
    "availability-first": LineStyle(PALETTE["slate"], "h", ":"),
    "feddance": LineStyle(PALETTE["ultramarine"], "8", "-"),
    "afl": LineStyle(PALETTE["leaf"], "$A$", "--"),
    "stays-longest": LineStyle(PALETTE["azure"], "$S$", "-."),
}
"""Every policy has its own colour and marker, since bars have no dashes and the dashes of lines are hard to see;
policies that papers compare (FedTeddi's eight, and FedDance's with random) differ in dashes too."""

_SPARE_COLORS = (
    "blue", "vermilion", "green", "purple", "orange", "black", "sky", "grey",
    "crimson", "olive", "violet", "brown", "petrol", "ultramarine", "slate", "leaf",
)  # fmt: skip
_SPARE_SHAPES = (("o", "-"), ("s", "--"), ("^", "-."), ("D", ":"), ("v", _LONG_DASH), ("P", _DASH_DOT_DOT))


def line_styles(names: Sequence[str]) -> dict[str, LineStyle]:
    """A style per name: a known policy has its own, any other name gets the next spare style.

    Neighbours among the spare styles differ in colour, marker and dash at once.
    """
    styles = {name: POLICIES[name] for name in names if name in POLICIES}
    taken = {style.color for style in styles.values()}
    free = [name for name in _SPARE_COLORS if PALETTE[name] not in taken] or list(_SPARE_COLORS)
    spares = _spares(free)
    for name in names:
        if name not in styles:
            styles[name] = next(spares)
    return {name: styles[name] for name in names}


def _spares(colors: Sequence[str]) -> Iterator[LineStyle]:
    for i in count():
        lap, place = divmod(i, len(colors))
        marker, dash = _SPARE_SHAPES[(place + lap) % len(_SPARE_SHAPES)]
        yield LineStyle(PALETTE[colors[place]], marker, dash)
