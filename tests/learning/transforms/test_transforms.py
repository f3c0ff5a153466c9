"""The list of transforms in a learner: what the server merges, and what is remembered of devices."""

import numpy as np
import pytest
import torch
from typing_extensions import override

from edgesim.base.saved import pack, unpack
from edgesim.config import PrivacyConfig
from edgesim.learning import learner as learners
from edgesim.learning.federation import make_federation
from edgesim.learning.jobs import Arrived
from edgesim.learning.learner import TorchLearner
from edgesim.learning.transforms import make_transforms
from edgesim.learning.transforms.transform import Passed, Transform
from edgesim.streams import Streams


class Halves(Transform):
    """Sends half of an update and of what is left of those before."""

    stored = 1

    @override
    def apply(self, updates):
        received, left = [], {}
        for device, update in zip(updates.ids.tolist(), updates.vectors, strict=True):
            whole = update + left.get(device, self.state.get(device, torch.zeros_like(update)))
            received.append(whole / 2)
            left[device] = whole / 2
        return Passed(received, lambda alpha: {("halves", ""): float(len(alpha))}, left)


@pytest.fixture
def make_learner(make_config, monkeypatch):
    monkeypatch.setattr(learners, "make_transforms", lambda *given: [Halves()])

    def make(**learning):
        config = make_config(learning={"pretrain": False, "back_end": "loop", **learning})
        streams = Streams(config.seed)
        return TorchLearner(config, make_federation(config, streams), streams)

    return make


def promises(learner, number, ids):
    made = learner.open_round(number, 1).start(np.array(ids))
    for promise in made:
        promise.due = True
    return made


def merged(learner, number, ids, arriving):
    """What devices trained, by id, in a round in which some arrive."""
    made = promises(learner, number, ids)
    trained = {
        promise.device: result.update.clone() for promise, result in zip(made, learner.results(made), strict=True)
    }
    done = learner.merge([Arrived(promise) for promise in made if promise.device in arriving], np.array(ids))
    assert done.metrics[("halves", "")] == len(arriving)
    return trained


def test_the_server_merges_what_transforms_let_through_and_they_change_with_what_is_merged_alone(make_learner):
    learner = make_learner()
    before, (transform,) = learner.global_weights.clone(), learner.transforms
    trained = merged(learner, 1, [0, 1, 2], [0, 2])
    sizes = learner.accounts.held.sizes[[0, 2]].astype(float)
    shares = sizes / sizes.sum()
    expected = before + sum(share * trained[device] / 2 for share, device in zip(shares, (0, 2), strict=True))
    assert torch.allclose(learner.global_weights, expected, atol=1e-6)
    assert set(transform.state) == {0, 2}
    assert torch.equal(transform.state[2], trained[2] / 2)
    learner.close()


def test_of_two_updates_of_a_device_the_one_that_arrived_first_passes_first(make_learner):
    learner = make_learner()
    (late,), (new,) = promises(learner, 1, [0]), promises(learner, 2, [0])
    first, second = (result.update.clone() for result in learner.results([late, new]))
    learner.merge([Arrived(late, staleness=1), Arrived(new)], np.array([0]))
    assert torch.allclose(learner.transforms[0].state[0], first / 4 + second / 2, atol=1e-7)
    learner.close()


def test_a_learner_that_is_resumed_goes_on_with_what_transforms_remember(make_learner):
    found = []
    for resumed in (False, True):
        learner = make_learner()
        merged(learner, 1, [0, 1], [0, 1])
        if resumed:
            remembered = unpack(dict, *pack(learner.snapshot()))
            learner.close()
            learner = make_learner()
            learner.restore(remembered)
        merged(learner, 2, [0, 1], [0])
        found.append((learner.global_weights, learner.transforms[0].state))
        learner.close()
    assert torch.equal(found[0][0], found[1][0])
    assert all(torch.equal(found[1][1][device], state) for device, state in found[0][1].items())


def test_memory_counts_what_transforms_store(make_learner):
    learner = make_learner()
    assert learner.memory.device == learner.model.gradient.nbytes
    learner.close()


@pytest.mark.parametrize(
    ("privacy", "names"),
    [
        ({}, []),
        ({"mechanism": "clip", "clip": 1.0}, ["Clip"]),
        ({"mechanism": "local", "clip": 1.0, "noise": 1.0, "delta": 1e-5}, ["Clip", "Noise"]),
        ({"mechanism": "central", "clip": 1.0, "noise": 1.0, "delta": 1e-5}, ["Clip"]),
    ],
)
def test_updates_are_clipped_before_noise_is_added(make_config, privacy, names):
    config = make_config().model_copy(update={"privacy": PrivacyConfig(**privacy)})
    assert [type(transform).__name__ for transform in make_transforms(config, Streams(0), 5)] == names
