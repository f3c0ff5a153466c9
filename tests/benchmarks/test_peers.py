"""The comparison with other simulators on its smallest work: both sides that need nothing installed do the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

PEERS = Path(__file__).parent / "peers"
SMALL = {"network": "small-cnn", "batch": 8, "lr": 0.05, "warm_up": 1, "rounds": 2}


@pytest.fixture
def folder(tmp_path):
    random = np.random.default_rng(0)
    data = {}
    for part, count in (("train", 60), ("test", 20)):
        labels = np.arange(count) % 10
        images = 20 * labels[:, None, None] + random.integers(0, 20, (count, 28, 28))
        data |= {f"{part}_images": images.astype(np.uint8), f"{part}_labels": labels}
    np.savez(tmp_path / "data.npz", **data)
    np.save(tmp_path / "clients.npy", np.arange(60).reshape(3, 20))
    (tmp_path / "work.json").write_text(json.dumps(SMALL))
    return tmp_path


@pytest.mark.parametrize("side", ["loop", "edgesim"])
def test_a_side_trains_the_work_and_reports_it(side, folder):
    paths = [str(PEERS), os.environ.get("PYTHONPATH", ""), str(PEERS.parents[2])]
    done = subprocess.run(
        [sys.executable, str(PEERS / f"side_{side}.py"), str(folder), "1", "1"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert 0 < report["round_s"] < 60
    assert 0 <= report["accuracy"] <= 1


def test_the_networks_are_those_of_edgesim(folder, monkeypatch):
    monkeypatch.syspath_prepend(PEERS)
    from work import Work

    from edgesim.learning.models import new_model

    ours = new_model("small-cnn", (1, 28, 28), 10, 0)
    theirs = Work.read(folder).new_network()
    assert str(theirs) == str(ours)
    assert sum(p.numel() for p in theirs.parameters()) == 28_938
