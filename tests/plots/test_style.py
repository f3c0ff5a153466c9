import itertools

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from edgesim.plots import palette, style
from edgesim.plots.formats import known_formats
from edgesim.selection import SELECTORS

EIGHT = ("random", "best-channel", "best-norm", "power-of-choice", "pure-drift", "fed-cbs", "fedcgd", "fedteddi")
FEDDANCES = ("random", "safa-lite", "safa", "oort", "refl", "feddance", "fedcs", "availability-first")


def luminance(color: str) -> float:
    """Relative luminance of a colour, W3C WCAG 2.1."""
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def lab(color: str) -> tuple[float, float, float]:
    """CIELAB of a colour under D65."""
    linear = np.array([c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)])
    matrix = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    scaled = matrix @ linear / [0.9505, 1.0, 1.089]
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in scaled)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("names", [EIGHT, FEDDANCES])
def test_the_policies_of_a_comparison_differ_pairwise_in_colour_marker_and_dash(names):
    styles = palette.line_styles(names)
    for one, other in itertools.combinations(styles.values(), 2):
        assert one.color != other.color
        assert one.marker != other.marker
        assert one.linestyle != other.linestyle


def test_any_two_registered_policies_differ_in_colour_and_marker():
    """Selectors of both papers stand in one figure, as bars too, which have nothing but their colour."""
    styles = palette.line_styles(list(SELECTORS))
    assert len({look.color for look in styles.values()}) == len(SELECTORS)
    assert len({look.marker for look in styles.values()}) == len(SELECTORS)
    for one, other in itertools.combinations(styles.values(), 2):
        assert np.linalg.norm(np.subtract(lab(one.color), lab(other.color))) > 20, (one, other)


def test_every_policy_line_stands_out_from_white_paper():
    for name, look in palette.line_styles([*EIGHT, *FEDDANCES]).items():
        assert 1.05 / (luminance(look.color) + 0.05) > 2, name


def test_a_policy_looks_the_same_whoever_else_is_in_the_figure():
    assert palette.line_styles(["mine", "fedteddi"])["fedteddi"] == palette.line_styles(EIGHT)["fedteddi"]


@pytest.mark.parametrize("names", [["random", "mine", "fedteddi", "yours"], [f"policy {i}" for i in range(20)]])
def test_unknown_names_get_styles_that_no_other_of_the_figure_has(names):
    styles = palette.line_styles(names).values()
    assert len(set(styles)) == len(names)
    assert len({look.color for look in styles}) >= 4


def test_a_legend_takes_as_few_rows_as_the_width_allows():
    assert style.legend_shape(["known", "reported", "planned"], style.PAGE_IN) == (3, 1)
    columns, rows = style.legend_shape(EIGHT, style.COLUMN_IN)
    assert columns * rows >= 8
    assert rows > 1


def test_drawing_leaves_the_users_settings_and_back_end_alone(tmp_path):
    before = dict(matplotlib.rcParams)
    with matplotlib.rc_context({"font.size": 23.0}):
        with style.figure(style.COLUMN_IN, 2.0) as figure:
            figure.subplots().plot([0, 1], [0, 1])
        style.save(figure, tmp_path / "line")
        assert matplotlib.rcParams["font.size"] == 23.0
    assert dict(matplotlib.rcParams) == before


def test_the_users_own_settings_do_not_change_the_bytes(tmp_path):
    def drawn(name: str) -> list[bytes]:
        with style.figure(style.COLUMN_IN, 2.0) as figure:
            figure.subplots().set_xlabel("time (s)")
        return [path.read_bytes() for path in style.save(figure, tmp_path / name)]

    plain = drawn("plain")
    with matplotlib.rc_context({"font.size": 23.0, "axes.facecolor": "red", "savefig.dpi": 20}):
        assert drawn("other") == plain


@pytest.mark.parametrize(("index", "letters"), [(0, "a"), (25, "z"), (26, "aa"), (27, "ab")])
def test_panels_are_lettered_like_spreadsheet_columns(index, letters):
    assert style.letter(index) == letters


@pytest.mark.parametrize(
    ("panels", "columns", "rows"), [(1, 1, 1), (2, 2, 1), (3, 3, 1), (4, 2, 2), (5, 3, 2), (6, 3, 2), (7, 3, 3)]
)
def test_panels_stand_three_abreast_but_four_of_them_two_by_two(panels, columns, rows):
    assert (style.abreast(panels), style.rows_of(panels)) == (columns, rows)
    with style.figure(*style.panel_size(panels, 1.0)) as figure:
        grid = style.panel_grid(figure, [f"panel {i}" for i in range(panels)])
    assert len(grid) == len(figure.axes) == panels
    assert figure.get_figheight() == rows
    in_first_column = [axes for axes in grid if axes.get_subplotspec().is_first_col()]
    assert grid[:: style.abreast(panels)] == in_first_column


def drawn_line():
    with style.figure(style.COLUMN_IN, 2.0) as figure:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1])
        axes.set(xlabel="time (s)", ylabel=r"$T_{\max}$")
    return figure


def test_a_figure_as_pdf_has_the_same_bytes_each_time_and_embeds_its_fonts_as_truetype(tmp_path):
    (first,), (second,) = (style.save(drawn_line(), tmp_path / name, ["pdf"]) for name in ("first", "second"))
    data = first.read_bytes()
    assert data == second.read_bytes()
    assert data.startswith(b"%PDF")
    assert b"/FontFile2" in data
    assert b"/Type3" not in data
    assert b"CreationDate" not in data


def test_formats_are_named_once_each_and_in_their_order():
    assert known_formats("pdf, png,pdf") == known_formats(["pdf", "png", "pdf"]) == ("pdf", "png")
