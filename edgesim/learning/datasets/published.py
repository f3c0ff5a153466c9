"""Data sets that torchvision publishes: where their files lie, and fetching them when that is asked for."""

import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgesim.config import DataConfig
from edgesim.errors import EdgesimError
from edgesim.files.paths import check_path


@dataclass(frozen=True)
class Published:
    """One data set as torchvision lays it out."""

    name: str
    subfolder: str
    """Where torchvision puts the files, below the folder that it is given."""
    files: Sequence[str]
    torchvision_class: str
    options: dict[str, Any] = field(default_factory=dict)
    """Further arguments of the class."""


def path_of(text: str, field: str) -> Path:
    """The path that a field of the config gives, of one's own home or another's; raises `EdgesimError`."""
    check_path(text, field)
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise EdgesimError(f"{field}: no such folder: {text} (no user has this home)", field) from None


def locate(published: Published, config: DataConfig, suffixes: Sequence[str] = ("",)) -> list[Path]:
    """Paths of the files, as torchvision lays them out below ``data.folder``, or in that folder itself.

    Each may bear any of the suffixes; the first that is there counts. Where files are missing they are downloaded
    if ``data.download`` says so. Raises `EdgesimError` that says what is missing and where to put it.
    """
    folder = path_of(config.folder, "data.folder")
    places = [folder / published.subfolder, folder]
    found = _complete(published.files, places, suffixes)
    if found is None and config.download:
        _download(published, folder)
        found = _complete(published.files, places, suffixes)
    if found is None:
        missing = next(file for file in published.files if not _complete([file], places[:1], suffixes))
        zipped = " (.gz will do)" if ".gz" in suffixes else ""
        raise EdgesimError(
            f"data.dataset: {published.name} is not there, {places[0] / missing} is missing: put "
            f"{', '.join(published.files)} there{zipped}, or set data.folder to where they lie, "
            "or data.download = true",
            "data.dataset",
            "data.folder",
        )
    return found


def _complete(files: Sequence[str], places: list[Path], suffixes: Sequence[str]) -> list[Path] | None:
    """Paths of all files in the first place that has all of them."""
    for place in places:
        choices = ([place / (file + suffix) for suffix in suffixes] for file in files)
        present = [next(filter(Path.is_file, paths), None) for paths in choices]
        found = [path for path in present if path is not None]
        if len(found) == len(files):
            return found
    return None


def _download(published: Published, folder: Path) -> None:
    """Fetch and unpack with torchvision, which checks sums; what is broken off leaves nothing behind."""
    from torchvision import datasets

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as part:
            getattr(datasets, published.torchvision_class)(part, download=True, **published.options)
            target = folder / published.subfolder
            target.mkdir(parents=True, exist_ok=True)
            for file in (Path(part) / published.subfolder).iterdir():
                file.replace(target / file.name)
    # Of the disk, of the network, of a wrong sum, of an archive that is broken or has members outside of its folder.
    except (OSError, RuntimeError, tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        reason = " ".join(str(error).split())
        raise EdgesimError(f"data.download: {published.name} could not be fetched into {folder}: {reason}") from None
