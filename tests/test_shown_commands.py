"""Every command that the README and the handbook show is run as typed, on small runs and studies of the names it gives.

Commands of scenarios are not: `test_scenario` runs all of them in their quick form, and `test_pages` looks at their
options. Those of ``docs/python.md`` are run as typed by `test_house`, in an environment of their own.
"""

import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import pytest
from quoted import HANDBOOK, ROOT, examples
from stopped_runs import stop_at
from typer.testing import CliRunner

import edgesim
from edgesim.commands import cli, watch_command
from edgesim.simulation.composition import complete

BY_THEMSELVES = ("docs/python.md",)

LIST = "docs/commands.md"
"""A page whose commands do not follow one another: each is typed in a folder of its own."""

ONLY_PARSED = (
    ("edgesim trace fetch", "needs a download"),
    ("edgesim trace convert", "needs recordings that are downloaded or the user's own"),
    ("edgesim trace show phones.parquet", "of a recording that is downloaded"),
    ("edgesim scenario fading --quick", "becomes another process, a scenario's: `test_scenario` runs these"),
    ("edgesim study run runs/STUDY --executor ray", "needs a cluster"),
    ("edgesim study run runs/policies --executor ray", "needs a cluster"),
    ("edgesim export runs/mine --mlflow", "needs MLflow, which takes minutes to install"),
)
"""Beginnings of commands that are only parsed (`test_pages`), and why."""

SMALL = """
rounds = 4
[devices]
count = 12
[data]
dataset = "digits"
partition = "fedteddi"
samples_per_device = 40
[learning]
model = "mlp"
lr = 0.1
pretrain = false
[round]
payload_bits = 1e7
tmax_s = 0.8
"""

STAND_FOR = {
    "--at-round 500 --set round.tmax_s=0.8": "--at-round 2 --set round.tmax_s=0.9",
    "--at-round 20": "--at-round 2",
    "--seeds 5 --target 0.7": "--seeds 2 --target 0.3",
    " > table.tex": "",
    "--objective seconds-to-target --target 0.75 ": "--objective seconds-to-target --target 0.75 --trials 60 ",
    "--trials 60": "--trials 3 --seeds 1 --judge 0",
    "--objective energy-j": "--objective energy-j --trials 3 --seeds 1 --judge 0",
    "--target 0.75": "--target 0.3",
    "--port 8765": "--port 0",
    "trace show FILE": "trace show sample-week",
    "docs/one-round.toml": str(ROOT / "docs/one-round.toml"),
}
"""Parts of commands, and what is typed in their place."""


def shown(page: Path) -> list[str]:
    """The commands of a page in their order, with those that change the folder."""
    blocks = examples(page, "", "bash")
    lines = [line.strip() for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    return [line for line in lines if line.startswith("edgesim ") or re.fullmatch(r"cd \w+", line)]


def only_parsed(line: str) -> bool:
    return any(line.startswith(beginning) for beginning, _ in ONLY_PARSED)


TYPED = [page for page in HANDBOOK if any(not only_parsed(line) for line in shown(page) if line.startswith("edgesim"))]


@pytest.fixture(scope="module")
def past(tmp_path_factory) -> Path:
    """Where the first page that is tested leaves a run and studies for the others."""
    return Path(tmp_path_factory.mktemp("past"))


def make(past: Path) -> None:
    """A run of a config and the studies that pages take for granted."""
    (past / "small.toml").write_text(SMALL)
    edgesim.run(past / "small.toml", past / "run", quiet=True)
    base = tomllib.loads(SMALL)
    axes = {"selection.policy": ["random", "best-channel"], "round.tmax_s": [0.8, 1.2]}
    edgesim.study(base, axes, seeds=2, target=0.3, out=past / "study", quiet=True)
    policies = {"selection.policy": axes["selection.policy"]}
    others = {"one-study": {"learning.lr": [0.1]}, "other-study": {"learning.lr": [0.05]}, "my_study": policies}
    for name, axes in others.items():
        edgesim.study(base, axes, seeds=2, out=past / name, quiet=True)


def lay_out(past: Path, page: str) -> None:
    """Put the run and the study where the page has them, and the config under every name that it has there."""
    for name in ("CONFIG.toml", "mine.toml", "run.toml"):
        Path(name).write_text(SMALL)
    axes = '[study]\nseeds = 1\n[study.axes]\nselection.policy = ["random", "fed-cbs"]\n'
    Path("STUDY.toml").write_text(SMALL + axes)
    Path("OLD.toml").write_text("rounds = 3\n[learning]\nproximal = 0.1\n")
    for name, source in (("demo", "study"), ("STUDY", "my_study")):
        shutil.copytree(past / source, Path("runs") / name)
    for name in ("one-study", "other-study"):
        shutil.copytree(past / name, Path("runs") / name)
    if page in ("docs/report.md", LIST):
        for name in ("mine", "CONFIG"):
            shutil.copytree(past / "run", Path("runs") / name)


def typed(page: Path) -> Iterator[tuple[str, list[str]]]:
    for line in shown(page):
        if not only_parsed(line):
            for part, other in STAND_FOR.items():
                line = line.replace(part, other)
            yield line, shlex.split(line, comments=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [one for one in TYPED if str(one.relative_to(ROOT)) not in BY_THEMSELVES], ids=lambda page: page.name
)
def test_every_command_shown_runs(page, past, tmp_path, monkeypatch, studies_here, figures_as_text):
    matplotlib.use("agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    monkeypatch.setattr("webbrowser.open", lambda url: None)
    monkeypatch.setattr(watch_command, "_REFRESH_S", 0.1)
    monkeypatch.setenv("COLUMNS", "200")
    if not (past / "study").exists():
        make(past)
    name = str(page.relative_to(ROOT))
    lay_out(past, name)
    for number, (line, words) in enumerate(typed(page)):
        if name == LIST:
            (tmp_path / str(number)).mkdir()
            monkeypatch.chdir(tmp_path / str(number))
            lay_out(past, name)
            if "runs/CONFIG" not in line:
                shutil.rmtree("runs/CONFIG")
        if line.startswith("edgesim study submit"):
            shutil.rmtree(next(Path(words[3]).glob("random-*")))
        if line.startswith("edgesim resume"):
            stop_at(complete(edgesim.load(Path("CONFIG.toml"))), Path("runs/stopped"), 2)
            shutil.rmtree(words[2])
            Path("runs/stopped").rename(words[2])
        if words[0] == "cd":
            if Path(words[1]).exists():
                monkeypatch.chdir(words[1])
            continue
        if line.startswith("edgesim compare runs/my_study"):
            # The line before it, a study's script, is run by the tests of `edgesim init`.
            shutil.copytree(past / "my_study", "runs/my_study")
        done = CliRunner().invoke(cli.app, words[1:])
        assert done.exit_code == 0, (line, done.output, done.exception)
        assert "Traceback" not in done.output, line
