"""Running a study: its plan, its runs in several processes, its summary.

A study's folder holds ``plan.json``, a folder for each run, which records how far the run is, and ``summary.csv``.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from pathlib import Path

from rich.console import Console

from edgesim.analysis.check import run_faults
from edgesim.analysis.runs import PLAN, check_name, is_study
from edgesim.analysis.stored_measures import StoredMeasures
from edgesim.analysis.summary import write_summary
from edgesim.base.errors import EdgesimError, NoRunFinished
from edgesim.base.paths import as_path, refuse_link, system_errors
from edgesim.base.processes import INTERRUPTED, Stopped, stopped_by, uninterrupted, why_stopped_printed
from edgesim.folder.run_schema import SCHEMAS
from edgesim.folder.state import state_of
from edgesim.screen.console import PlainConsole
from edgesim.screen.progress import Display
from edgesim.selection import resolve_options
from edgesim.simulation import composition as simulation
from edgesim.simulation.feasibility import check_files
from edgesim.simulation.run_progress import extent
from edgesim.studies.dispatch import Dispatch
from edgesim.studies.executor import Ending, Executor
from edgesim.studies.ledger import fingerprint
from edgesim.studies.plan import Study, named
from edgesim.studies.plan_file import grow
from edgesim.studies.pool import ProcessPool

_NAMES_FILES = {"availability", "devices", "radio", "rounds", "topology"}

_IN_USE: ContextVar[Executor | None] = ContextVar("executor", default=None)


@contextmanager
def carried_out_by(executor: Executor | None) -> Iterator[None]:
    """Context in which ``executor`` carries out the studies that name none; None: processes of this machine."""
    token = _IN_USE.set(executor)
    try:
        yield
    finally:
        _IN_USE.reset(token)


def executor_in_use() -> Executor | None:
    """The executor set by `carried_out_by`; None: processes of this machine."""
    return _IN_USE.get()


@why_stopped_printed()
def run_study(
    study: Study,
    out: str | Path,
    jobs: int | None = None,
    console: Console | None = None,
    fresh: bool | Collection[str] = False,
    retry_failed: bool = True,
    executor: Executor | None = None,
    check: bool = False,
) -> dict[str, Ending]:
    """Run the runs that are not finished, or whose files or code have changed since; a failing run stops no other.

    ``fresh`` names the folders of finished runs that are run again; True means all. Runs that failed before are tried
    again, and those that a tuning pruned are resumed, unless ``retry_failed`` is false. Runs that the plan in the
    folder does not have are added to it. Several processes may work on the same study, each on other runs; each waits
    for the runs of the others. ``executor`` carries out the runs, processes of this machine when absent (`edgesim.Ray`
    is another one). With ``check`` the files and tables of all finished runs are checked, as by ``edgesim check``.

    Writes ``plan.json`` and ``summary.csv`` and returns how each run ended, by folder. Raises `EdgesimError`
    before anything runs if there is no run or one is given twice, the folder of a run holds another config, or a file
    that a config names does not exist; and afterwards if no run finished, or one that was checked has a fault. If no
    run could begin, nothing is left on disk. Ctrl-C, SIGTERM and SIGUSR1 save all runs, and raise `Stopped` (as far as
    the process does not end by them).
    """
    out, console = as_path(out, "out"), console or PlainConsole()
    executor = executor or executor_in_use() or ProcessPool()
    _check(study, jobs)
    with system_errors(f"{out}: cannot be a study's folder", "; choose another folder"):
        is_new = not out.exists() or not is_study(out)
    for run in study.runs:
        refuse_link(out / run.folder)
    naming = {run.config.model_dump_json(include=_NAMES_FILES): run for run in study.runs}
    for run in naming.values():
        with named(run.folder):
            check_files(run.config)
    anew = {run.folder for run in study.runs if fresh is True or (fresh and run.folder in fresh)}
    fingerprints = {run.folder: fingerprint(out / run.folder) for run in study.runs}
    states = {run.folder: state_of(out / run.folder) for run in study.runs}
    mine = [run for run in study.runs if states[run.folder].status not in ("running", "damaged")]
    why = {run.folder: simulation.why_run(out / run.folder, run.config, run.folder in anew) for run in mine}
    made = [path for path in (out, *out.parents) if not path.exists()]
    endings = {folder: Ending("finished", "finished before", reused=True) for folder in why if why[folder] is None}
    ended_as = {"damaged": "failed"} | ({} if retry_failed else {"failed": "failed", "pruned": "pruned"})
    for folder, state in states.items():
        if state.status in ended_as:
            endings[folder] = Ending(ended_as[state.status], state.reason)
    with executor.connected() if len(endings) < len(study.runs) else nullcontext():
        grow(study, out)
        reasons = Counter(reason for folder, reason in why.items() if folder not in endings)
        _print_reasons(reasons, len(study.runs), console)
        known = StoredMeasures(out, study.target)
        extents = {run.folder: extent(run.config) for run in study.runs}
        faulty: list[Path] = []
        try:
            with stopped_by(""), Display(console, study.name, extents) as display:

                def look_through(folder: Path) -> None:
                    known.prepare(folder)
                    if check and (faults := run_faults(folder)):
                        faulty.append(folder)
                        for fault in faults:
                            display.say(fault)

                dispatch = Dispatch(
                    study, out, anew, executor, jobs, display, fingerprints=fingerprints, on_finished=look_through
                )
                # Here, since starting processes takes seconds.
                for folder, ending in endings.items():
                    dispatch.end(folder, ending)
                    if check and ending.status == "finished":
                        look_through(out / folder)
                dispatch.run_all()
                endings = dispatch.endings
        except KeyboardInterrupt as interrupt:
            with uninterrupted():
                message = _stopped_message(study, out, is_new)
            raise Stopped(message, interrupt.status if isinstance(interrupt, Stopped) else INTERRUPTED) from None
        finally:
            with uninterrupted():
                began = _began(study, out)
                if is_new and not began:
                    _remove_plan(study, out, made)
    if all(ending.status != "finished" for ending in endings.values()):
        what = f"{out}: no run finished" if began else "no run could begin"
        first = next(iter(endings.values()))
        raise NoRunFinished(f"{what}; the first one: {first.reason}", *first.fields)
    with console.status("summing up"):
        write_summary(out, known)
    if reused := sum(ending.reused for ending in endings.values()):
        console.print(f"{reused} of {len(endings)} runs reused", soft_wrap=True)
    if faulty:
        raise EdgesimError(f"{out}: {len(faulty)} of {len(endings)} runs have faults; edgesim check {out} names them")
    return endings


def _check(study: Study, jobs: int | None) -> None:
    """Raises `EdgesimError` for a study that cannot be run."""
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
    for run in study.runs:
        check_name(run.folder, "the folder of a run")


def _print_reasons(reasons: Mapping[str | None, int], count: int, console: Console) -> None:
    """Print how many runs are resumed or run again, by reason."""
    for reason, times in reasons.items():
        if reason:
            again = "run again from the start"
            if reason in (simulation.UNFINISHED, simulation.SHORTER):
                again = f"resumed from their last checkpoints, or {again}"
            console.print(f"{times} of {count} runs: {reason}, {again}", soft_wrap=True)


def _stopped_message(study: Study, out: Path, is_new: bool) -> str:
    """Message about a stopped study: how many of its runs are finished, and the command that resumes it."""
    if not _began(study, out):
        return "stopped before a run began" + (f"; nothing is kept in {out}" if is_new else "")
    finished = sum(state_of(out / run.folder).status == "finished" for run in study.runs)
    return f"stopped; {finished} of {len(study.runs)} runs are finished; edgesim study run {out} resumes it"


def _began(study: Study, out: Path) -> bool:
    """Whether any run has, or had, a table."""
    tables = [f"{name}.{kind}" for name in SCHEMAS for kind in ("parquet", "arrow")]
    return any((out / run.folder / table).is_file() for run in study.runs for table in tables)


def _remove_plan(study: Study, out: Path, made: Sequence[Path]) -> None:
    """Remove the plan and the folders of a study of which no run began, and the folders ``made`` for it."""
    with suppress(OSError):
        for folder in (out / run.folder for run in study.runs):
            for name in ("config.toml", "run.json"):
                (folder / name).unlink(missing_ok=True)
            if folder.exists():
                folder.rmdir()
        (out / PLAN).unlink(missing_ok=True)
        for folder in made:
            folder.rmdir()
