"""Heat maps of what not every run reached, and of many or long names."""

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import Normalize

from edgesim.plots.heat_map import draw_heat_map

DEADLINES = (0.15, 0.2, 0.25, 0.325, 0.4, 0.5, 0.6, 0.9, 1.4)


def summary(stand_in: float) -> pd.DataFrame:
    """Two deadlines and two bands of five seeds: none got there in the last cell, three in the one before.

    ``stand_in`` is what the mean over the runs that got there says of the last cell. All runs lasted for 45 s.
    """
    rows = [(0.15, 1e7, 0, 4.0), (0.3, 1e7, 0, 6.0), (0.15, 2e7, 2, 30.0), (0.3, 2e7, 5, stand_in)]
    table = pd.DataFrame(rows, columns=["tmax_s", "bandwidth_hz", "not_reached", "seconds_to_target"])
    bounds = {"seconds_to_target_bound": [np.nan, np.nan, 36.0, 45.0], "joules_to_target_bound": 1234.0}
    return table.assign(seeds=5, joules_to_target=100.0, energy_j=1234.0, **bounds)


@pytest.mark.parametrize("stand_in", [45.1, np.nan])
def test_a_cell_that_not_every_run_reached_the_target_in_is_no_data(stand_in):
    figure = draw_heat_map(summary(stand_in), "tmax_s", "bandwidth_hz", "seconds_to_target")
    axes = figure.axes[0]
    said = {text.get_position(): text.get_text() for text in axes.texts}
    assert said == {(0, 0): "4", (1, 0): "6", (0, 1): "> 36 s\n3 of 5", (1, 1): "> 45 s\n0 of 5"}
    (image,) = axes.get_images()
    coloured = np.ma.filled(np.ma.asarray(image.get_array(), dtype=float), np.nan)
    assert np.isnan(coloured).tolist() == [[False, False], [True, True]]
    # Neither 30 nor 45.1 s widens the scale of colours.
    assert (image.norm.vmin, image.norm.vmax) == (4.0, 6.0)
    assert type(image.norm) is Normalize
    hatched = {tuple(patch.get_xy()) for patch in axes.patches if patch.get_hatch()}
    assert hatched == {(-0.5, 0.5), (0.5, 0.5)}
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["target not reached by every run (how many did)"]


def test_a_cell_without_any_run_is_empty():
    table = summary(np.nan)
    table.loc[0, ["seeds", "not_reached", "seconds_to_target"]] = [0, 0, np.nan]
    axes = draw_heat_map(table, "tmax_s", "bandwidth_hz", "seconds_to_target").axes[0]
    assert (0, 0) not in {text.get_position() for text in axes.texts if text.get_text()}
    assert len(axes.texts) == 3


def test_energy_to_a_target_that_nobody_reached_is_more_than_the_runs_took():
    axes = draw_heat_map(summary(np.nan), "tmax_s", "bandwidth_hz", "joules_to_target").axes[0]
    assert "> 1,234 J\n0 of 5" in {text.get_text() for text in axes.texts}


def test_a_measure_that_needs_no_target_has_all_its_cells():
    figure = draw_heat_map(summary(np.nan), "tmax_s", "bandwidth_hz", "energy_j")
    assert {text.get_text() for text in figure.axes[0].texts} == {"1,234"}
    assert not figure.legends


def test_a_map_of_nothing_but_cells_without_data_can_be_drawn():
    table = summary(np.nan).assign(not_reached=5, seconds_to_target_bound=45.0)
    figure = draw_heat_map(table, "tmax_s", "bandwidth_hz", "seconds_to_target")
    figure.canvas.draw()
    assert [text.get_text() for text in figure.axes[0].texts] == ["> 45 s\n0 of 5"] * 4
    # There is no colour to explain.
    assert len(figure.axes) == 1


@pytest.mark.parametrize("panels", [1, 3])
def test_no_texts_of_a_wide_heat_map_collide_or_leave_the_figure(panels):
    rows = [
        {"tmax_s": t, "bandwidth_hz": b, "devices": 10 + n, "plan_quantile": 0.95, "joules_to_target": 2300 * t}
        for t, b, n in itertools.product(DEADLINES, (1e7, 2e7), range(panels))
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
            assert not [pair for pair in itertools.combinations(boxes, 2) if pair[0].overlaps(pair[1])]
            for box in boxes:
                assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
                assert 0 <= box.y0 < box.y1 <= figure.bbox.y1


def test_texts_stand_in_the_order_of_the_summary_the_first_at_the_top():
    rows = [{"policy": policy, "server": server, "final_accuracy": value}
            for policy, values in (("random", (0.1, 0.2)), ("afl", (0.3, 0.4)), ("oort", (0.5, 0.6)))
            for server, value in zip(("own", "mifa"), values, strict=True)]  # fmt: skip
    axes = draw_heat_map(pd.DataFrame(rows), "server", "policy", "final_accuracy").axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["own", "mifa"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["oort", "afl", "random"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("server", "policy")
    assert axes.images[0].get_array().tolist() == [[0.5, 0.6], [0.3, 0.4], [0.1, 0.2]]


def test_cells_have_as_many_digits_as_each_other():
    table = pd.DataFrame(
        [{"policy": "random", "server": name, "final_accuracy": value} for name, value in
         {"own": 0.93, "mifa": 0.929, "afl": 0.8, "kpfl": 12.0}.items()]
    )  # fmt: skip
    axes = draw_heat_map(table.assign(seeds=5), "server", "policy", "final_accuracy").axes[0]
    assert [text.get_text() for text in axes.texts] == ["0.930", "0.929", "0.800", "12"]
