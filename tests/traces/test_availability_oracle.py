"""Tens of thousands of random questions about availability against intervals laid out by hand in whole numbers.

Every float here is a multiple of 2^-100, so as an integer of these units it is exact, and so are sums and products. An
edge is an integer; at an instant of the clock, a float, a device is there if ``start <= instant < end`` as integers.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from edgesim.config import AvailabilityConfig
from edgesim.streams import Streams
from edgesim.traces import stays
from edgesim.traces.availability import Availability
from edgesim.traces.interval_table import IntervalTable
from edgesim.traces.intervals import Intervals
from edgesim.traces.models import MODELS, make_availability
from edgesim.traces.slots import Slots

UNIT = 100
DEVICES = 8
SEARCHED = 50
"""Lengths of the longest recording that a search ahead is to cover at least."""

Stays = list[tuple[int, int]]


def units(t_s: float) -> int:
    return int(math.ldexp(t_s, UNIT))


def float_at(edge: int) -> float:
    """The least float at or behind an edge: the first instant of the clock at which it has passed."""
    t_s = edge / (1 << UNIT)
    return t_s if units(t_s) >= edge else math.nextafter(t_s, math.inf)


@dataclass
class Raw:
    """Availability of each device within a window, as sorted stays that do not touch."""

    stays: list[Stays]
    until: int
    """End of what is laid out."""

    def __post_init__(self) -> None:
        self.starts = [[start for start, _ in mine] for mine in self.stays]
        change: dict[float, int] = {}
        for mine in self.stays:
            for start, end in mine:
                change[float_at(start)] = change.get(float_at(start), 0) + 1
                change[float_at(end)] = change.get(float_at(end), 0) - 1
        self.instants_s = sorted(change)
        self.counts = np.cumsum([change[t_s] for t_s in self.instants_s]).tolist()
        self.enough_s = [[t for t, n in zip(self.instants_s, self.counts, strict=True) if n >= count]
                         for count in range(len(self.stays) + 1)]  # fmt: skip

    def stay(self, device: int, t_s: float) -> tuple[int, int] | None:
        place = bisect_right(self.starts[device], units(t_s)) - 1
        return self.stays[device][place] if place >= 0 and units(t_s) < self.stays[device][place][1] else None

    def ends_s(self, device: int, t_s: float) -> float:
        stay = self.stay(device, t_s)
        if stay is None:
            return t_s
        return math.inf if stay[1] >= self.until else float_at(stay[1])

    def comes_s(self, device: int, t_s: float) -> float:
        if self.stay(device, t_s) is not None:
            return t_s
        for start, end in self.stays[device][bisect_left(self.starts[device], units(t_s)) :]:
            if units(float_at(start)) < end:
                return float_at(start)
        return math.inf

    def count(self, t_s: float) -> int:
        return sum(self.stay(device, t_s) is not None for device in range(len(self.stays)))

    def first_with_s(self, count: int, t_s: float) -> float:
        if self.count(t_s) >= count:
            return t_s
        place = bisect_right(self.enough_s[count], t_s)
        return self.enough_s[count][place] if place < len(self.enough_s[count]) else math.inf


def joined_by_hand(stays: Stays) -> Stays:
    found: Stays = []
    for start, end in sorted(stays):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return found


def laid_out(intervals: Intervals, wraps: bool, from_s: float, until_s: float) -> Raw:
    """The periods of a table from before one instant to behind another, repeated if they are to be."""
    stays: list[Stays] = []
    for device, length_s in enumerate(intervals.length_s.tolist()):
        of_device = intervals.device == device
        rows = zip(intervals.start_s[of_device].tolist(), intervals.end_s[of_device].tolist(), strict=True)
        mine = [(units(start_s), min(units(end_s), units(until_s)) if end_s == math.inf else units(end_s))
                for start_s, end_s in ((s, e if e < math.inf else until_s) for s, e in rows)]  # fmt: skip
        laps = [0]
        if wraps:
            length = units(length_s)
            laps = [lap * length for lap in range(units(from_s) // length - 1, units(until_s) // length + 1)]
        stays.append(joined_by_hand([(lap + start, lap + end) for lap in laps for start, end in mine]))
    return Raw(stays, units(until_s))


def random_table(rng: np.random.Generator, kind: str, devices: int) -> Intervals:
    """Periods of fractional times, some from the first instant of the recording or to its last; some have none."""
    lengths = {"equal": 1, "two": 2, "unequal": devices}[kind]
    digits = int(rng.integers(1, 4))
    length_s = np.resize(np.round(rng.uniform(20, 100, lengths), digits), devices)
    columns: list[tuple[int, float, float]] = []
    for device in range(devices):
        count = 2 * int(rng.integers(0, 5))
        edges = np.unique(np.round(rng.uniform(0, length_s[device], count), digits)).tolist() or [0.0]
        if rng.random() < 0.2:
            edges[0] = 0.0
        if rng.random() < 0.2:
            edges[-1] = float(length_s[device])
        columns += [(device, start, end) for start, end in zip(edges[::2], edges[1::2], strict=False)]
    device, start_s, end_s = (np.array(column) for column in zip(*columns, strict=True))
    return Intervals(device, start_s, end_s, length_s)


def instants(rng: np.random.Generator, raw: Raw, from_s: float, span_s: float, count: int) -> list[float]:
    """Anywhere in a span, with as many decimals as a user writes, and at edges and next to them."""
    edges_s = [t for t in raw.instants_s if from_s <= t <= from_s + span_s]
    chosen = rng.choice(edges_s, count // 2).tolist() if edges_s else []
    steps = [t for t in (math.nextafter(t, rng.choice([-math.inf, t, math.inf])) for t in chosen) if t >= 0]
    anywhere = rng.uniform(from_s, from_s + span_s, count - len(steps))
    return steps + [float(round(t, int(rng.integers(0, 12)))) for t in anywhere.tolist()]


def agree(
    asked: Availability,
    raw: Raw,
    rng: np.random.Generator,
    times: list[float],
    sure_s: float = math.inf,
    most: int = DEVICES,
) -> int:
    """Ask everything at all instants; the number of answers compared.

    What lies further ahead than ``sure_s`` may count as never, and nobody asks for more than ``most`` devices at once.
    """
    devices, questions = len(raw.stays), 0
    everyone = np.arange(devices)
    for t_s in times:
        ids = rng.permutation(everyone)
        ends = [raw.ends_s(device, t_s) for device in ids]
        # Also the very end of a stay.
        horizon_s = rng.choice([math.inf, t_s + rng.uniform(0, 200), *(end for end in ends if end > t_s)])
        there = [raw.stay(device, t_s) is not None for device in ids]
        assert asked.available(ids, t_s).tolist() == there, t_s
        assert np.count_nonzero(asked.available(everyone, t_s)) == raw.count(t_s), t_s
        expected = [math.inf if end >= horizon_s and here else end for end, here in zip(ends, there, strict=True)]
        assert asked.available_until(ids, t_s, horizon_s).tolist() == expected, (t_s, horizon_s)
        assert asked.next_available(ids, t_s).tolist() == [raw.comes_s(device, t_s) for device in ids], t_s
        for count in rng.choice(np.arange(1, most + 1), 3, replace=False).tolist():
            expected_s = raw.first_with_s(count, t_s)
            # To look as far ahead as it takes to say never is dear.
            if expected_s == math.inf and rng.random() < 0.97:
                continue
            found_s = asked.next_time_with(count, t_s)
            assert found_s == expected_s or (expected_s > t_s + sure_s and found_s == math.inf), (count, t_s)
            assert found_s == math.inf or raw.count(found_s) >= count
            questions += 1
        questions += 3 * devices + 1
    # Each device at an instant of its own.
    for _ in range(len(times) // 4):
        own_s = rng.choice(times, devices)
        pairs = list(zip(everyone.tolist(), own_s.tolist(), strict=True))
        assert asked.available(everyone, own_s).tolist() == [raw.stay(k, t) is not None for k, t in pairs]
        assert asked.available_until(everyone, own_s).tolist() == [raw.ends_s(k, t) for k, t in pairs]
        assert asked.next_available(everyone, own_s).tolist() == [raw.comes_s(k, t) for k, t in pairs]
        questions += 3 * devices
    return questions


def ask_a_table(rng: np.random.Generator, kind: str, times: int, devices: int = DEVICES) -> int:
    """A table repeated, far from the beginning too, and the same one with nobody behind its end."""
    table = random_table(rng, kind, devices)
    longest_s = float(table.length_s.max())
    from_s = float(rng.choice([0.0, rng.uniform(0, 1e3), rng.uniform(0, 1e6), rng.uniform(0, 1e9)]))
    raw = laid_out(table, True, from_s, from_s + (SEARCHED + 5) * longest_s)
    asked = instants(rng, raw, from_s, 3 * longest_s, times)
    questions = agree(IntervalTable(table, "wrap"), raw, rng, asked, (SEARCHED - 1) * longest_s)
    raw = laid_out(table, False, 0.0, 10 * longest_s)
    once, asked = IntervalTable(table, rng.choice(["absent", "raise"])), instants(rng, raw, 0.0, 1.2 * longest_s, times)
    for t_s in asked:
        assert once.next_change(t_s) == min((edge for edge in raw.instants_s if edge > t_s), default=math.inf)
    most = max(raw.counts)
    assert once.most_at_once() == most
    assert [once.ever_has(count) for count in range(1, devices + 2)] == [n <= most for n in range(1, devices + 2)]
    return questions + agree(once, raw, rng, asked)


PROGRAMMES = {
    "periodic": {"period_s": 75.6, "on_s": 13.1},
    "round_robin": {"groups": 3, "turn_s": 18.8, "overlap_s": 2.7},
    "renewal": {"length_s": 9_000.7, "sessions_per_week": 3000.0},
}


def ask_a_programme(rng: np.random.Generator, model: str, times: int) -> int:
    """What a model lays down, as its own periods say."""
    streams = Streams(int(rng.integers(0, 1000)))
    table = MODELS[model].model_validate(PROGRAMMES[model]).intervals(DEVICES, streams)  # type: ignore[attr-defined]
    asked = make_availability(AvailabilityConfig(model=model, **PROGRAMMES[model]), DEVICES, streams)
    length_s = float(table.length_s[0])
    from_s = float(rng.choice([0.0, rng.uniform(0, 1e7)]))
    raw = laid_out(table, True, from_s, from_s + 4 * length_s)
    return agree(asked, raw, rng, instants(rng, raw, from_s, length_s, times), 2 * length_s)


def ask_arrivals(rng: np.random.Generator, times: int) -> int:
    every_s, leave_s = round(float(rng.uniform(1, 20)), 2), round(float(rng.uniform(20, 150)), 2)
    options = {"at_start": 2, "join_every_s": every_s, "leave_from_s": leave_s, "leave_every_s": every_s / 3}
    spans = [(max(k - 1, 0) * every_s, leave_s + k * (every_s / 3)) for k in range(DEVICES)]
    raw = Raw([[(units(start), units(end))] if end > start else [] for start, end in spans], units(1e6))
    asked = make_availability(AvailabilityConfig(model="arrival", **options), DEVICES, Streams(0))
    return agree(asked, raw, rng, instants(rng, raw, 0.0, 200.0, times))


LAID_OUT = 800
"""Slots that are laid out; all that is asked for comes in that many."""


def ask_slots(rng: np.random.Generator, model: str, times: int) -> int:
    """Slot k lasts from the float k * slot_s to the float (k + 1) * slot_s, and all in it are there as drawn."""
    slot_s = float(rng.choice([0.1, 0.3, 0.7, 1.2, 1 / 3, round(float(rng.uniform(0.01, 90)), 3)]))
    streams, options = Streams(int(rng.integers(0, 1000))), {"slot_s": slot_s}
    if model == "bernoulli":
        options["probability"] = 0.6
    if model == "solar":
        options["day_s"] = 60.5 * slot_s
    law = MODELS[model].model_validate(options)
    first = int(rng.choice([0, rng.integers(0, 1_000_000)]))
    ids, numbers = np.arange(DEVICES), np.arange(first, first + LAID_OUT)
    pairs = np.tile(ids, LAID_OUT), np.repeat(numbers, DEVICES)
    if model == "solar":
        drawn = streams.uniform("availability", *pairs) < law.probability(pairs[0], pairs[1] * slot_s, streams)  # type: ignore[attr-defined]
    else:
        drawn = law.law(DEVICES, streams)(*pairs)  # type: ignore[attr-defined]
    present = drawn.reshape(LAID_OUT, DEVICES)
    stays = []
    for device in range(DEVICES):
        mine = numbers[present[:, device]].tolist()
        stays.append(joined_by_hand([(units(k * slot_s), units((k + 1) * slot_s)) for k in mine]))
    raw = Raw(stays, units((first + LAID_OUT) * slot_s))
    asked = law.make(DEVICES, streams)
    assert isinstance(asked, Slots)
    # More than are often there at once may not come in a lifetime.
    often = next(n for n in range(DEVICES, 0, -1) if np.count_nonzero(present[LAID_OUT // 2 :].sum(axis=1) >= n) > 20)
    return agree(asked, raw, rng, instants(rng, raw, (first + 1) * slot_s, 50 * slot_s, times), most=often)


def ask(seed: int, worlds: int, times: int) -> int:
    rng, questions = np.random.default_rng(seed), 0
    for _ in range(worlds):
        for kind in ("equal", "two", "unequal", "unequal"):
            questions += ask_a_table(rng, kind, times)
        for model in PROGRAMMES:
            questions += ask_a_programme(rng, model, times)
        questions += ask_arrivals(rng, times)
        for model in ("bernoulli", "markov", "solar"):
            questions += ask_slots(rng, model, times)
    return questions


@pytest.fixture(params=["as it is", "in pieces of 2"])
def _pieces(request: pytest.FixtureRequest) -> Iterator[None]:
    """The constants as they are, and so low that a few rows take the path of a large replay."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "as it is":
            patch.setattr(stays, "_AT_ONCE", 2)
            patch.setattr(stays, "_ROWS_OF_DEVICE", 0)
            patch.setattr(stays, "_LEAST_ROWS", 2)
        yield


@pytest.mark.usefixtures("_pieces")
def test_some_thousand_questions_have_the_answers_of_the_raw_intervals():
    assert ask(1, 1, 8) > 2500


def test_recordings_of_more_lengths_than_are_looked_at_together_answer_alike():
    rng = np.random.default_rng(2)
    assert ask_a_table(rng, "unequal", 4, devices=70) > 1000


@pytest.mark.slow
def test_50_000_questions_have_the_answers_of_the_raw_intervals():
    assert ask(10, 1, 120) > 50_000
