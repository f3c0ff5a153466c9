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
    axes = panel(draw_differences([far, near], "policy", "random"), "time to the target")
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
    axes = panel(draw_differences([some, other], "policy", "random"), "time to the target")
    ratios = np.log([11 / 10, 12 / 11, 14 / 12, 50 / 13])
    low, high = np.exp(stats.t.interval(0.95, 3, ratios.mean(), stats.sem(ratios)))
    assert [text.get_text() for text in axes.texts] == [f"x1.52 [{low:.3g}, {high:.3g}] up to 50"]
    assert len(marks(axes)) == 1
    assert axes.get_xlim()[1] < 10
    # Grey through the whole panel, over the line of zero: the text stands for no place on the axis.
    (grey,) = axes.patches
    assert (grey.get_x(), grey.get_width()) == (0, 1)
    assert axes.get_lines()[0].get_zorder() < grey.get_zorder() < axes.texts[0].get_zorder()
    (legend,) = axes.figure.legends
    assert legend.get_texts()[-1].get_text() == "a run never got there: ratio instead of the difference"
    assert legend.legend_handles[-1].get_facecolor() == grey.get_facecolor()


def test_a_ratio_that_is_significant_has_a_star_which_the_legend_explains_and_no_mark_that_reads_as_a_difference(
    tmp_path,
):
    far = compared(tmp_path, "far", "joules_to_target", [30.0, 31.5, 32.0, NEVER], REFERENCE)
    near = compared(tmp_path, "near", "joules_to_target", [10.5, 10.0, 12.5, 13.0], REFERENCE)
    axes = panel(draw_differences([far, near], "policy", "random"), "energy to the target")
    (text,) = axes.texts
    assert text.get_text().startswith("x3.")
    assert text.get_text().endswith(" up to 50 *")
    legend = [entry.get_text() for entry in axes.figure.legends[0].get_texts()]
    assert legend[-2:] == ["a run never got there: ratio instead of the difference", "* a significant ratio"]
    assert axes.get_xlabel() == "difference (J)"


def test_a_panel_of_ratios_alone_has_an_axis_of_them_with_the_reference_at_1(tmp_path):
    some = compared(tmp_path, "some", "seconds_to_target", [11.0, 12.0, 14.0, NEVER], REFERENCE)
    far = compared(tmp_path, "far", "seconds_to_target", [30.0, 31.5, 32.0, NEVER], REFERENCE)
    axes = panel(draw_differences([some, far], "policy", "random"), "time to the target")
    assert (axes.get_xscale(), axes.get_xlabel()) == ("log", "ratio up to 50 s")
    assert not axes.texts
    assert not axes.patches
    assert axes.get_lines()[0].get_xdata() == [1, 1]
    assert 1 in axes.get_xticks()
    for row, mine in enumerate(([11.0, 12.0, 14.0, 50.0], [30.0, 31.5, 32.0, 50.0])):
        logs = np.log(np.array(mine) / REFERENCE)
        assert marks(axes)[row].get_xdata()[0] == pytest.approx(np.exp(logs.mean()))
        expected = np.exp(stats.t.interval(0.95, 3, logs.mean(), stats.sem(logs)))
        assert bars(axes)[2 * row + 1] == pytest.approx(list(expected))
    assert [line.get_markerfacecolor() == line.get_color() for line in marks(axes)] == [False, True]
    legend = [entry.get_text() for entry in axes.figure.legends[0].get_texts()]
    assert legend == ["95 % interval", "corrected (Holm)", "significant", "not significant"]


def test_the_legend_and_the_axis_say_of_how_many_seeds_the_means_are(tmp_path):
    four, three, two, one = (
        compared(tmp_path, str(n), "seconds_to_target", [30.0, 31.5, 32.0, 33.0][:n], REFERENCE[:n])
        for n in (4, 3, 2, 1)
    )
    tested, untold = ["significant", "not significant"], ["one seed: not tested"]
    for found, seeds, said in (
        ([four], "mean of 4 seeds", ["95 % interval", "corrected (Holm)", *tested]),
        ([four, three], "mean of 3 to 4 seeds", ["95 % interval", "corrected (Holm)", *tested]),
        ([two], "mean of 2 seeds", tested),
        ([one], "random", untold),
    ):
        figure = draw_differences(found, "policy", "random")
        assert figure.axes[0].get_ylabel().endswith(seeds)
        assert [text.get_text() for text in figure.legends[0].get_texts()] == said
    assert not bars(draw_differences([two], "policy", "random").axes[0])


GRID = [{"policy": policy, "tmax_s": tmax_s} for policy in ("random", "fedteddi", "oort") for tmax_s in (1.0, 2.0)]


@pytest.mark.parametrize("over", ["rounds", "seconds"])
def test_a_curve_is_the_mean_of_the_paired_differences_with_their_interval(tmp_path, study_writer, over):
    folder = study_writer(tmp_path / "study", GRID, rounds=4, seeds=3)
    study = read_study(folder)
    figure = draw_difference_curves(pairings(study.finished, "policy", "random"), over, "policy", "random")
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


def test_a_single_panel_does_not_repeat_the_title_of_the_figure(tmp_path, study_writer):
    study = read_study(study_writer(tmp_path / "study", GRID[:4], rounds=4, seeds=3))
    figure = draw_difference_curves(pairings(study.finished, "policy", "random"), "rounds", "policy", "random")
    assert figure.get_suptitle() == "fedteddi against random"
    assert [axes.get_title() for axes in figure.axes] == [""]
