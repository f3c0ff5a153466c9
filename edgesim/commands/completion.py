"""Completions that shells offer when TAB is pressed after an option or an argument."""

from collections.abc import Callable

from edgesim.api import names
from edgesim.commands import explain
from edgesim.learning.codecs import DOWNWARD
from edgesim.simulation.kinds import KINDS

_NAMES: dict[str, Callable[[], list[str]]] = {
    "availability.file": names.recordings,
    "data.dataset": names.datasets,
    "devices.links.file": names.recordings,
    "devices.profile": names.recordings,
    "download.codec": lambda: DOWNWARD.names,
    "learning.model": names.models,
    "mobility.file": names.recordings,
    "radio.channel": names.channels,
    "topology.file": names.topologies,
}
"""Lists of what keys may name beside entries of registries."""


def settings(incomplete: str) -> list[str]:
    """For ``--set``: keys of a config, and behind the equals sign what a key may be."""
    key, equals, value = incomplete.partition("=")
    if equals:
        entries = [name for kind in KINDS.values() if key in kind.keys for name in kind.names]
        known = _NAMES[key]() if key in _NAMES else entries or explain.choices(key)
        return [f"{key}={name}" for name in known if name.startswith(value)]
    return [f"{name}=" for name in explain.key_names() if name.startswith(incomplete)]


def keys(incomplete: str) -> list[str]:
    """Keys and tables of a config."""
    return [name for name in (*explain.sections(), *explain.key_names()) if name.startswith(incomplete)]


def scenarios(incomplete: str) -> list[str]:
    """Names of scenarios."""
    return [name for name in names.scenarios() if name.startswith(incomplete)]
