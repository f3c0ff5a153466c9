"""Tables that contradict each other: each invariant of a run is broken once, and named with the table and its row."""

import shutil
from pathlib import Path

import pandas as pd
import pytest
from edited_runs import forget_digests
from typer.testing import CliRunner

import edgesim
from edgesim.analysis.check import run_faults
from edgesim.base.errors import EdgesimError
from edgesim.commands.cli import app
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


def of(rows: pd.DataFrame, **values: object) -> pd.Index:
    """Index of the rows with these values."""
    for name, value in values.items():
        rows = rows[rows[name] == value]
    return rows.index


def set_first(column: str, change, **values: object):
    """An edit of one value of a table: that of the first row with these values."""

    def edit(rows: pd.DataFrame) -> pd.DataFrame:
        at = of(rows, **values)[0]
        return rows.assign(**{column: rows[column].where(rows.index != at, change(rows.loc[at, column]))})

    return edit


def without_first(**values: object):
    """An edit that takes out the first row with these values."""
    return lambda rows: rows.drop(of(rows, **values)[0])


EDITS = {
    "rounds overlap": ("rounds", set_first("t_start_s", lambda t_s: t_s - 0.1, round=3), "row 3: expected a start not"),
    "an activity outlasts the run": (
        "activities",
        lambda rows: rows.assign(t_end_s=rows["t_end_s"].where(rows.index != len(rows) - 1, 1e3)),
        "expected an end not after that of the run",
    ),
    "a device does two things": (
        "activities",
        set_first("t_start_s", lambda t_s: t_s - 0.02, activity="upload"),
        "expected one activity of a device at a time",
    ),
    "bits while computing": ("activities", set_first("bits", lambda _: 1.0, activity="compute"), "no bits to compute"),
    "bits are lost": ("rounds", set_first("bits_up", lambda bits: bits - 1e3, round=2), "row 2: expected bits_up of"),
    "too much band": (
        "activities",
        set_first("bandwidth_hz", lambda hz: hz + 3e7, activity="upload"),
        "expected at most 2e+07 Hz",
    ),
    "band while computing": (
        "activities",
        set_first("bandwidth_hz", lambda _: 1e3, activity="compute"),
        "expected bandwidth_hz of uploads alone",
    ),
    "joules are lost": ("rounds", set_first("energy_j", lambda j: j * 0.999, round=2), "row 2: expected energy_j of"),
    "idling is lost": (
        "metrics",
        without_first(name="idle_j"),
        "expected energy_j of its rows and idling",
    ),
    "another power": (
        "activities",
        set_first("energy_j", lambda j: j * 1.01, activity="compute", outcome="done"),
        "expected the power that the device draws",
    ),
    "work of an absent device": (
        "absences",
        lambda rows: rows.assign(t_start_s=0.0),
        "expected an activity while the device is there",
    ),
    "a device that is away at work": ("activities", set_first("away_s", lambda _: 0.5), "away_s"),
    "activities out of order": (
        "activities",
        set_first("activity", lambda _: "download", activity="upload"),
        "download, compute, upload of a task in this order",
    ),
    "a bad end in the middle": (
        "activities",
        set_first("outcome", lambda _: "late", activity="compute", outcome="done"),
        "outcomes but done, paused in the last row of a task alone",
    ),
    "a device too many": (
        "rounds",
        set_first("selected", lambda count: count + 1, round=5),
        "row 5: expected selected",
    ),
    "an update twice": ("updates", lambda rows: pd.concat([rows, rows[:1]]), "expected an update of a task once"),
    "an update of nobody": ("updates", set_first("task", lambda _: 777), "row 1: expected a task whose upload is done"),
    "waste is made up": ("metrics", set_first("value", lambda value: value + 1.0, name="wasted_j"), "wasted_j"),
    "waste is lost": (
        "metrics",
        without_first(name="wasted_s"),
        "(got 0)",
    ),
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.whole_family
def test_a_table_that_contradicts_the_others_is_named_with_its_row(whole, tmp_path, edit):
    table, change, said = EDITS[edit]
    folder = Path(shutil.copytree(whole, tmp_path / "run"))
    change(pd.read_parquet(folder / f"{table}.parquet")).to_parquet(folder / f"{table}.parquet", index=False)
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
            path = order.folder / "rounds.parquet"
            rows = pd.read_parquet(path)
            rows["bits_up"] -= 1e3
            rows.to_parquet(path, index=False)
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
    done = CliRunner().invoke(app, ["study", "run", str(study), "--check"])
    assert (done.exit_code, "1 of 3 runs have faults" in " ".join(done.output.split())) == (2, True)
    listed = CliRunner().invoke(app, ["check", str(study)])
    assert listed.exit_code == 1
    assert "runs: 2 whole; 1 damaged" in " ".join(listed.output.split())
