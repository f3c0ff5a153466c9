import numpy as np
import pytest

from edgesim.plots import style
from edgesim.plots.trace import draw_anatomy, draw_capacity, draw_profile
from edgesim.traces.intervals import joined
from edgesim.traces.session_statistics import anatomy


def trace(rows):
    device, start, end = np.array(rows, dtype=float).reshape(-1, 3).T
    return anatomy(joined(device.astype(np.int64), start, end, 86_400.0, 4))


SOME = trace([(0, 0, 60), (0, 120, 150), (0, 7200, 9000), (1, 0, 86_400), (2, 30, 40)])


def test_the_lines_of_an_anatomy_are_its_distributions():
    figure = draw_anatomy({"some": SOME})
    sessions, durations, gaps, hours, time = figure.axes
    x, y = sessions.lines[0].get_data()
    assert (x.tolist(), y.tolist()) == ([0, 0, 1, 1, 3], [0, 0.25, 0.5, 0.75, 1.0])
    assert durations.lines[0].get_xdata()[1:].tolist() == [10, 30, 60, 1800, 86_400]
    assert [line.get_xdata()[1:].tolist() for line in gaps.lines] == [[60, 7050], [3555]]
    assert hours.lines[0].get_ydata()[0] == pytest.approx((60 + 30 + 3600 + 10) / (4 * 3600))
    hour, share = time.lines[0].get_data()
    # Of four devices one is there all day; in the first minute another one, and for ten seconds a third.
    assert (3600 * hour).tolist() == pytest.approx([0, 30, 40, 60, 120, 150, 7200, 9000, 86_400])
    assert share.tolist() == pytest.approx([0.5, 0.75, 0.5, 0.25, 0.5, 0.25, 0.5, 0.25, 0.25])
    assert time.get_xlabel() == "time of the trace (h)"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["some", "(c): mean of each device"]


def test_a_thin_line_says_how_many_are_still_recorded_where_recordings_differ_in_length():
    device, start, end = np.array([0, 1]), np.zeros(2), np.array([43_200.0, 86_400.0])
    apart = anatomy(joined(device, start, end, end, 2))
    figure = draw_anatomy({"apart": apart, "some": SOME})
    share, recorded, other = (line.get_ydata() for line in figure.axes[4].lines)
    assert share.tolist() == [1.0] * 3
    assert recorded.tolist() == [1.0, 0.5, 0.5]
    assert other[-1] == 0.25
    assert figure.legends[0].get_texts()[-1].get_text() == "(e): still recorded"


@pytest.mark.parametrize(
    ("length_s", "unit", "end", "right_s"),
    [(90.0, "s", 90, 99.0), (600.0, "min", 10, 660.0), (36_000.0, "h", 10, 39_600.0), (864_000.0, "d", 10, 665_280.0)],
)
def test_the_axes_of_an_anatomy_end_with_the_recording(length_s, unit, end, right_s):
    short = anatomy(joined(np.array([0, 0]), np.array([0.0, 40.0]), np.array([20.0, 60.0]), length_s, 1))
    sessions, durations, gaps, *hours, time = draw_anatomy({"short": short}).axes
    assert (sessions.get_xscale(), sessions.get_xlim()) == ("linear", (0, 2.2))
    # An hour of the day says nothing of a recording of minutes.
    assert [of.get_xlim() for of in hours] == ([(0, min(24, length_s / 3600))] if length_s > 7200 else [])
    assert time.get_xlabel() == f"time of the trace ({unit})"
    assert time.get_xlim() == (0, pytest.approx(end))
    assert durations.get_xlim() == gaps.get_xlim() == (1, pytest.approx(right_s))


def test_shares_of_a_trace_with_many_sessions_are_means_of_equal_parts():
    starts = np.arange(500) * 100.0
    axes = draw_anatomy({"many": trace([(0, start, start + 50) for start in starts])}).axes[4]
    hour, share = axes.lines[0].get_data()
    # A day in 400 parts of 216 s: the first has 50 + 50 + 16 s of one of four devices.
    assert (len(hour), share[0]) == (401, pytest.approx(116 / (4 * 216)))


def test_published_marks_are_drawn_only_when_wanted():
    hours = draw_anatomy({"some": SOME}, published=True).axes[3]
    assert hours.lines[-1].get_ydata()[0] == 0.2026
    assert len(draw_anatomy({"some": SOME}).axes[3].lines) == 1
    (legend,) = draw_anatomy({"some": SOME}, published=True).legends
    assert legend.get_texts()[-1].get_text() == "black and grey marks: 136,000 phones (FedDance)"


def test_traces_without_any_gap_or_session_are_drawn(tmp_path):
    traces = {"nobody": trace([]), "one": trace([(3, 5, 6)])}
    style.save(draw_anatomy(traces), tmp_path / "few")
    assert (tmp_path / "few.png").stat().st_size > 5000


def test_fine_capacities_are_drawn_as_means_of_seconds():
    t_s = np.arange(10_000) / 1000
    bps = np.where(np.arange(10_000) % 4 == 0, 4e6, 0.0)
    (axes,) = draw_capacity({"": (t_s, bps)}).axes
    assert axes.lines[0].get_ydata() == pytest.approx(np.ones(9))
    two = draw_capacity(
        {"a": (np.array([0.0, 1.0]), np.array([1e6, 5e6])), "b": (np.array([0.0, 1.0]), np.array([9e6, 0.0]))}
    )
    assert [panel.get_title() for panel in two.axes] == ["(a) a", "(b) b"]
    assert two.axes[0].get_ylim()[1] > 9


def test_a_profile_has_a_panel_for_each_thing_known():
    assert len(draw_profile(np.array([0.1, 0.2]), None).axes) == 1
    speed, link = draw_profile(np.array([0.2, 0.1]), np.array([1e6, 3e6])).axes
    assert speed.lines[0].get_xdata()[1:] == pytest.approx([100, 200])
    assert link.lines[0].get_xdata()[1:] == pytest.approx([1, 3])
