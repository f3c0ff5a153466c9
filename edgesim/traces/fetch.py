"""Downloads public recordings, checked against their published checksums."""

from dataclasses import dataclass
from pathlib import Path

from edgesim.base.download import download
from edgesim.base.errors import EdgesimError
from edgesim.base.registry import look_up

HOST = "https://raw.githubusercontent.com"


@dataclass(frozen=True)
class Original:
    """A file of a public repository."""

    repository: str
    path: str
    """Branch, and path from the repository's root."""
    size: int
    """Bytes."""
    sha256: str
    licence: str


def _of_fedscale(file: str, size: int, sha256: str) -> Original:
    path = f"master/benchmark/dataset/data/device_info/{file}"
    return Original("SymbioticLab/FedScale", path, size, sha256, "Apache-2.0; for research only")


ORIGINALS = {
    "fedscale-behaviour": _of_fedscale(
        "client_behave_trace", 25_640_150, "d0b6f81a01f0ea5f7ec432583f5afe93b1e72424db4c1affa88c484f15901662"
    ),
    "fedscale-capacity": _of_fedscale(
        "client_device_capacity", 39_369_071, "477f61049443987318fc5667cafa059b3b420eb0e03ccb5ceb3262d20e059e53"
    ),
}


def fetch(name: str, folder: Path, host: str = HOST) -> Path:
    """Download an original into a folder unless the folder has it already, and return its path.

    Raises `EdgesimError` for an unknown name, a failed download or a wrong checksum; then no file is left behind.
    """
    original = look_up(ORIGINALS, name, "recording")
    path = folder / Path(original.path).name
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    try:
        download(f"{host}/{original.repository}/{original.path}", f"sha256:{original.sha256}", path)
    except EdgesimError as error:
        for parent in missing:
            if parent.is_dir():
                parent.rmdir()
        raise EdgesimError(f"{name}: {error}; or get it another way and put it at {path}") from None
    return path
