"""Participation in the whole simulator: one 0/1 matrix for every algorithm of a seed, and programmes that run out.

The laws themselves are those of tests/traces/test_participation.py.
"""

import numpy as np
import pytest
from whole_runs import TIMED, play, write_rows

from edgesim.base.errors import EdgesimError
from edgesim.learning.algorithms import ALGORITHMS

DEVICES, SEED, TMAX_S = 10, 3, 0.8
CLOSE = {"close": "deadline"}
BY = [{"slots": "rounds"}, {"slot_s": TMAX_S}]


def run(folder, availability, rounds=40, devices=DEVICES, algorithm=None, data="none", stop_at_s=None, **knobs):
    """A timing-only run that takes all devices available, and who took part in each round, [devices, rounds]."""
    everyone = {"admission": "count", "count": devices, "allocator": "equal_share", "tmax_s": TMAX_S}
    played = play(
        folder,
        TIMED,
        seed=SEED,
        rounds=rounds,
        stop_at_s=stop_at_s,
        devices={"count": devices},
        availability=availability,
        round={"payload_bits": 1e5, **everyone, **knobs},
        data={"dataset": data, "public": "none" if data == "none" else "carved"},
        algorithm=algorithm or {},
    )
    table, acts = played.rounds, played.activities
    found = np.zeros((devices, len(table)), dtype=int)
    found[acts["device"], acts["round"] - 1] = 1
    assert found.sum(axis=0).tolist() == table["candidates"].tolist() == table["selected"].tolist()
    return found, played


def programme(folder, columns):
    """A file of devices, [columns][devices] of text, such as ``"110"``: devices 0 and 1 are there."""
    rows = [(device, *cells) for device, cells in enumerate(zip(*columns, strict=True))]
    return write_rows(folder / "programme.csv", ",".join(["device", *map(str, range(1, len(columns) + 1))]), rows)


LAWS = [
    {"model": "bernoulli", "probability": 0.5},
    {"model": "bernoulli", "probability": [0.1 * k for k in range(1, 11)], "if_empty": "force"},
    {"model": "markov"},
    {"model": "solar", "peak": 0.9, "day_rounds": 12.0, "if_empty": "force"},
    {"model": "arrival", "at_start": 2, "join_every_rounds": 3, "leave_after_rounds": 20},
    {"model": "round_robin", "turn_rounds": 3},
]
ROUNDS = 24
"""Two days of the sun, and some rounds behind the first that loses a device."""
OTHER_ALGORITHMS = [{"name": name} for name in ALGORITHMS if name not in ("fedavg", "safa")]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: "-".join(map(str, law.values()))[:40])
def test_every_algorithm_and_protocol_detail_of_a_seed_meets_the_same_matrix(tmp_path, law):
    """All algorithms that of a chain, where one draw too many would move all later ones, and some that of each law."""
    expected, fedavg = run(tmp_path / "fedavg", law, ROUNDS)
    for number, algorithm in enumerate(OTHER_ALGORITHMS if law["model"] == "markov" else OTHER_ALGORITHMS[::6]):
        data = "digits" if "data set" in ALGORITHMS[algorithm["name"]].needs else "none"
        found, _ = run(tmp_path / str(number), law, ROUNDS, algorithm=algorithm, data=data)
        assert np.array_equal(found, expected), algorithm
    # Rounds that close at another instant each, and other payloads, change nothing by rounds.
    for number, knobs in enumerate((CLOSE, {"payload_bits": 3e5}, {"download_s": 0.1})):
        found, other = run(tmp_path / f"knobs-{number}", law, ROUNDS, **knobs)
        assert np.array_equal(found, expected), knobs
        assert other.rounds["t_end_s"].iloc[-1] != fedavg.rounds["t_end_s"].iloc[-1]


@pytest.mark.parametrize("by", BY, ids=["rounds", "seconds"])
def test_a_programme_is_followed_and_one_of_too_few_rounds_is_refused_before_anything_is_written(tmp_path, by):
    cells = (np.random.default_rng(1).random((4, 12)) < 0.6).astype(int)
    cells[0] |= ~cells.any(axis=0)
    law = {"model": "table", "file": programme(tmp_path / "files", ["".join(map(str, of)) for of in cells.T]), **by}
    assert np.array_equal(run(tmp_path / "run", law, 12, devices=4, **CLOSE)[0], cells)
    said = (
        "has columns for 12 rounds, but the run needs 13"
        if "slots" in by
        else "the trace ends at 9.6 s, but .*13 rounds"
    )
    with pytest.raises(EdgesimError, match=rf"programme\.csv: {said}"):
        run(tmp_path / "short", law, 13, devices=4, **CLOSE)
    with pytest.raises(EdgesimError, match=r"programme\.csv.* is a trace of 4 devices, but devices\.count is 5"):
        run(tmp_path / "short", law, 3, devices=5)
    assert not (tmp_path / "short").exists()


@pytest.mark.parametrize("by", BY, ids=["rounds", "seconds"])
def test_empty_slots_are_forced_or_waited_for_and_counted_in_run_json(tmp_path, by):
    law = {"model": "bernoulli", "probability": 0.2, **by}
    forced, force = run(tmp_path / "force", {**law, "if_empty": "force"}, 60, devices=4, **CLOSE)
    waited, wait = run(tmp_path / "wait", {**law, "if_empty": "wait"}, 60, devices=4, **CLOSE)
    assert (forced.sum(axis=0) >= 1).all()
    assert force.rounds["t_start_s"].to_numpy() == pytest.approx(np.arange(60) * TMAX_S)
    # The server that waits runs its rounds in the slots that are not empty, each as long as a deadline.
    slots = np.round(wait.rounds["t_start_s"].to_numpy() / TMAX_S).astype(int)
    in_time = slots[slots < 60]
    assert wait.facts["empty_slots"] == slots[-1] + 1 - 60 > 10
    assert force.facts["empty_slots"] == 60 - len(in_time)
    assert np.array_equal(forced[:, in_time], waited[:, : len(in_time)])
    note = force.facts["notes"]["empty slots"]
    assert note.startswith(f"in {force.facts['empty_slots']} slots nobody was available")
    assert note.endswith("one device, drawn at random, was made available")
    assert wait.facts["notes"]["empty slots"].endswith("the server waited, and no round was run")
    # A run without empty slots counts none; a model without slots has no count.
    half = run(tmp_path / "half", {"model": "bernoulli", "probability": 0.9, **by}, 20, **CLOSE)[1].facts
    assert (half["empty_slots"], "empty slots" in half["notes"]) == (0, False)
    assert "empty_slots" not in run(tmp_path / "static", {"model": "always"}, 3)[1].facts


@pytest.mark.parametrize("by", BY, ids=["rounds", "seconds"])
@pytest.mark.parametrize("if_empty", [{}, {"if_empty": "wait"}], ids=["absent", "wait"])
def test_a_programme_with_an_empty_column_too_many_is_refused_before_anything_is_written(tmp_path, by, if_empty):
    """Each of six columns is wanted, and in the third and the fifth there is no device of the run."""
    columns = ["1000", "0110", "0001", "1000", "0001", "0100"]
    law = {"model": "table", "file": programme(tmp_path / "files", columns), **by, **if_empty}
    said = r'columns 3, 5, where no device is available \(availability\.if_empty = "force" makes one available\)'
    for rounds in (5, 6):
        with pytest.raises(EdgesimError, match=rf"^[^\n]*programme\.csv[^\n]*{said}[^\n]*$"):
            run(tmp_path / "short", law, rounds, devices=3, count=2, **CLOSE)
    few = r"waits in column 2, where fewer than round\.min_candidates = 2 devices are available \(lower it\)"
    pairs = law | {"file": programme(tmp_path / "few", ["110", "001", "101", "111"])}
    with pytest.raises(EdgesimError, match=few):
        run(tmp_path / "short", pairs, 4, devices=3, min_candidates=2, **CLOSE)
    assert not (tmp_path / "short").exists()
    # What fits needs all columns; what is forced or goes on behind the end does not wait.
    found, fits = run(tmp_path / "fits", law, 4, devices=3, count=2, **CLOSE)
    assert found.T.tolist() == [[1, 0, 0], [0, 1, 1], [1, 0, 0], [0, 1, 0]]
    assert (fits.result.status, fits.facts["empty_slots"]) == ("finished", 2)
    _, force = run(tmp_path / "force", {**law, "if_empty": "force"}, 6, devices=3, count=2, **CLOSE)
    assert force.facts["empty_slots"] == 2
    run(tmp_path / "wrap", {**law, "after_end": "wrap"}, 6, devices=3, count=2, **CLOSE)
    # The run may end before, and how long rounds in seconds last that close with the last arrival is not known.
    run(tmp_path / "stop", law, 6, devices=3, count=2, stop_at_s=4 * TMAX_S, **CLOSE)


def test_rounds_in_seconds_that_straddle_columns_wait_as_they_do_in_the_run(tmp_path):
    """Rounds of 0.8 s in columns of 0.5 s, and a recording of the same periods: three rounds end at 3.3 s."""
    columns = ["1", "0", "0", "1", "0", "1"]
    law = {"model": "table", "file": programme(tmp_path / "files", columns), "slot_s": 0.5}
    trace = write_rows(tmp_path / "trace.csv", "device,start_s,end_s", [(0, 0, 0.5), (0, 1.5, 2), (0, 2.5, 3)])
    recorded = {"model": "table", "file": trace, "length_s": 3.0}
    both = [
        (law, "time for 3 rounds of 0.8 s each and waits in columns 2, 3, 5,"),
        (recorded, "waits for round.min_candidates = 1 is"),
    ]
    for number, (model, said) in enumerate(both):
        with pytest.raises(EdgesimError, match=rf"the trace ends at 3 s, but .*{said}"):
            run(tmp_path / "short", model, 3, devices=1, tmax_s=0.8, **CLOSE)
        _, fits = run(tmp_path / f"fits-{number}", model, 2, devices=1, tmax_s=0.8, **CLOSE)
        assert fits.rounds["t_start_s"].tolist() == [0.0, 1.5]
        assert fits.facts.get("empty_slots") == (2 if model is law else None)


def test_rounds_that_fit_or_wait_up_to_the_clocks_rounding_do_so_in_the_check_too(tmp_path):
    """Deadlines of 0.7 s as columns: five rounds fit behind an empty one; before another, the fourth of four waits."""
    assert 1 * 0.7 + 5 * 0.7 > 6 * 0.7
    law = {"model": "table", "file": programme(tmp_path / "fits", "011111"), "slot_s": 0.7}
    assert run(tmp_path / "run", law, 5, devices=1, tmax_s=0.7, **CLOSE)[0].sum() == 5
    assert 2 * 0.7 + 3 * 0.7 < 5 * 0.7
    law |= {"file": programme(tmp_path / "waits", "001110")}
    with pytest.raises(EdgesimError, match=r"waits in columns 1, 2, 6, where no device"):
        run(tmp_path / "short", law, 4, devices=1, tmax_s=0.7, **CLOSE)
    assert not (tmp_path / "short").exists()


def test_rounds_that_the_draws_from_a_file_of_probabilities_leave_empty_are_counted_beforehand(tmp_path):
    law = {"model": "bernoulli", "file": programme(tmp_path / "files", ["11", "00", "10"]), "slots": "rounds"}
    said = r"has columns for 3 rounds, but the run needs 3 and waits in column 2, where no device .*; give more columns"
    with pytest.raises(EdgesimError, match=said):
        run(tmp_path / "short", law, 3, devices=2)
    assert not (tmp_path / "short").exists()
    assert run(tmp_path / "force", {**law, "if_empty": "force"}, 3, devices=2)[0].shape == (2, 3)
