"""The start model: trained on the old classes, and stored in a cache that all runs share."""

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from edgesim.base.errors import Diverged, EdgesimError
from edgesim.base.sources import digest_when_loaded
from edgesim.config import RunConfig
from edgesim.learning import local_sgd
from edgesim.learning.augmentation import draw_changes
from edgesim.learning.batches import epoch_edges, least_batch
from edgesim.learning.cache import cache_folder, code_digest, made_by_one, new_entry
from edgesim.learning.evaluation import predictions
from edgesim.learning.federation import Federation
from edgesim.learning.flat import FlatModel
from edgesim.learning.image_loader import ImageLoader
from edgesim.learning.jobs import Optimiser
from edgesim.learning.payload import model_module
from edgesim.learning.tensors import DeviceData
from edgesim.learning.torch_settings import device_kind, memory_lasts, seeded
from edgesim.streams import Streams

_FORMAT = 1
#: Modules whose code decides on the result of pre-training; all are loaded by then.
_TRAINING = [
    "local_sgd",
    "descent",
    "dropout",
    "augmentation",
    "jitter",
    "image_loader",
    "flat",
    "tensors",
    "batches",
    "evaluation",
]


@dataclass(frozen=True, eq=False)
class StartModel:
    """Weights with which the first frame starts, with the epochs and the accuracy of their training."""

    weights: Tensor
    """[P], on the training device."""
    epochs: int
    accuracy: float
    """Share of the old classes' test images that are right."""


def start_model(
    model: FlatModel,
    data: DeviceData,
    federation: Federation,
    config: RunConfig,
    streams: Streams,
    notice: Callable[[str], None],
) -> StartModel:
    """Pre-train the loaded weights on the old classes, or read the result of an equal earlier pre-training.

    It trains whole epochs over all images of the old classes until enough of their test images are right. ``notice``
    is called after every epoch. Raises `EdgesimError` when the cache folder cannot be written and `Diverged` when a
    loss is not finite.
    """
    path = cache_folder("start-models") / f"{_key(model, data, federation, config, streams)}.safetensors"
    start = _read(path, model, data.device)
    if start is None:
        # Of runs that begin at once with the same start model one trains it, while the others wait.
        with made_by_one(path, lambda text: notice(f"pre-training: {text}")):
            start = _read(path, model, data.device)
            if start is None:
                start = _trained(model, data, federation, config, streams, notice)
                _write(path, start)
    return start


def _trained(
    model: FlatModel,
    data: DeviceData,
    federation: Federation,
    config: RunConfig,
    streams: Streams,
    notice: Callable[[str], None],
) -> StartModel:
    dataset, learning, augment = federation.dataset, config.learning, config.data.augment
    assert dataset is not None, "without a dataset nothing trains"
    samples = np.flatnonzero(np.isin(dataset.train_labels, federation.old_classes))
    test = np.flatnonzero(np.isin(dataset.test_labels, federation.old_classes))
    edges = epoch_edges(len(samples), 1, least_batch(learning))
    optimiser = Optimiser(learning.lr, learning.momentum, kind=learning.optimiser)
    velocity = torch.zeros_like(model.gradient)
    epoch, accuracy = 0, 0.0
    while epoch < learning.pretrain_max_epochs and accuracy < learning.pretrain_target:
        epoch += 1
        order = streams.generator("pretrain-order", round=epoch).permutation(samples)
        (changes,) = draw_changes(augment, streams, "pretrain-augmentation", [0], epoch, [len(order)], data.stored_size)
        seed = int(streams.seeds("pretrain", 0, epoch))
        with memory_lasts("pre-training", "set learning.batch_size lower"), seeded(data.device, seed):
            loader = ImageLoader(model, data, order, changes)
            if learning.optimiser == "adam":
                velocity.zero_()
            progress = local_sgd.train(model, loader, edges, optimiser, velocity, seed)
        if progress.first_bad_step is not None:
            raise Diverged(
                f"pre-training, epoch {epoch}, step {progress.first_bad_step}: the training loss is not "
                f"finite (lr {learning.lr:g}); lower learning.lr"
            )
        accuracy = float((predictions(model, data, test, test=True)[1] == dataset.test_labels[test]).mean())
        notice(f"pre-training, epoch {epoch}: {accuracy:.1%} of the old classes' test images are right")
    return StartModel(model.snapshot(), epoch, accuracy)


def refuse_untestable(federation: Federation) -> None:
    """Raise `EdgesimError` where no test image is of the old classes, by which pre-training is to end."""
    dataset, old = federation.dataset, federation.old_classes
    assert dataset is not None, "without a dataset nothing trains"
    if not np.isin(dataset.test_labels, old).any():
        raise EdgesimError(
            f"{dataset.name}: no test image is of the old classes {', '.join(map(str, old))}, on which the start model "
            "is tested; give test images of them, or set learning.pretrain = false",
            "data.dataset",
        )


def _key(model: FlatModel, data: DeviceData, federation: Federation, config: RunConfig, streams: Streams) -> str:
    """Hash of everything on which the bytes of a start model depend."""
    assert federation.dataset is not None, "without a dataset nothing trains"
    learning = config.learning
    training = [import_module(f"edgesim.learning.{name}") for name in _TRAINING]
    content = {
        "format": _FORMAT,
        "dataset": federation.dataset.digest,
        "old_classes": federation.old_classes.tolist(),
        "model": learning.model,
        "model_options": learning.model_options,
        "model_source": digest_when_loaded(model_module(learning.model)),
        "initial": {name: _tensor_digest(tensor) for name, tensor in model.state().items()},
        "training_source": code_digest(*training, sys.modules[Streams.__module__], _trained),
        "augment": config.data.augment,
        "precision": learning.precision,
        "lr": learning.lr,
        "momentum": learning.momentum,
        "optimiser": learning.optimiser,
        "batch_size": least_batch(learning),
        "target": learning.pretrain_target,
        "max_epochs": learning.pretrain_max_epochs,
        "seed": streams.seed,
        "torch": torch.__version__,
        "torchvision": version("torchvision"),
        "device": device_kind(data.device),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _tensor_digest(tensor: Tensor) -> str:
    return f"{tensor.dtype} {list(tensor.shape)} {hashlib.sha256(tensor.numpy().tobytes()).hexdigest()}"


def _read(path: Path, model: FlatModel, device: torch.device) -> StartModel | None:
    try:
        with safe_open(path, "pt") as file:
            facts, weights = json.loads(file.metadata()["pretraining"]), file.get_tensor("weights")
    except (OSError, SafetensorError):
        return None
    if weights.shape != model.weights.shape:
        raise EdgesimError(
            f"{path}: is the start model of another net, of {weights.numel():,} numbers; expected "
            f"{model.weights.numel():,}; remove it"
        )
    return StartModel(weights.to(device), facts["epochs"], facts["accuracy"])


def _write(path: Path, start: StartModel) -> None:
    # One entry: safetensors writes several in no fixed order.
    facts = {"pretraining": json.dumps({"epochs": start.epochs, "accuracy": start.accuracy})}
    with new_entry(path) as part:
        save_file({"weights": start.weights.cpu()}, part, metadata=facts)
