"""Accuracy of predictors of availability, and work of devices for selectors beyond their training."""

import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import torch
from threadpoolctl import threadpool_limits

from edgesim.base.arrays import Booleans, Floats
from edgesim.base.sources import source_digest
from edgesim.learning.models import new_model
from edgesim.learning.selection_overhead import of_feddance, of_oort
from edgesim.prediction import PREDICTORS, Backtest, CheckInLog, backtest, make_predictor

__all__ = ["Backtest", "code_of", "judged", "overheads_s"]

DEVICES = 40
"""On how many devices overheads are taken."""


def code_of(predictor: str) -> str:
    """Hash of a user's own predictor; empty for edgesim's."""
    path = PREDICTORS.foreign(predictor)
    return (source_digest(path.rpartition(".")[0]) or "") if path else ""


def judged(present: Booleans, predictor: str, history: int, future: int, every: int = 1) -> Backtest:
    """A predictor judged on check-ins [rounds, devices]; ``predictor`` is a name or a dotted path.

    Of each ``every``-th round with ``history`` rounds before it, and for the ``future`` rounds from it on. Raises
    `EdgesimError` for an unknown name, and for windows that do not fit.
    """
    return backtest(present, make_predictor(predictor), history, future, every)


def overheads_s(
    present: Booleans, history: int, future: int, image: tuple[int, int, int], classes: int, samples: int, batch: int
) -> dict[str, Floats]:
    """Wall seconds of what each selector makes a device do beyond training, over `DEVICES` devices (FedDance, fig. 18).

    FedDance: loss and accuracy of the mini-batch, whose logits training has left. Oort: the losses of all local
    samples. REFL: fitting an own ARIMA model to the history and forecasting by it, on devices that came and went in it;
    left out where none did, and without statsmodels. ``image`` is the shape of a device's images, of which it has
    ``samples``.
    """
    model = new_model("small-cnn", image, classes, 0).eval()
    random = torch.Generator().manual_seed(0)
    images = torch.rand(DEVICES, samples, *image, generator=random)
    labels = torch.randint(classes, (DEVICES, samples), generator=random)
    with torch.inference_mode():
        logits = [model(some[:batch]) for some in images]
    work: dict[str, Callable[[int], object]] = {
        "FedDance": lambda device: of_feddance(logits[device], labels[device, :batch]),
        "Oort": lambda device: of_oort(model, images[device], labels[device], batch),
    }
    changing = np.flatnonzero(present[:history].any(axis=0) & ~present[:history].all(axis=0))
    if find_spec("statsmodels") and len(changing):
        log = CheckInLog.empty(present.shape[1], history)
        for row in present[:history]:
            log.append(np.flatnonzero(row))
        ids = np.resize(changing, DEVICES)
        work["REFL"] = lambda device: make_predictor("arima")(log, ids[device : device + 1], future)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        for act in work.values():
            act(0)  # imports and first calls are no device's
        overheads = {name: np.array([_wall_s(act, device) for device in range(DEVICES)]) for name, act in work.items()}
    torch.set_num_threads(threads)
    return overheads


def _wall_s(act: Callable[[int], object], device: int) -> float:
    started = time.perf_counter()
    act(device)
    return time.perf_counter() - started
