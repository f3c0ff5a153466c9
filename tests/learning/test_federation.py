from collections import Counter

import numpy as np
import pytest

from edgesim.base.errors import EdgesimError
from edgesim.learning.federation import make_federation
from edgesim.learning.partitions.iid import Iid
from edgesim.streams import Streams


def test_counts_and_classes_seen_follow_the_clients_sets(make_config):
    federation = make_federation(make_config(), Streams(4))
    assert len(federation.frames) == 2
    assert federation.old_classes.tolist() == [0, 1, 2, 3, 4, 5]
    assert federation.frames[1].classes_seen.tolist() == list(range(10))
    for frame in federation.frames:
        for device, client in enumerate(frame.clients):
            held = Counter(federation.dataset.train_labels[client].tolist())
            assert [held[label] for label in range(10)] == frame.class_counts[device].tolist()
            assert len(client) == frame.sizes[device] == 60


def test_permuted_labels_keep_every_class_count_but_belong_to_other_images(make_config):
    plain = make_federation(make_config(), Streams(0)).dataset
    permuted = make_federation(make_config(data={"permute_labels": True}), Streams(0)).dataset
    np.testing.assert_array_equal(np.bincount(permuted.train_labels), np.bincount(plain.train_labels))
    # Ten classes of like size: a label stays by chance about one time in ten.
    assert np.mean(permuted.train_labels == plain.train_labels) < 0.2
    np.testing.assert_array_equal(permuted.test_labels, plain.test_labels)
    np.testing.assert_array_equal(permuted.images[0], plain.images[0])
    assert permuted.digest != plain.digest


def test_a_device_that_a_partition_leaves_without_samples_is_named(make_config, monkeypatch):
    """As a partition of the user's own may do."""
    divide = Iid.divide

    def leaves_two_out(*args):
        ((first, second, *others),) = divide(*args)
        return [[first, second[:0], *others[:-1], others[-1][:0]]]

    monkeypatch.setattr(Iid, "divide", leaves_two_out)
    with pytest.raises(EdgesimError, match=r"^data.partition: device 1 holds no samples \(2 of 30 devices do\); "):
        make_federation(make_config(data={"partition": "iid"}), Streams(0))


def test_without_a_dataset_there_are_sizes_and_no_classes(make_config):
    config = make_config(
        data={"dataset": "none", "samples_per_device": 7}, learning={"training": "none"}, rounds=[2, 3]
    )
    federation = make_federation(config, Streams(0))
    assert federation.class_count == 0
    assert len(federation.frames) == 3
    assert federation.frames[2].sizes.tolist() == [7] * 30
    assert federation.frames[1].class_counts.shape == (30, 0)
