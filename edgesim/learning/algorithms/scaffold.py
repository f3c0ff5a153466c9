"""Control variates against client drift: Karimireddy et al., "SCAFFOLD: Stochastic Controlled Averaging for Federated
Learning", ICML 2020, Algorithm 1 with eta_g = 1.

c is the server's control, c_i that of device i; both begin as zero. Controls have no part for a model's buffers.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from typing_extensions import override

from edgesim.base.arrays import Floats, Integers
from edgesim.base.needs import Rule
from edgesim.learning.algorithms.algorithm import Algorithm, Options
from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.algorithms.records import (
    Arrivals,
    Device,
    Devices,
    Pull,
    Samples,
    Sent,
    State,
    Trained,
    Workbench,
)
from edgesim.learning.algorithms.server_half import EQUAL, ServerHalf, mean_change, stretches, with_mean_buffers
from edgesim.learning.torch_types import Tensor, torch


class ScaffoldOptions(Options):
    """Options of SCAFFOLD."""

    goes_with: ClassVar[tuple[Rule, ...]] = (
        Rule({"derive_control": True}, {"option": "II"}, "the server cannot work out a gradient"),
    )

    option: Literal["I", "II"] = "II"
    """New control c_i of a device: the gradient over its whole data set at the model that it started from (I, a pass of
    its own), or the mean gradient of its steps (II). Option I needs smaller steps: under heavy label skew it can stay
    near chance at learning rates at which II learns. That is the method, not this program: one of its own in NumPy
    makes the same models (`tests/algorithms/test_scaffold_beside_numpy.py`)."""
    step_count: Literal["effective", "literal"] = "effective"
    """Divisor of option II: the steps of `effective_steps`, or K as the paper has it, without momentum."""
    derive_control: bool = False
    """Whether devices send their update alone. The change of c_i is -c - update / (K_eff lr), of which the server knows
    all but the update; so results stay the same, and only the bits that travel up are halved. For option II alone."""


@dataclass
class Controls(State):
    """The model, c as ``shared["control"]`` [trainable], and every c_i.

    The c_i are stored here, not on the devices: without rounds a device may begin a job while its last update waits in
    the buffer. Both changes of c_i then have to reach c, or c would no longer be the mean of all c_i.
    """

    own: dict[int, Tensor] = field(default_factory=dict)
    """c_i of each device that has been merged, [trainable]; zero for all others."""


class ScaffoldLocal(LocalHalf):
    """Local training with gradients corrected by control variates."""

    @property
    @override
    def vectors_up(self) -> tuple[str, ...]:
        return () if self.options.derive_control else ("own",)

    @override
    def upload_bits(self, devices: Devices, round: int, ledger: None) -> Floats:
        """The update and, unless the server works it out, the change of c_i, [n]."""
        return super().upload_bits(devices, round, ledger) * (1 if self.options.derive_control else 2)

    @override
    def compute_factor(self, devices: Devices, samples: Integers, round: int, ledger: None) -> Floats:
        """1 + 1 / epochs with option I, for a pass over the whole data set beside the steps, [n]; else 1."""
        plain = super().compute_factor(devices, samples, round, ledger)
        return 1 + devices.sizes / samples if self.options.option == "I" else plain

    @override
    def passes_over(self, device: Device, samples: Samples) -> Integers:
        """The whole data set with option I, else none."""
        return samples.own if self.options.option == "I" else super().passes_over(device, samples)

    @override
    def pull(self, given: Mapping[str, Tensor]) -> Pull:
        """- c_i + c, added in every step."""
        return Pull(shift=_correction(given))

    @override
    def sent(self, trained: Trained) -> Sent:
        """The new c_i, [trainable], unless the server works it out."""
        own = {} if self.options.derive_control else {"own": _new_control(trained, self.options, self.sizes.parameters)}
        return Sent(up=own)


class ScaffoldServer(ServerHalf):
    """FedAvg by equal weights, and the controls."""

    merges = "models and more"
    weighs_by = EQUAL

    stored = ("trainable",)

    @override
    def download_bits(self, devices: Devices, round: int, ledger: None) -> Floats:
        """The model and c, [n]."""
        return 2 * super().download_bits(devices, round, ledger)

    @override
    def start(self, weights: Tensor, bench: Workbench) -> Controls:
        """Controls of zero."""
        return Controls(weights, {"control": torch.zeros_like(weights[: self.sizes.parameters])})

    @override
    def given(self, state: Controls, device: Device, ledger: None) -> dict[str, Tensor]:
        """The model, c as ``control`` and, unless it is zero still, c_i as ``own``."""
        own = {"own": state.own[device.id]} if device.id in state.own else {}
        return super().given(state, device, ledger) | own

    @override
    def merge(self, state: Controls, arrived: Arrivals, alpha: Floats, ledger: None) -> Controls:
        """x + the sum of alpha_n times update n; c + the sum of the changes of c_i / N, whatever their age.

        N are all devices of the run. Buffers take the plain mean of those merged.
        """
        size = self.sizes.parameters
        moved = mean_change(arrived, alpha, size).add_(state.weights[:size])
        new = dict(zip(arrived.ids.tolist(), self._sent(arrived), strict=True))
        own = state.own | new
        control = state.shared["control"]
        if len(own) < 2 * len(new):
            # Reading all c_i takes less time than reading the old and the new ones of those that arrived.
            control = _sum(control, [own[device] for device in sorted(own)], []).div_(self.sizes.devices)
        else:
            before = [state.own[device] for device in new if device in state.own]
            control = _sum(control, new.values(), before).div_(self.sizes.devices).add_(control)
        return Controls(with_mean_buffers(moved, arrived), {"control": control}, own)

    def _sent(self, arrived: Arrivals) -> Sequence[Tensor]:
        """The new c_i of each device that arrived, [S] of [trainable], worked out here where devices do not send it."""
        if not self.options.derive_control:
            return arrived.up["own"]
        return [_new_control(trained, self.options, self.sizes.parameters) for trained in arrived.trained]


class Scaffold(Algorithm):
    """FedAvg by equal weights, with gradients corrected by control variates."""

    Options = ScaffoldOptions
    Local = ScaffoldLocal
    Server = ScaffoldServer
    needs = frozenset({"joint merges", "frames from the last model"})
    rules = (
        Rule(
            {"algorithm.option": "II"},
            {"learning.optimiser": "sgd", "learning.persist_momentum": False},
            "it divides updates by steps of SGD whose momentum began at zero; use 'I'",
        ),
        Rule(
            {"algorithm.step_count": "literal", "algorithm.option": "II"},
            {"learning.momentum": 0},
            "controls would grow without bound; use 'effective', or option = 'I'",
        ),
    )


def _new_control(trained: Trained, options: ScaffoldOptions, size: int) -> Tensor:
    """The gradient at the start (option I), or c_i - c - update / (K_eff lr) (II), [trainable]."""
    if options.option == "I":
        return trained.gradient()
    reach = effective_steps(trained.steps, trained.momentum) * trained.lr
    return -trained.update[:size] / reach - _correction(trained.given)


def _sum(like: Tensor, added: Collection[Tensor], subtracted: Collection[Tensor]) -> Tensor:
    total = like.new_zeros(len(like))
    for part in stretches(total):
        summed = total[part]
        for tensor in added:
            summed += tensor[part]
        for tensor in subtracted:
            summed -= tensor[part]
    return total


def _correction(given: Mapping[str, Tensor]) -> Tensor:
    return given["control"] - given["own"] if "own" in given else given["control"]


def effective_steps(steps: int, momentum: float) -> float:
    """K_eff: by how many learning rates a constant gradient of 1 moves a weight in K steps; K without momentum.

    The k-th step moves it by 1 + beta + ... + beta^(k-1). Dividing by K instead makes option II diverge.
    """
    return float(sum((1 - momentum**step) / (1 - momentum) for step in range(1, steps + 1)))
