"""What is left of runs and studies that are killed: ``python tests/fuzz/kill_table.py --kills 200 --stops 50``.

A victim is a start of edgesim in a session of its own, which gets a signal at a random moment: half of them between
their start and their end, and half once their first rounds are on disk. Signals are SIGKILL alone, to one of its
processes or to all of them; SIGTERM or Ctrl-C, to it alone (as `kill` does) or to all (as a terminal and batch systems
do). Then its folder is looked at, and it is started again: most starts are the next
victim, some go on to their end. One victim of `COLD` is started as typed, as are those that go on to their
end; the others are forked from this process, which has loaded the libraries, so that they do not spend most of their
life in that. Prints each fault, and a table by kind and signal.
"""

import argparse
import atexit
import json
import os
import random
import runpy
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

import edgesim.commands.cli
import edgesim.learning.learner
import edgesim.scenario  # noqa: F401 - loaded here, once
from edgesim.analysis.runs import is_study
from edgesim.folder.records import read_run, read_table
from edgesim.folder.run_schema import SCHEMAS
from edgesim.studies.ledger import read_ledger

GONE_S = 10.0
COLD = 20
LATE = 0.5
"""Share of victims that are in their rounds."""
SHM = Path("/dev/shm")

RUN = """
seed = 1
rounds = 12
devices.count = 6
round = { payload_bits = 2e6, tmax_s = 1.0 }
data = { dataset = "own.npz", partition = "iid", samples_per_device = 4 }
learning = { back_end = "workers", workers = 2, pretrain = false, epochs = 16, batch_size = 1 }
"""
STUDY = """
import tomllib
from pathlib import Path
from edgesim.scenario import plain_errors
from edgesim import Study, grid, run_study

@plain_errors
def main():
    base = tomllib.loads(Path("run.toml").read_text())
    run_study(Study("s", grid(base, {"learning.workers": [1], "round.tmax_s": [1.0, 1.2]}, [0])), Path("out"), jobs=2)

if __name__ == "__main__":
    main()
"""
KILLS = ("SIGKILL", "SIGKILL to a child", "SIGKILL to all")
STOPS = ("SIGTERM", "Ctrl-C", "SIGTERM to all", "Ctrl-C to all")


def _header() -> int:
    sink = pa.BufferOutputStream()
    pa.ipc.new_stream(sink, SCHEMAS["rounds"].with_metadata({b"edgesim.schema_version": b"2"})).close()
    return sink.getvalue().size + 200


HEADER = _header()
"""Most bytes of a stream of rounds without a row."""


def prepared(folder: Path) -> Path:
    """A folder with what both kinds of victims read."""
    some = np.random.default_rng(0)
    pixels, classes = some.integers(0, 255, (40, 4, 4), dtype=np.uint8), np.arange(40) % 4
    np.savez(folder / "own.npz", train_images=pixels, train_labels=classes, test_images=pixels, test_labels=classes)
    (folder / "run.toml").write_text(RUN)
    (folder / "study.py").write_text(STUDY)
    return folder


def start(kind: str, folder: Path, cold: bool) -> int:
    """Start a victim in a folder, in a new session; what it says goes to the file ``said`` there."""
    words = ["edgesim", "run", "run.toml", "--out", "out"] if kind == "run" else [str(folder / "study.py")]
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        os.chdir(folder)
        said = os.open("said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(said, 1)
        os.dup2(said, 2)
        if cold:
            os.execv(sys.executable, [sys.executable, *(["-m"] if kind == "run" else []), *words])
        sys.argv = words
        code = 0
        try:
            if kind == "run":
                runpy.run_module("edgesim", run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(words[0], run_name="__main__")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1 if end.code else 0
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    except KeyboardInterrupt:
        # Before the command itself or behind it.
        os._exit(130)
    except BaseException:
        traceback.print_exc()
        os._exit(99)


def wait_for(pid: int, until_s: float) -> int | None:
    """The status of a victim, as `subprocess` gives it; None if it lives at that time."""
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= until_s:
            return None
        time.sleep(0.01)


def members(session: int) -> list[int]:
    """The processes of a session that have not ended (zombies have)."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def send(victim: int, what: str, some: random.Random) -> None:
    """Send a signal of `KILLS` or `STOPS`."""
    number = {"SIGK": signal.SIGKILL, "SIGT": signal.SIGTERM, "Ctrl": signal.SIGINT}[what[:4]]
    targets = [victim]
    if what.endswith("to all"):
        targets = members(victim)
    elif what.endswith("to a child"):
        targets = [some.choice([pid for pid in members(victim) if pid != victim] or targets)]
    for pid in targets:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def shared() -> set[str]:
    """Names of torch's and Python's shared memory and semaphores that no living process has."""
    names = {path.name for path in SHM.glob("*") if path.name.startswith(("torch_", "sem.", "psm_"))}
    for maps in Path("/proc").glob("[0-9]*/maps"):
        if names:
            try:
                text = maps.read_text()
            except OSError:
                continue
            names = {name for name in names if name not in text}
    return names


@dataclass
class Victim:
    """What became of one victim."""

    moment: str
    """How far it was: what was in its folder."""
    gone_s: float
    """Seconds until none of its processes lived any more."""
    faults: list[str] = field(default_factory=list)


def in_rounds(out: Path, since_s: float) -> bool:
    """Whether a run of a folder has written rounds since a time of the file system's clock."""
    for path in out.rglob("rounds.arrow"):
        with suppress(FileNotFoundError):
            now = path.stat()
            if now.st_mtime >= since_s and now.st_size > HEADER:
                return True
    return False


def begun(pid: int, out: Path, since_s: float) -> int | None:
    """Wait until a victim is in its rounds; its status if it ends before."""
    status = None
    while status is None and not in_rounds(out, since_s):
        status = wait_for(pid, time.monotonic() + 0.05)
    return status


def kill_one(place: "Place", what: str, cold: bool, some: random.Random) -> Victim:
    """Start a victim, send it a signal after a time, and say what is wrong with what it leaves."""
    before, kind, folder, started_s = shared(), place.kind, place.folder, time.time()
    status, share = None, some.random()
    pid = start(kind, folder, cold)
    if late := some.random() < LATE:
        status = begun(pid, folder / "out", started_s)
    after_s = share * (place.rounds_s if late else place.lasts_s)
    status = wait_for(pid, time.monotonic() + after_s) if status is None else status
    if status is None:
        send(pid, what, some)
    sent_s = time.monotonic()
    faults = []
    # A study goes on to its end where one of its processes was killed.
    until_s = sent_s + (120.0 if what == "SIGKILL to a child" else GONE_S)
    status = wait_for(pid, until_s) if status is None else status
    while (alive := members(pid)) and time.monotonic() < until_s:
        time.sleep(0.02)
    gone_s = time.monotonic() - sent_s
    if alive:
        faults.append(f"{len(alive)} processes live after {until_s - sent_s:g} s")
        for one in alive:
            os.kill(one, signal.SIGKILL)
        status = wait_for(pid, time.monotonic() + 60) if status is None else status
    said = (folder / "said").read_text(errors="replace")
    # A user's script that loads libraries before it calls edgesim is interrupted as Python does it.
    loading = cold and kind == "study" and said.endswith("\nKeyboardInterrupt\n") and not any(folder.rglob("plan.json"))
    # Python complains of a process that is killed while it starts another one.
    starting = "SIGKILL" in what and said.count("Traceback") == said.count("EOFError: Ran out of input")
    if "Traceback" in said and not loading and not starting:
        faults.append(f"traceback: {said}")
    allowed = {0, -signal.SIGKILL} if what in ("SIGKILL", "SIGKILL to all") else {0, 1, 2, -signal.SIGKILL}
    # While the libraries load SIGTERM ends a process by itself, and Ctrl-C may let Python end as by SIGINT.
    # SIGTERM ends a run within its rounds with 75.
    allowed = allowed if what in KILLS else {0, 75, 130, -signal.SIGTERM, -signal.SIGINT}
    if status not in allowed:
        faults.append(f"status {status}: {said.strip().splitlines()[-1:]}")
    # What others leave between making it and using it, or at their end, goes away.
    while (left := shared() - before) and time.monotonic() < until_s:
        time.sleep(0.1)
    if left:
        faults.append(f"left in {SHM}: {sorted(left)}")
    runs = sorted(path.parent for path in (folder / "out").rglob("config.toml"))
    for run in runs:
        faults += unreadable(run)
        # A victim that was stopped before it wrote to a folder leaves it as the one before it did.
        its_own = (run / "run.json").is_file() and (run / "run.json").stat().st_mtime > started_s
        if status in (75, 130) and what in STOPS and its_own and status_of(run) == "running":
            faults.append(f"{run.name} is 'running' after status {status}")
    faults += wrong_ledger(folder / "out")
    return Victim(moment_of(folder / "out", started_s), gone_s, faults)


def wrong_ledger(out: Path) -> Iterator[str]:
    """What is wrong with what a study, whose processes are gone, says of its runs."""
    if not is_study(out):
        return
    try:
        ledger = read_ledger(out)
    except Exception as error:
        yield f"the ledger cannot be read: {error!r}"
        return
    for name, state in ledger.items():
        told = status_of(out / name)
        if state.status in ("running", "damaged") or (state.status == "finished") != (told == "finished"):
            yield f"the ledger has {name} as {state.status!r}, whose run is {told!r}"


def status_of(run: Path) -> str:
    """The status of a run, empty if it has none yet."""
    return str(read_run(run)["status"]) if (run / "run.json").is_file() else ""


def unreadable(run: Path) -> Iterator[str]:
    """What is wrong with the tables of a run that was broken off: every round in ``rounds`` must be there, whole."""
    if not any((run / f"rounds.{suffix}").is_file() for suffix in ("arrow", "parquet")):
        return
    try:
        rounds, activities = read_table(run, "rounds"), read_table(run, "activities")
    except Exception as error:
        yield f"{run.name} cannot be read: {error!r}"
        return
    if rounds["round"].tolist() != list(range(1, len(rounds) + 1)):
        yield f"{run.name} has the rounds {rounds['round'].tolist()}"
    sent = activities[activities["activity"] == "compute"].groupby("round").size()
    for number, selected in zip(rounds["round"], rounds["selected"], strict=True):
        if sent.get(number, 0) != selected:
            yield f"{run.name}, round {number}: {sent.get(number, 0)} devices computed of {selected} selected"


def moment_of(out: Path, started_s: float) -> str:
    """How far a run or study was that started at a time."""
    if not any(out.rglob("run.json")):
        return "before the run"
    states = [json.loads(path.read_text())["status"] for path in out.rglob("run.json")]
    if all(state == "finished" for state in states):
        return "after its end"
    rows = [
        len(read_table(path.parent, "rounds")) for path in out.rglob("run.json") if path.stat().st_mtime > started_s
    ]
    return "in its rounds" if any(rows) else "at its beginning"


def whole(kind: str, folder: Path) -> list[str]:
    """Start in a folder, as typed, and wait for the end: what is wrong with it."""
    status = wait_for(start(kind, folder, cold=True), time.monotonic() + 600)
    said = (folder / "said").read_text(errors="replace")
    faults = [f"the next start ended with {status}: {said.strip().splitlines()[-1:]}"] if status != 0 else []
    for run in (path.parent for path in (folder / "out").rglob("config.toml")):
        faults += unreadable(run)
        if status_of(run) != "finished" or len(read_table(run, "rounds")) != 12:
            faults.append(f"the next start left {run.name} {status_of(run)!r}")
        if any(run.glob("*.part")) or any(run.glob("*.arrow")):
            faults.append(f"the next start left {sorted(path.name for path in run.iterdir())}")
    return faults


@dataclass
class Place:
    """The folder of all victims of a kind."""

    kind: str
    folder: Path
    lasts_s: float = 0.0
    """Seconds within which most victims end if nobody kills them."""
    rounds_s: float = 0.0
    """Of these, seconds after their first rounds are on disk."""
    number: int = 0


def opened(kind: str) -> Place:
    """A folder for a kind, in which it runs."""
    # No `TemporaryDirectory`, which the victims that are forked would remove at their end.
    place = Place(kind, prepared(Path(tempfile.mkdtemp())))
    began_s, since_s = time.monotonic(), time.time()
    pid = start(kind, place.folder, cold=False)
    status = begun(pid, place.folder / "out", since_s)
    place.rounds_s = -time.monotonic()
    if status is not None or wait_for(pid, began_s + 600) != 0:
        raise SystemExit(f"{kind} does not even run: {(place.folder / 'said').read_text()}")
    place.rounds_s += time.monotonic()
    place.lasts_s = time.monotonic() - began_s
    return place


def play(place: Place, what: str, once_in: int, some: random.Random) -> Victim:
    """Kill a victim; one ``once_in`` of them is followed by a start that goes on to its end."""
    place.number += 1
    if place.number == 1:
        shutil.rmtree(place.folder / "out")
    victim = kill_one(place, what, place.number % COLD == 0, some)
    last = place.number % once_in == 0
    if last:
        victim.faults += whole(place.kind, place.folder)
    if victim.moment == "after its end":
        # The machine is less busy than it was.
        place.lasts_s, place.rounds_s = 0.9 * place.lasts_s, 0.9 * place.rounds_s
    if last or victim.moment == "after its end":
        shutil.rmtree(place.folder / "out", ignore_errors=True)
    return victim


def main() -> None:
    """Kill, and print the table, also when Ctrl-C ends that; ends with status 1 if there was a fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="number of SIGKILLs")
    parser.add_argument("--stops", type=int, default=50, help="number of SIGTERMs and Ctrl-Cs")
    parser.add_argument("--draws", type=int, default=0, help="seed of the moments")
    parser.add_argument("--next", type=int, default=20, help="of so many victims one is started again until its end")
    wanted = parser.parse_args()
    # A shell that starts this in the background leaves it deaf to Ctrl-C, and so the victims.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    some = random.Random(wanted.draws)
    table: dict[tuple[str, str], Counter[str]] = {}
    slowest: dict[tuple[str, str], float] = {}
    signals = [KILLS[k % len(KILLS)] for k in range(wanted.kills)] + [STOPS[k % 4] for k in range(wanted.stops)]
    some.shuffle(signals)
    places: dict[str, Place] = {}
    try:
        for number, what in enumerate(signals):
            # Studies take twice as long.
            kind = "study" if number % 3 == 2 else "run"
            place = places[kind] = places.get(kind) or opened(kind)
            victim = play(place, what, wanted.next, some)
            counts = table.setdefault((place.kind, what), Counter())
            counts.update(["victims", victim.moment])
            counts["faults"] += len(victim.faults)
            slowest[place.kind, what] = max(slowest.get((place.kind, what), 0.0), victim.gone_s)
            print(number + 1, place.kind, what, victim.moment, f"{victim.gone_s:.1f} s", file=sys.stderr, flush=True)
            for fault in victim.faults:
                print(f"{place.kind}, {what}, {victim.moment}: {fault}", flush=True)
    finally:
        for place in places.values():
            shutil.rmtree(place.folder)
        show(table, slowest)
    sys.exit(any(counts["faults"] for counts in table.values()))


def show(table: dict[tuple[str, str], Counter[str]], slowest: dict[tuple[str, str], float]) -> None:
    """Print the table in Markdown."""
    columns = ["victims", "before the run", "at its beginning", "in its rounds", "after its end", "faults"]
    print("| victim | signal | " + " | ".join(columns) + " | gone after s |")
    print("| --- " * (len(columns) + 3) + "|")
    for (kind, what), counts in sorted(table.items()):
        cells = " | ".join(str(counts[column]) for column in columns)
        print(f"| {kind} | {what} | {cells} | {slowest[kind, what]:.1f} |")


if __name__ == "__main__":
    main()
