"""The script that compares two commits: what it tells, on a small package in a repository of its own."""

import math
import runpy
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from edgesim.config_file import load
from edgesim.simulation import composition as simulation

SCRIPT = Path(__file__).with_name("compare_commits.py")
COMPARED = Path(__file__).with_name("compared")

ENTRY = """
import random, sys
from pathlib import Path
import pyarrow as pa, pyarrow.parquet as pq

def write(out):
    Path(out).mkdir(parents=True)
    pq.write_table(pa.table({"round": [1, 2], "loss": [None, 0.1]}), Path(out) / "rounds.parquet")
    pq.write_table(pa.table({"wall_s": [random.random()]}), Path(out) / "timing.parquet")
    (Path(out) / "summary.csv").write_text(f"policy,mean_ms\\nrandom,{random.random()}\\n")

if __name__ == "__main__":
    write(sys.argv[4])
"""
SCENARIO = (
    "import sys\nfrom edgesim.__main__ import write\n"
    "assert sys.argv[1:] == ['--quick', '--jobs', '1', '--out', 'out']\nwrite('out')\n"
)


@pytest.fixture
def repository(tmp_path):
    """Starts git, or the comparison, in a repository whose package writes a table of two rows."""
    for path, text in (
        ("edgesim/__init__.py", ""),
        ("edgesim/__main__.py", ENTRY),
        ("scenarios/one.py", SCENARIO),
        ("tests/compared/two.toml", ""),
    ):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    def start(*command):
        return subprocess.run([*map(str, command)], cwd=tmp_path, capture_output=True, text=True, check=False)

    def commit():
        start("git", "add", "--all")
        start("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--message", "next")

    start("git", "init")
    commit()
    return tmp_path, commit, lambda *arguments: start(sys.executable, SCRIPT, *arguments)


def edit(path, old, new):
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


@pytest.mark.slow
def test_a_change_of_the_last_bit_is_told_and_the_working_tree_runs_its_own_scripts(repository):
    folder, commit, compare = repository
    same = compare("HEAD")
    assert same.returncode == 0, same.stderr
    assert same.stdout.count("1 runs,    2 files: the same") == 2
    edit(folder / "edgesim/__main__.py", "0.1]", f"{math.nextafter(0.1, 1)!r}]")
    commit()
    edit(folder / "edgesim/__main__.py", ']}), Path(out) / "rounds', '], "bits": [3, 4]}), Path(out) / "rounds')
    (folder / "scenarios/added.py").write_text("raise SystemExit('never')")
    told = compare("HEAD~1", "--keep", "kept", "--new-column", "bits")
    assert told.returncode == 1, told.stderr
    assert "out/rounds.parquet: column loss, row 2: 0.10000000000000002, was 0.1" in told.stdout
    assert "added.py" in told.stdout
    assert "never" in told.stderr
    assert "2 of 2 DIFFER" in told.stdout
    (kept,) = (folder / "kept").iterdir()
    # What is kept is what is compared with the next time.
    edit(kept / "one.py/out/summary.csv", "random", "fed-cbs")
    again = compare("HEAD~1", "HEAD~1", "--keep", "kept", "--only", "one")
    assert again.returncode == 1
    assert "out/summary.csv: column policy, row 1: random, was fed-cbs" in again.stdout
    assert "two.toml" not in again.stdout


@pytest.mark.slow
def test_what_fails_or_is_not_there_any_more_is_a_difference(repository):
    folder, _, compare = repository
    (folder / "scenarios/one.py").rename(folder / "scenarios/other.py")
    edit(folder / "edgesim/__main__.py", "    write(sys", "    print('too bad')\n    sys.exit(3)\n    write(sys")
    told = compare("HEAD")
    assert told.returncode == 1
    lines = dict(line.split(None, 1) for line in told.stdout.splitlines())
    assert lines["one.py"] == "is missing"
    assert lines["two.toml"] == "FAILED at OTHER: too bad"
    assert "compared with nothing" in lines["other.py"]
    for wrong in (["nowhere"], ["HEAD", "--only", "three"]):
        assert compare(*wrong).returncode == 2


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ([0.5, math.nan, None], [0.5, math.nan, None], None),
        ([0.0, 1.0], [-0.0, 1.0], "column a, row 1: -0.0, was 0.0"),
        ([1.0, None], [1.0, math.nan], "column a, row 2: nan, was None"),
        ([1, 2], [1.0, 2.0], "column a is double, was int64"),
        ([[1, 2]], [[1, 3]], "column a, row 1: [1, 3], was [1, 2]"),
        ([1, 2], [1, 2, 3], "3 rows, were 2"),
    ],
)
def test_values_are_the_same_to_the_last_bit(tmp_path, before, after, told):
    script = runpy.run_path(str(SCRIPT))
    for name, values in (("before", before), ("after", after)):
        pq.write_table(pa.table({"a": values}), tmp_path / f"{name}.parquet")
    assert script["difference"](*(script["read"](tmp_path / f"{name}.parquet") for name in ("before", "after"))) == told


def test_columns_that_are_missing_or_in_another_order_are_told():
    difference = runpy.run_path(str(SCRIPT))["difference"]
    a, b = {"a": ("int64", ["1"])}, {"b": ("int64", ["1"])}
    assert difference(a | b, a) == "column b is missing"
    assert difference(a | b, b | a) == "columns in another order: b, a"
    assert difference(a | b, {"c": ("int64", ["1"])} | a | b, ["c"]) is None


@pytest.mark.parametrize("path", sorted(COMPARED.glob("*.toml")), ids=lambda path: path.stem)
def test_every_file_that_is_compared_is_a_valid_config(path):
    simulation.complete(load(path))
