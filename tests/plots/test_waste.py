import numpy as np
import pandas as pd
import pytest

from edgesim.analysis.runs import RunFolder, runs_of
from edgesim.analysis.waste import shares
from edgesim.plots.groups import panels_of
from edgesim.plots.stacks import MOST_BARS, Part, draw_stacks_over_rounds
from edgesim.plots.waste import draw_waste, draw_waste_over_rounds


@pytest.fixture
def run(tmp_path, run_writer) -> RunFolder:
    return runs_of([run_writer(tmp_path / "run", rounds=3)])[0]


def legend(figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_the_shares_of_a_run_are_those_counted_in_its_activities(run):
    # Every row costs 0.1 J. Of each round's 14 rows (4 devices upload) 4 are useful, 2 late, 2 dropped, 6 unscheduled.
    rows = run.activities
    assert len(rows) == 42
    useful = rows.merge(run.updates, on=["round", "device"])
    found = shares(run.work_by_kind, "joules")
    assert found["useful"] == pytest.approx(len(useful) / 42)
    assert found == pytest.approx(
        {"useful": 12 / 42, "late": 6 / 42, "dropped": 6 / 42, "unscheduled": 18 / 42, "unused": 0}
    )


def test_waste_bars_stack_to_one_and_show_only_what_occurs(tmp_path, run_writer):
    folders = [
        run_writer(tmp_path / f"{p}-{s}", policy=p, seed=s, rounds=3) for p in ("random", "mine") for s in (0, 1)
    ]
    figure = draw_waste(panels_of(runs_of(folders)), "joules")
    (axes,) = figure.axes
    bars = [bar for bar in axes.patches if bar.get_width() > 0]
    for place in (0, 1):
        here = [bar for bar in bars if bar.get_y() < place < bar.get_y() + bar.get_height()]
        assert sum(bar.get_width() for bar in here) == pytest.approx(1.0)
        assert max(bar.get_x() + bar.get_width() for bar in here) == pytest.approx(1.0)
    assert legend(figure) == ["useful", "late", "dropped", "unscheduled"]
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["random", "mine"]
    assert axes.get_xlabel() == "share of energy\nmean of 2 seeds"


def test_one_runs_waste_is_drawn_over_its_rounds(run):
    figure = draw_waste_over_rounds(run, "joules")
    (axes,) = figure.axes
    tops = axes.patches[-1].get_data()
    assert tops.edges.tolist() == [0.5, 1.5, 2.5, 3.5]
    assert tops.values.tolist() == pytest.approx([1.0, 1.0, 1.0])
    assert axes.patches[0].get_data().values.tolist() == pytest.approx([4 / 14] * 3)
    assert axes.get_xlabel() == "communication round"


PARTS = {"a": Part("first", "#000000"), "b": Part("second", "#999999", "//"), "c": Part("never", "#FF0000")}


def test_a_long_run_is_drawn_in_blocks_of_rounds_and_an_idle_block_stays_empty():
    count = 4 * MOST_BARS + 2  # blocks of five rounds, the last of two
    a = np.ones(count)
    a[:5] = 0.0
    table = pd.DataFrame({"a": a, "b": 3.0 * a, "c": 0.0}, index=np.arange(1, count + 1))
    share = draw_stacks_over_rounds(table, PARTS, "share", share=True)
    first, second = (patch.get_data() for patch in share.axes[0].patches)
    assert first.values.tolist() == pytest.approx([0.0] + [0.25] * 48)
    assert second.values.tolist() == pytest.approx([0.0] + [1.0] * 48)
    assert first.edges[[0, 1, -2, -1]].tolist() == [0.5, 5.5, 240.5, 242.5]
    assert legend(share) == ["first", "second"]
    assert "means over 5 rounds" in share.axes[0].get_xlabel()
    mean = draw_stacks_over_rounds(table, PARTS, "J", share=False)
    assert mean.axes[0].patches[1].get_data().values.tolist() == pytest.approx([0.0] + [4.0] * 48)


def test_intervals_of_the_useful_share_are_within_what_a_share_can_be_and_the_axis_names_them(tmp_path, run_writer):
    """Seeds with and without work."""
    folders = [run_writer(tmp_path / str(n), scheduled=n, seed=n, rounds=3) for n in (0, 3, 9)]
    (axes,) = draw_waste(panels_of(runs_of(folders)), "bits").axes
    (whisker,) = axes.collections[0].get_segments()
    assert whisker[:, 0].tolist() == pytest.approx([0.0, 1.0])
    assert axes.get_xlabel() == "share of bits\nmean, 95 % interval of the useful share"
