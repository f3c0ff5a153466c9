"""The course of the class mix that a config leads to, before any run."""

import numpy as np
import pytest

from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.learning.drift.mix_over_time import MOST_INSTANTS, mix_over_time
from edgesim.simulation import composition as simulation

A, B = [0.5, 0.5] + [0.0] * 8, [0.0] * 8 + [0.3, 0.7]


def mix_of(device=None, **sections):
    return mix_over_time(simulation.complete(parse(sections, "test")), device)


def test_a_gradual_drift_is_a_line_between_its_mixes_over_simulated_time():
    law = {"law": "gradual", "start_s": 5.0, "end_s": 15.0, "before": [A], "after": [B]}
    found = mix_of(rounds=20, round={"tmax_s": 1.5}, drift=law, data={"samples_per_device": 100})
    assert found.in_seconds
    assert (found.x[0], found.x[-1], len(found.x)) == (0.0, 30.0, MOST_INSTANTS)
    share = np.clip((found.x[:, None] - 5) / 10, 0, 1)
    assert np.abs(found.shares - ((1 - share) * A + share * B)).max() <= 0.01 + 1e-9


def test_a_device_has_a_mix_of_its_own_beside_that_of_all():
    law = {"law": "swap", "t_s": 4.0, "before": [A, B], "after": [B, A]}
    given = {
        "rounds": 8,
        "devices": {"count": 4},
        "drift": law,
        "data": {"samples_per_device": 10},
        "learning": {"pretrain": True},
    }
    both, second = mix_of(**given), mix_of(1, **given)
    np.testing.assert_allclose(both.shares, np.tile((np.array(A) + B) / 2, (MOST_INSTANTS, 1)))
    np.testing.assert_allclose(second.shares, np.where(second.x[:, None] < 4.0, B, A))


def test_rotation_goes_by_rounds_and_shows_the_classes_drawn():
    found = mix_of(3, rounds=30, drift={"law": "rotation", "classes": [4, 4]})
    assert not found.in_seconds
    assert found.x.tolist() == list(range(1, 31))
    assert (np.count_nonzero(found.shares, axis=1) == 4).all()


def test_frames_change_after_their_rounds(tmp_path):
    """A hundred classes make three frames, of which the config gives the lengths of two."""
    images, labels = np.zeros((800, 1, 4, 4), dtype=np.uint8), np.arange(800) % 100
    arrays = {"train_images": images, "train_labels": labels, "test_images": images, "test_labels": labels}
    np.savez(tmp_path / "hundred.npz", **arrays)
    data = {"dataset": str(tmp_path / "hundred.npz"), "partition": "fedteddi", "samples_per_device": 6}
    found = mix_of(rounds=[4, 3], data=data, devices={"count": 30})
    assert found.x.tolist() == list(range(1, 8))
    assert (found.shares[:4] == found.shares[0]).all()
    assert (found.shares[4:] == found.shares[4]).all()
    # New classes: 30 to 39 in the first frame, 40 to 49 in the second.
    assert found.shares[0, 30:40].sum() > 0 == found.shares[0, 40:].sum()
    assert found.shares[4, 40:50].sum() > 0


def test_what_has_no_course_is_refused():
    with pytest.raises(EdgesimError, match=r"^device: expected 0 to 29 \(got 30\)$"):
        mix_of(30)
    with pytest.raises(EdgesimError, match=r"^drift: data.dataset = 'none' has no classes"):
        mix_of(data={"dataset": "none"}, learning={"training": "none"}, round={"payload_bits": 1e6})
