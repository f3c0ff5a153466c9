import numpy as np
import pytest

from edgesim.analysis.runs import read_study
from edgesim.base.errors import EdgesimError
from edgesim.plots.final_accuracy import draw_final_accuracy
from edgesim.plots.groups import panels_of
from edgesim.plots.training_loss import draw_loss_seconds, draw_training_loss, smoothed


@pytest.mark.parametrize("draw", [draw_training_loss, draw_loss_seconds, draw_final_accuracy])
def test_a_run_that_did_not_train_is_refused_in_a_line_that_names_it(tmp_path, study_writer, draw):
    runs = read_study(study_writer(tmp_path, [{"policy": "random"}], rounds=2, seeds=1)).finished
    for table in ("train_loss", "test_accuracy", "test_loss", "macro_f1"):
        runs[0].rounds[table] = np.nan
    with pytest.raises(EdgesimError, match=r"run0-s0: (nothing was trained|no model was tested); expected a run that"):
        draw(panels_of(runs))


def test_a_point_is_the_mean_of_its_stretch_over_rounds_and_seeds():
    at, loss = smoothed([np.arange(40.0), np.arange(40.0) + 2])
    assert at.tolist() == [1.5 + 2 * k for k in range(20)]
    assert loss == pytest.approx([1.5 + 2 * k for k in range(20)])


def test_rounds_without_updates_do_not_count():
    losses = np.array([np.nan, np.nan, 3.0, np.nan] + [1.0] * 36)
    at, loss = smoothed([losses])
    assert at[0] == 3.5
    assert loss[:2].tolist() == [3.0, 1.0]


def test_seeds_of_different_length_are_cut_to_the_shortest():
    at, loss = smoothed([np.ones(3), np.full(9, 3.0)])
    assert (at.tolist(), loss.tolist()) == ([1, 2, 3], [2, 2, 2])
