"""A study: runs of a plan in several processes, with a summary.

A study's folder holds one folder per run, ``study.json`` (the plan and how each run ended) and ``summary.csv``.
"""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from rich.console import Console

from edgesim import simulation
from edgesim.analysis.summary import write_summary
from edgesim.errors import EdgesimError, NoRunFinished
from edgesim.files.paths import refuse_link, system_errors
from edgesim.runs.feasibility import check_files
from edgesim.runs.processes import Alone, cores, uninterrupted
from edgesim.runs.records import write_whole
from edgesim.selection import resolve_options
from edgesim.studies.plan import Study, named
from edgesim.studies.pool import Ending, Pool
from edgesim.terminal.console import PlainConsole
from edgesim.terminal.progress import Display, expected_rounds

_NAMES_FILES = {"availability", "devices", "radio", "rounds", "topology"}


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
        with named(run.folder):
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
            pools = Pool(study, out, anew, endings, display)
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


def _write_plan(study: Study, out: Path, endings: Mapping[str, Ending]) -> None:
    runs = []
    for run in study.runs:
        ending = endings.get(run.folder, Ending("not run", ""))
        planned = {"folder": run.folder, "knobs": dict(run.knobs), "seed": run.seed}
        runs.append(planned | {"status": ending.status, "reason": ending.reason})
    plan = {"name": study.name, "target": study.target, "reference": study.reference, "runs": runs}
    write_whole(out / "study.json", json.dumps(plan, indent=2) + "\n")
