"""Data sets of public servers: their files on disk, and downloads of missing ones."""

import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgesim.base.download import download
from edgesim.base.errors import EdgesimError
from edgesim.base.paths import check_path, system_errors
from edgesim.base.unpack import unpack
from edgesim.config import DataConfig


class NotThere(EdgesimError):  # noqa: N818 - reads as what it is
    """Files of a published data set are missing."""


@dataclass(frozen=True)
class PublishedDataset:
    """A published data set: its files as torchvision lays them out, and the servers of its archives."""

    name: str
    subfolder: str
    """Folder of the files below ``data.folder``."""
    files: Sequence[str]
    servers: Sequence[str]
    """Addresses in which all archives lie, the preferred one first."""
    archives: Mapping[str, str]
    """MD5 of each archive by its file name, as torchvision states them."""
    inner: str = ""
    """The folder in the archives that holds the files."""


def path_of(text: str, field: str) -> Path:
    """The path in a field of the config, with ``~`` and ``~user`` expanded; raises `EdgesimError`."""
    check_path(text, field)
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise EdgesimError(f"{field}: no such folder: {text} (no user has this home)", field) from None


def locate(published: PublishedDataset, config: DataConfig, suffixes: Sequence[str] = ("",)) -> list[Path]:
    """Paths of the files, as torchvision lays them out below ``data.folder``, or in that folder itself.

    Each may bear any of the suffixes; the first that is there counts. Where files are missing they are downloaded
    if ``data.download`` says so. Raises `NotThere` that says what is missing and where to put it.
    """
    folder = path_of(config.folder, "data.folder")
    places = [folder / published.subfolder, folder]
    paths = _complete(published.files, places, suffixes)
    if paths is None and config.download:
        _download(published, folder)
        paths = _complete(published.files, places, suffixes)
    if paths is None:
        missing = next(file for file in published.files if not _complete([file], places[:1], suffixes))
        zipped = " (.gz will do)" if ".gz" in suffixes else ""
        raise NotThere(
            f"data.dataset: {published.name} is not there, {places[0] / missing} is missing: put "
            f"{', '.join(published.files)} there{zipped}, or set data.folder to where they lie, "
            "or data.download = true",
            "data.dataset",
            "data.folder",
        )
    return paths


def _complete(files: Sequence[str], places: list[Path], suffixes: Sequence[str]) -> list[Path] | None:
    """Paths of all files in the first place that has all of them; None where no place has."""
    for place in places:
        choices = ([place / (file + suffix) for suffix in suffixes] for file in files)
        present = [next(filter(Path.is_file, paths), None) for paths in choices]
        complete = [path for path in present if path is not None]
        if len(complete) == len(files):
            return complete
    return None


def _download(published: PublishedDataset, folder: Path) -> None:
    """Fetch and unpack all archives in a folder of their own, then move the files; a failure leaves nothing behind."""
    try:
        with system_errors("cannot be written"):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=folder) as part:
                for archive, md5 in published.archives.items():
                    unpack(_fetch(published.servers, archive, md5, Path(part)))
                inner = Path(part) / published.inner
                # EMNIST's archive holds archives.
                for archived in [*inner.glob("*.gz")]:
                    unpack(archived)
                target = folder / published.subfolder
                target.mkdir(parents=True, exist_ok=True)
                for file in inner.glob("*"):
                    file.replace(target / file.name)
    except EdgesimError as error:
        raise EdgesimError(f"data.download: {published.name} could not be fetched into {folder}: {error}") from None


def _fetch(servers: Sequence[str], archive: str, md5: str, folder: Path) -> Path:
    """Download an archive from the first server that has it; raises `EdgesimError` with the reasons of all servers."""
    reasons = []
    for server in servers:
        # On stderr, because it may take minutes.
        print(f"fetching {server}{archive}", file=sys.stderr)
        try:
            download(f"{server}{archive}", f"md5:{md5}", folder / archive)
        except EdgesimError as error:
            reasons.append(str(error))
        else:
            return folder / archive
    raise EdgesimError("; ".join(reasons))
