import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb
from matplotlib.container import BarContainer
from matplotlib.figure import Figure

from edgesim import load
from edgesim.analysis.accuracy_series import accuracy_series
from edgesim.analysis.runs import RunFolder, runs_of
from edgesim.plots.accuracy import draw_accuracy
from edgesim.plots.delay_cdf import cdf, draw_delay_cdf
from edgesim.plots.energy_bars import draw_energy
from edgesim.plots.fairness import draw_fairness
from edgesim.plots.final_accuracy import draw_final_accuracy
from edgesim.plots.gantt import draw_gantt
from edgesim.plots.groups import Series, beyond_labels, knob_text, labels_of, panels_of, quantity
from edgesim.plots.heat_map import draw_heat_map
from edgesim.plots.palette import PALETTE
from edgesim.plots.rounds_to_target import draw_rounds_to_target, levels_around
from edgesim.plots.scheduled import draw_scheduled, scheduled_per_round
from edgesim.plots.training_loss import draw_training_loss
from edgesim.simulation import composition as simulation


@pytest.fixture(scope="module")
def folders(tmp_path_factory, run_writer) -> list[Path]:
    """Written once; no test changes what lies there."""
    folder = tmp_path_factory.mktemp("runs")
    return [
        run_writer(folder / f"{policy}-{tmax_s}-{seed}", policy=policy, tmax_s=tmax_s, seed=seed)
        for policy in ("random", "fedteddi")
        for tmax_s in (1.2, 0.8)
        for seed in (0, 1)
    ]


@pytest.fixture
def runs(folders) -> list[RunFolder]:
    return runs_of(folders)


@pytest.fixture(scope="module")
def seeds(tmp_path_factory, run_writer) -> list[Path]:
    """Written once; no test changes what lies there."""
    folder = tmp_path_factory.mktemp("seeds")
    return [run_writer(folder / f"seed{seed}", seed=seed) for seed in range(3)]


@pytest.fixture
def three_seeds(seeds) -> list[RunFolder]:
    return runs_of(seeds)


@pytest.fixture
def run(seeds) -> RunFolder:
    return runs_of(seeds[:1])[0]


def axis_labels(figure: Figure) -> list[str]:
    return [text for axes in figure.axes for text in (axes.get_xlabel(), axes.get_ylabel()) if text]


def test_the_gantt_bars_are_the_rows_of_the_round_counted_from_its_start(run):
    figure = draw_gantt(run, 3)
    rows = run.activities[run.activities["round"] == 3]
    bars = [bar for group in figure.axes[0].containers if isinstance(group, BarContainer) for bar in group]
    drawn = sorted((round(bar.get_x(), 9), round(bar.get_width(), 9)) for bar in bars)
    begin_s = rows["t_start_s"] - 2.0
    expected = sorted(zip(begin_s.round(9), (rows["t_end_s"] - rows["t_start_s"]).round(9), strict=True))
    assert np.allclose(drawn, expected)
    assert axis_labels(figure) == ["time since the round began (s)", "device"]


def test_the_gantt_chart_has_the_work_that_is_carried_out_of_its_round_and_into_it(tmp_path):
    """Device 3's upload passes the deadline of round 1 at 0.8 s and ends in round 2, at 0.871 s."""
    simulation.run(load(Path(__file__).parents[2] / "docs/one-round.toml"), tmp_path / "run")
    (run,) = runs_of([tmp_path / "run"])

    def uploads(round):
        figure = draw_gantt(run, round)
        names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
        bars = [bar for group in figure.axes[0].containers if isinstance(group, BarContainer) for bar in group]
        blue = [bar for bar in bars if to_hex(bar.get_facecolor()).upper() == PALETTE["blue"]]
        middle = {names[int(0.5 + bar.get_y() + bar.get_height() / 2)]: bar for bar in blue}
        return {device: (bar.get_x(), bar.get_x() + bar.get_width()) for device, bar in middle.items()}

    first, second = uploads(1), uploads(2)
    assert sorted(first) == ["0", "1", "3", "5"]
    assert first["3"] == pytest.approx((0.2997, 0.8710), abs=1e-4)
    assert second["3"] == pytest.approx((0.2997 - 0.8, 0.0710), abs=1e-4)


def test_the_gantt_chart_marks_the_deadline_and_how_work_ended(run):
    figure = draw_gantt(run, 1)
    texts = [text.get_text() for text in figure.legends[0].get_texts()]
    assert texts == ["compute", "upload", "late", "dropped", "unscheduled", "deadline", "round's end"]
    hatches = {bar.get_hatch() for group in figure.axes[0].containers for bar in group}
    assert {"////", "xxxx"} <= hatches
    assert 1.0 in {line.get_xdata()[0] for line in figure.axes[0].get_lines()}


def test_the_cdf_of_whole_durations_is_their_empirical_share():
    times, shares = cdf(np.array([3.0, 1.0, 2.0, 2.0]), np.empty(0))
    assert dict(zip(times[1:], shares[1:], strict=True)) == {1.0: 0.25, 2.0: 0.75, 3.0: 1.0}
    assert (times[0], shares[0]) == (1.0, 0.0)
    assert [part.tolist() for part in cdf(np.empty(0), np.array([1.0]))] == [[0.0], [0.0]]
    # Of many it stays small and keeps its ends.
    times, shares = cdf(np.arange(1.0, 10_001.0), np.empty(0))
    assert times.size < 500
    assert (times[1], times[-1]) == (1.0, 10_000.0)
    assert np.allclose(shares[1:], times[1:] / 10_000)


def test_durations_cut_short_are_counted_as_longer_by_kaplan_and_meiers_product():
    # The textbook's remission times under 6-mercaptopurine (Freireich et al., Blood 21, 1963):
    # survival (1 - 3/21) = 0.857 at 6, times (1 - 1/17) at 7, times (1 - 1/15) at 10, and so on.
    whole = np.array([6.0, 6, 6, 7, 10, 13, 16, 22, 23])
    cut = np.array([6.0, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35])
    times, shares = cdf(whole, cut)
    survival = {time: 1 - share for time, share in zip(times, shares, strict=True)}
    expected = {6: 0.857, 7: 0.807, 10: 0.753, 13: 0.690, 16: 0.627, 22: 0.538, 23: 0.448}
    assert {time: round(survival[time], 3) for time in expected} == expected


def test_several_deadlines_make_one_panel_each_in_ascending_order(runs):
    panels = panels_of(runs)
    assert [panel.title for panel in panels] == ["$T_{\\max}$ = 0.8 s", "$T_{\\max}$ = 1.2 s"]
    assert labels_of(panels) == ["random", "fedteddi"]
    assert all(len(series.runs) == 2 for panel in panels for series in panel.series)


def known(policy: str, **knobs: str | float) -> RunFolder:
    """A run of which only the knobs are read."""
    return RunFolder(Path("none"), {"policy": policy, "tmax_s": 1.0, **knobs}, 0)


def test_a_knob_is_named_only_where_runs_of_one_policy_differ_in_it():
    by_policy = panels_of([known("random"), known("fedteddi", lambda_0=0.1)])
    assert labels_of(by_policy) == ["random", "fedteddi"]
    by_option = panels_of([known("random"), known("fedteddi", lambda_0=0.1), known("fedteddi", lambda_0=0.2)])
    assert labels_of(by_option) == ["random", "fedteddi, lambda_0 = 0.1", "fedteddi, lambda_0 = 0.2"]
    alone = panels_of([known("random", delay_knowledge=kind) for kind in ("known", "planned")])
    assert labels_of(alone) == ["known", "planned"]
    assert alone[0].title == ""


def test_knobs_that_differ_between_policies_alone_are_those_that_no_label_says():
    assert beyond_labels([known("random", lr=0.1), known("fedteddi", lr=0.2, lambda_0=0.1)]) == ["lr"]
    assert beyond_labels([known("random", lr=0.1), known("random", lr=0.2), known("fedteddi", lr=0.2)]) == []


def test_more_series_than_can_be_read_are_spread_over_panels_of_another_knob(tmp_path):
    knobs = [(policy, trace, n) for trace in ("week", "phones") for n in (10, 20) for policy in ("a", "b", "c")]
    runs = [RunFolder(tmp_path, {"trace": trace, "participants": n, "policy": policy}, 0) for policy, trace, n in knobs]
    panels = panels_of(runs)
    assert [panel.title for panel in panels] == ["week", "phones"]
    assert [len(panel.series) for panel in panels] == [6, 6]
    assert labels_of(panels)[0] == "a, participants = 10"
    # Nine can be read in one.
    assert len(panels_of(runs[:9])) == 1


def test_more_series_of_one_policy_than_can_be_read_are_spread_over_panels_too(tmp_path):
    knobs = [(setting, f"algorithm {n}") for setting in ("static", "markov") for n in range(9)]
    panels = panels_of([RunFolder(tmp_path, {"setting": setting, "algorithm": name}, 0) for setting, name in knobs])
    assert [panel.title for panel in panels] == ["static", "markov"]
    assert labels_of(panels) == [f"algorithm {n}" for n in range(9)]
    # A single knob is what tells the series apart, and stays in one panel.
    (alone,) = panels_of([RunFolder(tmp_path, {"alpha": n / 10}, 0) for n in range(10)])
    assert len(alone.series) == 10


def test_the_curve_over_seconds_keeps_the_last_accuracy_until_the_next_evaluation(tmp_path, run_writer):
    # Rounds of 1.0 and of 0.8 s: at 1.0 s the first seed has one round behind it, the second its first too.
    slow = runs_of([run_writer(tmp_path / "slow", tmax_s=1.0, rounds=3)])[0]
    fast = runs_of([run_writer(tmp_path / "fast", tmax_s=0.8, rounds=3)])[0]
    places, values = accuracy_series((slow, fast), "seconds")
    assert places == pytest.approx([0.0, 0.8, 1.0, 1.6, 2.0, 2.4])
    first, second = slow.rounds["test_accuracy"].tolist(), fast.rounds["test_accuracy"].tolist()
    assert values[0].tolist() == [0.5, 0.5, first[0], first[0], first[1], first[1]]
    assert values[1].tolist() == [0.5, second[0], second[0], second[1], second[1], second[2]]


def test_the_curve_over_rounds_starts_at_round_zero_and_ends_where_the_shortest_run_does(tmp_path, run_writer):
    series = Series("x", tuple(runs_of([run_writer(tmp_path / str(n), rounds=n) for n in (4, 6)])))
    places, values = accuracy_series(series.runs, "rounds")
    assert places.tolist() == [0, 1, 2, 3, 4]
    assert values[:, 0].tolist() == [0.5, 0.5]


@pytest.mark.parametrize(("tmax_s", "unit", "last"), [(299.0, "s", 3588.0), (600.0, "h", 2.0)])
def test_runs_of_an_hour_or_more_are_drawn_over_hours_with_the_target(tmp_path, run_writer, tmax_s, unit, last):
    panels = panels_of(runs_of([run_writer(tmp_path / "run", tmax_s=tmax_s)]))
    figure = draw_accuracy(panels, "seconds", target=0.75)
    (axes,) = figure.axes
    assert axes.get_xlabel() == f"simulated time ({unit})"
    assert axes.get_lines()[0].get_xdata()[-1] == pytest.approx(last)
    assert figure.legends[0].get_texts()[-1].get_text() == "target 0.75"


def test_delay_figures_have_a_row_per_deadline_and_seconds_on_every_axis(runs):
    figure = draw_delay_cdf(panels_of(runs))
    assert len(figure.axes) == 6
    labels = axis_labels(figure)
    assert {"compute duration (s)", "upload duration (s)", "round duration (s)"} <= set(labels)
    round_panel = figure.axes[2]
    assert 0.8 in round_panel.get_lines()[0].get_xdata()
    assert round_panel.get_xlim()[1] > 1.2


def test_scheduled_bars_stack_to_the_number_scheduled(runs):
    panels = panels_of(runs)
    for run in runs:
        counts = scheduled_per_round(run)
        assert counts["new"] + counts["old"] == pytest.approx(4.0)
        assert counts["new"] > 0
    figure = draw_scheduled(panels)
    ends = [bar.get_x() + bar.get_width() for bar in figure.axes[0].containers[1]]
    assert ends == pytest.approx([4.0, 4.0])
    assert figure.axes[0].get_xlabel() == "scheduled clients per round\nmean of 2 seeds"


def test_scheduled_bars_are_plain_where_no_device_gets_a_new_class(tmp_path, folders):
    runs = runs_of([shutil.copytree(folder, tmp_path / folder.name) for folder in folders])
    for run in runs:
        devices = run.devices
        devices["class_counts"] = devices.loc[devices["frame"] == 0, "class_counts"].to_list() * 2
        devices.to_parquet(run.folder / "devices.parquet")
    figure = draw_scheduled(panels_of(runs))
    (bars,) = (group for group in figure.axes[0].containers if isinstance(group, BarContainer))
    assert [bar.get_width() for bar in bars] == pytest.approx([4.0, 4.0])
    assert not figure.legends


def test_rounds_needed_are_means_and_levels_never_reached_are_hatched_and_counted(runs):
    panels = panels_of([run for run in runs if run.knobs["tmax_s"] == 0.8])
    figure = draw_rounds_to_target(panels, [0.6, 0.99])
    bars = [group[0] for group in figure.axes[0].containers if isinstance(group, BarContainer)]
    lengths = {bool(bar.get_hatch()): [] for bar in bars}
    for bar in bars:
        lengths[bool(bar.get_hatch())].append(bar.get_width())
    # Twelve rounds, the last that were tested, were not enough: no bar of a known mean is as long as these rows.
    assert lengths[True] == [figure.axes[0].get_xlim()[1]] * 2
    assert min(lengths[True]) > 12.0 > max(lengths[False])
    assert all(bar.get_facecolor()[:3] == (1, 1, 1) for bar in bars if bar.get_hatch())
    random = panels[0].series[0].runs
    needed = [next(i for i, x in enumerate(run.rounds["test_accuracy"], 1) if x >= 0.6) for run in random]
    assert np.mean(needed) in lengths[False]
    assert [text.get_text() for text in figure.axes[0].texts] == ["> 12 (0 of 2)", "> 12 (0 of 2)"]
    assert axis_labels(figure) == ["rounds needed\nmean of 2 seeds", "test accuracy to reach"]


def whisker(figure: Figure, along: int) -> list[float]:
    """Both ends of the only error bar, along the axis x (0) or y (1)."""
    (segment,) = figure.axes[0].collections[0].get_segments()
    return segment[:, along].tolist()


def test_no_error_bar_leaves_what_its_quantity_can_be(three_seeds):
    """Of three seeds the t interval has 4.3 times the standard error."""
    panels = panels_of(three_seeds)
    late, soon, third = (run.rounds for run in panels[0].series[0].runs)
    for rounds in (late, soon, third):
        rounds["test_accuracy"] = 0.9
    late["test_accuracy"] = [*[0.5] * 11, 0.9]
    # Rounds 1, 1 and 12: 14 / 3 with a standard error of 11 / 3.
    ends = [0.0, 14 / 3 + 4.3026527297 * 11 / 3]
    assert whisker(draw_rounds_to_target(panels, [0.8]), 0) == pytest.approx(ends)
    late["test_accuracy"], soon["test_accuracy"], third["test_accuracy"] = 0.98, 0.98, 1.0
    mean, half = 2.96 / 3, 4.3026527297 * 0.02 / 3
    assert whisker(draw_final_accuracy(panels), 0) == pytest.approx([mean - half, 1.0])
    late["test_accuracy"], soon["test_accuracy"], third["test_accuracy"] = 0.02, 0.98, 0.5
    assert whisker(draw_final_accuracy(panels), 0) == [0.0, 1.0]


@pytest.mark.parametrize(
    "draw",
    [
        draw_final_accuracy,
        draw_energy,
        lambda panels: draw_rounds_to_target(panels, [0.6]),
        lambda panels: draw_accuracy(panels, "rounds"),
    ],
)
def test_two_seeds_have_a_mean_and_no_interval_and_the_axis_says_so(runs, draw):
    figure = draw(panels_of(runs))
    lines = [one for axes in figure.axes for one in axes.collections]
    assert not [segment for line in lines for segment in line.get_paths() if len(segment.vertices)]
    assert any("\nmean of 2 seeds" in text for text in axis_labels(figure))


def test_of_many_series_the_reference_and_the_best_have_bands_and_the_others_are_thin(tmp_path, run_writer):
    names = ("random", "best-channel", "oort", "fedteddi", "fedcs", "refl", "safa", "feddance")
    runs = runs_of([run_writer(tmp_path / f"{p}-{s}", policy=p, seed=s) for p in names for s in range(3)])
    for run in runs:
        run.rounds["test_accuracy"] *= 0.9 if run.knobs["policy"] != "oort" else 1.0
    figure = draw_accuracy(panels_of(runs), "rounds", None, "best-channel")
    (axes,) = figure.axes
    lines = {line.get_label(): line for line in axes.get_lines()}
    width = {name: lines[name].get_linewidth() for name in names}
    assert {name for name in names if width[name] == max(width.values())} == {"oort", "best-channel"}
    assert {tuple(band.get_facecolor()[0][:3]) for band in axes.collections} == {
        to_rgb(lines[name].get_color()) for name in ("oort", "best-channel")
    }
    # No series' marks hide those of another.
    assert len({lines[name].get_markevery() for name in names}) > 2


@pytest.mark.parametrize("draw", [draw_fairness, draw_training_loss, lambda panels: draw_accuracy(panels, "seconds")])
def test_panels_of_one_figure_have_one_scale_and_hold_all_their_points(tmp_path, run_writer, draw):
    """The later panels' values exceed the first's: a scale that is set too early cuts them off."""
    folders = [run_writer(tmp_path / str(t), tmax_s=t, rounds=r) for t, r in ((0.8, 6), (1.2, 12), (1.6, 18))]
    runs = runs_of(folders)
    for run, loss in zip(runs, (0.2, 1.0, 3.0), strict=True):
        run.rounds["train_loss"] = loss
    figure = draw(panels_of(runs))
    assert len({axes.get_xlim() for axes in figure.axes}) == len({axes.get_ylim() for axes in figure.axes}) == 1
    for axes in figure.axes:
        (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
        for line in axes.get_lines():
            x, y = (np.asarray(part, dtype=float) for part in line.get_data())
            assert (x >= left).all()
            assert (x <= right).all()
            assert (y >= bottom).all()
            assert (y <= top).all()


def test_levels_lie_above_the_start_and_beyond_the_target_only_when_some_run_gets_there(runs):
    assert levels_around(0.56, runs) == [0.51, 0.56, 0.61]
    assert levels_around(0.98, runs) == [0.88, 0.93, 0.98]


def test_panels_of_a_heat_map_that_lack_a_row_leave_it_empty_instead_of_shifting():
    rows = [(0.8, 5.0, 10, 1.0), (1.0, 5.0, 10, 2.0), (0.8, 9.0, 30, 3.0), (1.0, 9.0, 30, 4.0)]
    table = pd.DataFrame(rows, columns=["tmax_s", "load", "devices", "arrived"])
    figure = draw_heat_map(table.assign(seeds=1), "tmax_s", "load", "arrived", ["devices"])
    assert [text.get_position() for text in figure.axes[0].texts] == [(0, 0), (1, 0)]
    assert [text.get_position() for text in figure.axes[1].texts] == [(0, 1), (1, 1)]


@pytest.mark.parametrize(
    ("name", "value", "axis", "told"),
    [
        ("bandwidth_hz", 2e7, "bandwidth (MHz)", "bandwidth = 20 MHz"),
        ("bandwidth_hz", 45_000.0, "bandwidth (kHz)", "bandwidth = 45 kHz"),
        ("bandwidth_hz", 200.0, "bandwidth (Hz)", "bandwidth = 200 Hz"),
        ("tx_power_dbm", 23, "tx power (dBm)", "tx power = 23 dBm"),
        ("band_mhz", 2.0, "band (MHz)", "band = 2 MHz"),
        ("speed_mps", 10.0, "speed of devices (m/s)", "speed = 10 m/s"),
        ("lambda_0", 0.1, "lambda_0", "lambda_0 = 0.1"),
    ],
)
@pytest.mark.whole_family
def test_units_of_knobs_come_from_their_suffix_and_size(name, value, axis, told):
    assert quantity(name, value).axis == axis
    assert knob_text(name, value) == told
