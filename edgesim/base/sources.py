"""The hash of a module's source: its file and the user's own modules that it imports, directly or not.

Modules are found as Python finds them, but none is run. Import statements count wherever they stand, inside functions
too; imports by a computed name, and files that a module reads, are not seen. Modules of Python do not count;
`edgesim.simulation.packages` hashes installed packages. Of edgesim only the parts that a config names count
(`_PARTS`): its version stands for the rest.
"""

import ast
import hashlib
import importlib.util
import sys
from collections.abc import Iterator
from functools import cache
from importlib.machinery import all_suffixes
from os.path import isdir, isfile, join
from pathlib import Path
from typing import NamedTuple

from edgesim.base.file_digest import file_state

_PARTS = (
    "edgesim.selection",
    "edgesim.learning.algorithms",
    "edgesim.prediction",
    "edgesim.learning.partitions",
    "edgesim.learning.models",
)
_INSTALLED = {"site-packages", "dist-packages"}
_MAIN = {"__main__", "__mp_main__"}
"""Names of the script that is run, in its own process and in the processes that it starts."""


class _Import(NamedTuple):
    """One import statement of a module: ``from origin import names`` or ``import origin``."""

    origin: str
    names: tuple[str, ...]
    level: int
    """Dots in front of ``origin``."""


class Place(NamedTuple):
    """File of a module (None for a package without ``__init__.py``), and the folders of its submodules."""

    file: Path | None
    folders: tuple[str, ...]


_NOWHERE = Place(None, ())


def source_digest(module: str) -> str | None:
    """SHA-256 of a module's file and of all user code that it imports, directly or not; None if it has no file."""
    hashes = {name: content for name, (_, content) in _walk(module).items()}
    digest = hashlib.sha256()
    for name, content in sorted(hashes.items()):
        digest.update(f"{name} ".encode() + content)
    return digest.hexdigest() if _own_name(module) in hashes else None


def source_files(module: str) -> dict[str, Path]:
    """Files of a module and of all user code that it imports, directly or not, by module; without edgesim's."""
    return {name: file for name, (file, _) in _walk(module).items() if _top(name) != "edgesim"}


#: `source_digest` at this process's first call for the module. The process keeps the code that it has loaded, so
#: it must not record the hash of a file edited since.
digest_when_loaded = cache(source_digest)


def installed_imports(module: str) -> set[str]:
    """Names at the top of the installed packages that a module and the user code behind it import, and of its own."""
    origins = {module}
    for file, _ in _walk(module).values():
        origins |= {each.origin for each in _read(file, *file_state(file))[1] if not each.level}
    tops = {_top(origin) for origin in origins} - {"", "edgesim", *_MAIN} - sys.stdlib_module_names
    return {
        top for top in tops if any(map(is_installed, (locate(top).file or Path(), *map(Path, locate(top).folders))))
    }


def is_installed(file: Path) -> bool:
    """Whether a file is of an installed package."""
    return bool(_INSTALLED & set(file.parts))


def mentions(module: str, text: str) -> bool:
    """Whether a module, or code that `source_digest` would count with it, contains a text."""
    return any(text.encode() in file.read_bytes() for file, _ in _walk(module).values())


def _own_name(module: str) -> str:
    return "__main__" if module in _MAIN else module


def _walk(module: str) -> dict[str, tuple[Path, bytes]]:
    """File and hash of a module and of all user code that it imports, by name."""
    module = _own_name(module)
    walked: dict[str, tuple[Path, bytes]] = {}
    left = [module, *(name for name in _packages(module) if _counts(name, module))]
    while left:
        name = left.pop()
        file = locate(name).file
        if name in walked or file is None:
            continue
        content, imports = _read(file, *file_state(file))
        walked[name] = file, content
        left += [other for other in _imported(name, file, imports) if other not in walked and _counts(other, name)]
    return walked


def _counts(name: str, importer: str) -> bool:
    """Whether a module that ``importer`` imports is the user's own, or in a part of edgesim that a config names.

    From within a part of edgesim only modules of the same part count, and those of ``edgesim.prediction``: a partition
    that imports a type from the policies need not be run again when a policy changes.
    """
    if _top(name) != "edgesim":
        file = locate(name).file
        return _top(name) not in sys.stdlib_module_names and file is not None and not is_installed(file)
    part = next((part for part in _PARTS if name == part or name.startswith(f"{part}.")), None)
    return part is not None and (
        _top(importer) != "edgesim" or importer.startswith(part) or part == "edgesim.prediction"
    )


def _top(name: str) -> str:
    return name.partition(".")[0]


def _packages(name: str) -> list[str]:
    """The packages around a module, which Python imports with it; none for edgesim's, which import all entries."""
    parts = name.split(".")
    return [] if parts[0] == "edgesim" else [".".join(parts[:end]) for end in range(1, len(parts))]


def _imported(name: str, file: Path, imports: tuple[_Import, ...]) -> Iterator[str]:
    """Names of the modules that a module imports, and of the packages around them."""
    package = name if file.stem == "__init__" else name.rpartition(".")[0]
    for statement in imports:
        origin = statement.origin
        if statement.level:
            above = package.split(".")
            origin = ".".join([*above[: len(above) - statement.level + 1], *filter(None, [origin])])
        if not origin or _is_foreign(origin):
            continue
        modules = {origin if locate(inner := f"{origin}.{part}") == _NOWHERE else inner for part in statement.names}
        for module in modules or {origin}:
            yield from (module, *_packages(module))


def _is_foreign(origin: str) -> bool:
    """Whether no module at or below ``origin`` counts, whichever module imports it; decided by the name alone."""
    top = _top(origin)
    if top == "edgesim":
        return not any(f"{part}.".startswith(f"{origin}.") or f"{origin}.".startswith(f"{part}.") for part in _PARTS)
    if top in sys.stdlib_module_names:
        return True
    file = locate(top).file
    return file is not None and is_installed(file)


def locate(name: str) -> Place:
    """File and folders of a module, by its full name.

    `importlib.util.find_spec` of the full name would run the packages around the module.
    """
    if name == "__main__":
        script = getattr(sys.modules["__main__"], "__file__", None)
        return Place(Path(script), ()) if script else _NOWHERE
    top, *inner = name.split(".")
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return _NOWHERE
    if spec is None:
        return _NOWHERE
    file = Path(spec.origin) if spec.has_location and spec.origin else None
    place = Place(file, tuple(spec.submodule_search_locations or ()))
    for part in inner:
        place = _inside(place.folders, part)
    return place


def _inside(folders: tuple[str, ...], part: str) -> Place:
    """File and folders of a module of a package with these folders.

    Python's own finders remember what a folder held, and miss a file that was written in the same tick of its clock.
    """
    for folder in folders:
        package = join(folder, part)
        if isfile(init := join(package, "__init__.py")):
            return Place(Path(init), (package,))
        for suffix in all_suffixes():
            if isfile(file := f"{package}{suffix}"):
                return Place(Path(file), ())
    return Place(None, tuple(filter(isdir, (join(folder, part) for folder in folders))))


@cache
def _read(file: Path, *state: int) -> tuple[bytes, tuple[_Import, ...]]:
    """A file's hash and its import statements; read only once while the file's inode, size and times do not change."""
    content = file.read_bytes()
    imports: list[_Import] = []
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        # A compiled module, or one with a syntax error, which Python will report when it imports it.
        tree = ast.Module([], [])
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imports += [_Import(alias.name, (), 0) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            imports.append(_Import(node.module or "", tuple(alias.name for alias in node.names), node.level))
    return hashlib.sha256(content).digest(), tuple(imports)
