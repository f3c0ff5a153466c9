import pytest

from edgesim.analysis.runs import Run, runs_of
from edgesim.plots.energy import draw_energy, draw_energy_over_rounds, joules_per_round
from edgesim.plots.groups import panels_of


@pytest.fixture
def runs(tmp_path, run_writer) -> list[Run]:
    # 0.1 J a row: ten devices compute, `scheduled` of them upload.
    return runs_of([run_writer(tmp_path / str(n), scheduled=n, seed=n, rounds=3) for n in (3, 5)])


def test_joules_per_round_are_those_of_the_rows_by_activity(runs):
    assert joules_per_round(runs[0]) == pytest.approx({"download": 0.0, "compute": 1.0, "upload": 0.3, "idle": 0.0})


def test_energy_bars_stack_the_mean_joules_of_the_seeds_with_the_interval_of_the_whole(runs):
    figure = draw_energy(panels_of(runs))
    (axes,) = figure.axes
    heights = [bar.get_height() for bar in axes.patches]
    assert heights == pytest.approx([1.0, 0.4])
    (whisker,) = axes.collections[0].get_segments()
    half = 12.7062047362 * 0.1  # t(0.975, 1 degree of freedom) times the standard error of 1.3 and 1.5 J
    assert whisker[:, 1].tolist() == pytest.approx([1.4 - half, 1.4 + half])
    assert axes.get_ylabel() == "energy (J per round)"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["compute", "upload"]


def test_no_interval_of_the_energy_goes_below_zero(tmp_path, run_writer):
    few_and_all = runs_of([run_writer(tmp_path / str(n), scheduled=n, seed=n, rounds=3) for n in (1, 9)])
    spent = [sum(joules_per_round(run).values()) for run in few_and_all]
    (axes,) = draw_energy(panels_of(few_and_all)).axes
    (whisker,) = axes.collections[0].get_segments()
    assert whisker[0, 1] == 0.0
    assert whisker[1, 1] == pytest.approx(sum(spent) / 2 + 12.7062047362 * abs(spent[1] - spent[0]) / 2)


def test_one_runs_energy_is_drawn_over_its_rounds(runs):
    (axes,) = draw_energy_over_rounds(runs[1]).axes
    compute, both = (patch.get_data() for patch in axes.patches)
    assert compute.values.tolist() == pytest.approx([1.0] * 3)
    assert both.values.tolist() == pytest.approx([1.5] * 3)
    assert both.baseline.tolist() == pytest.approx([1.0] * 3)
