import pytest

from edgesim.analysis.runs import RunFolder, runs_of
from edgesim.plots.energy_bars import draw_energy, draw_energy_over_rounds, joules_per_round
from edgesim.plots.groups import panels_of
from edgesim.plots.stacks import Part, draw_stacks


@pytest.fixture
def runs(tmp_path, run_writer) -> list[RunFolder]:
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


def test_no_interval_of_a_stack_goes_below_zero(runs):
    joules = dict(zip((run.folder for run in runs), (0.0, 0.0, 3.0), strict=True))
    parts = {"all": Part("all", "#999999")}
    (axes,) = draw_stacks(panels_of(runs), parts, lambda run: {"all": joules[run.folder]}, "energy (J)").axes
    (whisker,) = axes.collections[0].get_segments()
    # A mean and a standard error of 1 J each.
    assert whisker[:, 0].tolist() == pytest.approx([0.0, 1 + 4.3026527297])


def test_one_runs_energy_is_drawn_over_its_rounds(runs):
    (axes,) = draw_energy_over_rounds(runs[2]).axes
    compute, both = (patch.get_data() for patch in axes.patches)
    assert compute.values.tolist() == pytest.approx([1.0] * 3)
    assert both.values.tolist() == pytest.approx([1.5] * 3)
    assert both.baseline.tolist() == pytest.approx([1.0] * 3)
