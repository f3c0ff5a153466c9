"""Records that halves of algorithms take and return; all but their tensors need NumPy alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from edgesim.base.arrays import Booleans, Floats, Integers, Numbers
from edgesim.base.errors import EdgesimError
from edgesim.learning.torch_types import Key, Tensor

if TYPE_CHECKING:
    from edgesim.learning.workbench import Workbench as Workbench
else:
    Workbench = Any


@dataclass(frozen=True)
class Sizes:
    """Sizes of the model, of the data and of the fleet; known without torch."""

    model_bits: float
    """Bits of a model: 32 per trainable parameter, or ``round.payload_bits``."""
    parameters: int
    """Trainable parameters; 0 in timing-only runs, where the number of bits may be all that is known."""
    devices: int
    """Number of devices of the whole run."""
    classes: int = 0
    """Classes of the data set; 0 without one."""
    features: int = 0
    """Inputs of the model's last `torch.nn.Linear`; 0 where unknown."""
    tensors: int = 0
    """Number of trainable tensors, L; 0 where unknown."""
    tensor_sizes: tuple[int, ...] = ()
    """Number of values in each trainable tensor, in the order of the tensors, [L]; empty in timing-only runs."""
    private: int = 0
    """Samples of all devices of the run together, in its first frame."""
    public: int = 0
    """Images that server and devices all have."""


@dataclass(frozen=True, eq=False)
class Devices:
    """Devices with the sizes and class counts of their data sets, known without training."""

    ids: Integers
    """Device ids, [n]."""
    all_class_counts: Integers
    """Samples of all devices of the run and each class, [N, C]; C is 0 without a data set."""
    all_sizes: Integers
    """Sizes of the data sets of all devices of the run, [N]."""

    @property
    def sizes(self) -> Integers:
        """Size of each device's data set, [n]."""
        return self.all_sizes[self.ids]

    @property
    def class_counts(self) -> Integers:
        """Samples of each device and class, [n, C]."""
        return self.all_class_counts[self.ids]


@dataclass
class State:
    """State of a server half, which may extend it by fields of tensors, arrays, numbers and dicts of these.

    Wherever tensors travel, NaN stands for a number that is not sent: tables of all classes then have one shape.
    """

    weights: Tensor
    """The model that is sent and tested, [P]."""
    shared: dict[str, Tensor] = field(default_factory=dict)
    """Tensors that are sent along with the model, by name."""


@dataclass(frozen=True)
class Device:
    """A device whose job begins, as algorithms see it."""

    id: int
    """Number of the device, from 0."""
    samples: int
    """Size of the device's data set."""
    round: int
    """Round of the run, from 1; without rounds, the model that is being made."""
    all_sizes: Integers
    """Sizes of the data sets of all devices of the run, [N]."""
    batch: int
    """Samples of a full step, ``learning.batch_size``."""

    @property
    def total_samples(self) -> int:
        """Sizes of the data sets of all devices of the run, together."""
        return int(np.asarray(self.all_sizes).sum())


@dataclass(frozen=True)
class Phase:
    """Steps of local training, on the device's own samples or on public ones."""

    samples: Integers
    """Training samples in order of use, [n]."""
    edges: Integers
    """Edges of the steps among the samples, [steps + 1]."""
    changes: Numbers | None = None
    """Augmentation of each sample's image, [n, k], see `edgesim.learning.augmentation`; None for none."""
    rows: Integers | None = None
    """Row of each sample in a table of `given`, [n]; -1 for a sample without a row, None where no sample has one."""
    public: bool = False
    """Whether the samples are public images, on whose labels a device that has steps on others is not measured."""
    epoch_ends: Integers | None = None
    """After how many of the steps each epoch over the device's own samples ends, [epochs]; None where nobody measures
    epochs."""


@dataclass(frozen=True)
class Samples:
    """Training samples on which a device can train."""

    own: Integers
    """Samples of the device's data set, [n]."""
    public: Integers
    """Images that server and devices all have, [m], as in `Workbench`."""
    epochs: Callable[[str, Integers, int, int | None], Phase]
    """``epochs(stream, samples, count, batch)``: so many epochs over samples in batches of so many, or of the run's
    size for None, each in an order drawn from a stream for the job. `Phase.rows` are the places among ``samples``;
    images are augmented where they are the device's own, if the run asks for it."""


@dataclass(frozen=True)
class Pull:
    """Terms that are added to every gradient g: ``to_start`` (w - w_start) + ``decay`` w + ``shift``."""

    to_start: float | Tensor = 0.0
    """Factor of w - w_start: a number, or one for each trainable parameter, [trainable]."""
    decay: float = 0.0
    shift: Tensor | None = None
    """Constant term for each trainable parameter, [trainable]."""


@dataclass(frozen=True)
class Outputs:
    """Logits and features that a model computes of samples."""

    logits: Tensor
    """Logits of each sample, [n, C]."""
    last_input: Tensor | None = None
    """Input of the last `torch.nn.Linear`, [n, F]; None unless the algorithm looks at features."""

    def each(self, change: Callable[[Tensor], Tensor]) -> Outputs:
        """Logits and features, each as a function changes it."""
        return Outputs(change(self.logits), None if self.last_input is None else change(self.last_input))

    @property
    def features(self) -> Tensor:
        """`last_input`, [n, F]; raises `EdgesimError` for an algorithm that did not say that it looks at it."""
        if self.last_input is None:
            raise EdgesimError("algorithm.name: its loss uses features; set features = True in its local half")
        return self.last_input


@dataclass(frozen=True)
class Step:
    """Inputs of the loss of one step of a device."""

    own: Outputs
    """Outputs of the model that is trained, in training mode."""
    teachers: Mapping[str, Outputs]
    """Outputs of the algorithm's `teachers`, by name: in evaluation mode, on the same images, without gradient."""
    labels: Tensor
    """True classes, [n]."""
    share: Tensor
    """Weight of each sample in the mean, 1 / the number of samples, [n]; 0 in rows that only fill up a stack."""
    given: Mapping[str, Tensor]
    """Tensors that the job was given, by name; without ``start`` and the weights of teachers."""
    head: Callable[[Tensor], Tensor] | None = None
    """Logits [n, classes] that the last layer of the trained model makes of latents [n, F], with gradient; None unless
    the algorithm looks at features."""
    key: Key | None = None
    """Key of the random numbers of this step, for `edgesim.learning.draws`; None unless the algorithm draws."""
    rows: Tensor | None = None
    """`Phase.rows` of the samples, [n]; None where no phase of the job has any."""


@dataclass(frozen=True)
class Trained:
    """A finished job, in the process where it ran."""

    update: Tensor
    """Trained weights minus the start weights, [P]."""
    given: Mapping[str, Tensor]
    """Tensors that the job was given, by name; ``start`` are the start weights, [P]."""
    steps: int
    """Steps of training."""
    lr: float
    """Learning rate of the steps."""
    momentum: float
    """Momentum of the steps."""
    gradient: Callable[[], Tensor]
    """A pass over the samples of `LocalHalf.passes_over`: the gradient of their mean cross-entropy, weight decay
    included, at the start weights and in evaluation mode, [trainable]."""
    outputs: Callable[[], tuple[Outputs, Tensor]]
    """Outputs of the trained model on the samples of `LocalHalf.passes_over`, [n], in evaluation mode and without
    gradient, and their labels [n]."""


@dataclass(frozen=True)
class Sent:
    """Tensors that a device sends beside its update, and those that it keeps for its next job; both by name."""

    up: dict[str, Tensor] = field(default_factory=dict)
    keeps: dict[str, Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Arrivals:
    """Updates that the server merges, one row for each."""

    ids: Integers
    """Devices, [S]."""
    samples: Integers
    """Size of each device's data set, [S]."""
    round: int
    """Round of the merge, from 1; without rounds, the model that is being made."""
    began_in: Integers
    """Round in which each began or, without rounds, the model that was being made then, [S]. Of two updates of a device
    the one that began later has the later row."""
    staleness: Integers
    """Models made between the one that each started from and the current one, [S]: not more than rounds, some of which
    make none."""
    age_weight: Floats
    """Weight of each update by its staleness, 1 for none, [S]."""
    picked: Booleans
    """Whether the policy picked each update, [S]."""
    lr: Floats
    """Learning rate with which each was trained, [S]."""
    began: Integers
    """Devices that began to work in this round, [b]."""
    all_samples: Integers
    """Sizes of the data sets of all devices of the run, [N]."""
    class_counts: Integers
    """Samples of each device and class, [S, C]; C is 0 without a data set."""
    round_lr: float
    """Learning rate of the round in which the updates are merged."""
    alpha: Floats | None = None
    """Weight of each update in the merge, [S]; None before updates are weighed."""
    norms: Floats | None = None
    """Norms of the trainable parts of the updates, [S], where the server weighs by them (`BY_NORMS`); None in
    timing-only runs."""
    mean_noise: Tensor | None = None
    """Noise on the weighted mean of the trainable parts, [trainable]; None for none."""
    updates: Tensor | None = None
    """Rows of weighted sums, [S, P]: the updates, whose buffers are rebased to the current model (`rebased`). None in
    timing-only runs, in which `separate`, `starts` and `trained` are empty."""
    separate: Sequence[Tensor] = ()
    """Updates as they arrived, [S] of [P], which `merge` may change and, made `whole`, keep in the state."""
    starts: Sequence[Tensor] = ()
    """Start weights of each update, [S] of [P]."""
    up: Mapping[str, Sequence[Tensor]] = field(default_factory=dict)
    """Tensors sent beside the updates, by name, [S] each; `merge` may keep them, too."""
    trained: Sequence[Trained] = ()
    """Job of each update as the server knows it, which gave the device all that is ``given``, [S]; without passes."""
    pool: UpdatePool | None = None
    """Pool of models that the server's model is the mean of, these updates among them; None where they alone count."""

    def rows(self, rows: Integers) -> Arrivals:
        """Arrivals of some ``rows``, in that order; without tensors."""
        names = ("ids", "samples", "began_in", "staleness", "age_weight", "picked", "lr", "class_counts")
        alpha, norms = (None if column is None else column[rows] for column in (self.alpha, self.norms))
        return replace(self, alpha=alpha, norms=norms, **{name: getattr(self, name)[rows] for name in names})


@dataclass(frozen=True)
class UpdatePool:
    """Last updates of all devices that were ever merged, a row each, by ascending id."""

    ids: Integers
    """Devices, [S]."""
    class_counts: Integers
    """Samples of each device and class when it began its last update, [S, C]; C is 0 without a data set."""
    shares: Floats
    """Weights of the models, [S]; they sum to 1."""
    models: Sequence[Tensor] = ()
    """Last model of each device, [S] of [P]; none in timing-only runs and in `ServerHalf.note`."""
    up: Mapping[str, Sequence[Tensor]] = field(default_factory=dict)
    """Tensors sent beside the models, by the names of `ServerHalf.pooled_up`, [S] each."""


class Frozen(Protocol):
    """Models in evaluation mode, which are called with images."""

    def __call__(self, images: Tensor) -> Iterator[tuple[slice, Outputs]]:
        """Outputs [S, n, ...] of some models at a time, on `Workbench.inputs` [n, C, H, W], and these models' places.

        Gradients reach the images alone, and have to be taken before the next part is asked for.
        """
