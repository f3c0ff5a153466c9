import os
import signal
import subprocess
import sys
import threading
from multiprocessing import util

import pyarrow.parquet as pq
import pytest
from waiting import wait_for

from edgesim.base.processes import start_process, uninterrupted
from edgesim.folder import records
from edgesim.screen.plain import plain_errors


@pytest.fixture(autouse=True)
def _handlers():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_comes_within_takes_effect_at_the_end_once_and_the_handlers_are_as_before(number):
    done = []
    signal.signal(signal.SIGTERM, signal.default_int_handler)

    def write():
        signal.raise_signal(number)
        with uninterrupted():
            signal.raise_signal(number)
            done.append("inner")
        done.append("outer")

    with pytest.raises(KeyboardInterrupt), uninterrupted():
        write()
    assert done == ["inner", "outer"]
    assert signal.getsignal(number) is signal.default_int_handler
    with uninterrupted():
        pass


def stops_at(moments):
    """What is done of a piece of work that is stopped at some of its moments, and lets signals in in its middle."""
    done = []

    def do(moment):
        if moment in moments:
            signal.raise_signal(signal.SIGINT)
        done.append(moment)

    def work():
        with uninterrupted() as held:
            try:
                do("begin")
                with held.let_in():
                    try:
                        do("middle")
                    finally:
                        do("behind")
            finally:
                do("end")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return done


def test_of_signals_that_are_let_in_the_first_takes_effect_at_once_and_the_others_at_the_end():
    assert stops_at(["middle"]) == ["begin", "behind", "end"]
    assert stops_at(["middle", "behind"]) == ["begin", "behind", "end"]
    assert stops_at(["middle", "behind", "end"]) == ["begin", "behind", "end"]
    assert stops_at(["begin"]) == ["begin", "end"]
    assert stops_at(["begin", "end"]) == ["begin", "end"]
    assert stops_at(["end"]) == ["begin", "middle", "behind", "end"]


def test_a_process_that_is_deaf_to_ctrl_c_stays_so():
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with uninterrupted():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN


def test_threads_which_get_no_signals_write_as_ever():
    done = []

    def write():
        with uninterrupted():
            done.append(1)

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert done == [1]


def test_sigterm_ends_a_command_as_ctrl_c_does(capsys):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

    @plain_errors
    def command():
        signal.raise_signal(signal.SIGTERM)

    with pytest.raises(SystemExit) as end:
        command()
    assert end.value.code == 130
    assert capsys.readouterr().err == "stopped; whatever had finished is kept\n"


def test_rows_that_are_written_when_ctrl_c_comes_are_there_once(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "_FLUSH_S", 0.0)
    writer = records.RunWriter(tmp_path, {}, {})

    class Sink:
        """Ctrl-C comes when a batch has just been written."""

        def __init__(self, sink):
            self.sink, self.write, self.close, self.flushes = sink, sink.write, sink.close, 0

        def flush(self):
            self.sink.flush()
            self.flushes += 1
            if self.flushes == 2:
                signal.raise_signal(signal.SIGINT)

    writer._sinks["metrics"] = Sink(writer._sinks["metrics"])

    def write():
        for number in (1, 2):
            writer.write("metrics", {"round": [number], "name": ["a"], "key": [""], "value": [0.5]})
            writer.write("rounds", {"round": [number]})

    with pytest.raises(KeyboardInterrupt):
        write()
    writer.close("interrupted", cut=True)
    for name in ("rounds", "metrics"):
        assert pq.read_table(tmp_path / f"{name}.parquet")["round"].to_pylist() == [1, 2]
    assert records.read_run(tmp_path)["status"] == "interrupted"


def ends(connection, what):
    pass


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_process_that_is_killed_before_it_reads_its_arguments_keeps_nobody_waiting(monkeypatch):
    spawn = util.spawnv_passfds

    def spawn_and_kill(path, words, fds):
        pid = spawn(path, words, fds)
        if any("spawn_main" in str(word) for word in words):
            signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGKILL)
        return pid

    monkeypatch.setattr(util, "spawnv_passfds", spawn_and_kill)
    signal.signal(signal.SIGALRM, lambda *_: pytest.fail("the parent waits for ever"))
    signal.alarm(20)
    try:
        process, connection = start_process(ends, bytes(1 << 20), name="child", daemon=True)
    finally:
        signal.alarm(0)
    process.join()
    with pytest.raises(EOFError):
        connection.recv()


PARENT = """
import time
from edgesim.base.processes import start_process

def target(connection):
    pass

if __name__ == "__mp_main__":
    # In the child, in which this stands for libraries that take their time.
    print("loads", flush=True)
    time.sleep(60)
if __name__ == "__main__":
    process, connection = start_process(target, name="child", daemon=True)
    print(process.pid, flush=True)
    time.sleep(60)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process that still loads")
def test_a_process_that_still_loads_its_libraries_ends_with_its_parent(tmp_path, is_gone):
    (tmp_path / "parent.py").write_text(PARENT)
    parent = subprocess.Popen([sys.executable, tmp_path / "parent.py"], stdout=subprocess.PIPE, text=True)
    said = {parent.stdout.readline().strip() for _ in range(2)}
    assert "loads" in said
    (child,) = map(int, said - {"loads"})
    assert not is_gone(child)
    parent.kill()
    parent.wait()
    wait_for(lambda: is_gone(child), "the child outlives its parent", limit_s=10)
