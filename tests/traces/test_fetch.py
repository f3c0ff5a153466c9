"""Downloads against a server on this machine: the real thing but for the host."""

import functools
import hashlib
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from refusals import in_one_line

import edgesim.traces.fetch as module
from edgesim.base.errors import EdgesimError
from edgesim.traces.fetch import ORIGINALS, fetch

CONTENT = b"\x80\x04}\x94." * 1000


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Serves the repository's tree with a small file in place of the original, whose checksum is put in its place."""
    original = ORIGINALS["fedscale-behaviour"]
    served = tmp_path / "served" / original.repository / original.path
    served.parent.mkdir(parents=True)
    served.write_bytes(CONTENT)
    right = replace(original, sha256=hashlib.sha256(CONTENT).hexdigest())
    monkeypatch.setitem(module.ORIGINALS, "fedscale-behaviour", right)
    handler = functools.partial(_Quiet, directory=str(tmp_path / "served"))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_recording_is_downloaded_once_and_checked(host, tmp_path):
    path = fetch("fedscale-behaviour", tmp_path / "out", host)
    assert path == tmp_path / "out" / "client_behave_trace"
    assert path.read_bytes() == CONTENT
    # The second time no server is asked.
    assert fetch("fedscale-behaviour", tmp_path / "out", "http://127.0.0.1:9") == path
    # A file that was damaged since is downloaded anew.
    path.write_bytes(b"damaged")
    fetch("fedscale-behaviour", tmp_path / "out", host)
    assert path.read_bytes() == CONTENT


def test_a_wrong_checksum_is_one_line_and_leaves_nothing_behind(host, tmp_path, monkeypatch):
    monkeypatch.setitem(
        module.ORIGINALS, "fedscale-behaviour", replace(module.ORIGINALS["fedscale-behaviour"], sha256="0" * 64)
    )
    with in_one_line(r"client_behave_trace: does not have the published checksum"):
        fetch("fedscale-behaviour", tmp_path / "a/b", host)
    assert not (tmp_path / "a").exists()
    kept = tmp_path / "kept"
    kept.mkdir()
    with pytest.raises(EdgesimError):
        fetch("fedscale-behaviour", kept, host)
    assert list(kept.iterdir()) == []


def test_without_a_network_or_with_a_missing_file_the_error_says_what_to_do(host, tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    path = tmp_path / "out" / "client_behave_trace"
    for place, reason in (
        (f"http://127.0.0.1:{port}", f"no connection to 127.0.0.1:{port}"),
        (f"{host}/nowhere", "the server answers 404 File not found"),
    ):
        url = f"{place}/{ORIGINALS['fedscale-behaviour'].repository}/{ORIGINALS['fedscale-behaviour'].path}"
        with pytest.raises(EdgesimError) as caught:
            fetch("fedscale-behaviour", tmp_path / "out", place)
        told = f"fedscale-behaviour: {url}: {reason}; or get it another way and put it at {path}"
        assert str(caught.value) == told
        assert not (tmp_path / "out").exists()


def test_an_unknown_name_lists_the_known_ones(tmp_path):
    with in_one_line("unknown recording 'flash'; known: fedscale-behaviour, fedscale-capacity"):
        fetch("flash", tmp_path)
