"""Sessions drawn as far as questions go are those of the whole time laid down at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgesim.config import AvailabilityConfig
from edgesim.streams import Streams
from edgesim.traces import stays
from edgesim.traces.availability import Availability
from edgesim.traces.interval_table import IntervalTable
from edgesim.traces.intervals import Intervals, joined
from edgesim.traces.models import make_availability, renewal
from edgesim.traces.models.options import DAY_S
from edgesim.traces.models.renewal import Renewal

DEVICES = 12
OPTIONS: dict[str, dict[str, float]] = {
    "as it comes": {"length_s": 3 * DAY_S},
    "to no whole second": {"length_s": 30_000.7, "sessions_per_week": 500.0},
    "nearly always there": {"length_s": 40_000.0, "online_share": 0.95, "sessions_per_week": 500.0},
}


@contextmanager
def small_windows() -> Iterator[None]:
    """Windows of a few sessions, so that twelve phones take the path of a million."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stays, "_ROWS_OF_DEVICE", 0)
        patch.setattr(stays, "_LEAST_ROWS", 20)
        patch.setattr(stays, "_AT_ONCE", 4)
        yield


class Question(NamedTuple):
    kind: str
    ids: list[int]
    at: list[float]
    """Instants in lengths of the recording; the first where all devices are asked about at one."""
    each_at_its_own: bool
    whole_seconds: bool
    """At which sessions begin and end."""
    horizon: float
    count: int


kinds = ["available", "available_until", "next_available", "next_time_with", "next_change", "ever_has", "most_at_once"]
some_devices = st.lists(st.integers(0, DEVICES - 1), min_size=1, max_size=DEVICES, unique=True)
instants = st.lists(st.floats(0.0, 2.5), min_size=DEVICES, max_size=DEVICES)
horizons = st.one_of(st.just(np.inf), st.floats(0.0, 2.5))
questions = st.builds(
    Question, st.sampled_from(kinds), some_devices, instants, st.booleans(), st.booleans(), horizons, st.integers(0, 13)
)


def answer(asked: Availability, question: Question, length_s: float) -> Any:
    times_s = np.array(question.at) * length_s
    if question.whole_seconds:
        times_s = np.floor(times_s)
    ids = np.array(question.ids)
    when_s = times_s[: len(ids)] if question.each_at_its_own else float(times_s[0])
    arguments: dict[str, tuple] = {
        "available_until": (ids, when_s, question.horizon * length_s),
        "next_time_with": (question.count, float(times_s[0])),
        "next_change": (float(times_s[0]),),
        "ever_has": (question.count,),
        "most_at_once": (),
    }
    return getattr(asked, question.kind)(*arguments.get(question.kind, (ids, when_s)))


def drawn_on_demand(streams: Streams, devices: int = DEVICES, **options: Any) -> IntervalTable:
    made = make_availability(AvailabilityConfig(model="renewal", **options), devices, streams)
    assert isinstance(made, IntervalTable)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONS)
@settings(max_examples=12)
@given(st.lists(questions, min_size=1, max_size=8), st.sampled_from(["wrap", "absent"]), st.integers(0, 5))
def test_answers_on_demand_are_those_of_the_whole_time_laid_down(
    name: str, asked: list[Question], after_end: Any, seed: int
) -> None:
    options = OPTIONS[name]
    whole = IntervalTable(Renewal.model_validate(options).intervals(DEVICES, Streams(seed)), after_end)
    with small_windows():
        drawn = drawn_on_demand(Streams(seed), after_end=after_end, **options)
        for question in asked:
            expected = answer(whole, question, options["length_s"])
            assert np.array_equal(answer(drawn, question, options["length_s"]), expected), question


@pytest.mark.parametrize("name", OPTIONS)
def test_windows_of_time_laid_end_to_end_are_the_whole_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    law = Renewal.model_validate(OPTIONS[name])
    whole = law.intervals(DEVICES, Streams(3))
    # A few devices at once.
    monkeypatch.setattr(renewal, "_AT_ONCE", 5)
    edges_s = np.append(np.unique(np.floor(np.linspace(0, law.length_s, 20)[:-1])), law.length_s)
    parts = list(law.windows(DEVICES, Streams(3), edges_s))
    device, start_s, end_s = (np.concatenate([getattr(part, column) for part in parts])
                              for column in ("device", "start_s", "end_s"))  # fmt: skip
    assert rows(joined(device, start_s, end_s, law.length_s, DEVICES)) == rows(whole)


def rows(intervals: Intervals) -> list[tuple[int, float, float]]:
    columns = (intervals.device, intervals.start_s, intervals.end_s)
    return list(zip(*(column.tolist() for column in columns), strict=True))


class Counted(Streams):
    """Streams that count the sessions drawn."""

    sessions = 0

    def normal(self, name: str, *arguments: Any, **named: Any) -> Any:
        draws = super().normal(name, *arguments, **named)
        self.sessions += draws.size // 2 if name == "availability" else 0
        return draws


def test_what_nobody_asks_for_is_not_drawn() -> None:
    devices = 4000
    everyone = np.arange(devices)
    week, streams = Counted(0), Counted(0)
    Renewal().intervals(devices, week)
    asked = drawn_on_demand(streams, devices)
    assert streams.sessions == 0
    asked.available(everyone, 3600.0)
    asked.available_until(everyone, 3600.0, 4000.0)
    asked.next_change(3600.0)
    assert asked.ever_has(devices // 10)
    # The day before the first instant, in which the process begins, and the first hours, of eight days.
    assert 1 / 8 < streams.sessions / week.sessions < 1 / 6
    asked.available(everyone, 3.1 * DAY_S)
    assert 4.1 / 8 - 0.05 < streams.sessions / week.sessions < 4.1 / 8 + 0.05
    asked.available(everyone, 7 * DAY_S - 1)
    assert streams.sessions == week.sessions


@given(
    st.floats(0.0, 0.999999),
    st.floats(0.0, 23.9),
    st.lists(st.floats(-2 * DAY_S, 9 * DAY_S), min_size=1, max_size=50),
)
def test_the_time_of_gaps_is_turned_back_as_numpy_interpolates_it(
    rhythm: float, peak_h: float, at: list[float]
) -> None:
    found = renewal.Rhythm(rhythm, peak_h)
    minutes_s = np.arange(0.0, DAY_S + 60.0, 60.0)
    table_s = found.inner_s(minutes_s)
    # At the table's own values and next to them too.
    inner_s = np.concatenate([at, table_s, np.nextafter(table_s, -np.inf), np.nextafter(table_s, np.inf)])
    days, rest_s = np.divmod(inner_s - table_s[0], DAY_S)
    expected_s = days * DAY_S + np.interp(rest_s + table_s[0], table_s, minutes_s)
    assert found.real_s(inner_s).tolist() == expected_s.tolist()
