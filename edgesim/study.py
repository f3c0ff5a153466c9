"""A study: a grid of runs (knobs x seeds) that run in several processes, with a summary.

A study's folder holds one folder per run, ``study.json`` (the plan and how each run ended) and ``summary.csv``.
"""

import itertools
import json
import os
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from edgesim import simulation
from edgesim.analysis.runs import KNOB_NAMES
from edgesim.analysis.summary import write_summary
from edgesim.config import RunConfig
from edgesim.config_file import parse_with, set_key, set_value
from edgesim.errors import EdgesimError, ForeignOption, NoRunFinished
from edgesim.files.paths import refuse_link, system_errors
from edgesim.runs.feasibility import check_files
from edgesim.runs.processes import Alone, cores, hear_sigterm, let_in, start_process, uninterrupted
from edgesim.runs.records import write_whole
from edgesim.selection import resolve_options
from edgesim.terminal.console import PlainConsole
from edgesim.terminal.progress import Display, Listener, Message, expected_rounds

Knob = str | float | bool

_NAMES_FILES = {"availability", "devices", "radio", "rounds", "topology"}

_PATIENCE_S = 8.0
"""How long the runs of a study that is stopped have for closing their tables, before their processes are killed."""


@dataclass(frozen=True)
class PlannedRun:
    """One cell of the grid with one seed."""

    folder: str
    knobs: Mapping[str, Knob]
    seed: int
    config: RunConfig


@dataclass(frozen=True)
class Study:
    """A named list of runs, their target accuracy, and the policy that the others are compared with."""

    name: str
    runs: Sequence[PlannedRun]
    target: float | None = None
    """Accuracy of rounds-to-target; None for a timing-only study."""
    reference: str = "random"


@dataclass(frozen=True)
class Ending:
    """How one run of a study ended."""

    status: str
    reason: str
    reused: bool = False
    """Whether the run was finished before and not run again."""
    fields: tuple[str, ...] = ()
    """``fields`` of the `EdgesimError` with which the run ended."""


def grid(
    base: Mapping[str, Any],
    axes: Mapping[str, Sequence[Knob | None]],
    seeds: Sequence[int],
    overrides: Sequence[str] = (),
    labels: Mapping[str, Knob] | None = None,
) -> list[PlannedRun]:
    """Runs of every combination of the axes (``section.key`` -> values) with every seed, seeds innermost.

    ``base`` is a nested mapping as in a config file. The values of an axis are texts, numbers or booleans, or None for
    a run without the key. A run's folder is named by its knobs and seed, such as ``fedteddi-tmax0.8-known-s3``;
    without axes by the seed alone. ``overrides`` are further ``section.key=value``, for keys that do not vary.
    ``labels`` are further knobs, the same in all runs, that name settings of ``base`` which no axis can hold (several
    keys at once, or a list). Raises `EdgesimError` if a combination is not a valid config, or an axis has no values.
    """
    for override in overrides:
        key = override.partition("=")[0].strip()
        if key in axes or key == "seed":
            raise EdgesimError(f"--set {override}: the study itself varies {key}", key)
    labels = labels or {}
    knob_names = _knobs(axes, labels)
    if not isinstance(seeds, Iterable) or len(seeds) == 0:
        raise EdgesimError(f"seeds: expected a list of at least one seed, such as range(3) (got {seeds!r})")
    runs: list[PlannedRun] = []
    for values in itertools.product(*(_values(key, values) for key, values in axes.items())):
        varied = zip(knob_names, values, strict=True)
        knobs = {**labels, **{name: value for name, value in varied if value is not None}}
        name = "".join(f"{_label(knob, value)}-" for knob, value in knobs.items())
        for seed in map(_own, seeds):
            cell = dict(zip(axes, values, strict=True)) | {"seed": seed}
            folder = f"{name}s{seed}"
            config = parse_with(partial(_nested, base, cell), overrides, f"run {folder}")
            with _named(folder):
                runs.append(PlannedRun(folder, knobs, seed, simulation.complete(config)))
    return runs


@contextmanager
def _named(folder: str) -> Iterator[None]:
    """Errors within it name the run of a study that they are about."""
    try:
        yield
    except EdgesimError as error:
        remedy = ", or plan its runs as a grid of their own" if isinstance(error, ForeignOption) else ""
        raise EdgesimError(f"run {folder}: {error}{remedy}", *error.fields) from None


def _values(key: str, values: Sequence[Knob | None]) -> list[Knob | None]:
    """The values of an axis; raises `EdgesimError` if there is none, or one that a table could not show."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise EdgesimError(f"axis {key}: expected a list of values (got {values!r})", key)
    found = [_own(value) for value in values]
    if not found:
        raise EdgesimError(f"axis {key}: expected at least one value", key)
    for value in found:
        if not isinstance(value, str | int | float | None):
            raise EdgesimError(
                f"axis {key}: expected texts, numbers, booleans or None (got {value!r}); give it in the base of a grid "
                "of its own, named by labels",
                key,
            )
    return found


def _own(value: Any) -> Any:
    """A NumPy number as a Python number, which a plan and a config can hold; other values as they are."""
    return value.item() if isinstance(value, np.generic) else value


def _nested(base: Mapping[str, Any], cell: Mapping[str, Knob | None], overrides: Sequence[str]) -> dict[str, Any]:
    """The config of one cell as nested mappings, as in a file."""
    nested: dict[str, Any] = json.loads(json.dumps(base))
    for override in overrides:
        set_value(nested, override)
    for key, value in cell.items():
        set_key(nested, key, value)
    return nested


def _knobs(keys: Iterable[str], taken: Iterable[str]) -> list[str]:
    """Names of knobs: what `KNOB_NAMES` says or the last part of the key, or the whole key if names would be equal."""
    names = {key: KNOB_NAMES.get(key, key.rpartition(".")[2]) for key in keys}
    times = Counter([*names.values(), *taken])
    return [name if times[name] == 1 else key for key, name in names.items()]


def _label(knob: str, value: Knob) -> str:
    """Part of a folder's name for a knob: a text alone; a number after the knob's name without its unit; true or false
    after the knob's whole name."""
    if isinstance(value, str):
        return value.replace("/", "_")
    if isinstance(value, bool):
        return f"{knob.replace('_', '')}-{str(value).lower()}"
    return f"{knob.rsplit('_', 1)[0].replace('_', '')}{value:.12g}"


def run_study(
    study: Study,
    out: Path,
    jobs: int | None = None,
    console: Console | None = None,
    fresh: bool | Collection[str] = False,
) -> dict[str, Ending]:
    """Run the runs that are not finished, or whose files or code have changed since; a failing run stops no other.

    ``fresh`` names the folders of finished runs that are run again; True means all.

    Writes ``study.json`` and ``summary.csv`` and returns how each run ended, by folder. Raises `EdgesimError`
    before anything runs if there is no run or one is given twice, the folder of a run holds another config, a file that
    a config names does not exist, or another process is writing there; and afterwards if no run finished. If no run
    could begin, nothing is left on disk.
    """
    console = console or PlainConsole()
    resolve_options(study.reference, {})
    if study.target is not None and not 0 < study.target <= 1:
        raise EdgesimError(f"target: expected an accuracy above 0 and at most 1 (got {study.target!r})")
    if not study.runs:
        raise EdgesimError(f"study {study.name!r} has no runs")
    if jobs is not None and jobs < 1:
        raise EdgesimError(f"jobs: expected 1 or more, or None for one process per core (got {jobs!r})")
    folder, times = Counter(run.folder for run in study.runs).most_common(1)[0]
    if times > 1:
        raise EdgesimError(f"run {folder} is in the study twice: give every value and seed once")
    _check_folder(study, out)
    for run in study.runs:
        refuse_link(out / run.folder)
    naming = {run.config.model_dump_json(include=_NAMES_FILES): run for run in study.runs}
    for run in naming.values():
        with _named(run.folder):
            check_files(run.config)
    anew = {run.folder for run in study.runs if fresh is True or (fresh and run.folder in fresh)}
    why = {run.folder: simulation.why_run(out / run.folder, run.config, run.folder in anew) for run in study.runs}
    reasons = Counter(why.values())
    made = [path for path in (out, *out.parents) if not path.exists()]
    with system_errors(f"{out}: cannot be made a study's folder", "; choose another --out"):
        out.mkdir(parents=True, exist_ok=True)
    alone = Alone(out)
    for reason, count in reasons.items():
        if reason:
            again = "run again from the start"
            if reason == simulation.UNFINISHED:
                again = f"gone on with behind their last checkpoints, or {again}"
            console.print(f"{count} of {len(study.runs)} runs: {reason}, {again}", highlight=False, soft_wrap=True)
    endings: dict[str, Ending] = {}
    rounds = {run.folder: expected_rounds(run.config) for run in study.runs}
    try:
        with Display(console, study.name, rounds) as display:
            # Reported here, since starting processes that would only find this out takes seconds.
            pools = _Pools(study, out, anew, endings, display)
            for reused in (planned.folder for planned in study.runs if why[planned.folder] is None):
                pools.end(reused, Ending("finished", "finished before", reused=True))
            pools.run_all(jobs or cores())
    finally:
        began = any((out / run.folder).exists() for run in study.runs)
        try:
            with uninterrupted():
                if began:
                    _write_plan(study, out, endings)
                else:
                    _remove_empty(made)
        finally:
            alone.release()
    if all(ending.status != "finished" for ending in endings.values()):
        what = f"{out}: no run finished" if began else "no run could begin"
        first = next(iter(endings.values()))
        raise NoRunFinished(f"{what}; the first one: {first.reason}", *first.fields)
    with console.status("summing up"):
        write_summary(out)
    _tell_reused(out, endings, console)
    return endings


def _tell_reused(out: Path, endings: Mapping[str, Ending], console: Console) -> None:
    """Print how many runs were reused, and how many of them have no hashes of the code that they ran."""
    reused = [folder for folder, ending in endings.items() if ending.reused]
    if not reused:
        return
    old = sum(not simulation.notes_code(out / folder) for folder in reused)
    note = f"; {old} {simulation.OLDER}" if old else ""
    console.print(f"{len(reused)} of {len(endings)} runs reused{note}", highlight=False, soft_wrap=True)


def _remove_empty(folders: Sequence[Path]) -> None:
    """Remove folders, the innermost first, up to one that is not empty."""
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def _check_folder(study: Study, out: Path) -> None:
    """Refuse a folder that holds a run, another study or something else; raises `EdgesimError`."""
    with system_errors(f"{out}: cannot be a study's folder", "; choose another --out"):
        if not out.exists() or (out.is_dir() and not any(out.iterdir())):
            return
    ours = {*study.runs[0].knobs}
    try:
        plan = json.loads((out / "study.json").read_text())
        theirs = {*plan["runs"][0]["knobs"]}
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        # A study that was killed before it wrote its plan has left run folders only.
        if out.is_dir() and all((out / path.name / "config.toml").is_file() for path in out.iterdir()):
            return
        raise EdgesimError(f"{out}: is not empty and not a study's folder; choose another --out") from None
    if ours != theirs:
        raise EdgesimError(
            f"{out}: holds another study, over {', '.join(sorted(theirs))}; choose another --out or remove it"
        )


@dataclass(frozen=True)
class _Pools:
    """Runs a study in pools of processes and notes in ``endings`` how each run ended."""

    study: Study
    out: Path
    anew: Collection[str]
    """Folders of finished runs that are run again."""
    endings: dict[str, Ending]
    display: Display

    def end(self, folder: str, ending: Ending) -> None:
        """Note and show that a run has ended."""
        self.endings[folder] = ending
        self.display.ended(folder, ending.status, ending.reason)

    def run_all(self, jobs: int) -> None:
        """Run all runs that have not ended, ``jobs`` at a time."""
        pending = [run for run in self.study.runs if run.folder not in self.endings]
        # Perhaps there was too little memory: each run whose process was killed is tried once more, alone.
        for run in self._run_pool(pending, jobs) if pending else []:
            if self._run_pool([run], 1):
                self.end(run.folder, Ending("failed", "its process was killed (out of memory?)"))

    def _run_pool(self, runs: Sequence[PlannedRun], jobs: int) -> list[PlannedRun]:
        """Run in several processes; returns the runs whose process was killed.

        Raises `EdgesimError` if a process ends before any run has begun.
        """
        waiting, killed = deque(runs), []
        share = max(1, cores() // min(jobs, len(runs)))
        processes: dict[Connection, BaseProcess] = {}
        at_work: dict[Connection, PlannedRun] = {}

        def give(connection: Connection) -> None:
            run = at_work[connection] = waiting.popleft()
            with suppress(OSError):
                # A process that has ended is noticed when it is listened to.
                connection.send((run.config, self.out / run.folder, self.study.target, share, run.folder in self.anew))

        def listen(connection: Connection) -> bool:
            """Take one message; returns whether the process lives."""
            try:
                said = connection.recv()
            except (EOFError, OSError):
                killed.append(at_work.pop(connection))
                return False
            if isinstance(said, Message):
                self.display.show(said)
            else:
                self.end(at_work.pop(connection).folder, said)
            return True

        def run_them() -> None:
            while waiting or at_work:
                while waiting and len(at_work) < jobs:
                    idle = [connection for connection in processes if connection not in at_work]
                    if not idle:
                        with uninterrupted():
                            process, connection = start_process(_serve, name="edgesim study", daemon=False)
                            processes[connection] = process
                        idle = [connection]
                    give(idle[0])
                for connection in _heard(at_work, None):
                    if not listen(connection):
                        process = processes.pop(connection)
                        process.join(_PATIENCE_S)
                        process.kill()
                        connection.close()
                        if not any(self.display.has_started(run.folder) for run in runs):
                            raise EdgesimError(
                                "the worker processes of the study ended before their first run; call run_study under "
                                "if __name__ == '__main__', and check that there is memory left"
                            )

        # A second Ctrl-C waits until the runs have closed their tables.
        with uninterrupted() as held:
            try:
                with let_in(held):
                    run_them()
            except KeyboardInterrupt:
                for connection, run in at_work.items():
                    begun = self.display.has_started(run.folder)
                    (processes[connection].terminate if begun else processes[connection].kill)()
                until_s = time.monotonic() + _PATIENCE_S
                while at_work and (left_s := until_s - time.monotonic()) > 0:
                    for connection in _heard(at_work, left_s):
                        listen(connection)
                raise
            finally:
                for connection, process in processes.items():
                    process.kill()
                    process.join()
                    connection.close()
        return killed


def _heard(connections: Iterable[Connection], timeout_s: float | None) -> list[Connection]:
    """Connections through which something came, or whose process has ended; waits for the first of them."""
    return [ready for ready in wait(list(connections), timeout_s) if isinstance(ready, Connection)]


def _serve(connection: Connection) -> None:
    """Run what comes through a connection, one run after another, until it is closed or one is interrupted."""

    def send(message: Message | Ending) -> None:
        try:
            connection.send(message)
        except OSError:
            # The parent has gone.
            os._exit(1)

    with suppress(EOFError, OSError, KeyboardInterrupt):
        hear_sigterm()
        status = ""
        while status != "interrupted":
            config, folder, target, share, fresh = connection.recv()
            ending = _run_one(config, folder, target, share, fresh, send)
            status = ending.status
            with uninterrupted():
                send(ending)


def _run_one(
    config: RunConfig, folder: Path, target: float | None, share: int, fresh: bool, send: Callable[[Message], None]
) -> Ending:
    """One run on its share of cores, whose news are sent; every error becomes an ending, so that the others finish."""
    listener = Listener(folder.name, config, send)
    try:
        listener.on_start("start")
        result = simulation.run(
            config, folder, listener.on_round, listener.on_start, target, share, listener.on_note, fresh
        )
    except EdgesimError as error:
        return Ending("failed", str(error), fields=error.fields)
    except KeyboardInterrupt:
        return Ending("interrupted", "stopped by Ctrl-C or SIGTERM")
    except Exception as error:
        traceback.print_exc()
        return Ending("failed", f"an error in the program: {error!r}")
    if result.status != "finished":
        return Ending(result.status, result.reason)
    return Ending("finished", result.reason, result.reused)


def _write_plan(study: Study, out: Path, endings: Mapping[str, Ending]) -> None:
    runs = []
    for run in study.runs:
        ending = endings.get(run.folder, Ending("not run", ""))
        planned = {"folder": run.folder, "knobs": dict(run.knobs), "seed": run.seed}
        runs.append(planned | {"status": ending.status, "reason": ending.reason})
    plan = {"name": study.name, "target": study.target, "reference": study.reference, "runs": runs}
    write_whole(out / "study.json", json.dumps(plan, indent=2) + "\n")
