"""Where content lives: the path as given, then the folder of that kind here, then the packaged copy."""

from pathlib import Path

from edgesim.errors import EdgesimError
from edgesim.files.paths import check_path
from edgesim.registry import did_you_mean

_PACKAGE = Path(__file__).parents[1]


def folders(kind: str) -> list[Path]:
    """Folders searched for content of a kind (``channels``, ``topologies``, ``traces``, ``scenarios``), in order.

    An editable install has no packaged copy: there the repository's own folder takes its place.
    """
    candidates = [Path(kind), _PACKAGE / "content" / kind, _PACKAGE.parent / kind]
    return [folder for folder in candidates if folder.is_dir()]


def find(kind: str, name: str, suffix: str, key: str = "") -> Path:
    """Path of one item, given as a path or as a bare name; raises `EdgesimError` that lists the names of all items.

    ``key`` is that of the config which names it, if one does.
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
    known = names(kind, suffix)
    begun = [item for item in known if item.startswith(name)]
    hint = did_you_mean(name, begun or known, 0.0 if begun else 0.4) or ";"
    choice = f" give a path or one of: {', '.join(known)}" if known else " give a path"
    found = f"{name!r} is a folder, not a file" if as_given.is_dir() else f"no file {name!r}"
    raise EdgesimError(f"{key or kind}: {found}{hint}{choice}", *([key] if key else []))


def names(kind: str, suffix: str) -> list[str]:
    """Bare names of all items of a kind, sorted."""
    return sorted({path.stem for folder in folders(kind) for path in folder.glob(f"*{suffix}")})
