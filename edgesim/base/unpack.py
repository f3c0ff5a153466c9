"""Unpacking archives that others made: nothing leaves the folder, whatever names and links an archive has."""

import gzip
import shutil
import tarfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from edgesim.base.errors import EdgesimError

_BROKEN = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError, RuntimeError)
"""Errors of the standard library for archives that are broken, encrypted or have names that lead elsewhere."""


def unpack(archive: Path) -> None:
    """Unpack a ``.tar.gz`` or ``.zip`` beside itself, or a ``.gz`` into a file of its name without that, and remove it.

    Raises `EdgesimError` for an archive that is broken, whose files lie outside of its folder, or which holds links or
    devices; its other files may then have been unpacked.
    """
    try:
        if archive.name.endswith(".tar.gz"):
            with tarfile.open(archive, "r:gz") as tar:
                tar.extractall(archive.parent, filter=_plain)
        elif archive.suffix == ".zip":
            with zipfile.ZipFile(archive) as members:
                for name in members.namelist():
                    _check_inside(name)
                members.extractall(archive.parent)
        else:
            with gzip.open(archive) as packed, archive.with_suffix("").open("wb") as plain:
                shutil.copyfileobj(packed, plain)
        archive.unlink()
    except (*_BROKEN, EdgesimError) as error:
        raise EdgesimError(f"{archive.name}: cannot be unpacked: {' '.join(str(error).split())}") from None


def _plain(member: tarfile.TarInfo, folder: str) -> tarfile.TarInfo:
    """The library's filter, for files and folders alone: without links there is none to follow out of the folder."""
    if not (member.isfile() or member.isdir()):
        raise EdgesimError(f"{member.name!r} is neither a file nor a folder")
    _check_inside(member.name)
    return tarfile.data_filter(member, folder)


def _check_inside(name: str) -> None:
    # The libraries would take the first slash off, or leave the dots out, and unpack the file under another name.
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name:
        raise EdgesimError(f"{name!r} would lie outside of the folder")
