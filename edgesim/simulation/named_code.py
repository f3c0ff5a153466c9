"""The code that a config names: edgesim's own entries, those of installed packages, and the user's own."""

import importlib
import shutil
import sys
from pathlib import Path

from edgesim.base.paths import system_errors
from edgesim.base.sources import digest_when_loaded, source_digest, source_files
from edgesim.config import RunConfig
from edgesim.learning.payload import model_module
from edgesim.simulation import kinds

CODE = "code"
"""The folder within a run's folder for the user's own modules that it ran."""


def modules(config: RunConfig) -> dict[str, str]:
    """Modules of policy, algorithm, partition, drift law, joining law and model of a complete config, by its keys.

    Presence models and path-loss laws are among them where they are not edgesim's own.
    """
    by_key = {key: registry[name].__module__ for key, registry, name in kinds.named(config)}
    if config.learning.training == "real":
        by_key["learning.model"] = model_module(config.learning.model)
    return by_key


def foreign(config: RunConfig) -> dict[str, str]:
    """Names in a config of code outside edgesim, by ``section.key``; nothing of it is imported."""
    paths = {key: (registry.foreign(name), name) for key, registry, name in kinds.named(config)}
    names = {key: name for key, (path, name) in paths.items() if path and not path.startswith("edgesim.")}
    model = config.learning.model
    if config.learning.training == "real" and not model_module(model).startswith("edgesim."):
        names["learning.model"] = model
    return names


def keep_code(config: RunConfig, folder: Path) -> None:
    """Copy the user's own modules that a complete config names, and those that they import, into a run's folder.

    Code of an earlier run is removed; the lease of the folder is held. Raises `EdgesimError` where the system
    refuses.
    """
    target = folder / CODE
    with system_errors(f"{target}: cannot be written"):
        if target.is_dir():
            shutil.rmtree(target)
        for name, file in own_files(config).items():
            inner = Path(*name.split("."))
            copy = target / (inner / file.name if file.stem == "__init__" else inner.with_name(file.name))
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)


def own_files(config: RunConfig) -> dict[str, Path]:
    """Files of the user's own modules that a complete config names, and of those that they import, by module."""
    own = modules(config)
    return {name: file for key in foreign(config) for name, file in source_files(own[key]).items()}


def load_anew(config: RunConfig) -> None:
    """Unload the user's own modules that a config names if their files have changed, so that they are imported again.

    A notebook runs for days; a module edited meanwhile would otherwise count as it was when first imported.
    """
    for name in foreign(config).values():
        module = name.rpartition(".")[0]
        if module in sys.modules and digest_when_loaded(module) != source_digest(module):
            for own in source_files(module):
                sys.modules.pop(own, None)
            importlib.invalidate_caches()
            digest_when_loaded.cache_clear()
