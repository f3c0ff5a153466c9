"""What the README and the handbook show is what works."""

import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from contract import fits
from quoted import DOCS, HANDBOOK, ROOT, examples
from two_processes import ENVIRONMENT

from edgesim import load, read_table
from edgesim.commands import cli
from edgesim.config_file import parse
from edgesim.learning.algorithms import ALGORITHMS
from edgesim.learning.algorithms.records import Devices, Sizes
from edgesim.learning.drift import LAWS
from edgesim.learning.drift.law import When
from edgesim.learning.federation import make_federation
from edgesim.selection import SELECTORS
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams

PLOTS = ROOT / "plots"
PAGES = [*HANDBOOK, ROOT / "CONTRIBUTING.md", PLOTS / "README.md"]
BUILDER = runpy.run_path(str(DOCS / "build.py"))
COUNTER = runpy.run_path(str(DOCS / "words.py"))


def block(page: str, language: str, containing: str) -> str:
    (found,) = [text for text in examples(ROOT / page, language) if containing in text]
    return found


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("scenarios", [path.name for path in (ROOT / "scenarios").glob("*.py")]),
        ("policies", SELECTORS.names),
    ],
)
def test_a_page_has_a_row_for_each_scenario_and_for_each_policy(page, names):
    rows = re.findall(r"^\| `([\w.-]+)` \|", (DOCS / f"{page}.md").read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(names)


COMMANDS = {
    tuple(shlex.split(line, comments=True))
    for page in PAGES
    for text in examples(page, "", "bash")
    for line in text.replace("\\\n", " ").splitlines()
    if line.startswith(("edgesim ", "python scenarios/"))
}
"""Words of every line of a page that starts edgesim or a scenario."""


def check_options(command: Any, words: Sequence[str]) -> None:
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    used = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert used <= known | {"--help"}, words


@pytest.mark.parametrize("start", ["edgesim", pytest.param("python", marks=pytest.mark.slow)])
def test_every_command_shown_has_options_that_there_are(start):
    shown = [words for words in COMMANDS if words[0] == start]
    assert len(shown) > 40
    for words in shown:
        command: Any = typer.main.get_command(cli.app)
        rest = list(words[1:])
        while rest and rest[0] in getattr(command, "commands", ()):
            command = command.commands[rest.pop(0)]
        if start == "python" or command.name == "scenario":
            command, rest = scenario_command(f"{Path(rest[0]).stem}.py"), rest[1:]
        assert rest[:1] == ["--version"] or not hasattr(command, "commands"), f"no command {rest[0]}"
        check_options(command, rest)


@cache
def scenario_command(name: str) -> Any:
    app = typer.Typer()
    # Scenarios may import what others of their folder have, as a script can.
    sys.path.insert(0, str(ROOT / "scenarios"))
    try:
        app.command()(runpy.run_path(str(ROOT / "scenarios" / name))["main"])
    finally:
        sys.path.remove(str(ROOT / "scenarios"))
    return typer.main.get_command(app)


def anchors(page: Path) -> set[str]:
    """What the headings of a page are called in links."""
    heads = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", head).strip().lower()) for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file_and_to_a_heading_of_it(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\((?!http)([^)\s]+)\)", text):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_no_link_of_the_gallery_is_dead_in_a_bare_checkout():
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("no checkout")
    held = {(ROOT / name).resolve() for name in done.stdout.splitlines()}
    links = re.findall(r"\]\((?!http)([^)\s]+)\)", (PLOTS / "README.md").read_text())
    assert len(links) > 40
    assert [link for link in links if (PLOTS / link).resolve() not in held] == []


def test_the_handbook_has_no_more_words_than_it_may():
    assert sum(COUNTER["by_page"]().values()) <= COUNTER["MOST"]


@pytest.mark.slow
def test_the_handbook_is_built_without_a_dead_link(tmp_path):
    """In a copy, since the builder writes beside what it reads."""
    for pages in (DOCS, PLOTS):
        shutil.copytree(pages, tmp_path / pages.name)
    for file in ("mkdocs.yml", "README.md", "CONTRIBUTING.md"):
        shutil.copy(ROOT / file, tmp_path)
    command = [sys.executable, str(tmp_path / "docs/build.py")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=ENVIRONMENT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "site/docs/how-time-works.html").stat().st_size > 10_000
    tutorial = (tmp_path / "site/docs/tutorials/deadlines.html").read_text()
    assert (tmp_path / "site/docs/tutorials/deadlines-1.png").is_file()
    assert "deadlines-1.png" in tutorial
    assert "seconds_to_target" in tutorial
    interface = (tmp_path / "site/docs/api.html").read_text()
    page = (DOCS / "api.md").read_text()
    lists = re.findall(r"^::: ([\w.]+)\n +options:\n +members: \[([^\]]*)\]", page, re.MULTILINE)
    names = [f"{module}.{member}" for module, members in lists for member in re.findall(r"\w+", members)]
    assert [name for name in [*names, "edgesim.arrays.Floats"] if f'id="{name}"' not in interface] == []
    for figure in PLOTS.glob("*.png"):
        assert (tmp_path / "site/plots" / figure.name).stat().st_size > 5_000
    # Zensical lets pictures pass that are not there.
    (tmp_path / "site/plots/accuracy_rounds.png").unlink()
    assert BUILDER["dead_files"](tmp_path / "site")[0] == "index.html: plots/accuracy_rounds.png"


def test_the_page_of_all_knobs_is_what_the_builder_makes_of_the_config():
    made = BUILDER["knobs"]()
    assert (DOCS / "knobs.md").read_text() == made
    assert "|  |" not in made, "a knob without a meaning"


@pytest.fixture(scope="module")
def one_round(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one-round") / "run"
    simulation.run(load(DOCS / "one-round.toml"), folder)
    return {name: read_table(folder, name) for name in ("rounds", "activities", "updates")}


def test_the_page_of_policies_names_those_that_timing_only_runs_refuse():
    text = (DOCS / "policies.md").read_text()
    sentence = text.partition("Timing-only runs refuse the policies")[2].partition("All others run in them.")[0]
    refused = {name for name in SELECTORS if SELECTORS[name].looks_at - {"class_counts"}}
    assert set(re.findall(r"`([\w-]+)`", sentence)) == refused
    assert {"best-norm", "afl"} < refused < {*SELECTORS}


def test_how_time_works_tells_the_run_of_its_config(one_round):
    """Every instant and bandwidth of its table is one of the run's, and those that matter stand in it."""
    page = (DOCS / "how-time-works.md").read_text()
    assert f"```toml\n{(DOCS / 'one-round.toml').read_text()}```" in page
    told = dict(re.findall(r"^\| (\d\.\d{3}) \| (.*) \|$", page, re.MULTILINE))
    acts, rounds = one_round["activities"], one_round["rounds"]
    happens = {f"{t_s:.3f}" for t_s in [0.0, *acts["t_end_s"], *rounds["t_end_s"]]}
    assert told.keys() <= happens
    own = acts[acts["task"] == 1]
    sent = own[own["activity"] == "upload"].set_index("device")
    assert sorted(sent.index) == [0, 1, 3, 5]
    assert f"{sent['bandwidth_hz'].sum() / 1e6:.2f} MHz of the 10" in told["0.000"]
    assert f"{sent.loc[1, 'bandwidth_hz'] / 1e6:.3f} MHz" in told["0.143"]
    assert f"{sent.loc[3, 'bandwidth_hz'] / 1e6:.3f} MHz" in told["0.300"]
    assert f"{10 - sent.loc[3, 'bandwidth_hz'] / 1e6:.3f} MHz are free" in told["0.800"]
    assert sent.loc[3, "t_end_s"] == pytest.approx(0.871, abs=5e-4)
    assert set(own[own["outcome"] == "unscheduled"]["device"]) == {2, 4}
    assert rounds["t_end_s"].head(2).round(3).tolist() == [0.8, 1.547]
    merged = one_round["updates"].groupby("round")
    assert merged.size().head(2).tolist() == [3, 4]
    late = one_round["updates"].query("device == 3 and round == 2")
    assert late["staleness"].tolist() == [1]


def study_of_the_readme() -> str:
    return block("README.md", "python", "edgesim.study")


def test_the_readme_is_120_lines_at_most():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_the_config_and_the_python_of_the_readme_are_one_world():
    names: dict[str, Any] = {}
    exec(study_of_the_readme(), names)
    config = tomllib.loads(block("README.md", "toml", "[selection]"))
    assert names["world"] == {key: of for key, of in config.items() if key != "selection"}
    study = "--axis selection.policy=random,fedteddi --seeds 3 --target 0.7 --out runs/policies"
    assert f"edgesim study run mine.toml {study}" in (ROOT / "README.md").read_text()
    for typed in ('{"selection.policy": ["random", "fedteddi"]}', 'seeds=3, target=0.7, out="runs/policies"'):
        assert typed in study_of_the_readme()


def numbers_of(table: str) -> list[list[float]]:
    """The numbers of each row of a table of policies."""
    rows = [line for line in table.splitlines() if re.match(r"(random|fedteddi) +\d[\d.]* ±", line)]
    return [[float(number) for number in re.findall(r"\d+\.?\d*", row)] for row in rows[:2]]


@pytest.mark.slow
def test_the_python_of_the_readme_gives_the_numbers_below_it(tmp_path):
    """Rounded as they are printed, but for what another processor's last bits may move. The command beside it is of the
    same world and is typed in `test_shown_commands`.
    """
    (tmp_path / "first.py").write_text(study_of_the_readme())
    printed = numbers_of(block("README.md", "text", "fedteddi"))
    assert len(printed) == 2
    done = subprocess.run([sys.executable, "first.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Own peak" not in done.stdout, "which is for --all"
    for row, expected in zip(numbers_of(done.stdout), printed, strict=True):
        assert row == pytest.approx(expected, rel=0.15, abs=0.02)


def test_the_drift_shown_deals_its_mixes():
    shown = block("docs/data.md", "toml", "[drift]")
    config = simulation.complete(parse(tomllib.loads(shown), "data.md"))
    drift = make_federation(config, Streams(0)).drift
    halfway = drift.at(When(26, 1, 25.0)).class_counts
    assert halfway.tolist() == [[4] * 10] * config.devices.count
    page = (DOCS / "data.md").read_text()
    table = page[page.index("| law | what a device holds") :].split("\n\n")[0]
    for name, law in LAWS.items():
        (row,) = [line for line in table.splitlines() if line.startswith(f"| `{name}` |")]
        assert all(f"`{option}`" in row for option in law.model_fields if option != "pool"), name


def test_the_table_of_algorithms_says_what_they_do():
    (table,) = re.findall(r"\| `name` \| half .*?\n\n", (DOCS / "learning.md").read_text(), re.DOTALL)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:] if line]
    assert len(rows) > 5
    for name, half, protocols, bits, computing in rows:
        kind = ALGORITHMS[name.strip("`")]
        ids, defaults = np.arange(3), kind.Options()
        devices = Devices(ids, np.zeros((3, 0), dtype=np.int64), ids + 20)
        made = defaults, Sizes(64.0, 2, 3), Streams(0)
        local, server = kind.Local(*made), kind.Server(*made)
        assert half == ("both" if len(kind.halves) == 2 else "".join(kind.halves))
        allowed = [one for one in ("synchronous", "buffered", "asynchronous") if fits(kind, "round.protocol", one)]
        assert protocols == ("all three" if len(allowed) == 3 else ", ".join(allowed))
        ledger = server.ledger(1, None)
        down, up = (ask(devices, 1, ledger)[0] / 64 for ask in (server.download_bits, local.upload_bits))
        assert bits == f"{down:g}, {up:g}"
        factor = local.compute_factor(devices, ids + 20, 1, ledger)
        assert float(Fraction(computing)) == pytest.approx(factor[0])
