"""What every availability model of the registry must keep to: its answers hang on no other question and fit together.

`test_availability_oracle` says what the answers are; here a new model is held to the protocol at once.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from edgesim.base.errors import EdgesimError
from edgesim.config import AvailabilityConfig
from edgesim.streams import Streams
from edgesim.traces.availability import Availability
from edgesim.traces.by_rounds import ByRounds
from edgesim.traces.models import MODELS, make_availability

DEVICES = 9
IDS = np.arange(DEVICES)
DAY_S = 86_400.0

CASES: list[tuple[str, dict[str, object], float]] = [
    ("always", {}, 100.0),
    ("table", {"file": "week.csv", "after_end": "wrap"}, 300.0),
    ("table", {"file": "week.csv", "after_end": "absent"}, 120.0),
    ("table", {"file": "lengths.csv", "after_end": "wrap"}, 300.0),
    ("renewal", {"length_s": DAY_S / 2, "sessions_per_week": 2000.0}, 1.2 * DAY_S),
    ("bernoulli", {"probability": 0.4, "slot_s": 0.7}, 30.0),
    ("bernoulli", {"probability": 0.4, "slots": "rounds"}, 60.0),
    ("markov", {"join_probability": 0.5, "leave_probability": 0.3, "slot_s": 0.3}, 15.0),
    ("markov", {"join_probability": 0.3, "leave_probability": 0.9, "slots": "rounds"}, 60.0),
    ("solar", {"slot_s": 2400.0}, 2.5 * DAY_S),
    ("periodic", {"period_s": 50.0, "on_s": 20.0}, 170.0),
    ("round_robin", {"groups": 3, "turn_s": 7.0, "overlap_s": 2.5}, 70.0),
    ("arrival", {"join_every_s": 3.0, "leave_from_s": 18.0, "leave_every_s": 0.5}, 70.0),
    ("table", {"file": "matrix.csv", "slots": "rounds"}, 60.0),
    ("table", {"file": "matrix.csv", "slots": "rounds", "if_empty": "force", "after_end": "absent"}, 90.0),
    ("table", {"file": "matrix.csv", "slots": "rounds", "after_end": "wrap"}, 150.0),
    ("table", {"file": "matrix.csv", "slot_s": 0.7, "after_end": "wrap"}, 110.0),
    ("table", {"file": "matrix.csv", "slot_s": 0.7, "if_empty": "force", "after_end": "wrap"}, 110.0),
    ("table", {"file": "matrix.csv", "slot_s": 0.7, "if_empty": "force"}, 50.0),
    ("bernoulli", {"probability": [0.05 * k for k in range(1, 21)], "slots": "rounds"}, 60.0),
    ("bernoulli", {"probability": 0.1, "if_empty": "force", "slot_s": 0.7}, 30.0),
    ("markov", {"join_probability": 0.1, "leave_probability": 0.5, "if_empty": "force", "slots": "rounds"}, 60.0),
    ("markov", {"if_empty": "wait", "slots": "rounds"}, 60.0),
    ("markov", {"join_probability": [0.04 * k for k in range(1, 21)], "leave_probability": 0.6, "slot_s": 0.3}, 15.0),
    ("bernoulli", {"file": "chances.csv", "slots": "rounds"}, 60.0),
    ("solar", {"day_rounds": 24.0}, 60.0),
    ("solar", {"slot_s": 2400.0, "peak": 0.3, "if_empty": "force"}, 2.5 * DAY_S),
    ("round_robin", {"at_once": 4, "overlap_devices": 1, "turn_s": 5.0}, 170.0),
    ("round_robin", {"turn_rounds": 2}, 60.0),
    ("arrival", {"at_start": 2, "join_from_s": 7.0, "join_every_s": 9.0, "join_at_once": 3, "leave_from_s": 25.0,
                 "leave_every_s": 7.0, "leave_at_once": 2, "leave_first": "highest"}, 70.0),
    ("arrival", {"at_start": 2, "join_after_rounds": 3, "join_every_rounds": 2, "leave_after_rounds": 9,
                 "leave_every_rounds": 1}, 30.0),
    ("arrival", {"at_start": 0, "join_after_rounds": 9, "if_empty": "force"}, 30.0),
]  # fmt: skip
"""Model, options, and the seconds in which it is asked about."""

ON_THE_NUMBER = {"if_empty": "force", "leave_first": "highest", "at_once": 4, "turn_rounds": 2}
"""Options of laws that name the number of devices, so that answers follow it."""

DRAWN = {"renewal", "bernoulli", "markov", "solar", "periodic"}
"""Models whose answers follow the seed."""


@pytest.fixture(params=CASES, ids=lambda case: "-".join([case[0], *map(str, case[1].values())]))
def case(request: pytest.FixtureRequest) -> tuple[str, dict[str, object], float]:
    return request.param


Maker = Callable[..., Availability]


@pytest.fixture
def make(case: tuple[str, dict[str, object], float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Maker:
    """Makes the model of the case; slots that are rounds have begun at instants far from equal lengths."""
    model, options, span_s = case
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(7)
    for name, ends_s in (("week.csv", np.full(20, 60.0)), ("lengths.csv", random.integers(50, 70, 20))):
        rows = ["device,start_s,end_s"]
        for device, end_s in enumerate(ends_s):
            edges = np.append(np.unique(np.round(random.uniform(0, 0.9 * end_s, 7), 1)), end_s)
            rows += [f"{device},{start},{end}" for start, end in zip(edges[::2], edges[1::2], strict=False)]
        Path(name).write_text("\n".join(rows))
    cells = random.random((20, 80)) < 0.1
    lines = [f"{device},{','.join(map(str, row))}" for device, row in enumerate(cells.astype(int).tolist())]
    Path("matrix.csv").write_text("\n".join([f"device,{','.join(map(str, range(1, 81)))}", *lines]))
    chances = [f"{device},{','.join(map(str, row))}" for device, row in enumerate(random.random((20, 80)).tolist())]
    Path("chances.csv").write_text("\n".join([f"device,{','.join(map(str, range(1, 81)))}", *chances]))

    def made(devices: int = DEVICES, seed: int = 0) -> Availability:
        found = make_availability(AvailabilityConfig(model=model, **options), devices, Streams(seed))
        if isinstance(found, ByRounds):
            for t_s in np.append(0.0, np.cumsum(np.random.default_rng(1).exponential(2.0, int(span_s)))):
                found.begin_slot(float(t_s))
        return found

    return made


def instants(asked: Availability, span_s: float, count: int = 16) -> np.ndarray:
    """Instants of all kinds within a span, ascending: anywhere, at changes, and the floats next to these."""
    random = np.random.default_rng(3)
    anywhere = random.uniform(0, span_s, count)
    changes = asked.available_until(random.integers(0, DEVICES, count), random.uniform(0, span_s, count))
    changes = changes[np.isfinite(changes)][: count // 2]
    return np.sort(np.concatenate([[0.0], anywhere, changes, np.nextafter(changes, -np.inf)]))


def between(t_s: float, end_s: np.ndarray | float) -> np.ndarray:
    """Instants from ``t_s`` to just before ``end_s``, a scalar or [n]; [k] or [k, n]."""
    shares = np.random.default_rng(4).uniform(0, 1, (12, *np.ones(np.ndim(end_s), dtype=int)))
    return np.concatenate(
        [np.nextafter(end_s, -np.inf)[None], np.minimum(t_s + shares * (end_s - t_s), np.nextafter(end_s, -np.inf))]
    )


def present(asked: Availability, t_s: np.ndarray) -> np.ndarray:
    """Who is there at each of some instants [k], or at instants of each device's own [k, devices]; [k, devices]."""
    ids, when_s = np.broadcast_arrays(IDS, t_s[:, None] if t_s.ndim == 1 else t_s)
    return asked.available(ids.ravel(), when_s.ravel()).reshape(ids.shape)


def test_all_models_are_looked_at():
    assert {model for model, _, _ in CASES} == set(MODELS)


def test_no_answer_hangs_on_what_was_asked_before_nor_on_who_else_is_asked_about(make, case):  # type: ignore[no-untyped-def]
    random, asked, again = np.random.default_rng(5), make(), make()
    times = instants(asked, case[2])
    questions = []
    for _ in range(18):
        ids = random.integers(0, DEVICES, random.integers(1, 9)) if random.random() < 0.7 else random.permutation(IDS)
        t_s = random.choice(times, len(ids)) if random.random() < 0.5 else float(random.choice(times))
        horizon_s = float(random.choice([np.inf, np.max(t_s) + random.uniform(0, case[2])]))
        questions.append((ids, t_s, horizon_s))

    def answers(model: Availability, ids: np.ndarray, t_s: np.ndarray | float, horizon_s: float) -> list[list[float]]:
        found = [model.available(ids, t_s), model.available_until(ids, t_s, horizon_s), model.next_available(ids, t_s)]
        return [column.tolist() for column in found]

    first = [answers(asked, *question) for question in questions]
    for number in random.permutation(len(questions)):
        ids, t_s, horizon_s = questions[number]
        assert answers(again, ids, t_s, horizon_s) == first[number]
        one_by_one = [answers(asked, ids[k : k + 1], np.broadcast_to(t_s, len(ids))[k : k + 1], horizon_s)
                      for k in range(len(ids))]  # fmt: skip
        assert [[row[0] for row in column] for column in zip(*one_by_one, strict=True)] == first[number]


def test_a_stay_ends_at_the_first_instant_without_it_and_an_absence_at_the_first_with(make, case):  # type: ignore[no-untyped-def]
    asked, seen = make(), set()
    for t_s in instants(asked, case[2]):
        here = asked.available(IDS, t_s)
        ends_s, comes_s = asked.available_until(IDS, t_s), asked.next_available(IDS, t_s)
        assert np.array_equal(ends_s > t_s, here)
        assert np.array_equal(ends_s == t_s, ~here)
        assert np.array_equal(comes_s == t_s, here)
        change_s = np.where(here, ends_s, comes_s)
        known = np.flatnonzero(np.isfinite(change_s))
        assert np.array_equal(asked.available(IDS[known], change_s[known]), ~here[known])
        before_s = between(t_s, np.minimum(change_s, t_s + case[2]))
        assert np.array_equal(present(asked, before_s), np.broadcast_to(here, before_s.shape))
        horizon_s = t_s + case[2] / 10
        cut_s = asked.available_until(IDS, t_s, horizon_s)
        assert np.array_equal(cut_s, np.where(here & (ends_s >= horizon_s), np.inf, ends_s))
        seen |= {*here.tolist(), *np.isfinite(cut_s).tolist()}
    assert seen == {True, False} or case[0] == "always"


def test_enough_devices_are_there_at_the_first_instant_that_is_named_and_at_none_before(make, case):  # type: ignore[no-untyped-def]
    asked = make()
    times = instants(asked, case[2])
    counts = present(asked, times).sum(axis=1)
    waits = 0
    for t_s, now in zip(times[::3].tolist(), counts[::3].tolist(), strict=True):
        for count in range(1, int(counts[times >= t_s].max(initial=0)) + 1):
            when_s = asked.next_time_with(count, t_s)
            assert when_s >= t_s
            assert (when_s == t_s) == (now >= count)
            if np.isinf(when_s):
                # Of rounds to come nothing is known.
                assert isinstance(asked, ByRounds)
                continue
            assert np.count_nonzero(asked.available(IDS, when_s)) >= count
            if when_s > t_s:
                waits += 1
                assert present(asked, between(t_s, when_s)).sum(axis=1).max() < count
        assert asked.next_time_with(DEVICES + 1, t_s) == np.inf
    # A window always holds as many devices, and of rounds to come nothing is known.
    assert waits > 3 or case[0] == "always" or "at_once" in case[1] or isinstance(asked, ByRounds)


def test_nobody_comes_or_leaves_before_the_next_change(make, case):  # type: ignore[no-untyped-def]
    asked = make()
    for t_s in instants(asked, case[2]).tolist():
        change_s = asked.next_change(t_s)
        assert change_s > t_s
        if np.isfinite(change_s):
            before_s = between(t_s, change_s)
            here = np.broadcast_to(asked.available(IDS, t_s), (len(before_s), DEVICES))
            assert np.array_equal(present(asked, before_s), here)


def test_answers_follow_the_seed_where_there_are_draws_and_never_the_number_of_devices(make, case):  # type: ignore[no-untyped-def]
    few, many, other = make(), make(devices=20), make(seed=1)
    times = instants(few, case[2])
    first, second, third = ([model.available(IDS, t_s).tolist() for t_s in times] for model in (few, many, other))
    forced = case[1].get("if_empty") == "force"
    assert (first == second) != any(case[1].get(key) == value for key, value in ON_THE_NUMBER.items())
    assert (first == third) == (case[0] not in DRAWN and not forced)


ALL_OPTIONS = {option for kind in MODELS.values() for option in kind.model_fields}


@pytest.mark.parametrize("model", MODELS)
def test_an_option_that_is_wrong_unknown_or_of_another_model_is_one_line_that_names_it(model):
    own, file = set(MODELS[model].model_fields), {"file": "x.csv"} if model == "table" else {}
    wrong = [{option: value} for option in sorted(ALL_OPTIONS) for value in ([], {"a": 1}, -1.0)]
    for options in [*wrong, {"no_such_option": 1}, *({f"{option}_": 1} for option in own)]:
        (name,) = options
        with pytest.raises(EdgesimError) as refusal:
            make_availability(AvailabilityConfig(model=model, **{**file, **options}), 3, Streams(0))
        message = str(refusal.value)
        assert "\n" not in message
        assert name in message
        assert repr(model) in message
        assert name in own or any(words in message for words in ("unknown key", "is an option of", "no options"))
        assert name.removesuffix("_") == name or f"did you mean 'availability.{name[:-1]}'" in message
