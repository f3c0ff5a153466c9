"""Section of the page on the run: versions, config, and the commands that repeat it."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tomli_w

from edgesim.analysis.runs import PLAN, RunFolder, StudyFolder
from edgesim.folder.records import read_run
from edgesim.report.tables import text


def about(run: RunFolder, again: Sequence[str]) -> str:
    """Facts of a run, the command that began it, the commands ``again`` and its whole config, as HTML."""
    facts = read_run(run.folder)
    return _made_with(facts) + _commands(facts, again) + config_html(run)


def repeat_run(run: RunFolder) -> str:
    """The command that repeats a run from its config."""
    return f"edgesim run {shlex.quote(str(run.folder / 'config.toml'))} --out NEW_FOLDER"


def repeat_study(study: StudyFolder) -> str:
    """The command that repeats all runs of a study from its plan."""
    plan = shlex.quote(str(study.folder / PLAN))
    return f"mkdir NEW_FOLDER && cp {plan} NEW_FOLDER && edgesim study run NEW_FOLDER"


def config_html(run: RunFolder) -> str:
    """The complete config of a run, folded."""
    written = text(tomli_w.dumps(run.config))
    return f"<details><summary>config of {text(run.folder.name)}</summary><pre>{written}</pre></details>"


def _made_with(facts: dict[str, Any]) -> str:
    versions = facts.get("versions")
    parts = [f"edgesim {facts.get('edgesim', '(version unknown)')}"]
    parts += [f"commit {facts['git_commit']}"] if facts.get("git_commit") else []
    parts += [f"Python {facts['python']}"] if facts.get("python") else []
    parts += [f"{name} {version}" for name, version in versions.items()] if isinstance(versions, dict) else []
    parts += [str(facts[name]) for name in ("platform", "cpu") if facts.get(name)]
    return f"<p>Made with {text(', '.join(parts))}.</p>"


def _commands(facts: dict[str, Any], again: Sequence[str]) -> str:
    command = facts.get("command")
    begun = shlex.join(_typed([str(part) for part in command])) if isinstance(command, list) and command else ""
    first = f"<p>Begun by</p><pre>{text(begun)}</pre>" if begun else ""
    return f"{first}<p>Again, from what is kept</p><pre>{text(chr(10).join(again))}</pre>"


def _typed(arguments: list[str]) -> list[str]:
    """Arguments of a process as they are typed: a script has the interpreter before it."""
    first = Path(arguments[0])
    if first.name == "__main__.py":
        return ["python", "-m", first.parent.name, *arguments[1:]]
    return ["python", *arguments] if first.suffix == ".py" else arguments
