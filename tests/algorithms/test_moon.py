"""MOON: the term worked out by hand, and what its passes cost."""

import numpy as np
import pytest
import torch

from edgesim.config_file import parse
from edgesim.folder.records import read_table
from edgesim.learning.algorithms.moon import Moon
from edgesim.learning.algorithms.records import Outputs, Sizes, Step
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams


def config(**learning):
    return {
        "rounds": 3,
        "devices": {"count": 6},
        "data": {"partition": "quantity", "samples_per_device": 12},
        "learning": {"pretrain": False, "steps": 3, "batch_size": 8} | learning,
        "round": {"admission": "count", "count": 3},
        "algorithm": {"name": "moon"},
    }


def test_the_term_is_what_the_paper_writes():
    """z = z_glob = (1, 0), z_prev = (0, 1): similarities 1 and 0; with T .5 the positive pair has e^2 / (e^2 + 1).

    A sample whose two logits are equal has a cross-entropy of log 2.
    """
    moon = Moon.Local(Moon.Options(mu=3.0, T=0.5), Sizes(0.0, 0, 1), Streams(0))
    features = {"own": [[1.0, 0.0]], "start": [[4.0, 0.0]], "previous": [[0.0, 0.5]]}
    seen = {name: Outputs(torch.zeros(1, 2), torch.tensor(z)) for name, z in features.items()}
    own = seen.pop("own")
    loss = moon.loss(Step(own, seen, torch.tensor([1]), torch.ones(1), {}))
    expected = np.log(2) - 3 * np.log(np.exp(2) / (np.exp(2) + 1))
    assert loss.tolist() == pytest.approx([expected], abs=1e-6)


def seconds(folder, **algorithm):
    """How long each device computes in each round."""
    given = config(training="none", epochs=2) | {"algorithm": algorithm}
    del given["learning"]["steps"]
    given["round"] |= {"tmax_s": 100.0}
    simulation.run(parse(given, "test"), folder)
    acts = read_table(folder, "activities")
    acts = acts[acts["activity"] == "compute"].sort_values(["task", "device"])
    return (acts["t_end_s"] - acts["t_start_s"]).to_numpy()


def test_its_passes_lengthen_computing_to_five_thirds_unless_all_algorithms_cost_the_same(tmp_path):
    """A step is three units, forward one and backward two; each of the two frozen models adds one."""
    plain = seconds(tmp_path / "fedavg", name="fedavg")
    assert len(plain) >= 9
    for name, algorithm, factor in (
        ("passes", {"name": "moon"}, 5 / 3),
        ("equal", {"name": "moon", "compute_cost": "equal"}, 1),
        ("with another server", {"name": "moon", "server": "mifa"}, 5 / 3),
        ("all alike", {"name": "fedavg", "compute_cost": "equal"}, 1),
        # One pass beside two epochs.
        ("option I", {"name": "scaffold", "option": "I"}, 1.5),
        ("option II", {"name": "scaffold"}, 1),
    ):
        assert seconds(tmp_path / name, **algorithm) == pytest.approx(factor * plain, rel=1e-9), name
