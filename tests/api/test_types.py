"""A user's script under strict mypy."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import edgesim

SCRIPT = '''
"""As a user writes it."""

from pathlib import Path

import edgesim

CONFIG = {"rounds": 2, "data": {"dataset": "none"}, "learning": {"training": "none"}}


def main() -> None:
    run = edgesim.run(CONFIG, Path("out"), {"round.tmax_s": 0.8})
    seconds: float = run.seconds_to(0.5)
    print(run.accuracy + seconds, run.rounds, run.folder / "run.json")
    run.plot("gantt").savefig("gantt.png")
    found = edgesim.study("run.toml", {"selection.policy": ["random", "fedteddi"]}, seeds=5, target=0.7)
    for name, one in found.runs.items():
        print(name, one.seed, one.accuracy)
    print(found.table(), found.compare("rounds_to_target").table)
    edgesim.open("out").show()
    policies: list[str] = edgesim.policies()
    print(policies)


if __name__ == "__main__":
    main()
'''


def checked(tmp_path, text):
    (tmp_path / "mine.py").write_text(text)
    environment = os.environ | {"MYPYPATH": str(Path(edgesim.__file__).parents[1])}
    # Silent about edgesim's own modules, as about those of an installed package.
    options = ["--strict", "--follow-imports=silent", "--config-file=", f"--cache-dir={tmp_path.parent / 'mypy'}"]
    command = [sys.executable, "-m", "mypy", *options, "mine.py"]
    return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False).stdout


@pytest.mark.slow
def test_a_script_of_a_user_is_strictly_typed(tmp_path):
    """What it does wrong on purpose is all that is found in it."""
    script = SCRIPT.replace("seeds=5", 'seeds="five"').replace("run.seconds_to(0.5)", "run.second_to(0.5)")
    said = checked(tmp_path, script).splitlines()
    assert len(said) == 3
    assert "second_to" in said[0]
    assert 'Argument "seeds" to "study"' in said[1]
    assert said[2].startswith("Found 2 errors")
    assert (Path(edgesim.__file__).parent / "py.typed").is_file()
