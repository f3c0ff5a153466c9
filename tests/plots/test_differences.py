"""The forest plot of paired differences, and their curves over time."""

import numpy as np
import pytest
from scipy import stats

from edgesim.analysis.censored import Outcomes
from edgesim.analysis.judgement import Sides
from edgesim.analysis.pairing import Comparison, Pairing, pairings
from edgesim.analysis.runs import RunFolder, read_study
from edgesim.plots.difference_curves import draw_difference_curves
from edgesim.plots.differences import draw_differences

NEVER = -1.0
"""In place of the seconds of a run that never reached the target."""


def compared(folder, policy, measure, mine, theirs) -> Comparison:
    runs = tuple(
        RunFolder(folder / f"{policy}-{seed}", {"policy": policy, "tmax_s": 1.0}, seed) for seed in range(len(mine))
    )
    pairing = Pairing(
        {"tmax_s": 1.0}, {"policy": policy}, {"policy": "random"}, tuple(zip(runs, runs, strict=True)), ((), ())
    )
    outcomes = []
    for side in (mine, theirs):
        values = np.array(side, dtype=float)
        there = values != NEVER
        outcomes.append(Outcomes(np.where(there, values, np.nan), np.where(there, np.nan, 50.0)))
    return Comparison(pairing, measure, runs, Sides(*outcomes))


def panel(figure, title):
    return next(axes for axes in figure.axes if axes.get_title().endswith(title))


def marks(axes):
    return [line for line in axes.get_lines() if line.get_linestyle() == "None"]


def bars(axes):
    return [segment[:, 0].tolist() for drawn in axes.collections for segment in drawn.get_segments() if len(segment)]


REFERENCE = [10.0, 11.0, 12.0, 13.0]


def test_a_row_has_its_mean_its_interval_and_the_one_corrected_for_all_comparisons(tmp_path):
    far = compared(tmp_path, "far", "seconds_to_target", [30.0, 31.5, 32.0, 33.0], REFERENCE)
    near = compared(tmp_path, "near", "seconds_to_target", [10.5, 10.0, 12.5, 13.0], REFERENCE)
    axes = panel(draw_differences([far, near], "random"), "time to the target")
    assert [line.get_xdata()[0] for line in marks(axes)] == pytest.approx([20.125, 0.0])
    spread = np.std([20, 20.5, 20, 20], ddof=1) / 2
    # t quantiles of 3 degrees of freedom: 0.9875, since the first of two is held against 0.025, and 0.975.
    wide, narrow = 4.17653485 * spread, 3.18244631 * spread
    ends = [[20.125 - half, 20.125 + half] for half in (wide, narrow)]
    assert bars(axes)[:2] == [pytest.approx(ends[0]), pytest.approx(ends[1])]
    # What is told is filled.
    assert [line.get_markerfacecolor() == line.get_color() for line in marks(axes)] == [True, False]


def test_where_a_run_never_reached_the_target_the_row_has_a_ratio_of_times_and_stretches_no_scale(tmp_path):
    some = compared(tmp_path, "some", "seconds_to_target", [11.0, 12.0, 14.0, NEVER], REFERENCE)
    other = compared(tmp_path, "other", "seconds_to_target", [11.0, 12.0, 14.0, 12.0], REFERENCE)
    axes = panel(draw_differences([some, other], "random"), "time to the target")
    ratios = np.log([11 / 10, 12 / 11, 14 / 12, 50 / 13])
    low, high = np.exp(stats.t.interval(0.95, 3, ratios.mean(), stats.sem(ratios)))
    assert [text.get_text() for text in axes.texts] == [f"x1.5 [{low:.2g}, {high:.2g}] up to 50"]
    assert len(marks(axes)) == 1
    assert axes.get_xlim()[1] < 10
    # Grey through the whole panel, over the line of zero: the text stands for no place on the axis.
    (grey,) = axes.patches
    assert (grey.get_x(), grey.get_width()) == (0, 1)
    assert axes.get_lines()[0].get_zorder() < grey.get_zorder() < axes.texts[0].get_zorder()
    (legend,) = axes.figure.legends
    assert legend.get_texts()[-1].get_text() == "a run never got there: ratio of times"
    assert legend.legend_handles[-1].get_facecolor() == grey.get_facecolor()


def test_a_significant_ratio_of_times_has_its_mark(tmp_path):
    reference = [5.0 + seed for seed in range(8)]
    one = compared(tmp_path, "one", "joules_to_target", [*(10.0 + seed for seed in range(7)), NEVER], reference)
    axes = panel(draw_differences([one], "random"), "energy to the target")
    ratios = np.log([*((10 + seed) / (5 + seed) for seed in range(7)), 50 / 12])
    low, high = np.exp(stats.t.interval(0.95, 7, ratios.mean(), stats.sem(ratios)))
    assert [text.get_text() for text in axes.texts] == [f"● x1.9 [{low:.2g}, {high:.2g}] up to 50"]


def test_devices_scheduled_and_arrived_share_a_scale(tmp_path):
    found = [compared(tmp_path, "some", name, [1.0, 2.0, scale], [0.0, 0.0, 0.0])
             for name, scale in (("scheduled", 3.0), ("arrived", 30.0))]  # fmt: skip
    figure = draw_differences(found, "random")
    assert panel(figure, "scheduled").get_xlim() == panel(figure, "arrived").get_xlim()


def test_two_pairs_have_no_interval(tmp_path):
    two = compared(tmp_path, "some", "seconds_to_target", [11.0, 13.0], REFERENCE[:2])
    axes = panel(draw_differences([two], "random"), "time to the target")
    assert [line.get_xdata()[0] for line in marks(axes)] == [1.5]
    assert not bars(axes)
    (legend,) = axes.figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["significant", "not significant"]


def test_one_pair_is_not_tested_and_the_legend_says_so(tmp_path):
    one = compared(tmp_path, "some", "seconds_to_target", [11.0], REFERENCE[:1])
    figure = draw_differences([one], "random")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["one seed: not tested"]
    assert figure.axes[0].get_ylabel().split() == ["some", "against", "random"]


def test_the_comparison_says_of_how_many_seeds_its_means_are(tmp_path):
    four = compared(tmp_path, "four", "seconds_to_target", [30.0, 31.5, 32.0, 33.0], REFERENCE)
    three = compared(tmp_path, "three", "seconds_to_target", [30.0, 31.5, 32.0], REFERENCE[:3])
    assert draw_differences([four], "random").axes[0].get_ylabel().endswith("random\nmean of 4 seeds")
    assert draw_differences([four, three], "random").axes[0].get_ylabel().endswith("random\nmean of 3 to 4 seeds")


GRID = [{"policy": policy, "tmax_s": tmax_s} for policy in ("random", "fedteddi", "oort") for tmax_s in (1.0, 2.0)]


@pytest.mark.parametrize("over", ["rounds", "seconds"])
def test_a_curve_is_the_mean_of_the_paired_differences_with_their_interval(tmp_path, study_writer, over):
    folder = study_writer(tmp_path / "study", GRID, rounds=4, seeds=3)
    study = read_study(folder)
    figure = draw_difference_curves(pairings(study.finished, "policy", "random"), over, "random")
    assert [axes.get_title() for axes in figure.axes] == ["(a) fedteddi", "(b) oort"]
    of = {(run.knobs["policy"], run.knobs["tmax_s"], run.seed): run for run in study.finished}
    each = np.array(
        [
            of["fedteddi", 1.0, seed].tests["accuracy"].to_numpy()
            - of["random", 1.0, seed].tests["accuracy"].to_numpy()
            for seed in range(3)
        ]
    )
    line = figure.axes[0].get_lines()[1]
    assert line.get_ydata()[1:].tolist() == pytest.approx(each.mean(axis=0).tolist())
    half = 4.30265273 * each.std(axis=0, ddof=1) / np.sqrt(3)
    band = figure.axes[0].collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == pytest.approx(
        (min(0, (each.mean(axis=0) - half).min()), max(0, (each.mean(axis=0) + half).max()))
    )


def test_the_legend_names_filled_and_open_marks(tmp_path):
    one = compared(tmp_path, "one", "seconds_to_target", [30.0, 31.5, 32.0, 33.0], REFERENCE)
    (legend,) = draw_differences([one], "random").legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "95 % interval", "corrected (Holm)", "significant", "not significant",
    ]  # fmt: skip
    assert [handle.get_markerfacecolor() == "white" for handle in legend.legend_handles] == [False] * 3 + [True]
