"""Facts that a bug report about an installation needs first: versions, the machine, and missing parts.

At the top this module loads nothing but Python's own packages: it speaks of an installation in which others are missing
or broken.
"""

import importlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from edgesim.base.memory import free_bytes
from edgesim.base.processes import cores
from edgesim.learning.cache import cache_folder
from edgesim.screen.plain import ends_with_its_reader

if TYPE_CHECKING:
    from packaging.requirements import Requirement

_ROOT = Path(__file__).parents[2]
CONTENT = {"channels": "*.toml", "topologies": "*.toml", "traces": "*", "scenarios": "*.py"}
"""Kinds of content, and which files of their folders are of them."""
_SHARED_IMAGES_BYTES = 60_000 * (3 * 32 * 32 + 8)
"""CIFAR-10 and its labels, as the back end `workers` holds them in shared memory once."""
_SHARED_MODEL_BYTES = 2 * 4 * 11_173_962
"""Start weights and update of ResNet-18, which it holds for each worker."""


class Fact(NamedTuple):
    """One line of the table."""

    what: str
    value: str
    expected: str = ""
    fails: bool = False
    """Whether runs cannot work because of it."""


def facts() -> list[Fact]:
    """All facts, in the order of the table; takes as long as all packages that edgesim needs take to load."""
    about = (_versions, _extras, _machine, _gpu, _shared_memory, _folders)
    return [fact for ask in about for fact in ask()]


def table(rows: list[Fact]) -> str:
    """The facts in columns, then a line for each reason why runs cannot work."""
    first, second = (max(map(len, column)) for column in ([fact.what for fact in rows], [fact.value for fact in rows]))
    lines = [f"{fact.what:{first}}  {fact.value:{second}}  {fact.expected}".rstrip() for fact in rows]
    reasons = [f"error: {fact.what}: {fact.value}; expected {fact.expected}" for fact in rows if fact.fails]
    return "\n".join([*lines, *reasons])


def main() -> None:
    """The command ``edgesim doctor``: print the table; ends with status 1 where runs cannot work."""
    with ends_with_its_reader():
        rows = facts()
        print(table(rows))
    sys.exit(any(fact.fails for fact in rows))


def _versions() -> Iterator[Fact]:
    """edgesim, Python, and each package that edgesim needs, with the versions that it takes."""
    if not (own := _version("edgesim")):
        yield Fact("edgesim", f"{_ROOT} is not installed", "pip install", fails=True)
        return
    yield Fact("edgesim", f"{own}{_commit()}, {Path(__file__).parents[1]}")
    bounds = metadata.metadata("edgesim")["Requires-Python"]
    if not _version("packaging"):
        yield Fact("packaging", "missing", "any version, to compare the others", fails=True)
        return
    from packaging.requirements import Requirement
    from packaging.specifiers import SpecifierSet

    version = platform.python_version()
    taken = SpecifierSet(bounds).contains(version, prereleases=True)
    yield Fact("Python", f"{version} ({sys.executable})", bounds, fails=not taken)
    for requirement in map(Requirement, metadata.requires("edgesim") or []):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            reason = _broken(requirement.name)
            version = _version(requirement.name) or "missing"
            fails = bool(reason) or not _is_there(requirement)
            yield Fact(requirement.name, reason or version, str(requirement.specifier), fails)


def _extras() -> Iterator[Fact]:
    """The optional packages, each with the command that installs it; none of them is needed."""
    if not (_version("edgesim") and _version("packaging")):
        return
    from packaging.requirements import Requirement

    requirements = [*map(Requirement, metadata.requires("edgesim") or [])]
    for extra in metadata.metadata("edgesim").get_all("Provides-Extra") or []:
        own = [each for each in requirements if each.marker and each.marker.evaluate({"extra": extra})]
        missing = [each.name for each in own if not _is_there(each)]
        # Runs need none of the packages for development, and loading all of those takes long.
        reasons = [f"{each.name} is {reason}" for each in own if extra != "dev" and (reason := _broken(each.name))]
        value = f"missing: {', '.join(missing)}" if missing else ", ".join(reasons) or "installed"
        yield Fact(f"extra {extra}", value, f"pip install 'edgesim[{extra}]'" if missing else "")


def _is_there(requirement: "Requirement") -> bool:
    version = _version(requirement.name)
    return version is not None and requirement.specifier.contains(version, prereleases=True)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _commit() -> str:
    """The commit of a checkout, and whether its files were changed since; empty elsewhere."""
    if not (_ROOT / ".git").exists():
        return ""
    commit = _output_of("git", "-C", str(_ROOT), "rev-parse", "--short=12", "HEAD")
    changed = _output_of("git", "-C", str(_ROOT), "status", "--porcelain", "--untracked-files=no")
    return f", commit {commit}{' with changes' if changed else ''}" if commit else ""


def _output_of(*command: str) -> str:
    """Output of a command; empty where there is no such command or it fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _machine() -> Iterator[Fact]:
    """System, cores and memory that this process may use."""
    yield Fact("system", platform.platform())
    quota = _read("/sys/fs/cgroup/cpu.max").split()
    limit = f", of which {float(quota[0]) / float(quota[1]):g} at a time" if quota and quota[0] != "max" else ""
    yield Fact("cores", f"{cores()} of {os.cpu_count()}{limit}")
    most = _read("/sys/fs/cgroup/memory.max").strip()
    limit = f", this container's limit is {_gb(int(most))}" if most.isdigit() else ""
    yield Fact("memory", f"{_gb(free_bytes())} free{limit}")


def _gpu() -> Iterator[Fact]:
    """Facts on the devices that torch can train on, if torch can be loaded."""
    if not _version("torch") or _broken("torch"):
        return
    try:
        import torch

        names = [torch.cuda.get_device_name(device) for device in range(torch.cuda.device_count())]
    except Exception as error:
        yield _unusable("GPU", error)
        return
    driver = _output_of("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader").partition("\n")[0]
    built = f"torch is built for CUDA {torch.version.cuda}" if torch.version.cuda else "torch is built for CPUs"
    yield Fact("GPU", f"{', '.join(names) or 'none'} (driver {driver or 'none'}; {built})")


def _shared_memory() -> Iterator[Fact]:
    """Whether the back end `workers` has room; where it has none, runs train by `loop` instead."""
    folder = Path("/dev/shm")
    if folder.is_dir():
        free = shutil.disk_usage(folder).free
        needed = _SHARED_IMAGES_BYTES + cores() * _SHARED_MODEL_BYTES
        small = f"{_gb(needed)} for CIFAR-10 and a ResNet-18 per core; else learning.back_end is 'loop'"
        yield Fact("shared memory", f"{_gb(free)} free in {folder}", small if free < needed else "")


def _folders() -> Iterator[Fact]:
    """The cache, and the content that comes with edgesim."""
    cache = cache_folder("")
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=cache):
            yield Fact("cache", f"{cache}, {_gb(shutil.disk_usage(cache).free)} free")
    except OSError as error:
        expected = "a folder that can be written; set EDGESIM_CACHE to such a folder"
        yield Fact("cache", f"{cache}: {error.strerror}", expected, fails=True)
    try:
        from edgesim.base import content
    except Exception as error:
        yield _unusable("edgesim", error)
        return
    for kind, pattern in CONTENT.items():
        places = dict.fromkeys(folder.resolve() for folder in content.folders(kind) if any(folder.glob(pattern)))
        expected = "" if places else "a folder that comes with edgesim; install it anew"
        yield Fact(kind, ", ".join(map(str, places)) or "missing", expected, fails=not places)


_packages_of_modules = cache(metadata.packages_distributions)


@cache
def _broken(package: str) -> str:
    """``broken:`` and why an installed package cannot be loaded; empty where it can, or is missing."""
    from packaging.utils import canonicalize_name

    modules = [module for module, packages in _packages_of_modules().items()
               if canonicalize_name(package) in map(canonicalize_name, packages)]  # fmt: skip
    namesake = package.replace("-", "_")
    try:
        for module in [namesake] if namesake in modules else modules:
            importlib.import_module(module)
    except (Exception, SystemExit) as error:  # a package may do anything when it is imported
        return f"broken: {_reason(error)}"
    return ""


def _unusable(what: str, error: Exception) -> Fact:
    """Fact on a broken installation, whose libraries are missing or of another version."""
    return Fact(what, f"cannot be loaded ({_reason(error)})", "a version that can be loaded", fails=True)


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def _read(path: str) -> str:
    """Text of a file of the system; empty where it has none."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _gb(count: int) -> str:
    return f"{count / 1e9:.1f} GB"
