"""Heat maps of what not every run reached, and of many or long names."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import Normalize

from edgesim.plots.heat_map import draw_heat_map


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


def test_a_cell_without_any_run_is_empty_and_a_measure_without_a_target_has_all_its_cells():
    table = summary(np.nan)
    joules, energy = (draw_heat_map(table, "tmax_s", "bandwidth_hz", of) for of in ("joules_to_target", "energy_j"))
    assert "> 1,234 J\n0 of 5" in {text.get_text() for text in joules.axes[0].texts}
    assert {text.get_text() for text in energy.axes[0].texts} == {"1,234"}
    assert not energy.legends
    table.loc[0, ["seeds", "not_reached", "seconds_to_target"]] = [0, 0, np.nan]
    axes = draw_heat_map(table, "tmax_s", "bandwidth_hz", "seconds_to_target").axes[0]
    assert (0, 0) not in {text.get_position() for text in axes.texts if text.get_text()}
    assert len(axes.texts) == 3


def test_a_map_of_nothing_but_cells_without_data_can_be_drawn():
    table = summary(np.nan).assign(not_reached=5, seconds_to_target_bound=45.0)
    figure = draw_heat_map(table, "tmax_s", "bandwidth_hz", "seconds_to_target")
    figure.canvas.draw()
    assert [text.get_text() for text in figure.axes[0].texts] == ["> 45 s\n0 of 5"] * 4
    # There is no colour to explain.
    assert len(figure.axes) == 1


def test_texts_stand_in_the_order_of_the_summary_the_first_at_the_top():
    rows = [{"policy": policy, "server": server, "final_accuracy": value}
            for policy, values in (("random", (0.1, 0.2)), ("afl", (0.3, 0.4)), ("oort", (0.5, 0.6)))
            for server, value in zip(("own", "mifa"), values, strict=True)]  # fmt: skip
    axes = draw_heat_map(pd.DataFrame(rows).assign(seeds=5), "server", "policy", "final_accuracy").axes[0]
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
