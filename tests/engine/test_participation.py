"""Participation in the whole simulator: the laws' worked examples, and one 0/1 matrix for every algorithm of a seed."""

import json

import numpy as np
import pytest

from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.folder.records import read_run, read_table
from edgesim.learning.algorithms import ALGORITHMS
from edgesim.selection import SELECTORS
from edgesim.simulation import composition as simulation

DEVICES, SEED, TMAX_S = 10, 3, 0.8
CLOSE = {"close": "deadline"}


def run(folder, availability, rounds=40, devices=DEVICES, algorithm=None, policy="random", data="none", **knobs):
    """A timing-only run that takes all devices available, and who took part in each round, [devices, rounds]."""
    everyone = {"admission": "count", "count": devices, "allocator": "equal_share", "tmax_s": TMAX_S}
    values = {
        "seed": SEED,
        "rounds": rounds,
        "devices": {"count": devices},
        "availability": availability,
        "round": {"payload_bits": 1e5, **everyone, **knobs},
        "data": {"dataset": data, "public": "none" if data == "none" else "carved"},
        "learning": {"training": "none"},
        "algorithm": algorithm or {},
        "selection": {"policy": policy},
    }
    result = simulation.run(parse(values, "test"), folder)
    table, acts = read_table(folder, "rounds"), read_table(folder, "activities")
    found = np.zeros((devices, len(table)), dtype=int)
    found[acts["device"], acts["round"] - 1] = 1
    assert found.sum(axis=0).tolist() == table["candidates"].tolist() == table["selected"].tolist()
    return found, result, table


WORKED = {
    "arrival": ({"at_start": 5, "join_after_rounds": 50, "join_every_rounds": 10},
                {"at_start": 5, "join_from_s": 50 * TMAX_S, "join_every_s": 10 * TMAX_S}),
    "departure": ({"at_start": 10, "leave_first": "highest", "leave_after_rounds": 50, "leave_every_rounds": 10},
                  {"at_start": 10, "leave_first": "highest",
                   "leave_from_s": 50 * TMAX_S, "leave_every_s": 10 * TMAX_S}),
}  # fmt: skip
SIZES = {
    "arrival": {1: 5, 50: 5, 51: 6, 60: 6, 61: 7, 91: 10, 100: 10},
    "departure": {1: 10, 50: 10, 51: 9, 60: 9, 61: 8, 91: 5, 100: 5},
}


@pytest.mark.parametrize("law", WORKED)
@pytest.mark.parametrize("by", ["rounds", "seconds"])
def test_devices_join_and_leave_in_the_rounds_of_the_worked_examples(tmp_path, law, by):
    options = WORKED[law][by == "seconds"]
    found, _, _ = run(tmp_path / "run", {"model": "arrival", **options}, 100, **CLOSE)
    sizes = found.sum(axis=0)
    assert {number: sizes[number - 1] for number in SIZES[law]} == SIZES[law]
    assert np.array_equal(found, np.arange(DEVICES)[:, None] < sizes)


@pytest.mark.parametrize("turn", [{"turn_rounds": 2}, {"turn_s": 2 * TMAX_S}], ids=["rounds", "seconds"])
def test_blocks_of_round_robin_hand_over_as_in_the_worked_example(tmp_path, turn):
    law = {"model": "round_robin", "at_once": 2, "overlap_devices": 1, **turn}
    found, _, _ = run(tmp_path / "run", law, 6, devices=4, count=2, **CLOSE)
    assert [np.flatnonzero(column).tolist() for column in found.T] == [[0, 1], [0, 1], [1, 2], [1, 2], [2, 3], [2, 3]]


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
    expected, _, table = run(tmp_path / "fedavg", law, ROUNDS)
    for number, algorithm in enumerate(OTHER_ALGORITHMS if law["model"] == "markov" else OTHER_ALGORITHMS[::6]):
        data = "digits" if "data set" in ALGORITHMS[algorithm["name"]].needs else "none"
        found, _, _ = run(tmp_path / str(number), law, ROUNDS, algorithm=algorithm, data=data)
        assert np.array_equal(found, expected), algorithm
    # Rounds that close at another instant each, and other payloads, change nothing by rounds.
    for number, knobs in enumerate((CLOSE, {"payload_bits": 3e5}, {"download_s": 0.1})):
        found, _, other = run(tmp_path / f"knobs-{number}", law, ROUNDS, **knobs)
        assert np.array_equal(found, expected), knobs
        assert other["t_end_s"].iloc[-1] != table["t_end_s"].iloc[-1]


WITHOUT_TRAINING = [name for name, kind in SELECTORS.items() if not kind.looks_at - {"class_counts"}]


@pytest.mark.parametrize("policy", [name for name in WITHOUT_TRAINING if name != "random"])
def test_every_policy_meets_the_same_candidates(tmp_path, policy):
    """Every policy that needs no training, and as many as random selection meets."""

    def candidates(policy):
        values = {
            "seed": SEED, "rounds": 30, "devices": {"count": DEVICES}, "availability": LAWS[2],
            "round": {"payload_bits": 1e5, "admission": "count", "count": 3, "min_candidates": 3},
            "data": {"dataset": "digits"}, "learning": {"training": "none"}, "selection": {"policy": policy},
        }  # fmt: skip
        simulation.run(parse(values, "test"), tmp_path / policy)
        return read_table(tmp_path / policy, "rounds")["candidates"].tolist()

    assert candidates(policy) == candidates("random")


@pytest.mark.parametrize("by", [{"slots": "rounds"}, {"slot_s": TMAX_S}], ids=["rounds", "seconds"])
def test_rounds_and_seconds_give_one_matrix_where_slots_are_deadlines(tmp_path, by):
    law = {"model": "markov", "join_probability": 0.1, "leave_probability": 0.5}
    expected, _, _ = run(tmp_path / "rounds", {**law, "slots": "rounds"}, **CLOSE)
    found, _, _ = run(tmp_path / "other", {**law, **by}, **CLOSE)
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("by", [{"slots": "rounds"}, {"slot_s": TMAX_S}], ids=["rounds", "seconds"])
def test_empty_slots_are_forced_or_waited_for_and_counted_in_run_json(tmp_path, by):
    law = {"model": "bernoulli", "probability": 0.2, **by}
    forced, _, table = run(tmp_path / "force", {**law, "if_empty": "force"}, 60, devices=4, **CLOSE)
    waited, _, later = run(tmp_path / "wait", {**law, "if_empty": "wait"}, 60, devices=4, **CLOSE)
    assert (forced.sum(axis=0) >= 1).all()
    assert table["t_start_s"].to_numpy() == pytest.approx(np.arange(60) * TMAX_S)
    # The server that waits runs its rounds in the slots that are not empty, each as long as a deadline.
    slots = np.round(later["t_start_s"].to_numpy() / TMAX_S).astype(int)
    passed = slots[-1] + 1 - 60
    counts = {name: read_run(tmp_path / name)["empty_slots"] for name in ("force", "wait")}
    assert counts["wait"] == passed > 10
    in_time = slots[slots < 60]
    assert counts["force"] == 60 - len(in_time)
    assert np.array_equal(forced[:, in_time], waited[:, : len(in_time)])
    notes = {name: read_run(tmp_path / name)["notes"]["empty slots"] for name in ("force", "wait")}
    assert notes["force"].startswith(f"in {counts['force']} slots nobody was available")
    assert notes["force"].endswith("one device, drawn at random, was made available")
    assert notes["wait"].endswith("the server waited, and no round was run")
    # A run without empty slots counts none; a model without slots has no count.
    run(tmp_path / "half", {"model": "bernoulli", "probability": 0.9, **by}, 20, **CLOSE)
    half, static = read_run(tmp_path / "half"), tmp_path / "static"
    assert (half["empty_slots"], "empty slots" in half["notes"]) == (0, False)
    run(static, {"model": "always"}, 3)
    assert "empty_slots" not in json.loads((static / "run.json").read_text())


def test_a_run_that_nobody_is_left_for_ends_and_says_so(tmp_path):
    gone = {"model": "arrival", "at_start": 4, "leave_after_rounds": 3, "leave_every_rounds": 1}
    found, result, _ = run(tmp_path / "run", gone, 20, devices=4)
    assert found.sum(axis=0).tolist() == [4, 4, 4, 3, 2, 1]
    assert result.reason.startswith("fewer than 1 devices are ever available again, as far as was searched")


def test_a_programme_is_followed_and_one_of_too_few_rounds_is_refused_before_anything_is_written(tmp_path):
    cells = (np.random.default_rng(1).random((4, 12)) < 0.6).astype(int)
    cells[0] |= ~cells.any(axis=0)
    lines = [f"{device},{','.join(map(str, row))}" for device, row in enumerate(cells.tolist())]
    file = tmp_path / "programme.csv"
    file.write_text("\n".join([f"device,{','.join(map(str, range(1, 13)))}", *lines]))
    law = {"model": "table", "file": str(file), "slots": "rounds"}
    found, _, _ = run(tmp_path / "run", law, 12, devices=4)
    assert np.array_equal(found, cells)
    by_seconds = {"model": "table", "file": str(file), "slot_s": TMAX_S}
    found, _, _ = run(tmp_path / "seconds", by_seconds, 12, devices=4, **CLOSE)
    assert np.array_equal(found, cells)
    with pytest.raises(EdgesimError, match=r"programme\.csv: has columns for 12 rounds, but the run needs 13"):
        run(tmp_path / "short", law, 13, devices=4)
    with pytest.raises(EdgesimError, match=r"programme\.csv.* is a trace of 4 devices, but devices\.count is 5"):
        run(tmp_path / "short", law, 3, devices=5)
    assert not (tmp_path / "short").exists()
    # A changed cell is another input: the run is not reused.
    config = simulation.complete(parse({"seed": 1, "rounds": 2, "availability": law, "devices": {"count": 4}}, "test"))
    before = simulation.input_digests(config)["availability.file"]
    file.write_text(file.read_text().replace("1", "0", 1))
    assert simulation.input_digests(config)["availability.file"] != before


def programme(folder, columns):
    """A file of devices, [columns][devices] of text, such as ``"110"``: devices 0 and 1 are there."""
    folder.mkdir(exist_ok=True)
    rows = [f"{device},{','.join(cells)}" for device, cells in enumerate(zip(*columns, strict=True))]
    file = folder / "programme.csv"
    file.write_text("\n".join([f"device,{','.join(map(str, range(1, len(columns) + 1)))}", *rows]))
    return str(file)


BY = [{"slots": "rounds"}, {"slot_s": TMAX_S}]


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
    assert not (tmp_path / "short").exists()
    # What fits needs all columns; what is forced or goes on behind the end does not wait.
    found, result, _ = run(tmp_path / "fits", law, 4, devices=3, count=2, **CLOSE)
    assert found.T.tolist() == [[1, 0, 0], [0, 1, 1], [1, 0, 0], [0, 1, 0]]
    assert result.status == "finished"
    assert read_run(tmp_path / "fits")["empty_slots"] == 2
    run(tmp_path / "force", {**law, "if_empty": "force"}, 6, devices=3, count=2, **CLOSE)
    assert read_run(tmp_path / "force")["empty_slots"] == 2
    assert run(tmp_path / "wrap", {**law, "after_end": "wrap"}, 6, devices=3, count=2, **CLOSE)[1].status == "finished"
    # The run may end before, and how long rounds in seconds last that close with the last arrival is not known.
    stops = {"rounds": 6, "stop_at_s": 4 * TMAX_S}
    assert stopped_run(tmp_path / "stop", law, stops)["status"] == "finished"


def stopped_run(folder, availability, limits):
    values = {"availability": availability, "devices": {"count": 3}, "data": {"dataset": "none"}, **limits}
    knobs = {"payload_bits": 1e5, "tmax_s": TMAX_S, **CLOSE}
    simulation.run(parse({**values, "learning": {"training": "none"}, "round": knobs}, "test"), folder)
    return read_run(folder)


@pytest.mark.parametrize("by", BY, ids=["rounds", "seconds"])
def test_a_programme_with_too_few_devices_in_too_many_columns_is_refused(tmp_path, by):
    columns = ["110", "001", "101", "111"]
    law = {"model": "table", "file": programme(tmp_path / "files", columns), **by}
    said = r"waits in column 2, where fewer than round\.min_candidates = 2 devices are available \(lower it\)"
    with pytest.raises(EdgesimError, match=said):
        run(tmp_path / "short", law, 4, devices=3, min_candidates=2, **CLOSE)
    found, _, _ = run(tmp_path / "fits", law, 3, devices=3, min_candidates=2, **CLOSE)
    assert found.T.tolist() == [[1, 1, 0], [1, 0, 1], [1, 1, 1]]
    run(tmp_path / "one", law, 4, devices=3, **CLOSE)


def test_rounds_in_seconds_that_straddle_columns_wait_as_they_do_in_the_run(tmp_path):
    """Rounds of 0.8 s in columns of 0.5 s, and a recording of the same periods: three rounds end at 3.3 s."""
    columns = ["1", "0", "0", "1", "0", "1"]
    law = {"model": "table", "file": programme(tmp_path / "files", columns), "slot_s": 0.5}
    (tmp_path / "trace.csv").write_text("device,start_s,end_s\n0,0,0.5\n0,1.5,2\n0,2.5,3\n")
    recorded = {"model": "table", "file": str(tmp_path / "trace.csv"), "length_s": 3.0}
    for number, (model, said) in enumerate(
        [
            (law, "time for 3 rounds of 0.8 s each and waits in columns 2, 3, 5,"),
            (recorded, "waits for round.min_candidates = 1 is"),
        ]
    ):
        with pytest.raises(EdgesimError, match=rf"the trace ends at 3 s, but .*{said}"):
            run(tmp_path / "short", model, 3, devices=1, tmax_s=0.8, **CLOSE)
        _, _, table = run(tmp_path / f"fits-{number}", model, 2, devices=1, tmax_s=0.8, **CLOSE)
        assert table["t_start_s"].tolist() == [0.0, 1.5]
    assert read_run(tmp_path / "fits-0")["empty_slots"] == 2


def test_forced_devices_of_a_programme_are_the_same_by_rounds_and_by_seconds(tmp_path):
    columns = np.random.default_rng(4).random((30, 4)) < 0.2
    file = programme(tmp_path / "files", ["".join(map(str, cells)) for cells in columns.astype(int).tolist()])
    found = [
        run(tmp_path / str(n), {"model": "table", "file": file, "if_empty": "force", **by}, 30, devices=4, **CLOSE)[0]
        for n, by in enumerate(BY)
    ]
    assert np.array_equal(found[0], found[1])
    empty = ~columns.any(axis=1)
    assert empty.sum() > 8
    assert np.array_equal(found[0].T[~empty], columns[~empty])
    assert found[0].sum(axis=0)[empty].tolist() == [1] * empty.sum()
    assert [read_run(tmp_path / str(n))["empty_slots"] for n in (0, 1)] == [empty.sum()] * 2


def test_rounds_that_fit_after_a_wait_up_to_the_clocks_rounding_are_all_run(tmp_path):
    assert 1 * 0.7 + 5 * 0.7 > 6 * 0.7
    law = {"model": "table", "file": programme(tmp_path / "files", ["0", "1", "1", "1", "1", "1"]), "slot_s": 0.7}
    found, result, _ = run(tmp_path / "run", law, 5, devices=1, tmax_s=0.7, **CLOSE)
    assert (found.sum(), result.status) == (5, "finished")


def test_rounds_that_the_draws_from_a_file_of_probabilities_leave_empty_are_counted_beforehand(tmp_path):
    law = {"model": "bernoulli", "file": programme(tmp_path / "files", ["11", "00", "10"]), "slots": "rounds"}
    said = r"has columns for 3 rounds, but the run needs 3 and waits in column 2, where no device .*; give more columns"
    with pytest.raises(EdgesimError, match=said):
        run(tmp_path / "short", law, 3, devices=2)
    assert not (tmp_path / "short").exists()
    assert run(tmp_path / "force", {**law, "if_empty": "force"}, 3, devices=2)[0].shape == (2, 3)


def test_a_round_that_would_begin_a_rounding_step_before_an_empty_column_waits_in_the_check_too(tmp_path):
    assert 2 * 0.7 + 3 * 0.7 < 5 * 0.7
    file = programme(tmp_path / "files", ["0", "0", "1", "1", "1", "0"])
    law = {"model": "table", "file": file, "slot_s": 0.7}
    with pytest.raises(EdgesimError, match=r"waits in columns 1, 2, 6, where no device"):
        run(tmp_path / "short", law, 4, devices=1, tmax_s=0.7, **CLOSE)
    assert not (tmp_path / "short").exists()
