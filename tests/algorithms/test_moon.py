"""MOON: the term worked out by hand, the numbers of a whole learner in float64, and what its passes cost."""

import numpy as np
import pytest
import torch
from contract import work
from eight_weights import ROUNDS, check_sum, federation_of, module

from edgesim.config_file import parse
from edgesim.folder.records import read_table
from edgesim.learning.algorithms.moon import Moon
from edgesim.learning.algorithms.records import Outputs, Sizes, Step
from edgesim.learning.learner import TorchLearner
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


@pytest.mark.parametrize("back_end", ["loop", "stacked"])
def test_the_learner_brings_the_worked_numbers(back_end, monkeypatch):
    """Those of section "eight weights" of `test_worked_numbers.py`, with forward passes of the back ends."""
    monkeypatch.setattr("edgesim.learning.learner.new_model", lambda *_: module())
    # It tries a batch of one in single precision.
    monkeypatch.setattr("edgesim.learning.learner.refuse_lone_samples", lambda *_: None)
    given = config(lr=0.5, lr_decay=1.0, momentum=0.0, weight_decay=0.0, batch_size=4, back_end=back_end, epochs=2)
    del given["learning"]["steps"]
    given |= {"devices": {"count": 3}, "algorithm": {"name": "moon", "mu": 1.0, "T": 0.5}}
    learner = TorchLearner(simulation.complete(parse(given, "test")), federation_of(), Streams(1))
    assert learner.back_end.name == back_end
    sums = []
    for number, ids in enumerate(ROUNDS, start=1):
        work(learner, number, ids)
        sums.append(check_sum(learner.global_weights))
    expected = [0.5763762125, -0.5329897212, -0.0424331828, 0.6375457932, 0.6987146064, -0.1941981621]
    assert sums == pytest.approx([5.5388701066, 5.7774745452, 5.3242475060], abs=1e-9)
    assert learner.global_weights[:6].tolist() == pytest.approx(expected, abs=1e-9)


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
