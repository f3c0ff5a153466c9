"""Tables that contradict each other: each invariant of a run is broken once, and named with the table and its row."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
from edited_runs import edit_table, forget_digests
from typed_commands import edgesim as typed

import edgesim
from edgesim.analysis.check import run_faults
from edgesim.base.errors import EdgesimError
from edgesim.studies import executor

COMING_AND_GOING = {
    "seed": 4,
    "rounds": 12,
    "devices": {"count": 8, "idle_power_w": 0.05},
    "availability": {"model": "markov", "join_probability": 0.5, "leave_probability": 0.2, "slot_s": 0.9},
    "round": {"payload_bits": 4e6, "tmax_s": 0.8, "download_s": 0.05},
    "learning": {"training": "none", "pretrain": True},
    "data": {"dataset": "none", "partition": "fedteddi"},
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    edgesim.run(COMING_AND_GOING, folder)
    assert run_faults(folder) == []
    return folder


DONE = {"activity": "compute", "outcome": "done"}
UPLOAD, COMPUTE = {"activity": "upload"}, {"activity": "compute"}
IN_ORDER = "download, compute, upload of a task in this order"
EDITS = {
    "rounds overlap": ("rounds", "t_start_s", {"round": 3}, -0.1, "row 3: expected a start not"),
    "an activity outlasts the run": ("activities", "t_end_s", UPLOAD, 1e3, "expected an end not after that of the run"),
    "two things at a time": ("activities", "t_start_s", UPLOAD, -0.02, "expected one activity of a device at a time"),
    "bits while computing": ("activities", "bits", COMPUTE, 1.0, "no bits to compute"),
    "bits are lost": ("rounds", "bits_up", {"round": 2}, -1e3, "row 2: expected bits_up of"),
    "too much band": ("activities", "bandwidth_hz", UPLOAD, 3e7, "expected at most 2e+07 Hz"),
    "band while computing": ("activities", "bandwidth_hz", COMPUTE, "1e3", "expected bandwidth_hz of uploads alone"),
    "joules are lost": ("rounds", "energy_j", {"round": 2}, -1e-3, "row 2: expected energy_j of"),
    "idling is lost": ("metrics", None, {"name": "idle_j"}, "none", "expected energy_j of its rows and idling"),
    "another power": ("activities", "energy_j", DONE, 1e-3, "expected the power that the device draws"),
    "work of an absent device": (
        "absences",
        "t_start_s",
        {},
        "all 0",
        "expected an activity while the device is there",
    ),
    "away at work": ("activities", "away_s", {}, "0.5", "away_s"),
    "activities out of order": ("activities", "activity", UPLOAD, "download", IN_ORDER),
    "a bad end": ("activities", "outcome", DONE, "late", "outcomes but done, paused in the last row of a task alone"),
    "a device too many": ("rounds", "selected", {"round": 5}, 1, "row 5: expected selected"),
    "an update twice": ("updates", None, {}, "twice", "expected an update of a task once"),
    "an update of nobody": ("updates", "task", {}, 777, "row 1: expected a task whose upload is done"),
    "waste is made up": ("metrics", "value", {"name": "wasted_j"}, 1.0, "wasted_j"),
    "waste is lost": ("metrics", None, {"name": "wasted_s"}, "none", "(got 0)"),
}
"""Table, column, the values of the rows whose first is meant, a number that is added or a text of what takes its
place, and what is said."""


def edited(rows: pd.DataFrame, column: str | None, where: dict[str, object], change: float | str) -> pd.DataFrame:
    """A table with one value changed, or with a row of it missing or standing there twice."""
    meant = rows
    for name, value in where.items():
        meant = meant[meant[name] == value]
    if column is None:
        return rows.drop(meant.index[0]) if change == "none" else pd.concat([rows, rows[:1]])
    if change == "all 0":
        return rows.assign(**{column: 0.0})
    old = rows.loc[meant.index[0], column]
    new = old + change if not isinstance(change, str) else change if isinstance(old, str) else float(change)
    return rows.assign(**{column: rows[column].where(rows.index != meant.index[0], new)})


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.whole_family
def test_a_table_that_contradicts_the_others_is_named_with_its_row(whole, tmp_path, edit):
    table, *change, said = EDITS[edit]
    folder = Path(shutil.copytree(whole, tmp_path / "run"))
    edit_table(folder, table, lambda rows: edited(rows, *change))
    forget_digests(folder)
    lines = run_faults(folder)
    assert any(said in line for line in lines), lines
    assert all(line.startswith(str(folder)) and "\n" not in line for line in lines)


@pytest.fixture
def broken_by_a_bug(monkeypatch, studies_here):
    """Runs of seed 1 lose bits after they were simulated, with digests that agree, as an error of the program would."""
    run_one = executor.run_one

    def lossy(order, cores, send):
        ending = run_one(order, cores, send)
        if order.config.seed == 1:
            edit_table(order.folder, "rounds", lambda rows: rows.assign(bits_up=rows["bits_up"] - 1e3))
            forget_digests(order.folder)
        return ending

    monkeypatch.setattr(executor, "run_one", lossy)


def test_a_study_checks_its_runs_when_asked_and_ends_with_the_faults(tmp_path, broken_by_a_bug, capsys):
    study = tmp_path / "study"
    arguments = {"axes": {"selection.policy": ["random"]}, "seeds": 3, "out": study, "jobs": 1}
    config = {key: value for key, value in COMING_AND_GOING.items() if key != "seed"}
    with pytest.raises(EdgesimError, match=r"study: 1 of 3 runs have faults; edgesim check .*study names them$"):
        edgesim.study(config, **arguments, check=True)
    assert (study / "summary.csv").is_file()
    said = "".join(capsys.readouterr().out.split())
    assert f"{study}/random-s1/rounds.parquet:row1(and11more):expectedbits_upofitsuploads" in said
    # Without the option nothing is said; what is finished is checked when it is asked for later.
    edgesim.study(config, **arguments)
    status, output = typed("study", "run", study, "--check")
    assert (status, "1 of 3 runs have faults" in output) == (2, True)
    status, output = typed("check", study)
    assert (status, "runs: 2 whole; 1 damaged" in output) == (1, True)
