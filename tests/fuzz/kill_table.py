"""What is left of runs and studies that are killed: ``python tests/fuzz/kill_table.py --kills 200 --stops 50``.

A victim is a start of edgesim, as typed, in a session of its own, which gets a signal at a random moment: half of them
between their start and their end, and half once their first rounds are on disk. Signals are SIGKILL alone, to one of
its processes or to all of them; SIGTERM or Ctrl-C, to it alone (as `kill` does) or to all (as a terminal and batch
systems do). Then its folder is looked at, and it is started again: most starts are the next victim, some go on to
their end. Prints each victim with what is wrong with what it leaves, and how many there were.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from edgesim.analysis.runs import is_study
from edgesim.folder.records import read_run, read_table
from edgesim.folder.run_schema import SCHEMAS
from edgesim.studies.ledger import read_ledger

GONE_S = 10.0
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


def start(kind: str, folder: Path) -> subprocess.Popen[bytes]:
    """Start a victim in a folder, in a new session; what it says goes to the file ``said`` there."""
    words = ["-m", "edgesim", "run", "run.toml", "--out", "out"] if kind == "run" else ["study.py"]
    with (folder / "said").open("wb") as said:
        return subprocess.Popen(
            [sys.executable, *words], cwd=folder, stdout=said, stderr=said, stdin=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip


def has_ended(victim: subprocess.Popen[bytes], until_s: float) -> bool:
    """Whether a victim has ended by that time."""
    with suppress(subprocess.TimeoutExpired):
        victim.wait(max(0.0, until_s - time.monotonic()))
    return victim.returncode is not None


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


def in_rounds(out: Path, since_s: float) -> bool:
    """Whether a run of a folder has written rounds since a time of the file system's clock."""
    for path in out.rglob("rounds.arrow"):
        with suppress(FileNotFoundError):
            now = path.stat()
            if now.st_mtime >= since_s and now.st_size > HEADER:
                return True
    return False


def begin(place: "Place") -> subprocess.Popen[bytes]:
    """Start a victim and wait until it is in its rounds, or has ended before."""
    since_s = time.time()
    victim = start(place.kind, place.folder)
    while not in_rounds(place.folder / "out", since_s) and not has_ended(victim, time.monotonic() + 0.05):
        pass
    return victim


def kill_one(place: "Place", what: str, some: random.Random) -> list[str]:
    """Start a victim, send it a signal after a time, and say what is wrong with what it leaves."""
    before, kind, folder, started_s, share = shared(), place.kind, place.folder, time.time(), some.random()
    late = some.random() < LATE
    victim = begin(place) if late else start(kind, folder)
    if not has_ended(victim, time.monotonic() + share * (place.rounds_s if late else place.lasts_s)):
        send(victim.pid, what, some)
    faults = []
    # A study goes on to its end where one of its processes was killed.
    until_s = time.monotonic() + (120.0 if what == "SIGKILL to a child" else GONE_S)
    has_ended(victim, until_s)
    while (alive := members(victim.pid)) and time.monotonic() < until_s:
        time.sleep(0.02)
    if alive:
        faults.append(f"{len(alive)} processes live on")
        for one in alive:
            os.kill(one, signal.SIGKILL)
    status, said = victim.wait(60), (folder / "said").read_text(errors="replace")
    # A user's script that loads libraries before it calls edgesim is interrupted as Python does it.
    loading = kind == "study" and said.endswith("\nKeyboardInterrupt\n") and not any(folder.rglob("plan.json"))
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
    for run in sorted(path.parent for path in (folder / "out").rglob("config.toml")):
        faults += unreadable(run)
        # A victim that was stopped before it wrote to a folder leaves it as the one before it did.
        its_own = (run / "run.json").is_file() and (run / "run.json").stat().st_mtime > started_s
        if status in (75, 130) and what in STOPS and its_own and status_of(run) == "running":
            faults.append(f"{run.name} counts as running")
    return [*faults, *wrong_ledger(folder / "out")]


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


def whole(kind: str, folder: Path) -> list[str]:
    """Start in a folder and wait for the end: what is wrong with it."""
    status = start(kind, folder).wait(600)
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
    """A folder for a kind, in which it has run once."""
    place, began_s = Place(kind, prepared(Path(tempfile.mkdtemp()))), time.monotonic()
    victim = begin(place)
    place.rounds_s = -time.monotonic()
    if victim.wait(600) != 0:
        raise SystemExit(f"{kind} does not even run: {(place.folder / 'said').read_text()}")
    place.rounds_s += time.monotonic()
    place.lasts_s = time.monotonic() - began_s
    shutil.rmtree(place.folder / "out")
    return place


def play(place: Place, what: str, once_in: int, some: random.Random) -> list[str]:
    """Kill a victim; one ``once_in`` of them is followed by a start that goes on to its end."""
    place.number += 1
    faults = kill_one(place, what, some)
    if place.number % once_in == 0:
        faults += whole(place.kind, place.folder)
    states = [json.loads(path.read_text())["status"] for path in (place.folder / "out").rglob("run.json")]
    if states and {*states} == {"finished"}:
        # The machine may be less busy than it was.
        place.lasts_s, place.rounds_s = 0.9 * place.lasts_s, 0.9 * place.rounds_s
        shutil.rmtree(place.folder / "out")
    return faults


def main() -> None:
    """Kill, and print what is left; ends with status 1 if there was a fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="number of SIGKILLs")
    parser.add_argument("--stops", type=int, default=50, help="number of SIGTERMs and Ctrl-Cs")
    parser.add_argument("--draws", type=int, default=0, help="seed of the moments")
    parser.add_argument("--next", type=int, default=20, help="of so many victims one is started again until its end")
    wanted = parser.parse_args()
    # A shell that starts this in the background leaves it deaf to Ctrl-C, and so the victims.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    some = random.Random(wanted.draws)
    signals = [KILLS[k % len(KILLS)] for k in range(wanted.kills)] + [STOPS[k % 4] for k in range(wanted.stops)]
    some.shuffle(signals)
    places: dict[str, Place] = {}
    faults = 0
    try:
        for number, what in enumerate(signals):
            # Studies take twice as long.
            kind = "study" if number % 3 == 2 else "run"
            place = places[kind] = places.get(kind) or opened(kind)
            found = play(place, what, wanted.next, some)
            faults += len(found)
            print(f"{number + 1}: {kind}, {what}: {'; '.join(found) or 'well'}", flush=True)
    finally:
        for place in places.values():
            shutil.rmtree(place.folder)
    print(f"{len(signals)} victims, {faults} faults")
    sys.exit(faults > 0)


if __name__ == "__main__":
    main()
