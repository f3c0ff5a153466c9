import inspect
import os
from socket import gethostname
from threading import Thread

import numpy as np
import pytest
import torch
from refusals import in_one_line
from waiting import wait_for

from edgesim import streams
from edgesim.base.errors import EdgesimError
from edgesim.base.lease import leased
from edgesim.config import DataConfig
from edgesim.learning import evaluation, flat, image_loader, pretrain, tensors
from edgesim.learning.cache import cache_folder
from edgesim.learning.datasets import load_dataset


@pytest.fixture
def prepared(make_learner, own_cache):
    """A learner whose start model is trained, by the sections of its config."""

    def make(notices=None, **sections):
        learner = make_learner(**sections)
        learner.prepare(notices.append if notices is not None else lambda _: None)
        return learner

    return make


def test_the_start_model_knows_the_old_classes_and_not_the_new(prepared):
    learner = prepared()
    accuracy = learner.evaluate(1).class_accuracy
    assert np.mean([accuracy[label] for label in range(6)]) >= 0.8
    assert np.mean([accuracy[label] for label in range(6, 10)]) < 0.05
    assert learner.facts()["pretrain_accuracy"] >= 0.8


def test_a_cached_start_model_has_the_same_bytes_and_is_not_trained_again(prepared):
    trained, read = [], []
    first = prepared(trained)
    (cached,) = cache_folder("start-models").iterdir()
    content = cached.read_bytes()
    second = prepared(read, round={"tmax_s": 2.0}, selection={"policy": "fedteddi"})
    assert torch.equal(first.global_weights, second.global_weights)
    assert first.facts() == second.facts()
    assert (len(trained), read) == (first.facts()["pretrain_epochs"], [])
    cached.unlink()
    prepared()
    assert [path.read_bytes() for path in cache_folder("start-models").iterdir()] == [content]


def test_what_another_process_trains_is_waited_for_and_not_trained_twice(prepared):
    first = prepared()
    (cached,) = cache_folder("start-models").iterdir()
    content, notices, learners = cached.read_bytes(), [], []
    cached.unlink()
    waiting = Thread(target=lambda: learners.append(prepared(notices)))
    with leased(cached.with_suffix(".making")):
        waiting.start()
        wait_for(lambda: notices, "it does not wait")
        cached.write_bytes(content)
    waiting.join(60)
    assert notices == [f"pre-training: waits for process {os.getpid()} on {gethostname()}, which makes the same"]
    assert torch.equal(learners[0].global_weights, first.global_weights)
    assert list(cache_folder("start-models").iterdir()) == [cached]


ONCE = {"pretrain_max_epochs": 1}
READS_WEIGHTS = """
import numpy, torch

def model(image_shape, class_count):
    frozen = torch.nn.Linear(64, 8)
    frozen.weight = torch.nn.Parameter(torch.from_numpy(numpy.load({path!r})), requires_grad=False)
    return torch.nn.Sequential(torch.nn.Flatten(), frozen, torch.nn.ReLU(), torch.nn.Linear(8, class_count))
"""


def test_what_changes_the_start_model_has_a_place_of_its_own_in_the_cache(prepared, tmp_path, monkeypatch):
    """Keys, code and torchvision, pixels on another scale, and weights that a user's model reads."""

    def places(learning=(), **others):
        prepared(learning=ONCE | dict(learning), **others)
        return len(list(cache_folder("start-models").iterdir()))

    changes = [{}, {"seed": 1}, {"learning": {"lr": 0.05}}, {"learning": {"pretrain_target": 0.5}}]
    assert [places(**change) for change in [*changes, {"data": {"permute_labels": True}}]] == [1, 2, 3, 4, 5]
    source = inspect.getsource
    for changed in (image_loader, flat, tensors, streams, evaluation, pretrain._trained):
        with monkeypatch.context() as patch:
            patch.setattr(inspect, "getsource", lambda code, changed=changed: source(code) + "#" * (code is changed))
            places()
    with monkeypatch.context() as patch:
        patch.setattr(pretrain, "version", lambda _: "0.0")
        assert places() == 5 + 7
    # The digits are divided by 16, those of a file standardised.
    _save_digits(tmp_path / "digits.npz")
    assert places(data={"dataset": str(tmp_path / "digits.npz")}) == 13
    (tmp_path / "reads_weights.py").write_text(READS_WEIGHTS.format(path=str(tmp_path / "weights.npy")))
    monkeypatch.syspath_prepend(tmp_path)
    for seed in range(2):
        np.save(tmp_path / "weights.npy", np.random.default_rng(seed).normal(size=(8, 64)).astype(np.float32))
        assert places({"model": "reads_weights.model"}) == 14 + seed


def _save_digits(path):
    dataset = load_dataset(DataConfig())
    (train, test), labels = dataset.images, (dataset.train_labels, dataset.test_labels)
    np.savez(path, train_images=train[:, 0], train_labels=labels[0], test_images=test[:, 0], test_labels=labels[1])


def test_a_data_set_that_changed_at_its_path_is_not_served_the_start_model_of_the_old_one(prepared, tmp_path):
    path = tmp_path / "images.npz"
    config = {"data": {"dataset": str(path)}, "learning": ONCE}
    _save_digits(path)
    before = prepared(**config).global_weights
    size, time_ns = path.stat().st_size, path.stat().st_mtime_ns
    arrays = dict(np.load(path))
    arrays["train_images"][:50] = 16 - arrays["train_images"][:50]
    np.savez(path, **arrays)
    os.utime(path, ns=(time_ns, time_ns))
    assert path.stat().st_size == size
    assert not torch.equal(prepared(**config).global_weights, before)


def test_pretraining_ends_after_its_last_epoch_when_the_target_is_out_of_reach(prepared):
    notices = []
    learning = {"lr": 1e-5, "pretrain_max_epochs": 3}
    assert prepared(notices, learning=learning).facts()["pretrain_epochs"] == 3
    assert len(notices) == 3


def test_a_damaged_file_in_the_cache_is_replaced_and_the_start_model_of_another_net_is_one_line(prepared):
    first = prepared(learning=ONCE)
    (cached,) = cache_folder("start-models").iterdir()
    content = cached.read_bytes()
    cached.write_bytes(content[: len(content) // 2])
    assert torch.equal(prepared(learning=ONCE).global_weights, first.global_weights)
    assert cached.read_bytes() == content
    prepared(learning=ONCE | {"model": "small-cnn"})
    (other,) = set(cache_folder("start-models").iterdir()) - {cached}
    cached.write_bytes(other.read_bytes())
    # 64 x 32 + 32 + 32 x 10 + 10 weights of the MLP.
    with in_one_line(rf"{cached}: is the start model of another net, of [0-9,]+ numbers; expected 2,410; remove it"):
        prepared(learning=ONCE)
    assert cached.read_bytes() == other.read_bytes()


def test_a_data_set_whose_test_images_are_of_new_classes_alone_is_one_line(prepared, tmp_path):
    path = tmp_path / "images.npz"
    _save_digits(path)
    arrays = dict(np.load(path))
    new = arrays["test_labels"] > 5
    arrays |= {name: arrays[name][new] for name in ("test_images", "test_labels")}
    np.savez(path, **arrays)
    with pytest.raises(EdgesimError, match=r"images: no test image is of the old classes 0, 1, 2, 3, 4, 5, on") as said:
        prepared(data={"dataset": str(path)})
    assert said.value.fields == ("data.dataset",)
    prepared(data={"dataset": str(path)}, learning={"pretrain": False})


def test_a_cache_that_cannot_be_written_is_one_line(prepared, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EDGESIM_CACHE", str(tmp_path / "file"))
    with in_one_line(r"cannot be written: .*set EDGESIM_CACHE"):
        prepared()
