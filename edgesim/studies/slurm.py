"""A study as an array job of SLURM: tasks share the runs out by leases, and are requeued when they are stopped."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from edgesim.base.errors import EdgesimError
from edgesim.base.paths import own_folder, system_errors
from edgesim.base.processes import AGAIN
from edgesim.folder.records import write_whole
from edgesim.studies.ledger import read_ledger

_WARNING_S = 120
"""Seconds before its time limit at which SLURM asks a task to save its run."""
_SUBMIT_S = 60.0
"""Seconds that `sbatch` may take: it waits where its server is down."""
_OURS = {
    "--array": "tasks says it",
    "-a": "tasks says it",
    "--chdir": "it is the current folder",
    "-D": "it is the current folder",
    "--no-requeue": "stopped tasks are to come back",
    "--wrap": "the script is there already",
}
_SCRIPT = """#!/bin/bash
# {tasks} processes for the study below, as an array job of SLURM: sbatch {script}
#SBATCH --job-name={name}
#SBATCH --array=1-{tasks}
#SBATCH --chdir={here}
#SBATCH --output={output}
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@{warning_s}
{options}
# USR1 comes before the time limit. SLURM sends TERM to what it cancels, which is to stay so, or preempts, which it
# requeues itself.
again=yes
trap 'heard=yes; kill -USR1 "$!"' USR1
trap 'heard=yes; again=no; kill -TERM "$!"' TERM

{python} -m edgesim study run {folder} --jobs 1 &

# A signal ends the shell's waiting, but not the study at once.
while heard=no; wait "$!"; status=$?; [ "$heard" = yes ]; do :; done
if [ "$status" = {stopped} ] && [ "$again" = yes ]; then
    scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_${{SLURM_ARRAY_TASK_ID}}"
fi
exit "$status"
"""


def write_script(folder: Path, tasks: int, options: str = "") -> Path:
    """Write ``slurm/array.sh`` into a study's folder: at most ``tasks`` tasks, no more than there are runs to do.

    Each is ``edgesim study run`` by this interpreter, from the current folder; leases share the runs out among them.
    ``options`` are further ones of ``sbatch``, as typed. Tasks write to ``slurm/JOB_TASK.txt``. Raises `EdgesimError`
    where the folder is no study's or nothing is left to do, and for options and paths that no ``#SBATCH`` line takes.
    """
    if tasks < 1:
        raise EdgesimError(f"tasks: expected 1 or more (got {tasks})")
    lines = _option_lines(options)
    left = _left(folder)
    folder = folder.resolve()
    home = folder / "slurm"
    script = home / "array.sh"
    text = _SCRIPT.format(
        tasks=min(tasks, left),
        script=_quoted(script),
        name=re.sub(r"[^\w.-]", "-", folder.name),
        here=_quoted(Path.cwd()),
        output=_quoted(Path(str(home).replace("%", "%%"), "%A_%a.txt")),
        warning_s=_WARNING_S,
        options="".join(f"#SBATCH {line}\n" for line in lines),
        python=_quoted(Path(sys.executable)),
        folder=_quoted(folder),
        stopped=AGAIN,
    )
    with system_errors(f"{home}: cannot be written"):
        own_folder(home)
        write_whole(script, text)
    return script


def submit(script: Path) -> str | None:
    """Give a script to ``sbatch`` and return what it says; None where there is none. Raises `EdgesimError`."""
    sbatch = shutil.which("sbatch")
    if sbatch is None:
        return None
    try:
        done = subprocess.run(
            [sbatch, str(script)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SUBMIT_S
        )
    except subprocess.TimeoutExpired:
        raise EdgesimError(f"{script}: sbatch has not answered for {_SUBMIT_S:g} s; submit it by hand") from None
    if done.returncode != 0:
        why = " ".join(done.stderr.split()) or f"it ended with status {done.returncode}"
        raise EdgesimError(f"{script}: sbatch refused it: {why}")
    return done.stdout.strip()


def _left(folder: Path) -> int:
    """Number of runs of a study that are planned, stopped or lost; raises `EdgesimError` if there is none."""
    statuses = [state.status for state in read_ledger(folder).values()]
    left = sum(status in ("planned", "stopped", "lost") for status in statuses)
    if left:
        return left
    if all(status == "finished" for status in statuses):
        raise EdgesimError(f"{folder}: all {len(statuses)} runs are finished; nothing is left to submit")
    raise EdgesimError(
        f"{folder}: nothing is left to submit: all runs are finished, running, failed or damaged; "
        f"edgesim study status {folder} says which"
    )


def _option_lines(typed: str) -> list[str]:
    """Options of ``sbatch``, one a line with its value; raises `EdgesimError`."""
    try:
        words = shlex.split(typed)
    except ValueError as error:
        raise EdgesimError(f"sbatch {typed!r}: {str(error).lower()}") from None
    lines: list[str] = []
    for word in words:
        _check(word, f"sbatch {typed!r}")
        name = word.partition("=")[0]
        if word.startswith("-"):
            short = name if name.startswith("--") else name[:2]
            if short in _OURS:
                raise EdgesimError(f"sbatch {word}: the script sets this itself; {_OURS[short]}")
            value = word.partition("=")[2]
            lines.append(f"{name}={shlex.quote(value)}" if "=" in word else shlex.quote(word))
        elif lines and " " not in lines[-1] and "=" not in lines[-1]:
            lines[-1] += f" {shlex.quote(word)}"
        else:
            raise EdgesimError(f"sbatch {typed!r}: expected options such as --time=2:00:00 (got {word!r})")
    return lines


def _quoted(path: Path) -> str:
    return shlex.quote(_check(str(path), f"{path}"))


def _check(text: str, what: str) -> str:
    """A text that a ``#SBATCH`` line can hold; raises `EdgesimError` for others."""
    if "\\" in text or not text.isprintable():
        raise EdgesimError(f"{what}: backslashes and control characters cannot stand in a script for sbatch")
    return text
