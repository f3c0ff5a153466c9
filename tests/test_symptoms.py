"""`docs/symptoms.md`: every symptom is seen in a run by the options shown, and gone by the cure's."""

import re
import shlex
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from quoted import DOCS, examples
from typer.testing import CliRunner

import edgesim
from edgesim.commands.cli import app

PAGE, WORLD = DOCS / "symptoms.md", DOCS / "symptoms.toml"
CASES = {
    title: (shown, mended)
    for title, shown, mended in re.findall(
        r"^## (.*?)\n.*?^- Shown by: `(.*?)`\n- Mended by: `(.*?)`$", PAGE.read_text(), re.DOTALL | re.MULTILINE
    )
}


def typed(options: str, *more: str) -> tuple[int, str]:
    """Status and output of the page's world with these options."""
    answer = CliRunner().invoke(app, ["run", str(WORLD), *shlex.split(options), *more])
    assert "Traceback" not in answer.output
    return answer.exit_code, " ".join(answer.output.split())


def ran(options: str, out: str, *more: str) -> edgesim.Run:
    status, printed = typed(options, "--out", out, *more)
    assert status == 0, printed
    return edgesim.open(out)


def points_gained(run: edgesim.Run) -> float:
    (start,) = run.metrics.query("round == 0 and name == 'test_accuracy'")["value"]
    return 100 * (run.accuracy - start)


def share_of_joules(run: edgesim.Run, outcome: str) -> float:
    return run.activities.query("outcome == @outcome")["energy_j"].sum() / run.activities["energy_j"].sum()


BY_A_RUN: dict[str, tuple[Callable[[edgesim.Run], float], Callable[[float], bool], Callable[[float], bool]]] = {
    "Nobody is scheduled": (
        lambda run: run.rounds["selected"].sum() / run.rounds["candidates"].sum(),
        lambda of: of < 0.1,
        lambda of: of > 0.4,
    ),
    'Most joules are "unscheduled"': (
        lambda run: share_of_joules(run, "unscheduled"),
        lambda of: of > 0.5,
        lambda of: of == 0,
    ),
    "Everything is late": (
        lambda run: run.rounds["late"].sum() / run.rounds["selected"].sum(),
        lambda of: of > 0.8,
        lambda of: of == 0,
    ),
    "Accuracy does not move": (points_gained, lambda of: abs(of) < 3, lambda of: of > 30),
    "Runs are slow": (
        lambda run: run.rounds["test_accuracy"].notna().mean(),
        lambda of: of == 1,
        lambda of: of == 0.1,
    ),
}
"""A measure of a run, and what it is with the symptom and without."""


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("title", BY_A_RUN)
def test_a_symptom_is_seen_and_gone(title):
    measure, is_ill, is_well = BY_A_RUN[title]
    shown, mended = CASES[title]
    assert is_ill(measure(ran(shown, "ill")))
    assert is_well(measure(ran(mended, "well")))


@pytest.mark.slow
def test_policies_without_a_choice_leave_the_same_tables_and_one_with_a_choice_others():
    def pair(options: str, name: str) -> tuple[bool, str]:
        runs = [
            ran(options, f"{name}-{policy}", "--set", f"selection.policy={policy}")
            for policy in ("random", "best-channel")
        ]
        merged = [{*zip(run.updates["round"], run.updates["device"], strict=True)} for run in runs]
        return merged[0] == merged[1], str(edgesim.read_run(runs[0].folder)["notes"])

    shown, mended = CASES["Two policies never differ"]
    same, notes = pair(shown, "ill")
    assert same
    assert "the policy never had a choice" in notes
    same, notes = pair(mended, "well")
    assert not same
    assert "never had a choice" not in notes


@pytest.mark.slow
def test_an_algorithm_that_remembers_too_much_is_refused_with_the_key_and_runs_with_more():
    shown, mended = CASES["Out of memory"]
    status, printed = typed(shown, "--out", "ill")
    assert status == 2
    assert "above learning.memory_budget_mib = 1; raise it" in printed
    assert not Path("ill").exists()
    assert len(ran(mended, "well").rounds) == 5


@pytest.mark.slow
def test_a_folder_of_another_config_is_refused_and_another_folder_is_not():
    shown, mended = CASES["A run is not reused"]
    ran("", "runs/world")
    status, printed = typed(shown)
    assert status == 2
    assert "holds a run of another config (seed differs); choose another folder" in printed
    assert typed(mended)[0] == 0
    assert "finished before, reused" in typed(mended)[1]


def test_the_page_shows_the_world_and_every_case_is_tested():
    (shown,) = examples(PAGE, "toml")
    assert tomllib.loads(shown) == tomllib.loads(WORLD.read_text())
    assert {*CASES} == {*BY_A_RUN, "Two policies never differ", "Out of memory", "A run is not reused"}
    assert len(CASES) == PAGE.read_text().count("\n## ")
