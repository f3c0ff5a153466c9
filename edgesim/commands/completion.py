"""Completions that shells offer when TAB is pressed after an option or an argument."""

from collections.abc import Callable

from edgesim.api import names
from edgesim.commands import explain
from edgesim.learning.codecs import DOWNWARD

_NAMES: dict[str, Callable[[], list[str]]] = {
    "algorithm.name": names.algorithms,
    "algorithm.server": names.algorithms,
    "availability.file": names.recordings,
    "availability.model": names.presence_models,
    "data.dataset": names.datasets,
    "data.partition": names.partitions,
    "devices.links.file": names.recordings,
    "devices.profile": names.recordings,
    "download.codec": lambda: DOWNWARD.names,
    "drift.law": names.drift_laws,
    "joining.law": names.joining_laws,
    "learning.model": names.models,
    "mobility.file": names.recordings,
    "mobility.model": names.motion_models,
    "radio.channel": names.channels,
    "round.protocol": names.protocols,
    "selection.policy": names.policies,
    "topology.file": names.topologies,
    "upload.codec": names.codecs,
}
"""Lists of what keys may name."""


def settings(incomplete: str) -> list[str]:
    """For ``--set``: keys of a config, and behind the equals sign what a key may be."""
    key, equals, value = incomplete.partition("=")
    if equals:
        known = _NAMES[key]() if key in _NAMES else explain.choices(key)
        return [f"{key}={name}" for name in known if name.startswith(value)]
    return [f"{name}=" for name in explain.key_names() if name.startswith(incomplete)]


def keys(incomplete: str) -> list[str]:
    """Keys and tables of a config."""
    return [name for name in (*explain.sections(), *explain.key_names()) if name.startswith(incomplete)]


def scenarios(incomplete: str) -> list[str]:
    """Names of scenarios."""
    return [name for name in names.scenarios() if name.startswith(incomplete)]
