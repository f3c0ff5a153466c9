"""Downloads public recordings, checked against their published checksums."""

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from edgesim.errors import EdgesimError
from edgesim.registry import look_up

if TYPE_CHECKING:
    import requests

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
    import pooch
    import requests

    original = look_up(ORIGINALS, name, "recording")
    url = f"{host}/{original.repository}/{original.path}"
    path = folder / Path(original.path).name
    made = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    pooch.get_logger().setLevel(logging.ERROR)
    try:
        pooch.retrieve(url, f"sha256:{original.sha256}", path.name, folder)
        return path
    except requests.exceptions.RequestException as error:
        message = f"{name}: {_reason(error, url)}; get {url} another way and put it at {path}"
    except ValueError:
        message = f"{url}: does not have the published checksum (sha256 {original.sha256}); nothing was kept, try again"
    except OSError as error:
        message = f"{folder}: cannot hold the download: {error.strerror}"
    for parent in made:
        if parent.is_dir():
            parent.rmdir()
    raise EdgesimError(message)


def _reason(error: "requests.exceptions.RequestException", url: str) -> str:
    """Why a download failed, in a few words; requests' own messages are hundreds of characters long."""
    import requests

    if error.response is not None:
        return f"the server answers {error.response.status_code} {error.response.reason}"
    host = urlsplit(url).netloc
    if isinstance(error, requests.exceptions.Timeout):
        return f"{host} does not answer"
    if isinstance(error, requests.exceptions.SSLError):
        return f"no secure connection to {host}"
    if isinstance(error, requests.exceptions.ConnectionError):
        return f"no connection to {host}"
    return f"the download from {host} failed ({type(error).__name__})"
