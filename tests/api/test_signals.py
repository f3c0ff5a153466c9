"""Signals to a Python script that runs studies and runs without the command line."""

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from waiting import wait_for

import edgesim
from edgesim.base.processes import Stopped, asked_to_end, stopped_by
from edgesim.folder import checkpoints
from edgesim.studies.ledger import read_ledger

SCRIPT = """
import edgesim

VALUES = {{
    "rounds": 1000000,
    "devices": {{"count": 5}},
    "round": {{"payload_bits": 4e6, "tmax_s": 0.8}},
    "learning": {{"training": "none"}},
}}

if __name__ == "__main__":
    {call}
"""
CALLS = {
    "study": 'edgesim.study(VALUES, seeds=2, out="study", jobs=1, quiet=True)',
    "run": 'edgesim.run(VALUES, "study/s0", quiet=True)',
}


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "number"), [("run", signal.SIGTERM), ("study", signal.SIGINT)])
def test_a_script_that_is_asked_to_end_saves_its_runs_and_ends_with_the_status_that_says_so(kind, number, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT.format(call=CALLS[kind]))
    process = subprocess.Popen(
        [sys.executable, "script.py"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    stream = tmp_path / "study/s0/rounds.arrow"
    wait_for(lambda: stream.is_file() and stream.stat().st_size > 10_000, "the run never began", process)
    process.send_signal(number)
    _, said = process.communicate(timeout=120)
    assert process.returncode == (130 if number == signal.SIGINT else 75), said
    assert [line.startswith("stopped; ") for line in said.splitlines()] == [True]
    assert checkpoints.saved_round(tmp_path / "study/s0") > 0
    if kind == "study":
        assert {name: state.status for name, state in read_ledger(tmp_path / "study").items()} == {
            "s0": "stopped",
            "s1": "planned",
        }


@pytest.mark.parametrize(
    ("kind", "where", "words"),
    [
        ("run", "edgesim.simulation.composition.input_digests", "the first round; nothing is kept in out"),
        ("study", "edgesim.studies.dispatch.Dispatch.run_all", "a run began; nothing is kept in out"),
    ],
)
def test_what_is_stopped_before_anything_is_written_says_that_nothing_is_kept(
    kind, where, words, tmp_path, monkeypatch, capsys
):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(where, interrupted)
    begin = {"run": edgesim.run, "study": edgesim.study}[kind]
    with pytest.raises(Stopped) as stopped:
        begin({"rounds": 1, "learning": {"training": "none"}, "round": {"payload_bits": 1e6}}, out="out", quiet=True)
    assert stopped.value.status == 130
    assert capsys.readouterr().err == f"stopped before {words}\n"
    assert [*tmp_path.iterdir()] == []


@pytest.fixture
def deaf() -> Iterator[None]:
    """This process with the system's own handlers of SIGTERM, as any Python script has them."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


def test_a_signal_that_would_end_the_process_is_heard_and_its_handler_comes_back(deaf):
    with pytest.raises(Stopped) as stopped, stopped_by("saved"):
        signal.raise_signal(signal.SIGTERM)
    assert (str(stopped.value), stopped.value.status, stopped.value.code) == ("saved", 75, 75)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    with pytest.raises(Stopped), asked_to_end() as asked:  # noqa: PT012 - what is asked is looked at within it
        signal.raise_signal(signal.SIGTERM)
        assert asked.signal == signal.SIGTERM
        raise Stopped("", asked.status)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_signal_that_the_process_ignores_stays_ignored():
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with stopped_by(""), asked_to_end() as asked:
            signal.raise_signal(signal.SIGTERM)
            assert asked.signal is None
    finally:
        signal.signal(signal.SIGTERM, before)
