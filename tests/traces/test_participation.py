"""The eight laws of participation of the DPFL benchmark: their worked examples (oracle T12), by rounds and by seconds.

A slot is a round: presence in slot r - 1 is participation in round r. By seconds all slots are equally long.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from refusals import in_one_line

from edgesim.config import AvailabilityConfig
from edgesim.config_file import parse
from edgesim.simulation.composition import complete
from edgesim.streams import Streams
from edgesim.traces.availability import Availability
from edgesim.traces.by_rounds import ByRounds
from edgesim.traces.models import MODELS, empty_slots, make_availability, resolve_options

SLOT_S = 0.7
"""No multiple of it is exact in binary."""


by_rounds_and_seconds = pytest.mark.parametrize(
    "by", [{"slots": "rounds"}, {"slot_s": SLOT_S}], ids=["rounds", "seconds"]
)


def made(model: str, devices: int, seed: int = 0, **options: object) -> Availability:
    return make_availability(AvailabilityConfig(model=model, **options), devices, Streams(seed))


def matrix(availability: Availability, devices: int, rounds: int, slot_s: float = SLOT_S) -> np.ndarray:
    """Who takes part in each round, [devices, rounds], asked after the start of each slot and before its end.

    Sums of seconds may lie last bits beside the edges of slots; the server takes that for the edge.
    """
    ids, starts_s = np.arange(devices), np.arange(rounds) * slot_s
    if isinstance(availability, ByRounds):
        for t_s in starts_s[len(availability.starts_s) :]:
            availability.begin_slot(float(t_s))
    found, ends = (
        np.stack([availability.available(ids, t_s + part * slot_s) for t_s in starts_s], axis=1)
        for part in (1e-6, 1 - 1e-6)
    )
    assert np.array_equal(found, ends)
    return found


def active(found: np.ndarray) -> list[set[int]]:
    return [set(np.flatnonzero(column).tolist()) for column in found.T]


ARRIVAL = {
    "rounds": {"at_start": 5, "join_after_rounds": 50, "join_every_rounds": 10, "join_at_once": 1},
    "seconds": {"at_start": 5, "join_from_s": 50 * SLOT_S, "join_every_s": 10 * SLOT_S},
}
DEPARTURE = {
    "rounds": {"leave_after_rounds": 50, "leave_every_rounds": 10},
    "seconds": {"leave_from_s": 50 * SLOT_S, "leave_every_s": 10 * SLOT_S},
}


@pytest.mark.parametrize("by", ["rounds", "seconds"])
def test_from_round_51_on_one_more_device_joins_or_leaves_in_every_ten(by):
    """Oracle T12 of dpfl-kpfl.md, as is that of round-robin: five arrive at first, or of ten the highest ids leave."""
    joining = active(matrix(made("arrival", 10, **ARRIVAL[by]), 10, 100))
    leaving = active(matrix(made("arrival", 10, at_start=10, leave_first="highest", **DEPARTURE[by]), 10, 100))
    for number, (there, left) in enumerate(zip(joining, leaving, strict=True), start=1):
        passed = 0 if number <= 50 else 1 + (number - 51) // 10
        assert there == set(range(5 + passed)), number
        assert left == set(range(10 - passed)), number
    assert [len(joining[number - 1]) for number in (1, 50, 51, 60, 61, 91, 100)] == [5, 5, 6, 6, 7, 10, 10]


def test_several_devices_join_and_leave_together():
    joins = {"at_start": 1, "join_after_rounds": 2, "join_every_rounds": 1, "join_at_once": 3}
    leaves = {"leave_after_rounds": 5, "leave_every_rounds": 1, "leave_at_once": 2, "leave_first": "highest"}
    who = active(matrix(made("arrival", 6, **joins, **leaves), 6, 9))
    # Devices 1 to 3 join in round 3, 4 and 5 in round 4; 5 and 4 leave in round 6, 3 and 2 in 7, 1 and 0 in 8.
    assert who == [{0}, {0}, {0, 1, 2, 3}, set(range(6)), set(range(6)), {0, 1, 2, 3}, {0, 1}, set(), set()]
    lowest = active(matrix(made("arrival", 4, at_start=4, leave_after_rounds=1, leave_every_rounds=1), 4, 6))
    assert lowest == [{0, 1, 2, 3}, {1, 2, 3}, {2, 3}, {3}, set(), set()]


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("devices", "options"),
    [(10, {}), (4, {"at_once": 2, "overlap_devices": 1}), (6, {"at_once": 4, "overlap_devices": 0})],
    ids=["three devices of which one stays", "of the page", "none stays"],
)
@pytest.mark.parametrize("turn", [{"turn_rounds": 2}, {"turn_s": 2 * SLOT_S}], ids=["rounds", "seconds"])
def test_a_window_moves_on_by_its_devices_less_the_overlap_for_ever(devices, options, turn):
    given = options | ({"at_once": 3} if "turn_s" in turn and not options else {})
    who = active(matrix(made("round_robin", devices, **given, **turn), devices, 60))
    window, overlap, first = options.get("at_once", 3), options.get("overlap_devices", 1), 0
    for block in range(30):
        assert who[2 * block : 2 * block + 2] == [{(first + k) % devices for k in range(window)}] * 2
        first = (first + window - overlap) % devices


@by_rounds_and_seconds
def test_timed_random_participation_has_each_devices_own_rate_and_no_memory(by):
    rates, rounds = [0.05, 0.3, 0.5, 0.9, 1.0], 1500
    found = matrix(made("bernoulli", 5, probability=rates, **by), 5, rounds)
    error = 4 * np.sqrt(np.array(rates) * (1 - np.array(rates)) / rounds) + 1e-12
    assert np.all(np.abs(found.mean(axis=1) - rates) <= error)
    assert np.all(np.abs(np.mean(found[:, 1:] & found[:, :-1], axis=1) - np.square(rates)) <= 0.06)
    # A device is there in the same rounds, whatever the rates of the others.
    assert np.array_equal(found[2], matrix(made("bernoulli", 5, probability=0.5, **by), 5, rounds)[2])


def test_the_first_round_of_each_chain_is_drawn_from_its_own_stationary_law():
    joins, leaves = [0.1, 0.4] * 1000, [0.4, 0.1] * 1000
    model = made("markov", 2000, join_probability=joins, leave_probability=leaves, slots="rounds")
    first = matrix(model, 2000, 1)[:, 0].reshape(1000, 2)
    assert first.mean(axis=0) == pytest.approx([0.2, 0.8], abs=4 * 0.4 / np.sqrt(1000))


@by_rounds_and_seconds
def test_the_benchmarks_chain_has_its_first_round_runs_and_memory(by):
    """Oracle T6 of dpfl-kpfl.md: stationary (.5, .5), mean run 5, autocorrelation .6, p01 of 10^5 steps .2 +- .005."""
    found = matrix(made("markov", 1000, **by), 1000, 100)
    assert found[:, 0].mean() == pytest.approx(0.5, abs=4 * 0.5 / np.sqrt(1000))
    assert found.mean() == pytest.approx(0.5, abs=0.02)
    now, then = found[:, :-1], found[:, 1:]
    assert then[~now].mean() == pytest.approx(0.2, abs=0.005)
    assert (~then[now]).mean() == pytest.approx(0.2, abs=0.005)
    assert np.corrcoef(now.ravel(), then.ravel())[0, 1] == pytest.approx(0.6, abs=0.01)
    changes = np.count_nonzero(now != then, axis=1)
    assert 1 / (changes.mean() / now.shape[1]) == pytest.approx(5, abs=0.1)


@pytest.mark.parametrize(
    ("options", "slot_s"),
    [({"peak": 0.8, "day_rounds": 24.0}, SLOT_S), ({"peak": 0.8, "day_s": 24.0, "slot_s": 1.0}, 1.0)],
    ids=["rounds", "seconds"],
)
def test_solar_participation_is_peak_over_pi_on_average_and_the_cosine_at_each_hour(options, slot_s):
    found = matrix(made("solar", 400, **options), 400, 24 * 40, slot_s).reshape(400, 40, 24)
    assert found.mean() == pytest.approx(0.8 / np.pi, abs=0.004)
    phase = Streams(0).uniform("availability-phase", np.arange(400))
    chance = 0.8 * np.maximum(0.0, np.cos(2 * np.pi * (np.arange(24) / 24 - phase[:, None])))
    assert np.abs(found.mean(axis=1) - chance).max() < 5 * 0.5 / np.sqrt(40)
    assert not found[np.broadcast_to(chance[:, None] == 0, found.shape)].any()


LAWS: list[tuple[str, dict[str, object]]] = [
    ("bernoulli", {"probability": [0.1, 0.2, 0.3, 0.05]}),
    ("markov", {"join_probability": [0.1, 0.2, 0.05, 0.1], "leave_probability": [0.5, 0.9, 0.5, 0.4]}),
    ("solar", {"peak": 0.3}),
    # Three rounds before the first of four devices comes; all have left by the eleventh.
    ("arrival", {"at_start": 0, "join_after_rounds": 3, "join_every_rounds": 1, "leave_after_rounds": 7,
                 "leave_every_rounds": 1}),
]  # fmt: skip


def timed(model: str, by: str) -> dict[str, object]:
    if model == "arrival":
        return {}
    if model == "solar":
        return {"day_rounds": 12.0} if by == "rounds" else {"slot_s": SLOT_S, "day_s": 12 * SLOT_S}
    return {"slots": "rounds"} if by == "rounds" else {"slot_s": SLOT_S}


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("model", "options", "by"),
    [(*law, "rounds") for law in LAWS] + [pytest.param(*law, "seconds", marks=pytest.mark.slow) for law in LAWS[:3]],
)
def test_forced_slots_have_one_uniform_device_and_the_law_goes_on_as_if_they_had_none(model, options, by):
    own, rounds = {**options, **timed(model, by)}, 500
    waits = matrix(made(model, 4, **own, if_empty="wait"), 4, rounds)
    assert np.array_equal(waits, matrix(made(model, 4, **own), 4, rounds))
    model_forced = made(model, 4, **own, if_empty="force")
    forced = matrix(model_forced, 4, rounds)
    empty = ~waits.any(axis=0)
    assert np.array_equal(forced[:, ~empty], waits[:, ~empty])
    assert (forced[:, empty].sum(axis=0) == 1).all()
    shares = forced[:, empty].mean(axis=1)
    assert np.abs(shares - 0.25).max() < 4 * np.sqrt(0.25 * 0.75 / empty.sum())
    assert empty.sum() == rounds - 7 if model == "arrival" else rounds / 6 < empty.sum() < rounds
    assert not model_forced.is_settled(1)
    # The count is that of the slots, whatever was asked and in which order.
    assert empty_slots(model_forced, 7, rounds * SLOT_S - 1e-9) == empty.sum()
    assert empty_slots(made(model, 4, **own), 7, rounds * SLOT_S) == 7
    asked = made(model, 4, **own, if_empty="force")
    matrix(asked, 4, rounds)
    for slot in np.random.default_rng(0).permutation(rounds)[:60].tolist():
        t_s = (slot + 0.5) * SLOT_S
        assert [bool(asked.available(np.array([k]), t_s)[0]) for k in (2, 0, 3, 1)] == forced[
            [2, 0, 3, 1], slot
        ].tolist()


def test_who_is_always_there_has_no_slots_that_may_be_empty():
    assert empty_slots(made("always", 3), 0, 1.0) is None


PROGRAMME = np.array([[1, 0, 1, 0, 0, 1], [0, 0, 1, 1, 0, 0], [1, 0, 0, 1, 0, 1]])
Writer = Callable[[np.ndarray, str], str]


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    """Writes a matrix, [devices, rounds], from its last row to its first."""

    def written(cells: np.ndarray, kind: str) -> str:
        path = tmp_path / f"programme.{kind}"
        table = pd.DataFrame(cells, columns=[str(number) for number in range(1, cells.shape[1] + 1)])
        table.insert(0, "device", np.arange(len(cells)))
        table[::-1].to_csv(path, index=False) if kind == "csv" else table[::-1].to_parquet(path, index=False)
        return str(path)

    return written


@pytest.mark.parametrize(
    ("kind", "by"), [("csv", {"slots": "rounds"}), ("parquet", {"slot_s": SLOT_S})], ids=["csv", "parquet"]
)
def test_a_programmed_matrix_is_followed_cell_by_cell(write, kind, by):
    file = write(PROGRAMME, kind)
    assert np.array_equal(matrix(made("table", 3, file=file, **by), 3, 6), PROGRAMME)
    assert np.array_equal(matrix(made("table", 2, file=file, **by), 2, 6), PROGRAMME[:2])
    twice = matrix(made("table", 3, file=file, after_end="wrap", **by), 3, 12)
    assert np.array_equal(twice, np.tile(PROGRAMME, 2))
    once = matrix(made("table", 3, file=file, after_end="absent", **by), 3, 12)
    assert np.array_equal(once, np.hstack([PROGRAMME, np.zeros((3, 6))]))
    rising = matrix(made("table", 3, file=file, order="rising", **by), 3, 6)
    assert np.array_equal(rising, PROGRAMME[[1, 0, 2]])
    with in_one_line(r"programme.* is a trace of 3 devices, but devices\.count is 4"):
        made("table", 4, file=file, **by)


@pytest.mark.parametrize("model", ["table", "bernoulli"])
def test_a_file_by_rounds_ends_after_its_last_column(write, model):
    found = made(model, 3, file=write(PROGRAMME, "csv"), slots="rounds")
    matrix(found, 3, 6)
    with in_one_line(r"programme\.csv: has columns for 6 rounds, but the run needs 7"):
        found.begin_slot(100.0)


@by_rounds_and_seconds
@pytest.mark.parametrize(("after_end", "count"), [("raise", 2), ("wrap", 4), ("absent", 8)])
def test_empty_columns_of_a_programme_are_forced_and_counted(write, by, after_end, count):
    """Columns 2 and 5 are empty, and with ``absent`` all after the sixth."""
    table = {"file": write(PROGRAMME, "parquet"), "after_end": after_end, "order": "rising"}
    found = made("table", 3, **table, **by, if_empty="force")
    slots = 6 if after_end == "raise" else 12
    cells, ordered = matrix(found, 3, slots), PROGRAMME[[1, 0, 2]]
    expected = np.hstack([ordered, ordered * (after_end == "wrap")])[:, :slots]
    empty = ~expected.any(axis=0)
    assert np.array_equal(cells[:, ~empty], expected[:, ~empty])
    drawn = (Streams(0).uniform("availability-forced", 0, np.flatnonzero(empty)) * 3).astype(int)
    assert [np.flatnonzero(cells[:, slot]).tolist() for slot in np.flatnonzero(empty)] == [[one] for one in drawn]
    assert empty_slots(found, 0, slots * SLOT_S - 1e-9) == count


@pytest.mark.parametrize("waits", [{}, {"if_empty": "wait"}], ids=["absent", "wait"])
def test_slots_of_a_programme_in_seconds_that_the_server_lets_pass_are_counted(write, waits):
    found = made("table", 3, file=write(PROGRAMME, "csv"), slot_s=SLOT_S, **waits)
    assert np.array_equal(matrix(found, 3, 6), PROGRAMME)
    assert empty_slots(found, 7, 100.0) == 7


def test_a_programme_in_seconds_that_forces_ends_where_its_columns_end(write):
    config = AvailabilityConfig(
        model="table", file=write(PROGRAMME, "csv"), slot_s=0.5, if_empty="force", after_end="raise"
    )
    assert make_availability(config, 3, Streams(0), stop_at_s=3.0).available(np.arange(3), 1.0).tolist() == [1, 1, 0]
    with in_one_line(r"programme\.csv: the trace ends at 3 s, but 3\.1 s \(stop_at_s\) is"):
        make_availability(config, 3, Streams(0), stop_at_s=3.1)


CHANCES = np.array([[1, 0, 0.5, 0.25, 0, 0.9], [0, 0, 1, 1, 0, 0], [0.75, 0, 0, 1, 0, 1]])


def test_timed_random_participation_has_the_probability_of_each_client_and_round_from_a_file(write):
    file = write(CHANCES, "parquet")
    draws = np.stack([Streams(0).uniform("availability", np.arange(3), slot) for slot in range(6)], axis=1)
    found = matrix(made("bernoulli", 3, file=file, slots="rounds"), 3, 6)
    assert np.array_equal(found, draws < CHANCES)
    assert np.array_equal(matrix(made("bernoulli", 2, file=file, slots="rounds"), 2, 6), found[:2])
    forced = made("bernoulli", 3, file=file, slots="rounds", if_empty="force")
    assert matrix(forced, 3, 6)[:, [1, 4]].sum(axis=0).tolist() == [1, 1]
    assert empty_slots(forced, 0, 100.0) == np.count_nonzero(~found.any(axis=0))


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_programme_whose_slots_are_not_said_is_refused_with_how_to_say_them(write, kind):
    file = write(PROGRAMME, kind)
    with in_one_line(rf"^{file}: .* availability\.slots = 'rounds', or availability\.slot_s"):
        made("table", 3, file=file)


BY_ROUNDS = [
    ("arrival", {"leave_after_rounds": 3}, "leave_after_rounds"),
    ("round_robin", {"turn_rounds": 3}, "turn_rounds"),
    ("solar", {"day_rounds": 3.0}, "day_rounds"),
    ("table", {"file": "x", "slots": "rounds"}, r"slots = 'rounds'"),
    ("bernoulli", {"file": "x"}, "file"),
]


@pytest.mark.parametrize(("model", "options", "key"), BY_ROUNDS)
def test_what_goes_by_rounds_needs_rounds(model, options, key):
    protocol = {"protocol": "buffered", "admission": "count", "count": 3}
    with in_one_line(rf"availability\.{key}.* needs round\.protocol = 'synchronous'"):
        complete(parse({"availability": {"model": model, **options}, "round": protocol}, "test"))
    resolve_options(model, options, 0.8, has_rounds=True)


@pytest.mark.parametrize("model", MODELS)
def test_resolved_options_resolve_to_themselves(model):
    cases = [options for name, options, _ in BY_ROUNDS if name == model]
    for options in [*cases, {"file": "x"} if model == "table" else {}]:
        once = resolve_options(model, options, 0.8, True)
        given = {key: value for key, value in once.items() if value is not None}
        assert resolve_options(model, given, 5.0, True) == once
