"""Versions and hashes of the installed packages that a user's own code imports.

Of the packages that edgesim requires only the version: to read the files of PyTorch takes longer than many a run.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import metadata
from pathlib import Path

from edgesim.base.file_digest import file_digest
from edgesim.base.sources import installed_imports, locate


def imported_packages(modules: Iterable[str]) -> set[str]:
    """Installed packages that some modules and the user code behind them import, by the names of the imports.

    Imports count as `edgesim.base.sources` sees them.
    """
    return {package for module in modules for package in installed_imports(module)}


def package_digest(package: str) -> str:
    """Version, where it is known, and SHA-256 of the files of a package, given by the name of its import.

    Of a package that edgesim requires (other than for its extras), the version alone.
    """
    from packaging.utils import canonicalize_name

    if canonicalize_name(package) in _required():
        # Without the records of all installed packages, which take a quarter of a second to read.
        return metadata.version(package)
    names = sorted(set(_distributions().get(package, ())))
    versions = [metadata.version(name) for name in names]
    if names and _required().issuperset(map(canonicalize_name, names)):
        return " ".join(versions)
    return " ".join([*versions, _content_hash(package)])


package_digest_when_loaded = cache(package_digest)
"""`package_digest` at this process's first call for the package, whose code the process keeps."""


def _content_hash(package: str) -> str:
    """SHA-256 of the names and contents of a package's files.

    From the folders that Python imports it from: lists of installed files leave out those of editable installs.
    """
    place, digest = locate(package), hashlib.sha256()
    files = [] if place.file is None else [(place.file.name, place.file)]
    for folder in map(Path, place.folders):
        files += [(file.relative_to(folder.parent).as_posix(), file) for file in _files(folder)]
    for name, file in sorted(files):
        digest.update(f"{name} ".encode(errors="surrogateescape") + file_digest(file))
    return digest.hexdigest()


def _files(root: Path) -> Iterator[Path]:
    """Files of a package's folder, but for hidden ones and what Python compiles by itself.

    No link to a folder is followed, so that the walk ends.
    """
    for folder, inner, names in os.walk(root):
        inner[:] = [name for name in inner if not name.startswith(".") and name != "__pycache__"]
        files = (Path(folder, name) for name in names if not name.startswith("."))
        # Neither dangling links nor pipes.
        yield from (file for file in files if file.is_file())


@cache
def _distributions() -> dict[str, list[str]]:
    """Names of the installed distributions, by the names of the imports that they provide."""
    return dict(metadata.packages_distributions())


@cache
def _required() -> frozenset[str]:
    """Canonical names of the distributions that edgesim requires, without those of its extras."""
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    requirements = map(Requirement, metadata.requires("edgesim") or ())
    return frozenset(
        canonicalize_name(requirement.name)
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""})
    )
