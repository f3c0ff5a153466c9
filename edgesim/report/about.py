"""Section of the page on the run: versions, config, and the commands that repeat it."""

import shlex
from collections.abc import Sequence
from typing import Any

import tomli_w

from edgesim.analysis.runs import RunFolder
from edgesim.folder.records import read_run
from edgesim.report.tables import text


def about(run: RunFolder, *further: str) -> str:
    """Facts of a run, the commands that repeat it, any ``further`` ones, and its whole config, as HTML."""
    facts = read_run(run.folder)
    again = [f"edgesim run {shlex.quote(str(run.folder / 'config.toml'))} --out NEW_FOLDER", *further]
    return _made_with(facts) + _commands(facts, again) + config_html(run)


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
    begun = shlex.join(str(part) for part in command) if isinstance(command, list) else ""
    first = f"<p>Begun by</p><pre>{text(begun)}</pre>" if begun else ""
    return f"{first}<p>Again, from what is kept</p><pre>{text(chr(10).join(again))}</pre>"
