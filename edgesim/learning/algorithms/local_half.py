"""The base of local halves of algorithms: the work of a device."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from edgesim.base.arrays import Floats, Integers, repeated
from edgesim.learning.algorithms.records import (
    Device,
    Devices,
    Outputs,
    Phase,
    Pull,
    Samples,
    Sent,
    Sizes,
    Step,
    Trained,
)
from edgesim.learning.torch_types import F, Tensor
from edgesim.streams import Streams


class LocalHalf:
    """Local half of an algorithm; its answers are those of FedAvg. An object holds no state, and is pickled.

    Unless models travel (`Options.sends_models`) they are those of devices that each train, store and are tested by a
    model of their own.
    """

    teachers: ClassVar[tuple[str, ...]] = ()
    """Names among the tensors given of the weights, [P], of models whose outputs `loss` looks at."""
    features: ClassVar[bool] = False
    """Whether `loss` uses features, or logits that the last layer makes of latents; models without a last linear layer
    are refused then."""
    draws: ClassVar[bool] = False
    """Whether `loss` draws random numbers."""

    def __init__(self, options: Any, sizes: Sizes, streams: Streams) -> None:
        self.options = options
        self.sizes = sizes
        self.streams = streams

    @property
    def vectors_up(self) -> tuple[str, ...]:
        """Names of the tensors of `Sent.up` that have a number for each trainable parameter, which may be coded.

        Where the job was given a tensor of the same name, its change is coded.
        """
        return ()

    # What the radio and the tables need: NumPy alone. A ledger is that of the server half.

    def begin(self, devices: Devices, round: int, ledger: Any) -> None:
        """Note in the ledger, in place, that devices begin to work together in a round.

        A half that overrides it settles bits and computing of a device then: before, it answers for the most that the
        device might have to do, since deadlines and bands are planned on it.
        """

    def upload_bits(self, devices: Devices, round: int, ledger: Any) -> Floats:
        """Bits that each device sends, [n]."""
        return repeated(self.sizes.model_bits * self.options.sends_models, len(devices.ids))

    def compute_factor(self, devices: Devices, samples: Integers, round: int, ledger: Any) -> Floats:
        """Cost of jobs that train on so many of the devices' own ``samples`` [n], as multiples of FedAvg's, [n].

        Forward passes cost one unit and backward passes two; so a teacher adds a third.
        """
        return repeated((3 + len(self.teachers)) / 3, len(samples))

    # What trains, in the process of the run.

    def first_kept(self, weights: Tensor) -> dict[str, Tensor]:
        """Tensors that a device has before its first update is merged, by name; the run began with ``weights``, [P].

        They are as large as those that `sent` keeps, and so tell the memory for these. Unless models travel that is
        the model, as ``start``, which the device's job then gets in place of the server's.
        """
        return {} if self.options.sends_models else {"start": weights.clone()}

    def phases(self, own: Phase, device: Device, samples: Samples, ledger: Any) -> tuple[Phase, ...]:
        """The steps of a job: ``own`` are those of the config, ``samples`` all that the device may train on."""
        return (own,)

    def passes_over(self, device: Device, samples: Samples) -> Integers:
        """Samples over which `sent` asks for a pass, [n], which the job then carries."""
        return np.empty(0, dtype=np.int64)

    def scores(self, outputs: Outputs, shared: Mapping[str, Tensor]) -> Tensor:
        """Scores of classes, [n, C]: of each sample the class of the greatest is predicted.

        ``shared`` are the tensors that the server sends with its model.
        """
        return outputs.logits

    # What trains, wherever the device's job runs.

    def loss(self, step: Step) -> Tensor:
        """Loss of each sample, [n], whose mean is trained on; no row depends on others than by way of ``share``.

        Several devices may be worked out at once by `torch.func.vmap`, which allows no branch on the values of tensors.
        """
        return F.cross_entropy(step.own.logits, step.labels, reduction="none")

    def pull(self, given: Mapping[str, Tensor]) -> Pull:
        """Terms that are added to the gradients of the loss."""
        return Pull()

    def sent(self, trained: Trained) -> Sent:
        """Tensors that the device sends beside its update and that it stores: its model, [P], unless models travel."""
        return Sent(keeps={} if self.options.sends_models else {"start": trained.given["start"] + trained.update})


def has_own(local: LocalHalf, method: str) -> bool:
    """Whether a local half overrides a method of `LocalHalf`."""
    return getattr(type(local), method) is not getattr(LocalHalf, method)
