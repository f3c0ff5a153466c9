"""The connection to a Ray cluster, and checks before it is made: Ray itself would wait for minutes."""

import importlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

from edgesim.base.errors import EdgesimError

_ADDRESS_S = 4.0
"""Seconds that an address may take to answer; Ray itself would wait for minutes, and then end this process."""
_STORE_BYTES = 80 * 2**20
"""The least object store that Ray accepts."""
_TOKEN = "if the cluster asks for a token, set RAY_AUTH_MODE=token and have it in RAY_AUTH_TOKEN or ~/.ray/auth_token"
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
"""Connection preface of an HTTP/2 client (RFC 9113, section 3.4), with empty settings."""
_HEADER, _SETTINGS = 9, 4
"""Bytes of a frame's header, and the type of the frame with which a server of HTTP/2 answers."""


@contextmanager
def connected(address: str | None, asked_by: str, store_bytes: int = 0) -> Iterator[Any]:
    """Ray, while this process is part of a cluster; one that it was part of before is left as it is.

    ``address`` is HOST:PORT of the cluster's head; without it (or $RAY_ADDRESS) Ray is started on this machine alone,
    with an object store for ``store_bytes`` or Ray's least. ``asked_by`` is the option or setting that wants Ray, for
    errors. Raises `EdgesimError` where Ray is not installed, or the address does not answer, within 5 s.
    """
    before = check_reachable(address, asked_by)
    ray = importlib.import_module("ray")
    if not before:
        _connect(ray, address or os.environ.get("RAY_ADDRESS") or "local", max(store_bytes, _STORE_BYTES))
    try:
        yield ray
    finally:
        if not before:
            ray.shutdown()


def check_reachable(address: str | None, asked_by: str) -> bool:
    """Whether this process is part of a cluster already; else it might be: raises `EdgesimError`, as `connected` does.

    Ray, which takes seconds to load, is not loaded for that.
    """
    if find_spec("ray") is None:
        raise EdgesimError(f"{asked_by}: needs Ray; pip install 'edgesim[ray]', here and on all nodes")
    if "ray" in sys.modules and sys.modules["ray"].is_initialized():
        return True
    probe(address)
    return False


def _connect(ray: Any, address: str, store_bytes: int) -> None:
    quiet = {"log_to_driver": False, "configure_logging": False, "logging_level": "error"}
    here = {"include_dashboard": False, "object_store_memory": store_bytes} if address == "local" else {}
    # It replaces the handler with one that ends the process.
    main = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(address=address, **quiet, **here)
    except ConnectionError as error:
        raise EdgesimError(f"Ray at {address}: {' '.join(str(error).split())}; {_TOKEN}") from None
    except ray.exceptions.RayError as error:
        # The first sentence says that there is no token; a page of advice follows.
        reason = " ".join(str(error).split()).partition(". ")[0]
        raise EdgesimError(f"Ray at {address}: {reason}; {_TOKEN}") from None
    except (RuntimeError, ValueError) as error:
        raise EdgesimError(f"Ray at {address}: {' '.join(str(error).split())}") from None
    except SystemExit:
        # Ray exits where no head of a cluster answers after all.
        raise EdgesimError(f"Ray at {address}: no head of a Ray cluster has answered") from None
    finally:
        if main:
            signal.signal(signal.SIGTERM, before)


def probe(address: str | None) -> None:
    """Raises `EdgesimError`, within 5 s, if nothing listens at an address, or what listens does not speak as Ray does.

    Without one the address is $RAY_ADDRESS, if it is set.
    """
    source = "address" if address else "$RAY_ADDRESS"
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    if address == "local":
        return
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16 or "/" in host:
        raise EdgesimError(f"{source} {address}: expected HOST:PORT of the head of a Ray cluster, such as node1:6379")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_ADDRESS_S) as there:
            if os.environ.get("RAY_USE_TLS", "0") == "0" and not _speaks_http_2(there):
                raise EdgesimError(
                    f"{source} {address}: something listens there, but it is no head of a Ray cluster; its port is "
                    "6379 unless ray start --head --port says otherwise"
                )
    except OSError as error:
        why = str(error.strerror or error)
        raise EdgesimError(f"{source} {address}: no Ray cluster answers there ({why}); ray start --head") from None


def _speaks_http_2(there: socket.socket) -> bool:
    """Whether the other side answers as gRPC does, which Ray's head speaks."""
    try:
        there.sendall(_PREFACE)
        header = b""
        while len(header) < _HEADER and (more := there.recv(_HEADER - len(header))):
            header += more
    except OSError:
        return False
    return len(header) == _HEADER and header[3] == _SETTINGS
