import numpy as np
import pytest

from edgesim.analysis.fairness import effective_devices, participations
from edgesim.analysis.runs import runs_of
from edgesim.plots.fairness import draw_fairness
from edgesim.plots.groups import panels_of


def test_a_line_per_policy_rises_to_everything_and_bears_its_number_of_devices(tmp_path, run_writer):
    policies = ("random", "feddance")
    runs = runs_of([run_writer(tmp_path / f"{p}-{s}", policy=p, seed=s) for p in policies for s in (0, 1)])
    figure = draw_fairness(panels_of(runs))
    (axes,) = figure.axes
    curves, marks = axes.get_lines()[::2], axes.get_lines()[1::2]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [*policies, "effective number of devices"]
    for curve in curves:
        x, y = curve.get_data()
        assert x.tolist() == list(range(1, 11))
        assert y[-1] == pytest.approx(1)
        assert (np.diff(y) >= 0).all()
    found = np.mean([effective_devices(participations(run.updates, run.devices)) for run in runs[:2]])
    assert marks[0].get_xdata()[0] == pytest.approx(found)


def test_a_series_that_used_no_update_has_no_mark_and_leaves_the_others_their_room(tmp_path, run_writer):
    none, some = runs_of([run_writer(tmp_path / policy, policy=policy) for policy in ("random", "feddance")])
    none.updates.iloc[:0].to_parquet(none.folder / "updates.parquet")
    figure = draw_fairness(panels_of([none, some]))
    # The layout warns, which is an error here, where a mark stands at 0 of a logarithmic axis.
    figure.canvas.draw()
    (axes,) = figure.axes
    assert [line.get_xdata().size for line in axes.get_lines()] == [10, 10, 1]
    assert axes.get_lines()[0].get_ydata().max() == 0
