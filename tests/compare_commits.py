"""Compares what every scenario's ``--quick`` and every file of ``tests/compared`` leave at two commits, value by value.

    python tests/compare_commits.py BASE [OTHER] --keep runs/compared

Each commit runs its own scripts and files on its own code, with the Python that runs this and a cache of its own. All
tables but ``timing``, all models and all CSV files must hold the same values in the same order: floating-point numbers
to the last bit, NaN and null each equal to itself. Configs and checkpoints are not compared, the names of run folders
are. One file of each protocol is run once more, killed at its first checkpoint and resumed, and its finished run is
forked. Ends with status 1 where anything differs or fails.
"""

import csv
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated

import pyarrow.parquet as pq
import typer
from safetensors.numpy import load_file

COMPARED = "tests/compared"
WALL_TIMES = {"us_per_device", "mean_ms", "p90_ms"}
"""Columns of CSV files that are measured, so that no two runs agree."""

RUN_SCRIPT = """
import runpy, sys
from pathlib import Path
from matplotlib.figure import Figure
Figure.savefig = lambda figure, path, **how: Path(path).write_bytes(b"")
sys.argv = sys.argv[1:]
sys.path.insert(0, str(Path(sys.argv[0]).parent))
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Figures are not compared, and to write them takes a third of the time."""

RESTARTED = {"fedprox-synchronous.toml": 3, "fedprox-buffered.toml": 6, "fedprox-asynchronous.toml": 15}
"""A file of each protocol, of which a run is killed and resumed and another is forked, and the round of the fork."""

RESTART = """
import subprocess, sys, time
from pathlib import Path
file, folder, at_round = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
edgesim = [sys.executable, "-m", "edgesim"]
killed = folder / "killed"
run = subprocess.Popen([*edgesim, "run", file, "--out", str(killed), "--checkpoint-s", "0"])
while run.poll() is None and not [*killed.glob("checkpoint-*")]:
    time.sleep(0.002)
run.kill()
if run.wait() == 0:
    sys.exit(f"{file} ended before it could be killed")
subprocess.run([*edgesim, "resume", str(killed)], check=True)
forked = ["--at-round", at_round, "--set", "selection.policy=best-channel", "--out", str(folder / "forked")]
subprocess.run([*edgesim, "fork", str(folder / "out"), *forked], check=True)
"""

_CHECKPOINT = re.compile(r"(checkpoint|kept|end)-\d+-\w+\.safetensors")
"""Names of checkpoints, whose format may change from one commit to the next."""

Columns = dict[str, tuple[str, list[str]]]
"""Type and cells of each column; ``repr`` tells apart any two floating-point numbers but two NaNs."""


def git(*arguments: str, **environment: str) -> bytes:
    """What git prints; ends with its message and status 2 where it fails."""
    done = subprocess.run(["git", *arguments], env=os.environ | environment, capture_output=True, check=False)
    if done.returncode:
        sys.stderr.write(done.stderr.decode())
        raise SystemExit(2)
    return done.stdout


def top() -> str:
    """The folder of the repository that this is run in."""
    return git("rev-parse", "--show-toplevel").decode().strip()


def tree_of(commit: str | None) -> str:
    """Hash of a commit's tree, or of the working tree with all files that git does not ignore."""
    if commit is not None:
        return git("rev-parse", f"{commit}^{{tree}}").decode().strip()
    with tempfile.TemporaryDirectory() as folder:
        index = {"GIT_INDEX_FILE": f"{folder}/index"}
        git("read-tree", "HEAD", **index)
        git("-C", top(), "add", "--all", **index)
        return git("write-tree", **index).decode().strip()


def chosen(tree: Path, only: Sequence[str]) -> list[Path]:
    """The scripts and files of a tree that are run, those named ``only`` or all."""
    files = [*sorted((tree / COMPARED).glob("*.toml")), *sorted((tree / "scenarios").glob("*.py"))]
    return [file for file in files if not only or file.name in only or file.stem in only]


def check_import(tree: Path, environment: Mapping[str, str]) -> None:
    """End where another copy of edgesim would be imported, which would make all commits look the same."""
    command = [sys.executable, "-c", "import edgesim; print(edgesim.__file__)"]
    found = subprocess.run(command, env=environment, cwd=tree.parent, capture_output=True, text=True, check=True).stdout
    if not Path(found.strip()).resolve().is_relative_to(tree.resolve()):
        raise SystemExit(f"edgesim is imported from {found.strip()}, not from {tree}")


def run_tree(tree: Path, out: Path, jobs: int, only: Sequence[str]) -> list[str]:
    """Run what is chosen of a tree and has not ended well before, into ``out``; returns all names chosen."""
    environment = os.environ | {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1", "EDGESIM_CACHE": str(out / "cache")}

    def run(file: Path) -> None:
        # The pool of a study is one process, so that `jobs` says how many there are.
        folder, is_script, began = out / file.name, file.suffix == ".py", time.monotonic()
        commands = [["-m", "edgesim", "run", file, "--out", folder / "out"]]
        if is_script:
            commands = [["-c", RUN_SCRIPT, file, "--quick", "--jobs", "1", "--out", "out"]]
        elif file.name in RESTARTED:
            commands.append(["-c", RESTART, file, folder, RESTARTED[file.name]])
        with (folder / "log.txt").open("w") as log:
            for command in commands:
                python, here = [sys.executable, *map(str, command)], folder if is_script else file.parent
                ended = subprocess.run(python, cwd=here, env=environment, stdout=log, stderr=log, check=False)
                (folder / "status").write_text(str(ended.returncode))
                if ended.returncode:
                    break
        print(f"  {file.name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
        if ended.returncode:
            sys.stderr.write((folder / "log.txt").read_text())

    check_import(tree, environment)
    everything = chosen(tree, only)
    left = [file for file in everything if failure(out / file.name)]
    for file in left:
        shutil.rmtree(out / file.name, ignore_errors=True)
        (out / file.name).mkdir(parents=True)
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(run, left))
    return [file.name for file in everything]


def failure(folder: Path) -> str | None:
    """Why a script or file has not ended well: the last line that it printed."""
    status, log = folder / "status", folder / "log.txt"
    if status.is_file() and status.read_text() == "0":
        return None
    lines = log.read_text().split("\n") if log.is_file() else []
    return next((line for line in reversed(lines) if line.strip()), "it did not begin")


def results(commit: str | None, keep: Path, jobs: int, only: Sequence[str]) -> tuple[Path, list[str]]:
    """Folder below ``keep`` of the results of a commit's tree, and the names of all that was chosen of it."""
    tree = tree_of(commit)
    print(f"{commit or 'working tree'} (tree {tree[:10]})", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(git("-C", top(), "archive", tree))) as archive:
            archive.extractall(folder, filter="data")
        return keep / tree, run_tree(Path(folder), keep / tree, jobs, only)


def read(path: Path) -> Columns:
    """The columns of a Parquet or CSV file; the tensors of a model, each as one column."""
    if path.suffix == ".parquet":
        table = pq.ParquetFile(path).read()
        return {field.name: (str(field.type), [*map(repr, table[field.name].to_pylist())]) for field in table.schema}
    if path.suffix == ".safetensors":
        tensors = load_file(path)
        return {
            name: (f"{tensor.dtype} {tensor.shape}", [*map(repr, tensor.ravel().tolist())])
            for name, tensor in tensors.items()
        }
    with path.open(newline="") as file:
        head, *rows = csv.reader(file)
    return {name: ("text", [row[place] for row in rows]) for place, name in enumerate(head) if name not in WALL_TIMES}


def difference(base: Columns, other: Columns, new: Sequence[str] = ()) -> str | None:
    """The first difference between two tables, None where there is none; columns that are ``new`` may be added."""
    for name in [*base, *other]:
        if name not in other:
            return f"column {name} is missing"
        if name not in base:
            if name in new:
                continue
            return f"column {name} is new"
        (kind, cells), (other_kind, other_cells) = base[name], other[name]
        if kind != other_kind:
            return f"column {name} is {other_kind}, was {kind}"
        if len(cells) != len(other_cells):
            return f"{len(other_cells)} rows, were {len(cells)}"
        for row, (cell, other_cell) in enumerate(zip(cells, other_cells, strict=True), start=1):
            if cell != other_cell:
                return f"column {name}, row {row}: {other_cell}, was {cell}"
    order = [name for name in other if name in base]
    return None if order == [*base] else f"columns in another order: {', '.join(order)}"


def tables(folder: Path) -> dict[str, Path]:
    """All files to be compared, by their paths in a folder."""
    kinds = ("*.parquet", "*.csv", "*.safetensors")
    files = sorted(path for kind in kinds for path in folder.rglob(kind) if path.name != "timing.parquet")
    return {path.relative_to(folder).as_posix(): path for path in files if not _CHECKPOINT.match(path.name)}


def compare(base: Path, other: Path, new: Sequence[str]) -> tuple[str, bool]:
    """What is said of a script's or a file's results at two commits, and whether they are the same."""
    for side, folder in (("BASE", base), ("OTHER", other)):
        if why := failure(folder):
            return f"FAILED at {side}: {why}", False
    before, after = tables(base), tables(other)
    runs = len([*base.rglob("rounds.parquet")])
    told = [f"{name}: is {'missing' if name in before else 'new'}" for name in sorted(before.keys() ^ after.keys())]
    rewritten = 0
    for name in sorted(before.keys() & after.keys()):
        if before[name].read_bytes() != after[name].read_bytes():
            rewritten += 1
            if found := difference(read(before[name]), read(after[name]), new):
                told.append(f"{name}: {found}")
    counted = f"{runs:3} runs, {len(before):4} files: "
    if told:
        return f"{counted}{len(told)} DIFFER, the first one: {told[0]}", False
    return counted + ("the same bytes" if rewritten == 0 else f"the same values, {rewritten} in other bytes"), True


def main(
    base: Annotated[str, typer.Argument(help="A commit.")],
    other: Annotated[str | None, typer.Argument(help="Another; the working tree as it is now when absent.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Scripts that run at once.")] = os.cpu_count() or 1,
    only: Annotated[
        list[str] | None, typer.Option(help="A scenario or a file of tests/compared; all when absent.")
    ] = None,
    new_column: Annotated[list[str] | None, typer.Option(help="A column that OTHER may have and BASE has not.")] = None,
    keep: Annotated[
        Path | None,
        typer.Option(help="Where results of BASE stay, to be used again; remove it when a library has changed."),
    ] = None,
) -> None:
    """Compare the results of every scenario's --quick and of every file of tests/compared at two commits."""
    began, chosen_names, allowed = time.monotonic(), only or [], new_column or []
    with tempfile.TemporaryDirectory() as temporary:
        before, names = results(base, (keep or Path(temporary, "base")).absolute(), jobs, chosen_names)
        for name in chosen_names:
            if name not in {*names, *(Path(known).stem for known in names)}:
                raise typer.BadParameter(f"--only {name}: BASE has neither such a scenario nor such a file")
        after, now = results(other, Path(temporary, "other"), jobs, chosen_names)
        differing = 0
        for name in names:
            said, same = compare(before / name, after / name, allowed) if name in now else ("is missing", False)
            differing += not same
            print(f"{name:30} {said}")
        for name in now:
            if name not in names:
                print(f"{name:30} is new, and so compared with nothing")
    found = f"{differing} of {len(names)} DIFFER" if differing else f"all {len(names)} are the same"
    print(f"{found} ({time.monotonic() - began:.0f} s)")
    raise typer.Exit(differing > 0)


if __name__ == "__main__":
    typer.run(main)
