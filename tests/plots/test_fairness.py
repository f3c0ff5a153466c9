import numpy as np
import pytest

from edgesim.analysis.fairness import gini, participations
from edgesim.analysis.runs import runs_of
from edgesim.plots.fairness import draw_fairness
from edgesim.plots.groups import panels_of


def test_a_line_per_policy_rises_from_nothing_to_everything_below_the_diagonal(tmp_path, run_writer):
    policies = ("random", "feddance")
    runs = runs_of([run_writer(tmp_path / f"{p}-{s}", policy=p, seed=s) for p in policies for s in (0, 1)])
    (axes,) = draw_fairness(panels_of(runs)).axes
    _, *lines = axes.get_lines()
    assert [line.get_label() for line in lines] == list(policies)
    for line in lines:
        x, y = line.get_data()
        assert (x[0], y[0], x[-1], y[-1]) == pytest.approx((0, 0, 1, 1))
        assert (np.diff(y) >= 0).all()
        assert (y <= x + 1e-12).all()
    found = float(np.mean([gini(participations(run.updates, run.devices)) for run in runs[:2]]))
    assert f"{found:.2f} random" in axes.texts[0].get_text()
