"""The code that a config names: edgesim's own entries, those of installed packages, and the user's own."""

import shutil
from pathlib import Path
from typing import Any

from edgesim.config import RunConfig
from edgesim.files.paths import system_errors
from edgesim.joining import LAWS as JOINING
from edgesim.learning.algorithms import ALGORITHMS
from edgesim.learning.drift import LAWS as DRIFT
from edgesim.learning.partitions import PARTITIONS
from edgesim.learning.payload import model_module
from edgesim.radio.environment import path_loss_name
from edgesim.radio.laws import LAWS as PATH_LOSS
from edgesim.registry import Registry
from edgesim.runs.sources import source_files
from edgesim.selection import SELECTORS
from edgesim.traces.models import MODELS as PRESENCE

CODE = "code"
"""The folder within a run's folder for the user's own modules that it ran."""


def modules(config: RunConfig) -> dict[str, str]:
    """Modules of policy, algorithm, partition, drift law, joining law and model of a complete config, by its keys.

    Presence models and path-loss laws are among them where they are not edgesim's own.
    """
    found = {key: registry[name].__module__ for key, (registry, name) in _named(config).items()}
    if config.learning.training == "real":
        found["learning.model"] = model_module(config.learning.model)
    return found


def foreign(config: RunConfig) -> dict[str, str]:
    """What a config names of code outside edgesim, by ``section.key``; nothing of it is imported."""
    found = {key: name for key, (registry, name) in _named(config).items() if registry.foreign(name)}
    model = config.learning.model
    if config.learning.training == "real" and not model_module(model).startswith("edgesim."):
        found["learning.model"] = model
    return found


def keep_code(config: RunConfig, folder: Path) -> None:
    """Copy the user's own modules that a complete config names, and those that they import, into a run's folder.

    What a run before left there is removed. Raises `EdgesimError` where the system refuses.
    """
    kept = folder / CODE
    with system_errors(f"{kept}: cannot be written"):
        if kept.is_dir() and not kept.is_symlink():
            shutil.rmtree(kept)
        for name, file in own_files(config).items():
            inner = Path(*name.split("."))
            copy = kept / (inner / file.name if file.stem == "__init__" else inner.with_name(file.name))
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)


def own_files(config: RunConfig) -> dict[str, Path]:
    """Files of the user's own modules that a complete config names, and of those that they import, by module."""
    own = modules(config)
    return {name: file for key in foreign(config) for name, file in source_files(own[key]).items()}


def _named(config: RunConfig) -> dict[str, tuple[Registry[Any], str]]:
    """Registry and name of each entry, by ``section.key``."""
    found: dict[str, tuple[Registry[Any], str]] = {
        "selection.policy": (SELECTORS, config.selection.policy),
        "algorithm.name": (ALGORITHMS, config.algorithm.name),
    }
    if config.algorithm.server != "own":
        found["algorithm.server"] = ALGORITHMS, config.algorithm.server
    if config.data.dataset != "none" and config.data.partition is not None:
        found["data.partition"] = PARTITIONS, config.data.partition
    if config.drift.law != "frames":
        found["drift.law"] = DRIFT, config.drift.law
    if config.joining is not None:
        found["joining.law"] = JOINING, config.joining.law
    if PRESENCE.foreign(config.availability.model):
        found["availability.model"] = PRESENCE, config.availability.model
    law = path_loss_name(config.radio.channel)
    if law is not None and PATH_LOSS.foreign(law):
        found["radio.channel.path_loss"] = PATH_LOSS, law
    return found
