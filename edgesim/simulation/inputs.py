"""Hashes of the files that a run reads and of the code it runs: a finished run is reused only while they are equal."""

import hashlib
from functools import cache, partial
from importlib import metadata
from pathlib import Path

from edgesim.base.content import find
from edgesim.base.errors import EdgesimError
from edgesim.base.file_digest import file_digest
from edgesim.base.paths import files_below
from edgesim.base.sources import digest_when_loaded, source_digest
from edgesim.config import RunConfig
from edgesim.learning.datasets import dataset_files
from edgesim.radio.environment import environment_files
from edgesim.simulation import named_code
from edgesim.simulation.packages import imported_packages, package_digest, package_digest_when_loaded

VERSION = "edgesim"
"""The key of edgesim's version, which stands for all code that no key of a config names."""


def input_digests(config: RunConfig, when_loaded: bool = False) -> dict[str, str]:
    """Hash (SHA-256) of the files or code that a key of a complete config names, by ``section.key``.

    A file is hashed by its content; a folder by the names, sizes and modification times of its files that are not
    hidden; code by its source (`edgesim.base.sources`), with ``when_loaded`` as it was when this process first asked.
    Under ``package NAME`` stands each installed package that user code imports (`edgesim.simulation.packages`), with
    its version, or the version alone where edgesim requires it. Under `VERSION` stands edgesim's version itself, not a
    hash. Keys whose files do not exist are left out.
    """
    links, data, moves = config.devices.links, config.data, config.mobility
    listing = data.partition_options.get("file") if data.dataset != "none" else None
    sources = {
        "radio.channel": partial(environment_files, config.radio.channel),
        "topology.file": partial(_content, "topologies", config.topology.file, ".toml"),
        "selection.file": partial(_given, config.selection.options.get("file")),
        "devices.profile": partial(_content, "traces", config.devices.profile, ".parquet"),
        "devices.links.file": partial(_content, "traces", None if links is None else links.file, ".parquet"),
        "availability.file": partial(_content, "traces", config.availability.options.get("file"), ".parquet"),
        "mobility.file": partial(_content, "traces", None if moves is None else moves.options.get("file"), ".parquet"),
        "data.partition_options.file": partial(_content, "partitions", listing, ".parquet"),
        "data.dataset": partial(dataset_files, data),
    }
    digests = {VERSION: version_of("edgesim")}
    of_code, of_package = source_digest, package_digest
    if when_loaded:
        of_code, of_package = digest_when_loaded, package_digest_when_loaded
    own = named_code.modules(config)
    digests |= {key: digest for key, module in own.items() if (digest := of_code(module)) is not None}
    foreign = {own[key] for key in named_code.foreign(config)}
    digests |= {f"package {name}": of_package(name) for name in sorted(imported_packages(foreign))}
    for key, files in sources.items():
        try:
            paths = files()
            if paths:
                digests[key] = _digest(paths)
        except (EdgesimError, OSError):
            # If the run needs the file, its own check refuses it with a better message.
            continue
    return digests


version_of = cache(metadata.version)
"""The version of an installed package, by its name."""


def _given(name: str | None) -> list[Path]:
    return [] if name is None else [Path(name)]


def _content(kind: str, name: str | None, suffix: str) -> list[Path]:
    return [] if name is None else [find(kind, name, suffix)]


def _digest(paths: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        if path.is_dir():
            for below in files_below(path):
                state = (path / below).stat()
                line = f"{state.st_size} {state.st_mtime_ns} {below}\n"
                digest.update(line.encode(errors="surrogateescape"))
        elif path.is_file():
            digest.update(file_digest(path))
        else:
            # A pipe or a device may never end.
            raise EdgesimError(f"{path}: expected a file or a folder")
    return digest.hexdigest()
