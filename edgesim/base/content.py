"""Look-up of shipped content: by its path, then in the current folder's folder of that kind, then in the package."""

from pathlib import Path

from edgesim.base.errors import EdgesimError
from edgesim.base.paths import check_path
from edgesim.base.registry import did_you_mean
from edgesim.base.table_file import column_names

_PACKAGE = Path(__file__).parents[1]


def folders(kind: str) -> list[Path]:
    """Folders searched for content of a kind (``channels``, ``topologies``, ``traces``, ``scenarios``), in order.

    An editable install has no packaged copy: there the repository's own folder takes its place.
    """
    candidates = [Path(kind), _PACKAGE / "content" / kind, _PACKAGE.parent / kind]
    return [folder for folder in candidates if folder.is_dir()]


def find(kind: str, name: str, suffix: str, key: str = "", column: str = "") -> Path:
    """Path of one item, given as a path or as a bare name; raises `EdgesimError` that lists the names of all items.

    ``key`` is the key of the config that names the item, if any. With ``column`` the error lists only tables that have
    a column of this name: a folder holds recordings of several kinds.
    """
    check_path(name, key or kind)
    as_given = Path(name)
    if as_given.is_file():
        return as_given
    # Bare names are looked up within the folders only, so an absolute path or one with ".." matches nothing there.
    inside = not as_given.is_absolute() and ".." not in as_given.parts
    for folder in folders(kind) if inside else []:
        for candidate in (folder / name, folder / f"{name}{suffix}"):
            if candidate.is_file():
                return candidate
    known = names(kind, suffix, column)
    begun = [item for item in known if item.startswith(name)]
    hint = did_you_mean(name, begun or known, 0.0 if begun else 0.4) or ";"
    choice = f" give a path or one of: {', '.join(known)}" if known else " give a path"
    problem = f"{name!r} is a folder, not a file" if as_given.is_dir() else f"no file {name!r}"
    raise EdgesimError(f"{key or kind}: {problem}{hint}{choice}", *([key] if key else []))


def names(kind: str, suffix: str, column: str = "") -> list[str]:
    """Bare names of all items of a kind, sorted; with ``column`` those of the tables that have such a column."""
    paths = (path for folder in folders(kind) for path in folder.glob(f"*{suffix}"))
    return sorted({path.stem for path in paths if not column or _has(path, column)})


def _has(path: Path, column: str) -> bool:
    try:
        return column in column_names(path)
    except EdgesimError:
        return False
