"""Downloads of public files, checked against the checksums that their publishers or others have stated."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from edgesim.base.errors import EdgesimError

if TYPE_CHECKING:
    import requests


def download(url: str, checksum: str, path: Path) -> None:
    """Download a file to a path, unless the path has a file of that checksum already.

    ``checksum`` is ``sha256:`` or ``md5:`` and hexadecimal digits. Raises `EdgesimError` that names the URL and says
    what the server, the content or the disk refuses; then no part of the file is left behind.
    """
    import pooch
    import requests

    pooch.get_logger().setLevel(logging.ERROR)
    # Servers that compress on the way would send other bytes than those that were summed.
    as_it_is = pooch.HTTPDownloader(headers={"Accept-Encoding": "identity"})
    try:
        pooch.retrieve(url, checksum, path.name, path.parent, downloader=as_it_is)
    except requests.exceptions.RequestException as error:
        reason = _reason(error, url)
    except ValueError:
        kind, _, digits = checksum.partition(":")
        reason = f"does not have the published checksum ({kind} {digits}); nothing was kept, try again"
    except OSError as error:
        reason = f"cannot be kept in {path.parent}: {error.strerror}"
    else:
        return
    raise EdgesimError(f"{url}: {reason}")


def _reason(error: "requests.exceptions.RequestException", url: str) -> str:
    """Why a download failed, in a few words; requests' own messages are hundreds of characters long."""
    import requests

    host = urlsplit(url).netloc
    if error.response is not None:
        return f"the server answers {error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.exceptions.Timeout):
        return f"{host} does not answer"
    if isinstance(error, requests.exceptions.SSLError):
        return f"no secure connection to {host}"
    if isinstance(error, requests.exceptions.ConnectionError):
        return f"no connection to {host}"
    return f"the download from {host} failed ({type(error).__name__})"
