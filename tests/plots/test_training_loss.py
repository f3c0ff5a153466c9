import numpy as np
import pytest
import scipy

from edgesim.analysis.runs import runs_of
from edgesim.plots.groups import panels_of
from edgesim.plots.training_loss import draw_training_loss, smoothed


def by_round(*losses):
    """Rounds from 1 on beside the losses of each seed."""
    return [np.column_stack([np.arange(1.0, len(of) + 1), of]) for of in losses]


def test_a_point_is_the_mean_of_its_stretch_over_rounds_and_seeds():
    at, loss = smoothed(by_round(np.arange(40.0), np.arange(40.0) + 2))
    assert at.tolist() == [1.5 + 2 * k for k in range(20)]
    assert [band.mean for band in loss] == pytest.approx([1.5 + 2 * k for k in range(20)])
    # Rounds without updates do not count, and seeds of different length are cut to the shortest.
    at, loss = smoothed(by_round([np.nan, np.nan, 3.0, np.nan] + [1.0] * 36))
    assert (at[0], *(band.mean for band in loss[:2])) == (3.5, 3.0, 1.0)
    at, loss = smoothed(by_round(np.ones(3), np.full(9, 3.0)))
    assert (at.tolist(), [band.mean for band in loss]) == ([1, 2, 3], [2, 2, 2])


@pytest.mark.parametrize(("rounds", "points", "last"), [(30, 15, 29.5), (41, 14, 40.5), (400, 20, 390.5)])
def test_all_stretches_are_as_long_but_the_last_which_may_be_shorter(rounds, points, last):
    at, loss = smoothed(by_round(np.arange(1.0, rounds + 1)))
    assert len(at) == points
    assert len(set(np.diff(at[:-1]))) == 1
    assert at[-1] == last
    assert [band.mean for band in loss] == pytest.approx(at)


def test_the_axis_says_of_how_many_rounds_and_seeds_a_point_is_the_mean(tmp_path, run_writer):
    def label(rounds, seeds):
        runs = runs_of([run_writer(tmp_path / f"{rounds}-{seeds}-{s}", seed=s, rounds=rounds) for s in range(seeds)])
        for run in runs:
            run.rounds["train_loss"] = 1.0
        return draw_training_loss(panels_of(runs)).axes[0].get_ylabel()

    assert label(4, 1) == "training loss (nat)"
    assert label(4, 3) == "training loss (nat)\nmean of 3 seeds"
    assert label(30, 1) == "training loss (nat)\nmean of 2 rounds"
    assert label(41, 2) == "training loss (nat)\nmean of 3 rounds\nand 2 seeds"


def test_the_band_is_the_t_interval_of_the_seeds_means_from_three_seeds_on():
    seeds = [[1.0, 3.0], [2.0, 4.0], [6.0, 2.0]]
    _, (first, _) = smoothed(by_round(*seeds))
    expected = scipy.stats.ttest_1samp([1.0, 2.0, 6.0], 0).confidence_interval()
    assert first.high == pytest.approx(expected.high)
    assert first.low == max(expected.low, 0.0)
    assert np.isnan(smoothed(by_round(*seeds[:2]))[1][0].low)


@pytest.mark.parametrize(("over", "seeds"), [("rounds", 3), ("seconds", 2)])
def test_a_line_has_a_band_with_an_entry_in_the_legend_where_there_are_seeds_for_one(tmp_path, run_writer, over, seeds):
    runs = runs_of([run_writer(tmp_path / f"{seed}", seed=seed) for seed in range(seeds)])
    for run in runs:
        run.rounds["train_loss"] = 2.0 + run.seed - 0.1 * run.rounds["round"]
    figure = draw_training_loss(panels_of(runs), over)
    (axes,), (legend,) = figure.axes, figure.legends
    assert len(axes.collections) == (seeds == 3)
    assert [text.get_text() for text in legend.get_texts()][1:] == ["95 % band"] * (seeds == 3)
    if seeds == 3:
        # Of 1, 2 and 3 the mean lies 4.303 / sqrt(3) from the ends of its interval.
        (band,) = axes.collections
        assert band.get_paths()[0].vertices[:, 1].max() == pytest.approx(3.0 - 0.1 + 4.3026527 / 3**0.5)
