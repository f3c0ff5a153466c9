"""A study as an array job, run by a stand-in for SLURM: tasks as processes, which come back when they ask for it."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from small_runs import TIMING
from stopped_runs import content
from typed_commands import edgesim, refused
from waiting import wait_for

from edgesim import Study, grid, run_study
from edgesim.base.errors import EdgesimError
from edgesim.studies import slurm
from edgesim.studies.ledger import read_ledger
from edgesim.studies.plan_file import grow

SHORT = TIMING | {"rounds": 2}
STUDY = Study("s", grid(SHORT, {"round.tmax_s": [0.8, 1.0]}, [0, 1]))

# What sbatch, scontrol and a node do: a task begins as a process in the folder of --chdir, its output is appended to
# --output, and `scontrol requeue JOB_TASK` begins it once more when it has ended.
STAND_IN = """#!PYTHON
import os, re, shlex, subprocess, sys
from pathlib import Path

home = Path(__file__).parent
if Path(sys.argv[0]).name == "sbatch":
    script = sys.argv[1]
    (home / "script").write_text(script)
    first, last = re.search("^#SBATCH --array=([0-9]+)-([0-9]+)$", Path(script).read_text(), re.M).groups()
    print("Submitted batch job 7")
else:
    what, task = sys.argv[1:]
    assert what == "requeue"
    script = (home / "script").read_text()
    first = last = task.removeprefix("7_")
    with (home / "requeued").open("a") as file:
        print(task, file=file)
lines = [line for line in Path(script).read_text().splitlines() if line.startswith("#SBATCH ")]
options = dict(word.partition("=")[::2] for line in lines for word in shlex.split(line)[1:])
for number in range(int(first), int(last) + 1):
    before = os.environ.get("TASK", "")
    begin = 'while [ -n "$1" ] && kill -0 "$1" 2> /dev/null; do sleep 0.05; done; export TASK=$$; exec bash "$2"'
    env = os.environ | {"SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": str(number)}
    named = options["--output"].replace("%A", "7").replace("%a", str(number)).replace("%%", "%")
    with open(named, "a") as out:
        process = subprocess.Popen(
            ["bash", "-c", begin, "-", before, script], cwd=options["--chdir"], env=env,
            stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
        )
    (home / f"task-{number}").write_text(str(process.pid))
"""


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """The folder of the stand-in, which is on the path; at the end no task is left."""
    home = tmp_path / "cluster"
    home.mkdir()
    for name in ("sbatch", "scontrol"):
        (home / name).write_text(STAND_IN.replace("PYTHON", sys.executable))
        (home / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    yield home
    for path in home.glob("task-*"):
        with suppress(ProcessLookupError):
            os.killpg(int(path.read_text()), signal.SIGKILL)


def task(cluster, number):
    """The process of a task."""
    return int((cluster / f"task-{number}").read_text())


def statuses(folder):
    return [state.status for state in read_ledger(folder).values()]


def said(folder):
    return "\n".join(f"{path.name}: {path.read_text()}" for path in sorted((folder / "slurm").glob("7_*.txt")))


def test_paths_of_any_spelling_reach_the_study_and_its_status_the_end(tmp_path, monkeypatch, cluster):
    """An interpreter that says what it is given, in place of the running one."""
    folder = tmp_path / 'it\'s 100% a $(study) of "mine"'
    (tmp_path / "a place").mkdir()
    monkeypatch.chdir(tmp_path / "a place")
    python = tmp_path / "my python"
    file = f"{tmp_path}/said-$SLURM_ARRAY_TASK_ID"
    python.write_text(f'#!/bin/sh\npwd > "{file}"\nprintf "%s\\n" "$@" >> "{file}"\nexit 3\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    folder.mkdir()
    grow(STUDY, folder)
    script = slurm.write_script(folder, 40, "--time=2:00:00 -p gpu --comment 'two words' --exclusive")
    lines = script.read_text().splitlines()
    assert "#SBATCH --array=1-4" in lines
    assert lines[lines.index("#SBATCH --time=2:00:00") :][:4] == [
        "#SBATCH --time=2:00:00", "#SBATCH -p gpu", "#SBATCH --comment 'two words'", "#SBATCH --exclusive"
    ]  # fmt: skip
    # What stands behind the first command is no option to sbatch.
    first = next(number for number, line in enumerate(lines) if line and not line.startswith("#"))
    assert not any(line.startswith("#SBATCH") for line in lines[first:])
    assert slurm.submit(script) == "Submitted batch job 7"
    wait_for((folder / "slurm/7_4.txt").exists, "no task began")
    assert subprocess.run(["bash", script], cwd=tmp_path / "a place", check=False).returncode == 3
    expected = [str(tmp_path / "a place"), "-m", "edgesim", "study", "run", str(folder), "--jobs", "1"]
    assert (tmp_path / "said-").read_text().splitlines() == expected
    assert not (cluster / "requeued").exists()


@pytest.mark.parametrize(
    ("status", "number", "requeued"),
    [(75, signal.SIGUSR1, "7_3\n"), (75, signal.SIGTERM, None), (0, signal.SIGUSR1, None), (1, signal.SIGUSR1, None)],
)
def test_a_task_that_saved_its_run_before_its_limit_comes_back_and_a_cancelled_one_does_not(
    tmp_path, monkeypatch, status, number, requeued
):
    """An interpreter that hears the signal at once, and ends some time after it."""
    python = tmp_path / "python"
    catch = f"trap 'echo {number.name}; sleep 0.3; exit {status}' {number.name[3:]}"
    python.write_text(f"#!/bin/bash\n{catch}\necho ready\nfor _ in {{1..200}}; do sleep 0.05; done\n")
    (tmp_path / "scontrol").write_text('#!/bin/sh\n[ "$1" = requeue ] && echo "$2" > requeued\n')
    for path in (python, tmp_path / "scontrol"):
        path.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    grow(STUDY, tmp_path / "study")
    script = slurm.write_script(tmp_path / "study", 1)
    path = f"{tmp_path}:{os.environ['PATH']}"
    env = os.environ | {"PATH": path, "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "3"}
    with subprocess.Popen(["bash", script], cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        assert process.stdout.readline() == f"{number.name}\n"
        assert process.wait(timeout=20) == status
    file = tmp_path / "requeued"
    assert (file.read_text() if file.exists() else None) == requeued


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--array=1-3", "sbatch --array=1-3: the script sets this itself; tasks says it"),
        ("-a1-3", "sbatch -a1-3: the script sets this itself"),
        ("--time=1:00 --no-requeue", "--no-requeue: the script sets this itself; stopped tasks are to come back"),
        ("--wrap 'rm x'", "sbatch --wrap: the script sets this itself"),
        ("gpu", "expected options such as --time=2:00:00 (got 'gpu')"),
        ("--time=1:00 2:00", "expected options such as --time=2:00:00 (got '2:00')"),
        ("--comment 'open", "no closing quotation"),
        ("--comment='a\nb'", "control characters cannot stand"),
        ("--comment='a\\b'", "backslashes and control characters"),
    ],
)
def test_odd_options_of_sbatch_are_refused_by_name_and_nothing_is_written(tmp_path, options, words):
    grow(STUDY, tmp_path)
    with pytest.raises(EdgesimError) as refused:
        slurm.write_script(tmp_path, 2, options)
    assert words in str(refused.value)
    assert not (tmp_path / "slurm").exists()


def test_what_is_no_study_has_no_tasks_or_nothing_to_do_is_refused(tmp_path, studies_here, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    study = replace(STUDY, runs=STUDY.runs[:1])
    assert edgesim("study", "submit", tmp_path, "--tasks", 2)[0] == 2
    run_study(study, tmp_path)
    said = f"error: {tmp_path}: all 1 runs are finished; nothing is left to submit"
    assert refused("study", "submit", tmp_path, "--tasks", 2) == said
    run = tmp_path / study.runs[0].folder / "run.json"
    run.write_text(run.read_text().replace('"finished"', '"failed"'))
    assert f"edgesim study status {tmp_path} says which" in refused("study", "submit", tmp_path, "--tasks", 2)
    grow(STUDY, tmp_path)
    assert edgesim("study", "submit", tmp_path, "--tasks", 0) == (2, "error: --tasks: expected 1 or more (got 0)")
    assert not (tmp_path / "slurm").exists()
    status, answer = edgesim("study", "submit", tmp_path, "--tasks", 2)
    assert (status, answer) == (
        0, f"{tmp_path}/slurm/array.sh: no sbatch is on the path here; give it to sbatch elsewhere"
    )  # fmt: skip


def test_what_sbatch_refuses_is_one_line(tmp_path, monkeypatch):
    (tmp_path / "sbatch").write_text("#!/bin/sh\necho 'sbatch: error: invalid partition' >&2; exit 1\n")
    (tmp_path / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    grow(STUDY, tmp_path / "study")
    answer = refused("study", "submit", tmp_path / "study", "--tasks", 2, "--sbatch", "-p none")
    assert answer.endswith("array.sh: sbatch refused it: sbatch: error: invalid partition")
    (tmp_path / "sbatch").write_text("#!/bin/sh\nexec sleep 20\n")
    monkeypatch.setattr(slurm, "_SUBMIT_S", 0.2)
    assert "has not answered for 0.2 s" in edgesim("study", "submit", tmp_path / "study", "--tasks", 2)[1]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_tasks_share_a_study_one_is_killed_and_one_stopped_and_every_byte_is_that_of_a_local_study(
    tmp_path, cluster, is_gone
):
    study = Study("s", grid(SHORT | {"rounds": 800}, {"round.tmax_s": [0.8, 1.0]}, [0, 1]))
    folder = tmp_path / "out"
    folder.mkdir()
    grow(study, folder)
    status, answer = edgesim("study", "submit", folder, "--tasks", 3)
    assert (status, answer) == (0, f"{folder}/slurm/array.sh: Submitted batch job 7")
    wait_for(lambda: statuses(folder).count("running") == 3, lambda: said(folder))
    # A node that is lost takes all of a task with it; another task reaches its time limit.
    os.killpg(task(cluster, 1), signal.SIGKILL)
    os.kill(task(cluster, 2), signal.SIGUSR1)
    wait_for(lambda: statuses(folder) == ["finished"] * 4, lambda: said(folder))
    assert (cluster / "requeued").read_text() == "7_2\n"
    for number in (2, 3):
        wait_for(lambda number=number: is_gone(task(cluster, number)), lambda: said(folder))
        assert "4 runs: 4 finished" in (folder / f"slurm/7_{number}.txt").read_text()
    run_study(study, tmp_path / "local", jobs=2)
    for run in study.runs:
        assert content(folder / run.folder) == content(tmp_path / "local" / run.folder)
    assert (folder / "summary.csv").read_bytes() == (tmp_path / "local/summary.csv").read_bytes()
