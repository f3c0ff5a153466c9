"""The comparison with other simulators on its smallest work; peers take part where `make peers` has installed them."""

import sys
from pathlib import Path

import pytest

PEERS = Path(__file__).parent / "peers"
ENVIRONMENTS = PEERS.parents[2] / "runs/peers/environments"


@pytest.fixture
def run(monkeypatch):
    """The module of `make peers`."""
    monkeypatch.syspath_prepend(PEERS)
    import run

    return run


@pytest.fixture
def work(run, tmp_path):
    return run.prepare(tmp_path, run.made_up(200, 20), 20, network="small-cnn", batch=8, lr=0.05, warm_up=1, rounds=2)


@pytest.mark.parametrize("side", ["loop", "edgesim", "flower", "pfl"])
def test_a_side_trains_the_work_and_reports_it(side, run, work):
    python = ENVIRONMENTS / side / "bin/python" if side in run.INSTALLED else sys.executable
    if side in run.INSTALLED and not (ENVIRONMENTS / side / "ready").is_file():
        pytest.skip(f"{side} is not installed: make peers")
    (measured,) = run.take_turns("images", work, {side: str(python)}, cores=1)
    assert 0 < measured.round_s < 60
    assert 0 <= measured.accuracy <= 1


def test_the_table_has_the_best_configuration_of_each_side_beside_the_loop(run):
    def measured(side, how, round_s):
        return run.Measured("`mlp` on digits", side, how, round_s, 0.9, {"torch": "2.15", side: "1"})

    results = [measured("loop", "1 x 1", 0.2), measured("loop", "1 x 2", 0.1), measured("edgesim", "stacked", 0.05)]
    head, _, *rows = run.table(results, 2).splitlines()
    assert "torch 2.15" in head
    assert rows[2:] == [
        "| `mlp` on digits | edgesim | 50.0 | 0.50 | 0.900 | stacked |",
        "| `mlp` on digits | loop | 100.0 | 1.00 | 0.900 | 1 x 2 |",
    ]


def test_the_networks_are_those_of_edgesim(work):
    from edgesim.learning.models import new_model

    ours = new_model("small-cnn", (1, 28, 28), 10, 0)
    theirs = work.new_network()
    assert str(theirs) == str(ours)
    assert sum(p.numel() for p in theirs.parameters()) == 28_938
