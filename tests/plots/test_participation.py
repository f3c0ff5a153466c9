"""Participation over the day and staleness, on made-up rounds."""

import numpy as np
import pandas as pd
import pytest

from edgesim.analysis.runs import RunFolder
from edgesim.plots.groups import Series, panels_of
from edgesim.plots.participation import by_hour, draw_participation, spans_a_day
from edgesim.plots.staleness import cumulative, draw_staleness, has_stale_updates


def test_rounds_count_in_the_hour_in_which_they_begin_whatever_the_day():
    rounds = pd.DataFrame(
        {
            "t_start_s": [0.0, 3599.0, 3600.0, 86_400.0 + 10.0],
            "candidates": [10, 20, 30, 60],
            "selected": [1, 1, 5, 1],
            "arrived": [1, 0, 4, 1],
        }
    )
    table = by_hour(rounds)
    assert len(table) == 24
    assert table["candidates"].tolist()[:2] == [30.0, 30.0]
    assert table["arrived"].tolist()[:2] == pytest.approx([2 / 3, 4.0])
    assert table.loc[2:].isna().all().all()


def test_both_figures_show_a_run_of_a_day(tmp_path, run_writer):
    run = RunFolder(run_writer(tmp_path / "run", tmax_s=7300.0), {"policy": "random"}, 0)
    assert spans_a_day(run)
    above, below = draw_participation([run]).axes
    table = by_hour(run.rounds)
    drawn = {line.get_label(): line.get_ydata() for axes in (above, below) for line in axes.get_lines()}
    for label, name in (("checked in", "candidates"), ("selected", "selected"), ("arrived", "arrived")):
        assert drawn[label] == pytest.approx(table[name].to_numpy(), nan_ok=True)
    assert [line.get_label() for line in above.get_lines()] == ["checked in"]
    # On an axis of its own: what changes over the day is not flattened by how many check in.
    assert below.get_ylim()[1] < np.nanmax(drawn["checked in"])
    assert (above.get_yscale(), below.get_yscale()) == ("linear", "linear")
    assert not has_stale_updates([run])
    rows = run.updates
    rows["staleness"] = np.minimum(rows["device"] % 3, rows["round"])
    rows.to_parquet(run.folder / "updates.parquet")
    assert has_stale_updates([run])
    ages, shares = cumulative(Series("all", (run,)))
    assert shares == pytest.approx([np.mean(run.updates["staleness"] <= age) for age in ages])
    (line,) = draw_staleness(panels_of([run])).axes[0].get_lines()
    assert line.get_ydata() == pytest.approx(shares)
