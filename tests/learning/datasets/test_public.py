"""Public images: how many, which ones, and that no device holds any."""

import numpy as np
import pytest
import torch
from refusals import in_one_line

from edgesim.config import DataConfig
from edgesim.config_file import parse
from edgesim.learning.datasets import Dataset, load_dataset, load_shared
from edgesim.learning.datasets.public import share_out
from edgesim.learning.federation import make_federation
from edgesim.learning.tensors import DeviceData
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams


def digits(**knobs):
    return load_shared(DataConfig(dataset="digits", **knobs))


def test_of_digits_twenty_of_each_class_are_public_and_the_others_private():
    shared = digits(public="carved")
    labels = shared.dataset.train_labels
    assert len(labels) == 1437
    assert np.bincount(labels[shared.public]).tolist() == [20] * 10
    assert sorted([*shared.private, *shared.public]) == list(range(1437))
    # Class after class in turn, so that the first twenty are two of each.
    assert labels[shared.public].tolist() == list(range(10)) * 20


def test_public_and_validation_images_are_drawn_and_not_the_first_of_their_classes():
    """A training set in the order of its files may have them sorted by how hard they are, or by who wrote them."""
    shared = digits(public="carved", validation_per_class=20)
    labels = shared.dataset.train_labels
    order = Streams(0).generator("digits-public").permutation(1437)
    for label in range(10):
        members = np.flatnonzero(labels == label)
        of_label = [chosen[labels[chosen] == label] for chosen in (shared.public, shared.validation)]
        assert of_label[0].tolist() == [index for index in order if labels[index] == label][:20]
        for chosen in of_label:
            # Of twenty that are drawn a seventh or so lie among the first twenty, and a median near the middle.
            assert len(set(chosen) & set(members[:20])) < 12
            assert members[25] < np.median(chosen) < members[-25]


def test_the_public_set_is_the_same_whatever_the_seed_and_the_partition():
    first = digits(public="carved").public
    for seed, partition in ((1, "iid"), (2, "dirichlet")):
        values = {"seed": seed, "data": {"dataset": "digits", "public": "carved", "partition": partition}}
        config = simulation.complete(parse(values, "run.toml"))
        federation = make_federation(config, Streams(seed))
        assert federation.public.tolist() == first.tolist()
        assert not set(federation.frames[1].samples) & set(first)
    assert digits(public="carved", public_per_class=3).public.tolist() == first[:30].tolist()


def test_the_servers_validation_images_are_equally_many_of_each_class_and_in_no_other_set():
    shared = digits(public="carved", validation_per_class=30)
    assert np.bincount(shared.dataset.train_labels[shared.validation]).tolist() == [30] * 10
    assert sorted([*shared.private, *shared.public, *shared.validation]) == list(range(1437))
    assert shared.public.tolist() == digits(public="carved").public.tolist()
    with in_one_line(r"^data.validation_per_class: takes 200 images of each class, and class \d"):
        digits(validation_per_class=200)


@pytest.mark.parametrize("pool", ["shared", "iid_partition"])
def test_the_pools_of_a_drift_law_are_without_the_servers_validation_images(pool):
    values = {
        "data": {"validation_per_class": 20},
        "devices": {"count": 5},
        "rounds": 9,
        "learning": {"pretrain": True},
    }
    law = {"law": "rotation", "classes": [10, 10], "pool": pool}
    config = simulation.complete(parse(values | {"drift": law}, "run.toml"))
    federation = make_federation(config, Streams(3))
    held = np.concatenate([federation.frames[1].samples_of(device) for device in range(5)])
    assert len(federation.validation) == 200
    assert not np.isin(federation.validation, held).any()
    # 1,237 of the 1,437 digits are left, in five equal parts or in all five hands.
    assert len(held) == (5 * len(np.unique(held)) if pool == "shared" else len(np.unique(held)))
    assert len(np.unique(held)) == (1237 if pool == "shared" else 1235)


def made(per_class, classes=3, seed=0):
    labels = np.repeat(np.arange(classes), per_class)
    images = np.random.default_rng(seed).integers(0, 256, (len(labels), 1, 4, 4), dtype=np.uint8)
    return Dataset("made", labels, labels[:3], classes, (1, 4, 4), lambda: (images, images[:3]))


def test_of_other_sets_a_tenth_of_the_smallest_class_is_public_and_small_leaves_two_hundred_private_ones():
    shared = share_out(made([60, 41, 80]), DataConfig(public="carved"))
    assert np.bincount(shared.dataset.train_labels[shared.public]).tolist() == [4, 4, 4]
    assert len(shared.private) == 181 - 12
    shared = share_out(made([300, 250, 400]), DataConfig(public="carved", small=True))
    assert np.bincount(shared.dataset.train_labels[shared.private]).tolist() == [200] * 3
    assert not set(shared.private) & set(shared.public)
    assert len(shared.public) == 3 * 25
    assert (digits().private.tolist(), len(digits().public)) == (list(range(1437)), 0)


def test_another_set_is_brought_to_size_channels_and_range_behind_the_own_images():
    """White is 255 there and 16 on digits; the constants that standardise are those of the run's own images."""
    own = load_dataset(DataConfig(dataset="digits"))
    labels = np.repeat(np.arange(10), 500)
    images = np.full((5000, 1, 28, 28), 255, dtype=np.uint8)
    other = Dataset("white", labels, labels[:1], 10, (1, 28, 28), lambda: (images, images[:1]))
    shared = share_out(own, DataConfig(public="other"), other)
    assert shared.private.tolist() == list(range(1437))
    assert shared.public.tolist() == list(range(1437, 6437))
    data = DeviceData(shared.dataset, torch.device("cpu"))
    pixels, classes = data.train(data.index(shared.public[:20]))
    assert pixels.shape == (20, 1, 8, 8)
    assert pixels.unique().tolist() == [1.0]
    assert classes.tolist() == list(range(10)) * 2
    assert shared.dataset.normalisation[1].tolist() == own.normalisation[1].tolist() == [16.0]


def test_a_colour_set_becomes_grey_and_a_grey_one_three_equal_channels():
    grey = made([600] * 10, classes=10)
    rng = np.random.default_rng(3)
    colours = rng.integers(0, 256, (6000, 3, 8, 8), dtype=np.uint8)
    labels = np.repeat(np.arange(10), 600)
    colour = Dataset("colours", labels, labels[:1], 10, (3, 8, 8), lambda: (colours, colours[:1]))
    as_grey = share_out(grey, DataConfig(public="other"), colour).dataset
    assert as_grey.images[0].shape == (11000, 1, 4, 4)
    luma = colours.transpose(0, 2, 3, 1) @ np.array([0.299, 0.587, 0.114])
    assert abs(as_grey.images[0][6000:].mean() - luma.mean()) < 2
    assert as_grey.normalisation[0].tolist() == grey.normalisation[0].tolist()
    in_colour = share_out(colour, DataConfig(public="other"), grey).dataset.images[0][6000:]
    assert in_colour.shape == (5000, 3, 8, 8)
    assert (in_colour[:, 0] == in_colour[:, 2]).all()
    assert as_grey.digest != grey.digest


CARVED = {"public": "carved"}


@pytest.mark.parametrize(
    ("knobs", "said"),
    [
        (CARVED | {"public_per_class": 200}, "^data.public_per_class: takes 200 images of each class, and cla"),
        (CARVED | {"small": True}, "^data.small: takes 200 images of each class, and class 0 of 'digits' has"),
        ({"dataset": "iris", "public": "other"}, "^data.public: 'other' is for data.dataset = digits, .* not 'iris'"),
        (
            {"public": "other", "folder": "nowhere"},
            "^data.public: fashion-mnist is not there, nowhere/FashionMNIST/raw/train-images-idx3-ubyte is missing: ",
        ),
    ],
)
def test_a_set_without_room_is_refused_in_a_line(knobs, said):
    with in_one_line(said):
        load_shared(DataConfig(**({"dataset": "digits"} | knobs)))


@pytest.mark.parametrize("public", ["none", "carved"])
def test_without_a_data_set_only_algorithms_whose_devices_need_public_images_are_refused(public):
    def complete(name):
        data = {"dataset": "none", "partition": "fedteddi", "public": public}
        config = {"algorithm": {"name": name}, "data": data, "learning": {"training": "none", "pretrain": True}}
        return simulation.complete(parse(config, "run.toml")).algorithm.name

    assert [complete(name) for name in ("fedcl", "feddf")] == ["fedcl", "feddf"]
    for name in ("cfed", "fedmd"):
        with in_one_line(rf"^algorithm.name = '{name}' does not go with data.dataset = 'none'"):
            complete(name)
