"""Clipping, T11 of AFL's page, and noise on updates and on their mean, T12."""

import math

import numpy as np
import pytest
import torch

from edgesim.config import PrivacyConfig
from edgesim.learning.transforms import make_transforms
from edgesim.learning.transforms.clip import Clip
from edgesim.learning.transforms.noise import Noise, noise_on_mean, noise_per_coordinate
from edgesim.learning.transforms.transform import Updates
from edgesim.streams import Streams


def settings(mechanism, noise=1.0, clip=1.0):
    return PrivacyConfig(mechanism=mechanism, noise=noise, clip=clip, delta=1e-5 if noise else None)


@pytest.mark.parametrize(("mechanism", "length"), [("local", 17.149859), ("central", 4.159452)])
def test_noise_on_the_mean_of_17_equal_updates_of_500000_parameters(mechanism, length):
    per_coordinate = noise_per_coordinate(settings(mechanism, 0.1), np.full(17, 1 / 17), np.arange(17))
    assert per_coordinate * math.sqrt(5e5) == pytest.approx(length, abs=1e-6)


def test_noise_of_uneven_weights():
    """Those of T1."""
    alpha = np.array([15, 20, 6]) / 41
    assert noise_per_coordinate(settings("local"), alpha, np.arange(3)) == pytest.approx(0.6270712260, abs=1e-10)
    assert noise_per_coordinate(settings("central"), alpha, np.arange(3)) == pytest.approx(0.4878048780, abs=1e-10)


def test_central_noise_hides_all_that_one_device_adds_to_a_mean():
    """Devices 7 and 2 have two updates each in a buffer of five."""
    alpha, ids = np.array([0.1, 0.3, 0.2, 0.15, 0.25]), np.array([7, 2, 7, 2, 9])
    assert noise_per_coordinate(settings("central", 2.0, 3.0), alpha, ids) == pytest.approx(2 * 3 * 0.45, rel=1e-12)


def test_local_noise_on_a_mean_of_four_has_half_its_size():
    """z S / 2 in each coordinate, of 10,000; buffers have none."""
    noise, zero = Noise(settings("local", 0.6, 2.0), Streams(3), 10_000), torch.zeros(10_001, dtype=torch.float64)
    ids, first = np.arange(4), np.ones(4, dtype=np.int64)
    drawn = noise.apply(Updates(ids, first, [zero] * 4)).received
    trainable = torch.stack(drawn)[:, :-1].mean(0)
    assert float(trainable.std()) == pytest.approx(0.6 * 2 / 2, rel=0.02)
    assert float(trainable.mean()) == pytest.approx(0, abs=0.03)
    assert [float(update[-1]) for update in drawn] == [0] * 4
    assert not torch.equal(drawn[0], drawn[1])
    again, another = (noise.apply(Updates(ids[2:3], first[:1] * task, [zero])).received[0] for task in (1, 2))
    assert torch.equal(again, drawn[2])
    assert not torch.equal(another, drawn[2])


def test_local_noise_is_reported_beside_the_mean_of_what_was_sent():
    """Two updates of length 2, weights 3/4 and 1/4: z S sqrt(10/16) in each of four coordinates."""
    update = torch.ones(4, dtype=torch.float64)
    updates = Updates(np.arange(2), np.ones(2, int), [update, update])
    passed = Noise(settings("local", 0.5, 2.0), Streams(3), 4).apply(updates)
    expected = 0.5 * 2 * math.sqrt(10 / 16) * math.sqrt(4) / 2
    assert passed.report(np.array([0.75, 0.25])) == {("privacy", "noise_to_update"): pytest.approx(expected)}


def test_central_noise_on_a_mean_of_four_has_a_quarter_of_its_size():
    """z S / 4."""
    asked, zero = (settings("central", 0.6, 2.0), Streams(3), 10_000), torch.zeros(1, dtype=torch.float64)
    first, second = (noise_on_mean(*asked, np.full(4, 0.25), np.arange(4), round, zero) for round in (1, 2))
    assert float(first.std()) == pytest.approx(0.6 * 2 / 4, rel=0.02)
    assert not torch.equal(first, second)
    assert noise_on_mean(*asked, np.empty(0), np.empty(0, int), 1, zero) is None


ONE = np.ones(1, dtype=np.int64)


@pytest.mark.parametrize(("length", "clipped"), [(5.0, 1.0), (0.5, 0.5), (0.0, 0.0)])
def test_a_long_update_is_scaled_down_and_a_short_one_stays(length, clipped):
    """Buffers stay as they are, and so does the update itself."""
    update = torch.tensor([0.6 * length, 0.8 * length, 7.0], dtype=torch.float64)
    before = update.clone()
    passed = Clip(PrivacyConfig(mechanism="clip", clip=1.0), 2).apply(Updates(ONE, ONE, [update]))
    assert passed.received[0].tolist() == pytest.approx([0.6 * clipped, 0.8 * clipped, 7.0], abs=1e-15)
    assert torch.equal(update, before)
    assert passed.report(np.ones(1)) == {("privacy", "clipped"): float(length > 1)}


def test_of_no_updates_there_is_nothing_to_report():
    none = np.empty(0, dtype=np.int64)
    assert Clip(PrivacyConfig(mechanism="clip", clip=1.0), 2).apply(Updates(none, none, [])).report(np.empty(0)) == {}


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
