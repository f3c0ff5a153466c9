"""Office-Caltech's loader on made folders, and what domains are for: one Dirichlet draw, the mean of accuracies."""

import os
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from refusals import in_one_line
from typed_commands import edgesim_lines
from whole_runs import merged, play

from edgesim.config import DataConfig
from edgesim.learning.datasets import load_dataset, load_shared
from edgesim.learning.evaluation import evaluation_of
from edgesim.learning.partitions.dirichlet import Dirichlet
from edgesim.streams import Streams

SIZES = {"amazon": 23, "dslr": 11, "webcam": 14, "caltech": 30}
CLASSES = ["bag", "bike", "calculator", "headphones", "keyboard", "laptop", "monitor", "mouse", "mug", "projector"]


def made(root, sizes=SIZES):
    """A folder of the data set's shape: image k of a domain is of class k mod 10, grey, and one shade per domain."""
    for shade, (domain, size) in enumerate(sizes.items()):
        for index in range(size):
            folder = root / domain / CLASSES[index % 10]
            folder.mkdir(parents=True, exist_ok=True)
            Image.new("L", (4 + index, 7), 50 * shade + index).save(folder / f"{index:03}.png")
    return root


@pytest.fixture(scope="module")
def office(tmp_path_factory):
    return made(tmp_path_factory.mktemp("data") / "office-caltech")


def load(folder, **knobs):
    return load_dataset(DataConfig(dataset="office-caltech", folder=str(folder), **knobs))


@pytest.mark.parametrize("inside", [True, False])
def test_four_fifths_of_each_domain_are_for_training_at_32_by_32(office, inside):
    dataset = load(office if inside else office.parent)
    assert (dataset.name, dataset.class_count, dataset.image_shape) == ("office-caltech", 10, (3, 32, 32))
    assert dataset.domains.names == ("amazon", "dslr", "webcam", "caltech")
    assert np.bincount(dataset.domains.train).tolist() == [18, 8, 11, 24]
    assert np.bincount(dataset.domains.test).tolist() == [5, 3, 3, 6]
    # Every image is there once, under its class and domain: its shade tells its place.
    found = set()
    for images, labels, domains in (
        (dataset.images[0], dataset.train_labels, dataset.domains.train),
        (dataset.images[1], dataset.test_labels, dataset.domains.test),
    ):
        for image, label, domain in zip(images, labels, domains, strict=True):
            (shade,) = np.unique(image).tolist()
            assert (shade - 50 * domain) % 10 == label
            found.add((int(domain), shade - 50 * int(domain)))
    assert len(found) == sum(SIZES.values())
    assert found == {(number, index) for number, size in enumerate(SIZES.values()) for index in range(size)}


def test_the_published_sizes_are_split_as_published(tmp_path, monkeypatch):
    sizes = {"amazon": 958, "dslr": 157, "webcam": 295, "caltech": 1123}

    def files(folder):
        place, size = CLASSES.index(folder.name), sizes[folder.parent.name]
        return [f"{index}.jpg" for index in range(place, size, 10)]

    for domain in sizes:
        for label in CLASSES:
            (tmp_path / domain / label).mkdir(parents=True)
    monkeypatch.setattr("edgesim.learning.datasets.office_caltech.image_files", files)
    dataset = load(tmp_path)
    assert np.bincount(dataset.domains.train).tolist() == [766, 125, 236, 898]
    assert np.bincount(dataset.domains.test).tolist() == [192, 32, 59, 225]


def test_the_split_and_the_public_set_hang_on_no_seed_and_on_no_place(office, tmp_path):
    shutil.copytree(office, tmp_path / "elsewhere")
    config = DataConfig(dataset="office-caltech", folder=str(office), public="carved", public_per_class=2)
    first, second = load_shared(config), load_shared(config.model_copy(update={"folder": str(tmp_path / "elsewhere")}))
    assert first.public.tolist() == second.public.tolist()
    assert first.dataset.train_labels.tolist() == second.dataset.train_labels.tolist()
    np.testing.assert_array_equal(*(shared.dataset.images[1] for shared in (first, second)))
    assert np.bincount(first.dataset.train_labels[first.public]).tolist() == [2] * 10
    assert sorted([*first.private, *first.public]) == list(range(61))
    assert load(office, image_size=9).images[0].shape == (61, 3, 9, 9)


def refused(folder, load=load):
    with in_one_line("office") as refusal:
        load(folder)
    return str(refusal.value)


def test_nothing_there_is_one_line_that_says_what_to_put_where(tmp_path):
    said = refused(tmp_path)
    assert said.startswith(
        "data.dataset: office-caltech is not there, and cannot be downloaded: put its folders amazon, "
    )
    assert f"into {tmp_path / 'office-caltech'}, or set data.folder to where they lie" in said


def emptied(folder):
    for file in os.listdir(folder):
        (folder / file).rename(folder / f".{file}")


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (
            lambda root: shutil.rmtree(root / "dslr"),
            "dslr: no such folder; expected the domains amazon, dslr, webcam, ",
        ),
        (lambda root: shutil.rmtree(root / "webcam/mug"), "webcam: amazon has a class 'mug' and webcam has not; "),
        (lambda root: (root / "dslr/mugs").mkdir(), "dslr: dslr has a class 'mugs' and amazon has not; expected "),
        (lambda root: (root / "amazon/cup").mkdir(), "amazon: has 11 class folders; expected 10"),
        (lambda root: shutil.rmtree(root / "amazon/mug"), "amazon: has 9 class folders; expected 10"),
        (lambda root: emptied(root / "caltech/bike"), "caltech/bike: holds no images"),
    ],
)
@pytest.mark.whole_family
def test_a_folder_of_another_shape_is_one_line_that_names_what_is_wrong(harm, said, tmp_path):
    root = made(tmp_path / "office")
    harm(root)
    assert refused(root).startswith(f"{root}/{said}")


def test_a_broken_image_is_named_before_a_run_begins(tmp_path):
    root = made(tmp_path / "office")
    (root / "webcam/mug/008.png").write_bytes(b"\x89PNG\r\n")
    with in_one_line(r"webcam/mug/008.png: not a readable image"):
        play(tmp_path / "run", config(root))
    assert not (tmp_path / "run").exists()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.floats(0.05, 100), st.integers(1, 9))
def test_all_domains_are_dealt_by_one_draw_of_shares(seed, alpha, devices):
    """Of each domain and class a device has its share, rounded at either end of it."""
    random = np.random.default_rng(seed)
    labels, domains = random.integers(0, 5, 3000), random.choice(3, 3000, p=[0.7, 0.2, 0.1])
    (parts,) = Dirichlet(alpha=alpha).divide_domains(labels, domains, 5, devices, None, Streams(seed))
    assert sorted(np.concatenate(parts)) == list(range(3000))
    shares = Streams(seed).generator("partition/dirichlet").dirichlet(np.full(devices, alpha), 5)
    # One sample more or less goes to a device without any.
    poor = sum(len(part) == 1 for part in parts)
    for device, part in enumerate(parts):
        for label in range(5):
            for domain in range(3):
                total = int(((labels == label) & (domains == domain)).sum())
                held = int(((labels[part] == label) & (domains[part] == domain)).sum())
                assert abs(held - shares[label, device] * total) < 1 + 1e-9 + poor


def test_a_single_domain_is_dealt_as_none():
    labels = np.random.default_rng(0).integers(0, 5, 500)
    law, how = Dirichlet(alpha=0.3), (5, 7, None, Streams(3))
    (plain,), (one,) = law.divide(labels, *how), law.divide_domains(labels, np.zeros_like(labels), *how)
    assert [part.tolist() for part in plain] == [part.tolist() for part in one]


def test_the_accuracy_is_the_mean_over_domains_of_that_of_their_samples():
    """Two of three right, one of one, none of two: (2/3 + 1 + 0) / 3; of all samples it would be 1/2."""
    labels, predicted = np.array([0, 1, 1, 0, 1, 1]), np.array([0, 1, 0, 0, 0, 0])
    domains = {"a": np.arange(6) < 3, "b": np.arange(6) == 3, "c": np.arange(6) > 3, "away": np.zeros(6, dtype=bool)}
    found = evaluation_of(np.zeros(6), predicted, labels, domains)
    assert found.accuracy == pytest.approx(5 / 9)
    assert found.domain_accuracy == pytest.approx({"a": 2 / 3, "b": 1.0, "c": 0.0})
    assert evaluation_of(np.zeros(6), predicted, labels).accuracy == 0.5
    assert evaluation_of(np.zeros(6), predicted, labels, {"all": np.ones(6, dtype=bool)}).accuracy == 0.5


def config(folder, **sections):
    base = {
        "rounds": 2,
        "devices": {"count": 3},
        "round": {"tmax_s": 20.0},
        "data": {"dataset": "office-caltech", "folder": str(folder), "partition": "dirichlet"},
        "learning": {"model": "mlp", "pretrain": False, "epochs": 1, "back_end": "loop"},
    }
    return merged(base, sections)


RESNET = {
    "learning": {"model": "resnet10-bn", "pretrain": False, "epochs": 1, "batch_size": 10, "clip_norm": 10.0},
    "data": {"image_size": 8, "public": "carved", "public_per_class": 1},
    "rounds": 1,
    "algorithm": {"name": "fedmd", "average_weights": True, "public_epochs": 1},
}
"""DPFL's own network and FedMD: devices hold parts of all domains by one draw, ten images are carved out."""


@pytest.mark.parametrize(
    "sections",
    [
        {"algorithm": {"name": "fedavg"}},
        {"algorithm": {"name": "fedproto"}},
        {"algorithm": {"name": "fedproto", "average_weights": True}},
        pytest.param(RESNET, marks=pytest.mark.slow),
    ],
    ids=lambda sections: str(sections["algorithm"]),
)
def test_a_run_tells_each_domain_and_their_mean(office, sections, tmp_path):
    played = play(tmp_path / "run", config(office, **sections))
    rounds, metrics = played.rounds, played.metrics
    for number, accuracy in zip(rounds["round"], rounds["test_accuracy"], strict=True):
        of_domains = metrics.query(f"name == 'domain_accuracy' and round == {number}").set_index("key")["value"]
        assert list(of_domains.index) == ["amazon", "dslr", "webcam", "caltech"]
        assert accuracy == pytest.approx(of_domains.mean(), abs=1e-12)
    assert len(metrics.query("name == 'domain_accuracy' and round == 0")) == 4
    assert "accuracy by domain" in edgesim_lines("show", tmp_path / "run")[1]
    if sections is RESNET:
        assert played.facts["public_images"] == 10
