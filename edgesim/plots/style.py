"""The style of all figures: sizes of a two-column paper, settings of matplotlib, reproducible files."""

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from matplotlib.textpath import TextPath

from edgesim.base.paths import own_file, system_errors
from edgesim.plots.formats import USUAL_FORMATS, Formats, known_formats

COLUMN_IN = 3.5
PAGE_IN = 7.16
"""Widths of one column and of the whole text of a two-column paper, in inches (IEEE)."""

_HANDLE_IN = 0.45
"""Width in inches of a legend entry without its text: the handle and the gaps."""

_SETTINGS: dict[str, Any] = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "legend.columnspacing": 1.2,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.linewidth": 0.4,
    "grid.color": "#DDDDDD",
    "lines.linewidth": 1.1,
    "lines.markersize": 3.5,
    "hatch.linewidth": 0.5,
    "svg.hashsalt": "edgesim",
    # TrueType outlines, embedded: publishers refuse the Type 3 fonts that are matplotlib's default.
    "pdf.fonttype": 42,
}


_WITHOUT_DATE: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""For each format, the metadata that matplotlib would add and that differ from day to day or version to version."""


def paper() -> AbstractContextManager[None]:
    """Context with matplotlib's settings for all figures; the user's own are restored at its end."""
    context: AbstractContextManager[None] = matplotlib.style.context(["default", _SETTINGS])
    return context


class PaperFigure(Figure):
    """A figure without a window, which notebooks show by itself."""

    def _repr_png_(self) -> bytes:
        data = BytesIO()
        with paper():
            self.savefig(data, format="png", dpi=160)
        return data.getvalue()


@contextmanager
def figure(width_in: float, height_in: float, legend: Sequence[str] = ()) -> Iterator[Figure]:
    """A new figure under the settings of `paper`, without a window or global state.

    Its height grows by what `legend_below` takes for the texts ``legend``.
    """
    with paper():
        legend_in = legend_height_in(legend, width_in) if legend else 0.0
        new = PaperFigure(figsize=(width_in, height_in + legend_in), layout="constrained")
        FigureCanvasAgg(new)
        yield new


def abreast(panels: int) -> int:
    """Panels in a row: three at most, and two of four, which would leave most of a second row empty."""
    return 2 if panels == 4 else min(panels, 3)


def rows_of(panels: int) -> int:
    """Number of rows that a figure with ``panels`` panels has."""
    return -(-panels // abreast(panels))


def panel_grid(figure: Figure, titles: Sequence[str], across: int | None = None, sharey: bool = True) -> list[Axes]:
    """Axes of one panel per title, row by row, lettered (a), (b), ... when there are several.

    A row has ``across`` panels, by default as many as `abreast` says. A title wider than its panel takes several lines.
    """
    columns = across or abreast(len(titles))
    rows = -(-len(titles) // columns)
    # Axis labels and a colour bar take an inch; titles are in a larger type than `text_width_in` measures.
    title_in = 0.8 * (figure.get_figwidth() - 1) / columns
    grid = figure.subplots(rows, columns, squeeze=False, sharex=False, sharey=sharey).ravel()
    for axes in grid[len(titles) :]:
        figure.delaxes(axes)
    for i, (axes, title) in enumerate(zip(grid, titles, strict=False)):
        axes.grid(axis="y")
        axes.set_title(folded(f"({letter(i)}) {title}".rstrip() if len(titles) > 1 else title, title_in))
    return list(grid[: len(titles)])


def panel_size(panels: int, height_in: float) -> tuple[float, float]:
    """Width and height in inches of a figure with ``panels`` panels, each row ``height_in`` high."""
    return (COLUMN_IN if panels == 1 else PAGE_IN), height_in * rows_of(panels)


def letter(index: int) -> str:
    """a, b, ..., z, aa, ... of a panel, counted from 0."""
    head, last = divmod(index, 26)
    return (letter(head - 1) if head else "") + chr(ord("a") + last)


@cache
def text_width_in(text: str) -> float:
    """Width in inches of one line in the small type of legends and of names on an axis."""
    if not text:
        return 0.0
    with paper():
        path = TextPath((0, 0), text, size=_SETTINGS["legend.fontsize"])
    return float(path.get_extents().width) / 72


def folded(text: str, width_in: float) -> str:
    """The text broken into lines of at most ``width_in`` inches in small type, between words where possible.

    Lines are not broken between a knob's name and its value.
    """
    text = text.replace(" = ", "\u00a0=\u00a0")
    lines, most = [text], len(text)
    while most > 1 and max(text_width_in(line) for line in lines) > width_in:
        most = min(most - 1, int(len(text) * width_in / text_width_in(text)) + 2)
        lines = textwrap.wrap(text, most)
    return "\n".join(lines).replace("\u00a0", " ")


def legend_shape(texts: Sequence[str], width_in: float) -> tuple[int, int]:
    """Columns and rows of a legend with these entries that fits a figure's width."""
    entry_in = _HANDLE_IN + max(text_width_in(text) for text in texts)
    most = max(1, min(len(texts), int(width_in / entry_in)))
    rows = -(-len(texts) // most)
    return -(-len(texts) // rows), rows


def legend_height_in(texts: Sequence[str], width_in: float) -> float:
    """Height that `legend_below` takes, in inches."""
    further_lines = sum(folded(text, width_in - _HANDLE_IN).count("\n") for text in texts)
    return 0.1 + 0.15 * (legend_shape(texts, width_in)[1] + further_lines)


def legend_below(figure: Figure, handles: Sequence[Any], texts: Sequence[str]) -> None:
    """Draw a legend of all panels below them, at most as wide as the figure; wider texts take several lines."""
    width_in = figure.get_figwidth()
    columns, _ = legend_shape(texts, width_in)
    lines = [folded(text, width_in - _HANDLE_IN) for text in texts]
    figure.legend(handles, lines, loc="outside lower center", ncols=columns)


def headed(figure: Figure, text: str) -> Figure:
    """The figure after writing a text above all its panels; as it is for an empty text."""
    if text:
        figure.suptitle(folded(text, 0.85 * figure.get_figwidth()), fontsize=8)
    return figure


def band_patch() -> Patch:
    """Entry of a legend for the bands of intervals around lines of all colours."""
    return Patch(facecolor="grey", alpha=0.3, linewidth=0)


def show_error_bars(errors: ErrorbarContainer) -> None:
    """Give error bars a white outline, since they are black and may lie on a black bar."""
    _, caps, whiskers = errors.lines
    for line in (*caps, *whiskers):
        line.set_path_effects([withStroke(linewidth=1.4, foreground="white")])


def make_folder(folder: Path) -> None:
    """Make a folder for figures; raises `EdgesimError` where that fails."""
    with system_errors(f"{folder}: cannot be made a folder for figures"):
        folder.mkdir(parents=True, exist_ok=True)


def save(figure: Figure, stem: Path, formats: Formats = USUAL_FORMATS) -> list[Path]:
    """Write ``stem.FORMAT`` for each format (PNG at 300 dpi); the same figure gives the same bytes every time.

    Raises `EdgesimError` for unknown formats, and where the folder cannot be made, or a file not written.
    """
    formats = known_formats(formats)
    make_folder(stem.parent)
    files = [stem.with_name(f"{stem.name}.{kind}") for kind in formats]
    with paper(), system_errors(f"{stem}: the figure cannot be written"):
        # `savefig` lays out by drawing the figure on nothing: once here instead of for every file.
        figure.set_dpi(300)
        if (engine := figure.get_layout_engine()) is not None:
            engine.execute(figure)
        figure.set_layout_engine(None)
        for kind, file in zip(formats, files, strict=True):
            figure.savefig(own_file(file), format=kind, dpi=300, metadata=_WITHOUT_DATE[kind])
    return files
