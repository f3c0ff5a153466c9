"""No text of a figure meets another one or leaves the figure, however long its names are."""

import itertools

import pandas as pd
import pytest

from edgesim.analysis.runs import RunFolder, runs_of
from edgesim.plots import style
from edgesim.plots.energy_bars import draw_energy
from edgesim.plots.fairness import draw_fairness
from edgesim.plots.final_accuracy import draw_final_accuracy
from edgesim.plots.groups import Panel, Series
from edgesim.plots.heat_map import draw_heat_map
from edgesim.plots.radar import AXES, draw_radar
from edgesim.plots.rounds_to_target import draw_rounds_to_target
from edgesim.plots.scheduled import draw_scheduled


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory, run_writer) -> tuple[RunFolder, ...]:
    folder = tmp_path_factory.mktemp("runs")
    return tuple(runs_of([run_writer(folder / f"{seed}", seed=seed) for seed in (0, 1)]))


def collide(boxes) -> bool:
    return any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


def test_a_long_title_stays_within_its_panel():
    with style.figure(style.PAGE_IN, 2.0) as figure:
        titles = [f"number of devices = {n}, $q$ = 0.95, tx power = 23 dBm" for n in (10, 30, 100)]
        grid = style.panel_grid(figure, titles)
        figure.canvas.draw()
    boxes = [axes.title.get_window_extent() for axes in grid]
    assert not collide(boxes)
    assert boxes[0].x0 >= 0
    assert boxes[-1].x1 <= figure.bbox.x1


@pytest.mark.slow
@pytest.mark.parametrize(("count", "length"), [(12, 40), (6, 80)])
def test_long_labels_leave_the_panel_its_height_and_the_legend_below_it(two_runs, count, length):
    """A layout that does not fit warns, and warnings of that kind are errors here."""
    labels = [f"{i} {'my_models.Noise, float32, ' * 4}"[:length] for i in range(count)]
    panels = [Panel("", tuple(Series(label, two_runs) for label in labels))]
    for figure in (draw_fairness(panels), draw_rounds_to_target(panels, [0.6])):
        figure.canvas.draw()
        (axes,), (legend,) = figure.axes, figure.legends
        names = legend.get_window_extent()
        assert axes.get_tightbbox().y0 > names.y1
        assert 0 <= names.x0 < names.x1 <= figure.bbox.x1
        assert 0.9 < axes.get_window_extent().height / figure.dpi < 2.1


@pytest.mark.parametrize("panels", [1, 3])
def test_what_is_known_of_a_level_never_reached_stands_in_its_row_in_a_type_that_can_be_read(two_runs, panels):
    series = tuple(Series(f"policy {i}", two_runs) for i in range(9))
    figure = draw_rounds_to_target([Panel(f"panel {i}", series) for i in range(panels)], [0.6, 0.99, 0.995])
    figure.canvas.draw()
    for axes in figure.axes:
        rows = [bar.get_window_extent() for bar in axes.patches if bar.get_hatch()]
        boxes = [text.get_window_extent() for text in axes.texts]
        assert len(boxes) == len(rows) == 18
        for row, box in zip(rows, boxes, strict=True):
            assert row.x0 <= box.x0 < box.x1 <= row.x1
            assert row.y0 <= box.y0 < box.y1 <= row.y1
        assert min(text.get_fontsize() for text in axes.texts) >= 6


@pytest.mark.slow
@pytest.mark.parametrize("draw", [draw_scheduled, draw_energy, draw_final_accuracy])
@pytest.mark.parametrize("panels", [1, 3])
def test_long_names_beside_bars_leave_the_panels_most_of_the_figure(two_runs, draw, panels):
    names = [f"reused, seven-cells, hierarchical, cloud_every = {i}" for i in range(6)]
    series = tuple(Series(name, two_runs) for name in names)
    figure = draw([Panel(f"panel {i}", series) for i in range(panels)])
    figure.canvas.draw()
    shown = [axes.get_window_extent() for axes in figure.axes]
    assert sum(box.width * box.height for box in shown) > 0.45 * figure.bbox.width * figure.bbox.height
    labels = [tick.get_window_extent() for tick in figure.axes[0].get_yticklabels()]
    assert len(labels) == 6
    assert not collide(labels)
    assert min(label.x0 for label in labels) >= 0


@pytest.mark.parametrize("panels", [1, 3])
def test_no_texts_of_a_wide_heat_map_collide_or_leave_the_figure(panels):
    rows = [
        {"tmax_s": t, "bandwidth_hz": b, "devices": 10 + n, "plan_quantile": 0.95, "joules_to_target": 2300 * t}
        for t, b, n in itertools.product((0.15, 0.25, 0.4, 0.6, 0.9, 1.4), (1e7, 2e7), range(panels))
    ]
    table = pd.DataFrame(rows).assign(seeds=5, not_reached=0)
    table.loc[0, "not_reached"] = 5
    table["joules_to_target_bound"] = 12345.0
    knobs = ["devices", "plan_quantile"] if panels > 1 else []
    figure = draw_heat_map(table, "tmax_s", "bandwidth_hz", "joules_to_target", knobs)
    figure.canvas.draw()
    titles = [axes.title for axes in figure.axes]
    for axes in figure.axes[:panels]:
        for texts in (axes.texts, axes.get_xticklabels(), axes.get_yticklabels(), titles):
            boxes = [text.get_window_extent() for text in texts if text.get_text()]
            assert not collide(boxes)
            for box in boxes:
                assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
                assert 0 <= box.y0 < box.y1 <= figure.bbox.y1


@pytest.mark.parametrize("panels", [1, 3])
def test_circles_of_a_radar_fill_its_rows_and_names_of_axes_meet_no_other_panel(panels):
    values = {name: [1.0, 2.0] for name in AXES}
    tables = [pd.DataFrame({"skew": f"skew {number}", "method": ["a", "b"]} | values) for number in range(panels)]
    figure = draw_radar(pd.concat(tables), "skew", "method")
    figure.canvas.draw()
    width, height = figure.bbox.size
    boxes = [axes.get_tightbbox() for axes in figure.axes]
    assert figure.get_figwidth() == (style.COLUMN_IN if panels == 1 else style.PAGE_IN)
    # Beside the circles there are the legend and the line above all panels.
    assert all(box.height > 0.85 * (height - 0.45 * figure.dpi) for box in boxes)
    assert all(axes.bbox.width > 0.45 * width / panels for axes in figure.axes)
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))
