"""Runs that are stopped: what they leave, from what they go on, and what they refuse to go on from."""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from small_runs import TRAINED
from stopped_runs import Broken, content, saved_rounds, stop_at
from typed_commands import edgesim_lines
from whole_runs import TIMED

from edgesim.base.errors import EdgesimError
from edgesim.base.processes import READER_LEFT, Stopped
from edgesim.config_file import parse
from edgesim.devices.battery import Batteries
from edgesim.engine.candidates import Asked, Everyone
from edgesim.engine.cells import Cells
from edgesim.engine.deadlines import Deadlines, MovingDeadlines
from edgesim.engine.due_rounds import EveryRound, SomeRounds
from edgesim.engine.evaluations import Evaluations
from edgesim.engine.idle_devices import IdleDevices
from edgesim.engine.moving_shared_band import MovingSharedBand
from edgesim.engine.report import Report
from edgesim.engine.run_parts import RunParts
from edgesim.engine.servers import EdgeServers, OneServer
from edgesim.engine.shared_band import SharedBand
from edgesim.engine.synchronous import Rounds
from edgesim.engine.unsynchronised import Unsynchronised
from edgesim.folder import checkpoints
from edgesim.folder.records import read_run, read_table
from edgesim.learning.federation import make_federation
from edgesim.learning.learner import TorchLearner
from edgesim.selection import SELECTORS
from edgesim.selection.random_choice import RandomChoice
from edgesim.simulation import composition as simulation
from edgesim.simulation import resumption
from edgesim.streams import Streams

VALUES = TRAINED | {"rounds": 8, "evaluation": {"samples": 20, "every": 2}}
CONFIG = parse(VALUES, "test")
TIMING = parse(VALUES | TIMED, "test")
OTHER = simulation.as_toml(simulation.complete(parse(VALUES | {"round": {"payload_bits": 1e6, "tmax_s": 1.1}}, "test")))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """The bytes of the run of `CONFIG`."""
    folder = tmp_path_factory.mktemp("undisturbed")
    simulation.run(CONFIG, folder)
    return content(folder)


@pytest.fixture
def stopped(tmp_path):
    """The folder of such a run that was stopped in round 6, whose last checkpoints are of rounds 5 and 4."""
    assert stop_at(CONFIG, tmp_path / "run", 6) is None
    return tmp_path / "run"


def resumed(folder, **how):
    """Go on with a run; its result and what it said of that."""
    said = []
    config = parse(VALUES, "test")
    result = simulation.run(config, folder, on_note=lambda about, note: said.append(note), **how)
    return result, " | ".join(said)


def test_a_stopped_run_keeps_two_checkpoints_and_can_be_read(stopped):
    assert saved_rounds(stopped) == [5, 4]
    run = read_run(stopped)
    assert (run["status"], run["reason"]) == ("interrupted", "stopped by Ctrl-C or SIGTERM")
    assert read_table(stopped, "rounds")["round"].tolist() == [1, 2, 3, 4, 5, 6]


def test_it_goes_on_behind_the_last_one_and_leaves_none(stopped, undisturbed):
    rounds = []
    result = simulation.run(CONFIG, stopped, lambda done: rounds.append(done.round))
    assert (result.status, result.resumed_after, result.restarted) == ("finished", 5, "")
    assert rounds == [6, 7, 8]
    assert content(stopped) == undisturbed
    assert {path.suffix for path in stopped.iterdir()} == {".parquet", ".safetensors", ".toml", ".json"}
    assert read_run(stopped)["resumed"] == [{"went_on_from": 5}]
    assert simulation.run(CONFIG, stopped).reused


def test_a_killed_run_whose_streams_are_torn_goes_on(stopped, undisturbed):
    """As SIGKILL leaves it: no Parquet files, the streams longer than the checkpoint says, the last batch in part."""
    for path in stopped.glob("*.parquet"):
        path.unlink()
    run = json.loads((stopped / "run.json").read_text())
    (stopped / "run.json").write_text(json.dumps(run | {"status": "running"}))
    with (stopped / "activities.arrow").open("ab") as stream:
        stream.write(b"\xff\xff\xff\xff\x10\x01torn")
    (stopped / "checkpoint.part").write_bytes(b"torn")
    result, _ = resumed(stopped)
    assert result.resumed_after == 5
    assert content(stopped) == undisturbed
    assert not (stopped / "checkpoint.part").exists()


def test_a_run_stopped_behind_its_last_round_only_closes_its_tables(tmp_path, undisturbed):
    class Late(KeyboardInterrupt):
        pass

    def fail(*_):
        raise Late

    patch = pytest.MonkeyPatch()
    patch.setattr("edgesim.engine.server.Server.stop", fail)
    with pytest.raises(Late):
        simulation.run(CONFIG, tmp_path, checkpoint_s=0.0)
    patch.undo()
    assert saved_rounds(tmp_path) == [8, 7]
    rounds = []
    simulation.run(CONFIG, tmp_path, lambda done: rounds.append(done.round))
    assert rounds == []
    assert content(tmp_path) == undisturbed


def test_what_a_process_leaves_that_is_killed_when_its_run_has_just_finished_goes_with_the_next_start(
    tmp_path, undisturbed, monkeypatch
):
    def die(_):
        raise Broken

    monkeypatch.setattr("edgesim.folder.records.remove_streams", die)
    with pytest.raises(Broken):
        simulation.run(CONFIG, tmp_path, checkpoint_s=0.0)
    monkeypatch.undo()
    assert saved_rounds(tmp_path) == [8, 7]
    assert simulation.run(CONFIG, tmp_path).reused
    assert not list(tmp_path.glob("checkpoint*")) + list(tmp_path.glob("*.arrow"))
    assert content(tmp_path) == undisturbed


def test_the_file_of_an_old_checkpoint_is_written_over_but_never_one_that_stays(stopped):
    found = checkpoints.newest(stopped, print)
    first = found.about.round + 1

    def write(round, size):
        record = checkpoints.Packed(found.record.json, {"array": np.arange(size)})
        return checkpoints.write(stopped, replace(found.about, round=round), record, found.rows)

    def sizes(*paths):
        return [checkpoints.read(path, pytest.fail).record.arrays["array"].size for path in paths]

    kept, inodes = checkpoints.keep(write(first, 100), "kept"), []
    # Larger and smaller than those that they are written over.
    written = [1_000, 100_000, 10, 50_000, 1, 200_000, 5]
    for place, size in enumerate(written):
        inodes.append(write(first + 1 + place, size).stat().st_ino)
        assert sizes(*checkpoints.files(stopped)) == [size, [100, *written][place]]
    assert inodes[-1] == inodes[-4]
    assert sizes(kept) == [100]
    assert kept.stat().st_ino not in inodes


def test_a_damaged_checkpoint_is_told_and_the_one_before_taken_or_the_start(stopped, tmp_path, undisturbed):
    """One that is cut short, and one with a bit that is another."""
    last, before = checkpoints.files(stopped)
    last.write_bytes(last.read_bytes()[:-40])
    result, said = resumed(shutil.copytree(stopped, tmp_path / "one"))
    assert f"{last.name} is damaged (it was cut short or changed); the one before is taken" in said
    assert result.resumed_after == 4
    assert content(tmp_path / "one") == undisturbed
    content_before = before.read_bytes()
    before.write_bytes(bytes([*content_before[:-5], content_before[-5] ^ 1, *content_before[-4:]]))
    result, said = resumed(shutil.copytree(stopped, tmp_path / "both"))
    assert f"{before.name} is damaged" in said
    assert (result.resumed_after, result.restarted) == (0, "was unfinished")
    assert content(tmp_path / "both") == undisturbed


def test_rows_that_a_power_cut_took_from_the_tables_come_back_from_the_checkpoint(stopped, undisturbed):
    # Their streams are not waited for until they are on the disk: they may be shorter, gone, or hold zeros.
    os.truncate(stopped / "metrics.arrow", 10)
    (stopped / "updates.arrow").unlink()
    size = (stopped / "rounds.arrow").stat().st_size
    (stopped / "rounds.arrow").write_bytes(bytes(size))
    result, _ = resumed(stopped)
    assert result.resumed_after == 5
    assert content(stopped) == undisturbed


def test_a_checkpoint_whose_tables_have_lost_rows_that_were_on_the_disk_is_damaged(tmp_path, undisturbed, monkeypatch):
    # As after more rows than a checkpoint holds: the streams themselves are brought to the disk.
    monkeypatch.setattr("edgesim.folder.records.MOST_REST_BYTES", 0)
    assert stop_at(CONFIG, tmp_path, 6) is None
    last, _ = checkpoints.files(tmp_path)
    about = checkpoints.newest(tmp_path, print).about
    assert about.on_disk == about.streams
    size = about.streams["metrics"]
    os.truncate(tmp_path / "metrics.arrow", size - 1)
    result, said = resumed(tmp_path)
    assert f"{last.name} is damaged (metrics.arrow has {size - 1} of the {size} bytes" in said
    assert result.resumed_after == 4
    assert content(tmp_path) == undisturbed


def rewrite(stopped, **changes):
    """Make both checkpoints say something else of what they hang on, whole as they are."""
    for path in checkpoints.files(stopped):
        found = checkpoints.newest(stopped, print)
        path.unlink()
        checkpoints.write(stopped, checkpoints.About(**vars(found.about) | changes), found.record, found.rows)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"format": 99}, "has format 99 (edgesim reads 9)"),
        ({"config": OTHER}, "is of another config (round.tmax_s differs)"),
        ({"inputs": {"edgesim": "0"}}, "is of other files, code or version of edgesim (algorithm.name differs)"),
    ],
)
def test_a_checkpoint_of_something_else_is_not_gone_on_with_and_the_difference_is_named(
    changes, said, stopped, undisturbed
):
    rewrite(stopped, **changes)
    with pytest.raises(EdgesimError) as refusal:
        resumed(stopped, strict=True)
    assert str(refusal.value).endswith(f"{said}; edgesim run --fresh restarts the run")
    assert saved_rounds(stopped)
    result, told = resumed(stopped)
    assert f"the run restarts, since its checkpoint {said}" in told
    assert result.resumed_after == 0
    assert content(stopped) == undisturbed


def test_a_checkpoint_of_another_machine_is_taken_only_where_that_is_allowed_and_recorded(stopped, undisturbed):
    machine = checkpoints.newest(stopped, print).about.machine
    assert {"torch", "numpy", "cpu", "device_kind", "back_end"} <= set(machine)
    rewrite(stopped, machine=machine | {"torch": "1.0"})
    with pytest.raises(EdgesimError, match=r"is of another machine \(torch was 1.0, is .*--allow-other-machine"):
        resumed(stopped, strict=True)
    result, _ = resumed(stopped, strict=True, other_machine=True)
    assert result.resumed_after == 5
    assert read_run(stopped)["resumed"] == [{"went_on_from": 5, "began_on": {"torch": "1.0"}}]
    assert content(stopped) == undisturbed


def test_fresh_begins_again_and_removes_the_checkpoints_before_it_touches_the_tables(stopped, monkeypatch):
    def look(*_):
        assert not checkpoints.files(stopped)
        raise Broken

    monkeypatch.setattr("edgesim.folder.records.write_whole", look)
    with pytest.raises(Broken):
        simulation.run(CONFIG, stopped, fresh=True)


def test_a_run_that_was_killed_at_its_first_file_is_run(tmp_path):
    (tmp_path / "config.toml.part").write_text("seed =")
    assert simulation.run(TIMING, tmp_path).status == "finished"
    assert not [*tmp_path.glob("*.part")]


def test_a_checkpoint_is_due_after_so_much_wall_time_and_takes_a_fiftieth_of_it_at_most(tmp_path, monkeypatch):
    clock, saved = [0.0], []

    class Time:
        @staticmethod
        def perf_counter():
            return clock[0]

    def save(self, about, record, keep):
        saved.append((about["round"], clock[0]))
        clock[0] += 0.5

    def on_round(done):
        clock[0] += 4.0

    monkeypatch.setattr(resumption, "time", Time)
    monkeypatch.setattr("edgesim.folder.records.RunWriter.save", save)
    config = parse(VALUES | TIMED | {"rounds": 14}, "test")
    simulation.run(config, tmp_path, on_round)
    # Due at 10 s, first met at the end of round 3; saving took 0.5 s, so that 25 s pass before the next.
    assert saved == [(3, 12.0), (10, 40.5)]


def test_a_short_run_writes_none(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "write", None)
    simulation.run(TIMING, tmp_path)
    assert read_run(tmp_path)["checkpoint_bytes_at_most"] > 0


def test_their_size_is_told_before_the_first_round_and_is_not_too_small(tmp_path):
    config = parse(VALUES | {"algorithm": {"name": "scaffold"}}, "test")
    stop_at(config, tmp_path, 7)
    told = read_run(tmp_path)["checkpoint_bytes_at_most"]
    sizes = [path.stat().st_size for path in checkpoints.files(tmp_path)]
    assert told / 3 < max(sizes) <= told


def test_a_policy_that_cannot_be_saved_is_told_and_the_run_goes_on_without_checkpoints(tmp_path, monkeypatch):
    class Odd(RandomChoice):
        def __init__(self, *given):
            super().__init__(*given)
            self.state = object()

    monkeypatch.setitem(SELECTORS, "random", Odd)
    monkeypatch.setattr(simulation, "input_digests", lambda *_, **__: {})
    said = []
    simulation.run(TIMING, tmp_path, on_note=lambda about, note: said.append(note), checkpoint_s=0.0)
    assert any("the run has no checkpoints: record.selector: cannot save a object" in note for note in said)
    assert read_run(tmp_path)["status"] == "finished"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_saves_the_run_at_the_end_of_the_round_and_ends_it(number, tmp_path, undisturbed):
    def on_round(done):
        if done.round == 3:
            signal.raise_signal(number)

    before = signal.signal(number, signal.default_int_handler)
    try:
        with pytest.raises(Stopped) as stopped:
            simulation.run(CONFIG, tmp_path, on_round)
    finally:
        assert signal.signal(number, before) is signal.default_int_handler
    assert str(stopped.value) == f"stopped; edgesim resume {tmp_path} continues after round 3"
    assert read_run(tmp_path)["status"] == "interrupted"
    result, _ = resumed(tmp_path)
    assert result.resumed_after == 3
    assert content(tmp_path) == undisturbed


@pytest.mark.parametrize("end", [BrokenPipeError(), SystemExit(READER_LEFT)], ids=["pipe", "console"])
def test_a_run_whose_output_is_read_no_further_is_stopped_and_resumes(end, tmp_path, undisturbed):
    for last in (3, 5):

        def on_round(done, last=last):
            if done.round == last:
                raise end

        with pytest.raises(type(end)):
            simulation.run(CONFIG, tmp_path, on_round, checkpoint_s=0.0, keep_failure=True)
        run = read_run(tmp_path)
        assert (run["status"], run["reason"]) == ("interrupted", "nothing reads its output any more")
    resumed(tmp_path)
    assert content(tmp_path) == undisturbed


def test_a_round_that_does_not_end_in_time_is_broken_off(tmp_path, monkeypatch):
    import time

    monkeypatch.setattr("edgesim.base.processes._PATIENCE_S", 0.2)

    def on_round(done):
        if done.round == 3:
            signal.raise_signal(signal.SIGTERM)
            time.sleep(20)

    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with pytest.raises(Stopped, match="continues after round 2"):
            simulation.run(CONFIG, tmp_path, on_round, checkpoint_s=0.0)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_run_that_begins_with_a_pretrained_model_does_not_train_it_again(tmp_path, monkeypatch):
    config = parse(VALUES | {"learning": VALUES["learning"] | {"pretrain": True, "pretrain_max_epochs": 1}}, "test")
    facts = []
    for name in ("undisturbed", "stopped"):
        if name == "stopped":
            assert stop_at(config, tmp_path / name, 4) is None
            monkeypatch.setattr("edgesim.learning.learner.start_model", None)
        simulation.run(config, tmp_path / name)
        facts.append({key: value for key, value in read_run(tmp_path / name).items() if key.startswith("pretrain")})
    assert facts[0] == facts[1] != {}
    assert content(tmp_path / "stopped") == content(tmp_path / "undisturbed")


def test_the_command_goes_on_with_a_run_and_says_from_where(stopped, undisturbed):
    status, output = edgesim_lines("resume", stopped)
    assert status == 0, output
    assert "resumes after round 5" in " ".join(output.split())
    assert content(stopped) == undisturbed
    status, output = edgesim_lines("resume", stopped)
    assert (status, output) == (2, f"error: {stopped}: is finished, so nothing is left to resume\n")


MADE_ANEW: dict[type, set[str]] = {
    Report: {"writer", "population", "batteries", "interruptions", "holds_rows", "writes_stations"},
    Evaluations: {"config", "learner", "report", "accuracy"},
    IdleDevices: {"availability", "batteries", "search_s"},
    Batteries: {"capacity_j", "reserve_j", "recharge_w", "idle_w"},
    # Latecomers come back from records of their own; no round is open at the end of one.
    Rounds: {"parts", "wanted", "latecomers", "drafting", "open", *Rounds.PARTS},
    Everyone: {"unheard"},
    Asked: {"joiners", "answers"},
    # Devices at work come back as latecomers: they are watched anew, and those without bandwidth wait again.
    Cells: {
        "clock", "world", "moving", "knobs", "backhaul", "works", "tasks", "expected", "waiting", "search", "station",
    },
    Deadlines: set(),
    MovingDeadlines: {"a"},
    EveryRound: {"parts"},
    SomeRounds: {"parts"},
    OneServer: {"parts", "in_cloud"},
    EdgeServers: {"parts"},
    # At work: as latecomers; alarms are set again. The buffer is empty when a model has been made, and all is told.
    Unsynchronised: {"parts", "wanted", "at_work", "_alarms_s", "arrived", "over", "begun", "training", "in_training"},
    # Uploads put themselves on the air again.
    SharedBand: {
        "clock", "bandwidth_hz", "link", "active", "_over", "_table", "_rows", "_hz", "_rates", "_since_s", "_plan",
    },
    MovingSharedBand: {
        "clock", "bandwidth_hz", "link", "active", "_over", "_table", "_rows", "_hz", "_rates", "_since_s", "_plan",
        "courses", "station", "_followed",
    },
}  # fmt: skip
"""Fields that a new object has from the config, or that are empty at the end of a round."""


@pytest.mark.parametrize("kind", MADE_ANEW, ids=lambda kind: kind.__name__)
def test_what_an_object_remembers_is_all_that_changes_of_it(kind):
    """A field that a class gains has to be named in SAVED, or here as made anew."""
    assert set(kind.SAVED) | MADE_ANEW[kind] == {field.name for field in fields(kind)}
    assert not set(kind.SAVED) & MADE_ANEW[kind]


def test_every_part_of_a_run_is_saved_or_has_no_state():
    """A part that a run gains has to be in `RunState`, or here."""
    saved = {"selector", "joiners", "learner", "bands", "batteries", "report", "evaluations", "clock", "cells"}
    without_state = {"world", "writer", "backhaul", "interruptions", "answerer", "courses"}
    assert saved | without_state == {field.name for field in fields(RunParts)}


def test_what_a_learner_remembers_is_all_that_changes_of_it():
    config = simulation.complete(CONFIG)
    streams = Streams(0)
    learner = TorchLearner(config, make_federation(config, streams), streams)
    learner.close()
    made_anew = {
        "config", "federation", "streams", "dataset", "cores", "torch_device", "model", "data", "accounts", "back_end",
        "_metrics", "_notice", "transforms", "beside", "server_of", "memory", "public", "_tested_on",
    }  # fmt: skip
    within_a_merge = {"_server_wall_s"}
    assert set(vars(learner)) == set(TorchLearner.SAVED) | made_anew | within_a_merge
    of_config = {"model_bits", "local", "server", "rule", "work", "measured", "looked_at", "_config", "_federation"}
    of_config |= {"up", "down", "adds_lost"}
    of_instants = {"held", "before", "_first", "when", "_first_when"}
    assert (
        set(vars(learner.accounts)) == {"ledger", "models", "_is_open", "has_model", "is_due"} | of_config | of_instants
    )


def test_a_checkpoint_holds_no_pickle_and_only_what_edgesim_made(stopped: Path):
    for path in checkpoints.files(stopped):
        found = checkpoints._read(path)
        assert {array.dtype.hasobject for array in found.record.arrays.values()} == {False}
        assert json.loads(found.record.json)["record"] == "edgesim.engine.run_state:RunState"


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_runs_that_are_killed_at_random_instants_end_with_the_bytes_of_undisturbed_ones(tmp_path):
    """``EDGESIM_KILLS=200`` kills so many instead of 10."""
    kills = os.environ.get("EDGESIM_KILLS", "10")
    command = [sys.executable, str(Path(__file__).with_name("kill_runs.py")), str(tmp_path), "--kills", kills]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split("|") for line in done.stdout.splitlines() if line.startswith("| ")]
    assert sum(int(row[2].split()[0]) for row in rows) == int(kills)
    assert sum(int(row[3].split()[0]) for row in rows) > 0
