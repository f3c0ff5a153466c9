"""Changes lines of edgesim that matter, one at a time, and tells whether the quick tests named beside each notice.

    python tests/mutants.py [PART ...] --jobs 2

The changes stand in ``tests/mutants.toml``; a PART takes those of files whose path contains it. Each runs in a copy of
the working tree, in a process that forks off one in which the libraries are loaded already. First
all named tests run without a change, and each process names those that fail then. Ends with status 1 where a change
survives, stands in the file not exactly once, or is not tested by its tests.
"""

import os
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tests" / "mutants.toml"
LIMIT_S = 120
"""Seconds after which a change whose tests go on for ever counts as noticed."""

LOADED = "numpy", "scipy.stats", "pandas", "pyarrow.parquet", "torch", "simpy", "networkx", "pytest", "hypothesis"
"""Libraries that are loaded once and not by each change."""


@dataclass(frozen=True)
class Mutant:
    """One change of a file below edgesim/, and the files below tests/ of which one must notice; no change for "" ."""

    file: str
    before: str
    after: str
    tests: tuple[str, ...]


def mutants(path: Path = LIST) -> Iterator[Mutant]:
    """All changes that are listed, in order."""
    for file, table in tomllib.loads(path.read_text(encoding="utf-8")).items():
        for before, after, *own in table["changes"]:
            yield Mutant(file, before, after, tuple(own[0] if own else table["tests"]))


def changed(text: str, mutant: Mutant) -> str:
    """The text of the file with the change; ValueError where what is to be replaced does not stand there once."""
    count = text.count(mutant.before)
    if count != 1:
        raise ValueError(f"edgesim/{mutant.file}: {mutant.before!r} stands there {count} times, expected once")
    return text.replace(mutant.before, mutant.after)


def copy_of_tree(folder: Path) -> Path:
    """A copy of the working tree, with what Python has compiled."""
    return Path(shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(".*", "runs", "site")))


def run_tests(tree: Path, tests: Sequence[str], output: Path) -> int:
    """Pytest's exit code of quick tests of a tree, in this process, which must not have loaded edgesim."""
    import pytest

    with output.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(tree)
    os.environ |= {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(tree))
    tests = [f"tests/{test}" for test in tests]
    own = ["-p", "no:cacheprovider", "-p", "no:xdist", "--basetemp", str(output.with_suffix(".temp"))]
    return int(pytest.main(["-x", "-q", "-m", "not slow", *own, *tests]))


@dataclass
class Result:
    """What became of a change: "killed", "no end", "survived" or an error, and how long its tests took."""

    mutant: Mutant
    outcome: str
    seconds: float = 0.0


class Trees:
    """Copies of the working tree, one for each change that is tested at a time."""

    def __init__(self, folder: Path, jobs: int) -> None:
        self.folder = folder
        self.free = [copy_of_tree(folder / f"tree-{number}") for number in range(jobs)]
        self.at_work: dict[int, tuple[Mutant, Path, Path, float]] = {}

    def start(self, mutant: Mutant) -> None:
        """Test a change in a tree that is free."""
        tree = self.free.pop()
        output = self.folder / f"{tree.name}.txt"
        if mutant.file:
            file = tree / "edgesim" / mutant.file
            shutil.copy2(file, output.with_suffix(".py"))
            file.write_text(changed(file.read_text(encoding="utf-8"), mutant), encoding="utf-8")
        pid = os.fork()
        if not pid:
            os.setsid()
            code = 70
            try:
                code = run_tests(tree, mutant.tests, output)
            finally:
                os._exit(code)
        self.at_work[pid] = mutant, tree, output, time.monotonic()

    def ended(self) -> Result:
        """What became of the change whose tests end next; ends those that go on for too long."""
        while True:
            for pid, (mutant, tree, output, began_s) in self.at_work.items():
                seconds = time.monotonic() - began_s
                is_late = seconds > LIMIT_S
                if is_late:
                    os.killpg(pid, signal.SIGKILL)
                done, status = os.waitpid(pid, 0 if is_late else os.WNOHANG)
                if done:
                    del self.at_work[pid]
                    self.free.append(tree)
                    if mutant.file:
                        shutil.copy2(output.with_suffix(".py"), tree / "edgesim" / mutant.file)
                    code = LIMIT_S if is_late else os.waitstatus_to_exitcode(status)
                    outcomes = {0: "survived", 1: "killed", LIMIT_S: "no end"}
                    lines = output.read_text(errors="replace").splitlines() or [""]
                    return Result(mutant, outcomes.get(code, f"error: pytest ended with {code}: {lines[-1]}"), seconds)
            time.sleep(0.05)


def tested(found: Sequence[Mutant], jobs: int) -> Iterator[Result]:
    """What becomes of changes, as it becomes known."""
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        trees, waiting = Trees(Path(folder), jobs), list(reversed(found))
        while waiting or trees.at_work:
            while waiting and trees.free:
                trees.start(waiting.pop())
            yield trees.ended()


def main(
    part: Annotated[list[str] | None, typer.Argument(help="parts of paths below edgesim/; all files without")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="changes tested at a time")] = 2,
    unchanged: Annotated[bool, typer.Option(help="first run all named tests without a change")] = True,
) -> None:
    """Tell which changes no test notices."""
    wanted = [mutant for mutant in mutants() if not part or any(of in mutant.file for of in part)]
    try:
        for mutant in wanted:
            changed((ROOT / "edgesim" / mutant.file).read_text(encoding="utf-8"), mutant)
    except ValueError as error:
        print(f"{LIST.name}: {error}", file=sys.stderr)
        raise typer.Exit(2) from None
    for name in LOADED:
        __import__(name)
    if unchanged:
        plain = [Mutant("", "", "", (test,)) for test in sorted({test for mutant in wanted for test in mutant.tests})]
        failing = [result for result in tested(plain, jobs) if result.outcome != "survived"]
        for result in failing:
            print(f"tests/{result.mutant.tests[0]} fails without a change: {result.outcome}", file=sys.stderr)
        if failing:
            raise typer.Exit(1)
    left = 0
    print("outcome", "seconds", "file", "before", "after", sep="\t")
    for result in tested(wanted, jobs):
        left += result.outcome not in ("killed", "no end")
        mutant = result.mutant
        columns = result.outcome, f"{result.seconds:.1f}", mutant.file, repr(mutant.before), repr(mutant.after)
        print(*columns, sep="\t", flush=True)
    print(f"{len(wanted) - left} of {len(wanted)} changes are noticed", file=sys.stderr)
    if left:
        raise typer.Exit(1)


if __name__ == "__main__":
    typer.run(main)
