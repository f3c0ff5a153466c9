"""The start model: trained on the old classes, and kept in a cache that all runs share."""

import hashlib
import inspect
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from edgesim.config import LearningConfig
from edgesim.errors import Diverged, EdgesimError
from edgesim.learning import local_sgd
from edgesim.learning.batches import step_edges
from edgesim.learning.evaluation import predictions
from edgesim.learning.federation import Federation
from edgesim.learning.flat import FlatModel
from edgesim.learning.models import source_text
from edgesim.learning.numerics import device_kind, seeded
from edgesim.learning.tensors import DeviceData
from edgesim.streams import Streams

_FORMAT = 1


@dataclass(frozen=True, eq=False)
class StartModel:
    """Weights with which the first frame starts."""

    weights: Tensor
    """[P], on the training device."""
    epochs: int
    accuracy: float
    """Share of the old classes' test images that are right."""


def start_model(
    model: FlatModel,
    data: DeviceData,
    federation: Federation,
    learning: LearningConfig,
    streams: Streams,
    notice: Callable[[str], None],
) -> StartModel:
    """Pre-train the loaded weights on the old classes, or read the result of an earlier run of the same kind.

    ``notice`` hears of every epoch trained. Raises `EdgesimError` when the cache folder cannot be
    written and `Diverged` when a loss is not finite.
    """
    path = cache_folder() / f"{_key(model, data, federation, learning, streams)}.safetensors"
    cached = _read(path, model, data.device)
    if cached is not None:
        return cached
    trained = _pretrain(model, data, federation, learning, streams, notice)
    _write(path, trained)
    return trained


def cache_folder() -> Path:
    """Where start models are kept: below ``$EDGESIM_CACHE``, or else ``~/.cache/edgesim``."""
    root = os.environ.get("EDGESIM_CACHE")
    return (Path(root) if root else Path.home() / ".cache" / "edgesim") / "start-models"


def _pretrain(
    model: FlatModel,
    data: DeviceData,
    federation: Federation,
    learning: LearningConfig,
    streams: Streams,
    notice: Callable[[str], None],
) -> StartModel:
    """Whole epochs over all images of the old classes until enough of their test images are right."""
    dataset = federation.dataset
    assert dataset is not None, "without a dataset nothing trains"
    samples = np.flatnonzero(np.isin(dataset.train_labels, federation.old_classes))
    test = np.flatnonzero(np.isin(dataset.test_labels, federation.old_classes))
    edges = step_edges(len(samples), learning.model_copy(update={"steps": None, "epochs": 1}))
    velocity = torch.zeros_like(model.gradient)
    epoch, accuracy = 0, 0.0
    while epoch < learning.pretrain_max_epochs and accuracy < learning.pretrain_target:
        epoch += 1
        order = streams.generator("pretrain-order", round=epoch).permutation(samples)
        with seeded(data.device, int(streams.seeds("pretrain", 0, epoch))):
            progress = local_sgd.train(model, data, order, edges, learning.lr, learning.momentum, velocity)
        if progress.first_bad_step is not None:
            raise Diverged(
                f"pre-training, epoch {epoch}, step {progress.first_bad_step}: the training loss is not "
                f"finite (lr {learning.lr:g}); lower learning.lr"
            )
        accuracy = float((predictions(model, data, test, test=True)[1] == dataset.test_labels[test]).mean())
        notice(f"pre-training, epoch {epoch}: {accuracy:.1%} of the old classes' test images are right")
    return StartModel(model.snapshot(), epoch, accuracy)


def _key(model: FlatModel, data: DeviceData, federation: Federation, learning: LearningConfig, streams: Streams) -> str:
    """Hash of everything on which the bytes of a start model depend."""
    assert federation.dataset is not None, "without a dataset nothing trains"
    content = {
        "format": _FORMAT,
        "dataset": federation.dataset.digest,
        "old_classes": federation.old_classes.tolist(),
        "model": learning.model,
        "model_source": _digest(source_text(learning.model)),
        "tensors": {name: list(tensor.shape) for name, tensor in model.module.state_dict().items()},
        "training_source": _digest(inspect.getsource(local_sgd)),
        "lr": learning.lr,
        "momentum": learning.momentum,
        "batch_size": learning.batch_size,
        "target": learning.pretrain_target,
        "max_epochs": learning.pretrain_max_epochs,
        "seed": streams.seed,
        "torch": torch.__version__,
        "device": device_kind(data.device),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _read(path: Path, model: FlatModel, device: torch.device) -> StartModel | None:
    try:
        with safe_open(path, "pt") as file:
            facts, weights = json.loads(file.metadata()["pretraining"]), file.get_tensor("weights")
    except (OSError, SafetensorError):
        return None
    if weights.shape != model.weights.shape:
        return None
    return StartModel(weights.to(device), facts["epochs"], facts["accuracy"])


def _write(path: Path, start: StartModel) -> None:
    """Written beside its place and renamed, so that parallel runs never see half a file."""
    # One entry: safetensors writes several in no fixed order.
    facts = {"pretraining": json.dumps({"epochs": start.epochs, "accuracy": start.accuracy})}
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            part = Path(folder) / path.name
            save_file({"weights": start.weights.cpu()}, part, metadata=facts)
            part.replace(path)
    except OSError as error:
        raise EdgesimError(
            f"{path.parent}: cannot be written: {error.strerror}; set EDGESIM_CACHE to a folder for start models"
        ) from None
