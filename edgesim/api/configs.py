"""Configs of users: a mapping, a file or a checked config, with keys set to other values."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from edgesim.base.errors import EdgesimError
from edgesim.base.paths import as_path
from edgesim.base.text_file import read_toml
from edgesim.config import RunConfig
from edgesim.config_file import Change, changed, overrides_named, parse_with
from edgesim.simulation import named_code
from edgesim.simulation.complete import complete

Config = Mapping[str, Any] | str | Path | RunConfig
"""A nested mapping as in a config file, the path of a TOML file, or a config that is checked already."""

Overrides = Mapping[str, Any] | Sequence[str]
"""Values by key, such as ``{"round.tmax_s": 0.8}`` (None leaves a key out), or ``section.key=value`` as typed."""


def values_of(config: Config) -> tuple[dict[str, Any], str]:
    """A config as a nested mapping of plain values, and its name in errors; raises `EdgesimError`."""
    if isinstance(config, RunConfig):
        return config.model_dump(exclude_none=True, by_alias=True), "config"
    if isinstance(config, str | Path):
        return read_toml(as_path(config, "config")), str(config)
    if isinstance(config, Mapping):
        return _plain(config), "config"
    raise EdgesimError(
        f"config: expected a mapping, the path of a TOML file or a RunConfig (got {type(config).__name__})"
    )


def configured(config: Config, set: Overrides | None = None) -> RunConfig:
    """Check a config; raises `EdgesimError` that names the key.

    The user's own modules that it names are loaded again if they have changed.
    """
    if isinstance(config, RunConfig) and not set:
        checked = config
    else:
        values, where = values_of(config)
        changes = changes_of(set or ())
        checked = parse_with(lambda typed: changed(values, {text: changes[text] for text in typed}), [*changes], where)
    named_code.load_anew(checked)
    return checked


def completed(checked: RunConfig, set: Overrides | None = None) -> RunConfig:
    """Complete a config that was `configured`; raises `EdgesimError` that names what was set."""
    with overrides_named([*changes_of(set or ())]):
        return complete(checked)


def with_set(values: Mapping[str, Any], set: Overrides) -> dict[str, Any]:
    """Copy a nested mapping and set keys of the copy; raises `EdgesimError` for a key within a value."""
    return changed(values, changes_of(set))


def changes_of(overrides: Overrides) -> dict[str, Change]:
    """Changes of a config by their name in errors, ``key=value``; raises `EdgesimError` for a single text."""
    if isinstance(overrides, Mapping):
        return {f"{key}={value!r}": (key, value) for key, value in _plain(overrides).items()}
    if isinstance(overrides, str):
        raise EdgesimError(f"set: expected a mapping such as {{'round.tmax_s': 0.8}} (got {overrides!r})")
    return dict.fromkeys(overrides)


def _plain(value: Any) -> Any:
    """Convert arrays, numbers of NumPy, paths and tuples to the values of a config file."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return [_plain(inner) for inner in value] if isinstance(value, list | tuple | range) else value


def folder_for(out: str | Path | None, config: object, kind: str, complete: Iterable[RunConfig]) -> Path:
    """The folder ``out``; if absent, one below ``runs`` named by the config's file or else by a hash.

    The latter is ``run-`` or ``study-`` (``kind``) and eight digits of a hash of the ``complete`` configs: equal
    configs have one folder, different configs different folders.
    """
    if out is not None:
        return as_path(out, "out")
    if isinstance(config, str | Path):
        return as_path(Path("runs") / Path(config).stem, kind)
    text = "\n".join(settings.model_dump_json(by_alias=True) for settings in complete)
    return Path("runs") / f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def paths_of(folders: str | Path | Sequence[str | Path]) -> list[Path]:
    """Paths of one folder or of several."""
    many = folders if isinstance(folders, Iterable) and not isinstance(folders, str) else [folders]
    return [as_path(folder, "folders") for folder in many]
