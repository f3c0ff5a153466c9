"""Addresses at which there is no cluster of Ray: each is refused in a line, within seconds."""

import http.server
import os
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

import edgesim
from edgesim.cluster import connection
from edgesim.cluster.connection import connected
from edgesim.errors import EdgesimError


@pytest.fixture(autouse=True)
def _ray():
    pytest.importorskip("ray", reason="Ray is not installed")


def refused(address):
    begun_s = time.monotonic()
    with pytest.raises(EdgesimError) as error, connected(address, "a test"):
        pass
    assert time.monotonic() - begun_s < 5
    assert "\n" not in str(error.value)
    return str(error.value)


@contextmanager
def listening():
    """A port at which something listens that says nothing."""
    with socket.socket() as there:
        there.bind(("127.0.0.1", 0))
        there.listen()
        yield f"127.0.0.1:{there.getsockname()[1]}"


@pytest.mark.parametrize("address", ["here", "ray://node:10001", "node:0", ":6379", "node:port"])
def test_an_address_that_is_none_is_refused(address):
    assert refused(address).startswith(f"--address {address}: expected HOST:PORT")


def test_an_address_at_which_nothing_listens_is_refused(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert refused(address).startswith(f"--address {address}: no Ray cluster answers there (")
        monkeypatch.setenv("RAY_ADDRESS", address)
        assert refused(None).startswith(f"$RAY_ADDRESS {address}: no Ray cluster answers there (")


def test_a_port_that_listens_but_says_nothing_is_refused(monkeypatch):
    assert connection._ADDRESS_S < 5
    monkeypatch.setattr(connection, "_ADDRESS_S", 0.3)
    with listening() as address:
        assert refused(address).startswith(f"--address {address}: something listens there, but it is no head of a Ray")


def test_a_port_at_which_another_server_answers_is_refused():
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler) as server:
        server.RequestHandlerClass.log_message = lambda *_: None
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            assert "something listens there, but it is no head" in refused(f"127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()
            thread.join()


def test_what_answers_like_ray_and_is_not_ends_in_a_line_and_not_in_an_exit(monkeypatch):
    """Ray asks for minutes, and then ends the process."""
    import ray

    def end(**_):
        raise SystemExit(15)

    monkeypatch.setattr(ray, "init", end)
    monkeypatch.setattr("edgesim.cluster.connection._speaks_http_2", lambda there: True)
    with listening() as address:
        assert refused(address) == f"Ray at {address}: no head of a Ray cluster has answered"


TYPED = """
import sys
from edgesim.entry import main
try:
    main()
finally:
    print(sorted({"numpy", "pandas", "torch", "typer", "ray"} & {*sys.modules}))
"""


@pytest.mark.parametrize("command", [["study", "run", "nofolder"], ["scenario", "fading", "--quick"]])
@pytest.mark.parametrize("given", ["word", "words", "variable"])
def test_a_command_asks_a_dead_address_before_it_loads_any_library(tmp_path, command, given):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        told = {"word": [f"--address={address}"], "words": ["--address", address]}.get(given, [])
        executor = ["--executor=ray"] if given == "word" else ["--executor", "ray"]
        done = subprocess.run(
            [sys.executable, "-c", TYPED, *command, *executor, *told],
            env=os.environ | ({"RAY_ADDRESS": address} if given == "variable" else {}),
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
    name = "$RAY_ADDRESS" if given == "variable" else "--address"
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: {name} {address}: no Ray cluster answers there (")
    assert done.stderr.count("\n") == 1
    assert done.stdout == "[]\n"


def test_a_run_over_actors_asks_a_dead_address_before_it_reads_its_data(tmp_path, monkeypatch):
    monkeypatch.setattr("edgesim.simulation.make_federation", lambda *_: pytest.fail("data were read"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(EdgesimError, match=r"^\$RAY_ADDRESS 127.0.0.1:\d+: no Ray cluster answers there"):
            edgesim.run({"learning": {"back_end": "ray"}}, tmp_path / "out", quiet=True)
    assert not (tmp_path / "out").exists()
