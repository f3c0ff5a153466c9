import pytest

from edgesim.analysis.runs import Run, runs_of
from edgesim.plots.energy import draw_energy, draw_energy_over_rounds, joules_per_round
from edgesim.plots.groups import panels_of


@pytest.fixture
def runs(tmp_path, run_writer) -> list[Run]:
    # 0.1 J a row: ten devices compute, `scheduled` of them upload.
    return runs_of([run_writer(tmp_path / str(n), scheduled=n, seed=n, rounds=3) for n in (3, 4, 5)])


def test_joules_per_round_are_those_of_the_rows_by_activity(runs):
    assert joules_per_round(runs[0]) == pytest.approx({"download": 0.0, "compute": 1.0, "upload": 0.3, "idle": 0.0})


def test_energy_bars_stack_the_mean_joules_of_the_seeds_with_the_interval_of_the_whole(runs):
    figure = draw_energy(panels_of(runs))
    (axes,) = figure.axes
    widths = [bar.get_width() for bar in axes.patches]
    assert widths == pytest.approx([1.0, 0.4])
    (whisker,) = axes.collections[0].get_segments()
    half = 4.3026527297 * 0.1 / 3**0.5  # t(0.975, 2 degrees of freedom) times the standard error of 1.3, 1.4 and 1.5 J
    assert whisker[:, 0].tolist() == pytest.approx([1.4 - half, 1.4 + half])
    assert axes.get_xlabel() == "energy (J per round)\nmean, 95 % interval"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["compute", "upload"]


def test_no_interval_of_the_energy_goes_below_zero(tmp_path, run_writer):
    few_and_all = [
        run_writer(tmp_path / f"{n}-{seed}", scheduled=n, seed=seed, rounds=3) for seed, n in enumerate((1, 1, 9))
    ]
    (axes,) = draw_energy(panels_of(runs_of(few_and_all))).axes
    (whisker,) = axes.collections[0].get_segments()
    # 1.1 J twice and 1.9 J: a mean of 1.37 J, less 4.3 times 0.27 J, is above zero; so is what is drawn.
    assert whisker[0, 0] == pytest.approx(41 / 30 - 4.3026527297 * 4 / 15)


def test_one_runs_energy_is_drawn_over_its_rounds(runs):
    (axes,) = draw_energy_over_rounds(runs[2]).axes
    compute, both = (patch.get_data() for patch in axes.patches)
    assert compute.values.tolist() == pytest.approx([1.0] * 3)
    assert both.values.tolist() == pytest.approx([1.5] * 3)
    assert both.baseline.tolist() == pytest.approx([1.0] * 3)
