"""Versions and hashes of the installed packages that a user's own code imports.

Not of those that edgesim itself requires: all runs go by them, and to read the files of PyTorch takes longer than many
a run. ``run.json`` notes versions of those that results depend on (``versions``).
"""

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path

from edgesim.base.file_digest import file_digest
from edgesim.base.paths import files_below
from edgesim.base.sources import installed_imports, locate

_NAME = re.compile(r"[A-Za-z0-9._-]+")


def imported_packages(modules: Iterable[str]) -> set[str]:
    """Installed packages that some modules and the user code behind them import, as they are imported.

    Imports count as `edgesim.base.sources` sees them. What edgesim requires is left out.
    """
    tops = {top for module in modules for top in installed_imports(module) if _plain(top) not in _required()}
    # Only now, since to read the records of all installed packages takes a quarter of a second.
    return {top for top in tops if not _required().intersection(map(_plain, _distributions().get(top, ())))}


def package_digest(package: str) -> str:
    """Version, where one is known, and SHA-256 of the files of a package, given as it is imported.

    All of its files count that are not hidden, but for what Python compiles by itself.
    """
    place, digest = locate(package), hashlib.sha256()
    files = {} if place.file is None else {place.file.name: place.file}
    for folder in map(Path, place.folders):
        files |= {f"{folder.name}/{below}": folder / below for below in files_below(folder)}
    for name in sorted(files):
        if "__pycache__" not in name:
            digest.update(f"{name} ".encode(errors="surrogateescape") + file_digest(files[name]))
    versions = [metadata.version(name) for name in sorted(set(_distributions().get(package, ())))]
    return " ".join([*versions, digest.hexdigest()])


package_digest_when_loaded = cache(package_digest)
"""`package_digest` at this process's first call for the package, whose code the process goes on with."""


@cache
def _distributions() -> dict[str, list[str]]:
    """Names of what was installed, by what is imported of it."""
    return dict(metadata.packages_distributions())


@cache
def _required() -> frozenset[str]:
    """Names of what edgesim requires, for its extras too."""
    found = (_NAME.match(line) for line in metadata.requires("edgesim") or ())
    return frozenset(_plain(name[0]) for name in found if name is not None)


def _plain(name: str) -> str:
    """A name as indexes of packages compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()
