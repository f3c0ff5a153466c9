"""Addresses at which there is no cluster of Ray: each is refused in a line, within seconds."""

import http.server
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from small_runs import TIMING

import edgesim
from edgesim.base.errors import EdgesimError
from edgesim.cluster import connection
from edgesim.cluster.connection import connected
from edgesim.studies.ledger import read_ledger
from edgesim.studies.plan_file import grow

ROOT = Path(__file__).parents[2]


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
    assert refused(address).startswith(f"address {address}: expected HOST:PORT")


def test_an_address_at_which_nothing_listens_is_refused(monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert refused(address).startswith(f"address {address}: no Ray cluster answers there (")
        monkeypatch.setenv("RAY_ADDRESS", address)
        assert refused(None).startswith(f"$RAY_ADDRESS {address}: no Ray cluster answers there (")


def test_a_port_that_listens_but_says_nothing_is_refused(monkeypatch):
    assert connection._ADDRESS_S < 5
    monkeypatch.setattr(connection, "_ADDRESS_S", 0.3)
    with listening() as address:
        assert refused(address).startswith(f"address {address}: something listens there, but it is no head of a Ray")


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
from edgesim.commands.entry import main
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
    monkeypatch.setattr("edgesim.simulation.composition.make_federation", lambda *_: pytest.fail("data were read"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        monkeypatch.setenv("RAY_ADDRESS", f"127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(EdgesimError, match=r"^\$RAY_ADDRESS 127.0.0.1:\d+: no Ray cluster answers there"):
            edgesim.run({"learning": {"back_end": "ray"}}, tmp_path / "out", quiet=True)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_cluster_that_asks_for_a_token_is_reached_with_it_and_names_it_where_it_is_missing(tmp_path):
    grow(edgesim.Study("s", edgesim.grid(TIMING, {}, [0])), tmp_path / "out")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    without = kept | {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    within = without | {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "0123456789abcdef" * 4}
    head = [Path(sys.executable).with_name("ray"), "start", "--head", "--block", "--port", str(port), "--num-cpus", "1"]
    head += ["--object-store-memory", "83886080", "--include-dashboard", "false", "--disable-usage-stats"]
    command = [sys.executable, "-m", "edgesim", "study", "run", "out", "--executor", "ray"]
    command += ["--address", f"127.0.0.1:{port}"]

    def typed(environment):
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )
        return done.returncode, done.stderr

    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(head, env=within, start_new_session=True, **quiet) as process:
        try:
            until_s = time.monotonic() + 60
            while True:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                    break
                assert time.monotonic() < until_s, "the head has not begun"
                time.sleep(0.2)
            for lacking in (without | {"RAY_AUTH_MODE": "token"}, without | {"RAY_AUTH_MODE": "disabled"}):
                status, said = typed(lacking)
                assert status == 2
                assert said.splitlines()[-1].startswith(f"error: Ray at 127.0.0.1:{port}: ")
                assert said.rstrip().endswith(
                    "set RAY_AUTH_MODE=token and have it in RAY_AUTH_TOKEN or ~/.ray/auth_token"
                )
            assert not (tmp_path / "out/s0").exists()
            assert typed(within)[0] == 0
            assert read_ledger(tmp_path / "out")["s0"].status == "finished"
        finally:
            os.killpg(process.pid, signal.SIGKILL)
