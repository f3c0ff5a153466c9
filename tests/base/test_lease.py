"""The lease of a folder: who has it, who has lost it, and that two never have it."""

import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import asdict, replace

import pytest

from edgesim.base import lease as leases
from edgesim.base.errors import EdgesimError
from edgesim.base.lease import LEASE_S, Holder, Lease, Taken, leased, standing
from edgesim.folder.records import RunWriter

ELSEWHERE = Holder("far", "far boot-7 pid:[1]", 12, "99", "token")


def leave(folder, holder=ELSEWHERE, silent_s=LEASE_S + 5, number=1):
    """A lease as a process that was not heard of for so long has left it."""
    path = folder / f"lease-{number:04d}.json"
    path.write_text(json.dumps(asdict(holder)) if holder else "")
    at_s = time.time() - silent_s
    os.utime(path, (at_s, at_s))
    return path


def test_one_process_at_a_time_has_a_folder(tmp_path):
    with leased(tmp_path) as first:
        assert standing(tmp_path).is_held
        with pytest.raises(
            Taken, match=rf"another process is writing there \(process {os.getpid()} on .*\); wait for it"
        ):
            Lease(tmp_path)
        first.check()
    assert list(tmp_path.iterdir()) == []
    Lease(tmp_path).release()


def test_a_folder_made_for_it_goes_with_it_unless_something_was_written(tmp_path):
    Lease(tmp_path / "a/b").release()
    assert not (tmp_path / "a").exists()
    with leased(tmp_path / "a/b"):
        (tmp_path / "a/kept").touch()
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["kept"]


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_killed_holder_on_this_machine_has_lost_it_at_once(tmp_path):
    code = "import sys, pathlib; from edgesim.base.lease import Lease\n"
    code += "Lease(pathlib.Path(sys.argv[1])); print(1, flush=True); input()"
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        holder.stdout.readline()
        assert standing(tmp_path).is_held
        with pytest.raises(Taken, match=f"process {holder.pid} on"):
            Lease(tmp_path)
    finally:
        holder.kill()
        # Not waited for: it is a zombie, which has its id still.
        while standing(tmp_path).is_held:
            time.sleep(0.01)
    with leased(tmp_path):
        assert [path.name for path in tmp_path.iterdir()] == ["lease-0002.json"]
    holder.communicate()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_another_process_with_the_id_of_a_gone_one_does_not_hold_its_lease(tmp_path):
    with leased(tmp_path):
        holder = standing(tmp_path).holder
    leave(tmp_path, replace(holder, started=f"{int(holder.started) - 1}"), silent_s=0)
    assert not standing(tmp_path).is_held


@pytest.mark.parametrize("holder", [ELSEWHERE, None], ids=["elsewhere", "no name yet"])
def test_a_holder_on_another_machine_is_lost_after_a_minute_by_the_clock_of_the_file_system(
    tmp_path, holder, monkeypatch
):
    leave(tmp_path, holder, silent_s=LEASE_S - 5)
    # A clock that is an hour fast says nothing.
    monkeypatch.setattr(leases.time, "time", lambda: 1e10)
    assert standing(tmp_path).is_held
    with pytest.raises(Taken):
        Lease(tmp_path)
    monkeypatch.undo()
    leave(tmp_path, holder, silent_s=LEASE_S + 5)
    assert not standing(tmp_path).is_held
    with leased(tmp_path):
        pass
    assert list(tmp_path.iterdir()) == []


def test_of_many_that_take_a_stale_lease_over_at_once_one_wins(tmp_path):
    for turn in range(30):
        folder = tmp_path / str(turn)
        folder.mkdir()
        leave(folder)
        won, start = [], threading.Barrier(8)

        def take(folder=folder, won=won, start=start):
            start.wait()
            with suppress(Taken):
                won.append(Lease(folder))

        threads = [threading.Thread(target=take) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        (winner,) = won
        winner.check()
        winner.release()
        assert list(folder.iterdir()) == []


def test_a_folder_that_its_last_holder_removes_meanwhile_is_made_again(tmp_path, monkeypatch):
    looks, look = [], standing

    def removed_after(folder):
        looks.append(look(folder))
        assert len(looks) < 5
        if len(looks) == 1:
            folder.rmdir()
        return looks[-1]

    monkeypatch.setattr(leases, "standing", removed_after)
    with leased(tmp_path / "made") as lease:
        lease.check()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("released", [False, True], ids=["another has it", "a third has it from the beginning"])
def test_one_that_slept_after_it_saw_a_stale_lease_does_not_take_it_from_those_that_came_meanwhile(
    tmp_path, monkeypatch, released
):
    leave(tmp_path)
    look, others = standing, []

    def sleep_after(folder):
        found = look(folder)
        if not others:
            monkeypatch.setattr(leases, "standing", look)
            others.append(Lease(folder))
            if released:
                others.pop().release()
                others.append(Lease(folder))
        return found

    monkeypatch.setattr(leases, "standing", sleep_after)
    with pytest.raises(Taken):
        Lease(tmp_path)
    others[0].check()
    others[0].release()
    assert list(tmp_path.iterdir()) == []


def test_a_holder_is_heard_of(tmp_path, monkeypatch):
    monkeypatch.setattr(leases, "_BEAT_S", 0.01)
    with leased(tmp_path):
        path = standing(tmp_path).path
        os.utime(path, (1, 1))
        until_s = time.monotonic() + 10
        while standing(tmp_path).silent_s > LEASE_S:
            assert time.monotonic() < until_s
            time.sleep(0.01)


def test_a_run_whose_lease_was_taken_over_writes_nothing_more(tmp_path, monkeypatch):
    monkeypatch.setattr("edgesim.folder.records._FLUSH_S", 0.0)
    writer = RunWriter(tmp_path, {}, {})
    writer.write("updates", {"round": [1], "device": [7], "weight": [1.0]})
    writer.write("rounds", {"round": [1]})
    # As the machine saw it that has waited for a minute.
    mine = standing(tmp_path).path
    mine.unlink()
    with leased(tmp_path):
        before = {path: path.read_bytes() for path in tmp_path.iterdir()}
        with pytest.raises(EdgesimError, match="another process has resumed it, since this one was not heard of"):
            writer.write("rounds", {"round": [2]})
        with pytest.raises(Taken):
            writer.close("failed")
        assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
