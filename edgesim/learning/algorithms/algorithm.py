"""The base of learning algorithms, and the records that its methods take and return.

`Algorithm` itself is FedAvg; an algorithm is a file with one class that overrides the methods in which it differs.
The first half of its methods needs NumPy alone and is the same in timing-only runs; torch is not imported here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Booleans, Floats, Integers, Numbers, repeated
from edgesim.base.errors import EdgesimError
from edgesim.base.needs import Rule, refuse_old
from edgesim.config import RunConfig, Section
from edgesim.learning.torch_types import Key, Tensor
from edgesim.streams import Streams

if TYPE_CHECKING:
    from edgesim.learning.workbench import Workbench as Workbench
else:
    Workbench = Any

Half = Literal["local", "server"]


class Options(Section):
    """Base of an algorithm's options: typed, bounded, unknown names refused."""


class AveragingOptions(Options):
    """Options of algorithms that average updates."""

    weights: Literal["samples", "equal"] = "samples"
    """Weights of updates: by their devices' samples (FedAvg), or all equal (FedDance, SoCC 2025). Without rounds the
    protocol alone weighs updates."""


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
    """[n]."""
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
    """State of the server; an algorithm may extend it by fields of tensors, arrays, numbers and dicts of these.

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
    """After how many of the steps each epoch over the device's own samples ends; None where nobody measures epochs."""


@dataclass(frozen=True)
class Samples:
    """Training samples on which a device can train."""

    own: Integers
    """Samples of the device's data set."""
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
    """[n, classes]."""
    last_input: Tensor | None = None
    """Input of the last `torch.nn.Linear`, [n, F]; None unless the algorithm looks at features."""

    def each(self, change: Callable[[Tensor], Tensor]) -> Outputs:
        """Logits and features, each as a function changes it."""
        return Outputs(change(self.logits), None if self.last_input is None else change(self.last_input))

    @property
    def features(self) -> Tensor:
        """`last_input`, [n, F]; raises `EdgesimError` for an algorithm that did not say that it looks at it."""
        if self.last_input is None:
            raise EdgesimError("algorithm.name: its loss uses features; set features = True in its class")
        return self.last_input


@dataclass(frozen=True)
class Step:
    """Inputs of the loss of one step of a device."""

    own: Outputs
    """Outputs of the model that is trained, in training mode."""
    teachers: Mapping[str, Outputs]
    """Outputs of the algorithm's `teachers`, by name: in evaluation mode, on the same images, without gradient."""
    labels: Tensor
    """[n]."""
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
    lr: float
    momentum: float
    gradient: Callable[[], Tensor]
    """A pass over the samples of `Algorithm.passes_over`: the gradient of their mean cross-entropy, weight decay
    included, at the start weights and in evaluation mode, [trainable]."""
    outputs: Callable[[], tuple[Outputs, Tensor]]
    """Outputs of the trained model on the samples of `Algorithm.passes_over`, [n], in evaluation mode and without
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
    """Devices that began to work in this round."""
    all_samples: Integers
    """Sizes of the data sets of all devices of the run, [N]."""
    class_counts: Integers
    """Samples of each device and class, [S, C]; C is 0 without a data set."""
    round_lr: float
    """Learning rate of the round in which the updates are merged."""
    alpha: Floats | None = None
    """Weight of each update in the merge, [S]; None before updates are weighed."""
    norms: Floats | None = None
    """Norms of the trainable parts of the updates, [S], with `Algorithm.weighs_norms`; None in timing-only runs."""
    mean_noise: Tensor | None = None
    """Noise on the weighted mean of the trainable parts, [trainable], where `Algorithm.averages`."""
    updates: Tensor | None = None
    """Rows of weighted sums, [S, P]: the updates, whose buffers are rebased to the current model (`rebased`). None in
    timing-only runs, in which `separate` and `starts` are empty."""
    separate: Sequence[Tensor] = ()
    """Updates as they arrived, [S] of [P], which `merge` may change and, made `whole`, keep in the state."""
    starts: Sequence[Tensor] = ()
    """Start weights of each update, [S] of [P]."""
    up: Mapping[str, Sequence[Tensor]] = field(default_factory=dict)
    """Tensors sent beside the updates, by name, [S] each; `merge` may keep them, too."""

    def rows(self, rows: Integers) -> Arrivals:
        """Arrivals of some ``rows``, in that order; without tensors."""
        names = ("ids", "samples", "began_in", "staleness", "age_weight", "picked", "lr", "class_counts")
        alpha, norms = (None if column is None else column[rows] for column in (self.alpha, self.norms))
        return replace(self, alpha=alpha, norms=norms, **{name: getattr(self, name)[rows] for name in names})


@dataclass(frozen=True)
class UpdatePool:
    """Last models of all devices that were ever merged, a row each, by ascending id."""

    shares: Floats
    """Weights of the models, [S]; they sum to 1."""
    models: Sequence[Tensor]
    """Last model of each device, [S] of [P]."""
    up: Mapping[str, Sequence[Tensor]]
    """Tensors sent beside the models, by the names of `Algorithm.pooled_up`, [S] each."""


@dataclass(frozen=True)
class MadeImages:
    """Images that a server generates, on which it compares models and trains one."""

    at_once: int
    """Images generated in a step."""
    kept: int
    """Images that are kept for later steps."""
    key: str
    """Key of the config that asks for the images."""
    value: str
    """Value of that key."""
    remedy: str
    """Remedy in the message of a run that can make no images."""


class Frozen(Protocol):
    """Models in evaluation mode, which are called with images."""

    def __call__(self, images: Tensor) -> Iterator[tuple[slice, Outputs]]:
        """Outputs [S, n, ...] of some models at a time, on `Workbench.inputs` [n, C, H, W], and these models' places.

        Gradients reach the images alone, and have to be taken before the next part is asked for.
        """


class Algorithm:
    """A learning algorithm; its methods are those of FedAvg. An object holds options and no state, and is pickled."""

    Options: ClassVar[type[Options]] = AveragingOptions
    halves: ClassVar[frozenset[Half]] = frozenset()
    """Halves that may be combined with another algorithm's: the local objective, or the server's merge."""
    needs: ClassVar[frozenset[str]] = frozenset()
    """Features that a run must offer (`edgesim.simulation.needs.FEATURES`), such as ``rounds`` or ``public images``."""
    rules: ClassVar[tuple[Rule, ...]] = ()
    """Values of other keys that the algorithm's options need or rule out."""
    at_edges: ClassVar[bool] = False
    """Whether edge servers may merge updates first, so that the state is the weights alone."""
    merges_unpicked: ClassVar[bool] = False
    """Whether updates that arrived but the policy did not pick take part in `merge`; else their jobs never run."""
    merges_empty_rounds: ClassVar[bool] = False
    """Whether rounds without arrivals make a model, too."""
    keeps_state: ClassVar[bool] = False
    """Whether the state beside the model belongs to the last model and persists over frames, so that no frame can begin
    with the best model of the one before."""
    model_is_mean: ClassVar[bool] = False
    """Whether the server's model is only the weighted mean of models, so that a mean over a pool of all devices' last
    models may replace it (`edgesim.learning.algorithms.kpfl`)."""
    pooled_up: ClassVar[tuple[str, ...]] = ()
    """Names of tensors sent beside updates that a pool of models stores for `pooled`."""
    bits_from_training: ClassVar[bool] = False
    """Whether bits down depend on the training: timing-only runs then charge a bound, and refuse downloads that take
    time."""
    settled_at_begin: ClassVar[bool] = False
    """Whether bits and computing of a device are known only when it begins to work: `begin` is then called, and its
    results replace what was planned before."""
    starts_anew_in_frames: ClassVar[bool] = False
    """Whether state and ledger start anew, from the model then, when the data change with a frame."""

    averages: ClassVar[bool] = False
    """Whether the state depends on the weighted mean of updates alone, to which `Arrivals.mean_noise` can be added."""
    teachers: ClassVar[tuple[str, ...]] = ()
    """Names in `given` of the weights, [P], of models whose outputs `loss` looks at."""
    features: ClassVar[bool] = False
    """Whether `loss` uses features, or logits that the last layer makes of latents; models without a last linear layer
    are refused then."""
    draws: ClassVar[bool] = False
    """Whether `loss` draws random numbers."""
    made_images: MadeImages | None = None
    """Images that the server generates and trains on, by the models' features of these images."""
    has_model_pool: bool = False
    """Whether the server stores the last update of every device that was ever merged, with the model that the device
    had trained and the tensors that `pooled_up` names."""
    update_weights: str = ""
    """Rule of the weights of updates, as a text for ``run.json``; empty where it is the option ``weights``."""

    weighs_norms: bool = False
    """Whether `weigh` and `report` look at the norms of updates, which `Arrivals.norms` then has."""
    weighs_classes: bool = False
    """Whether `weigh` depends on the classes of devices, so that a device's data change the weights of all others."""
    equal_weights: bool = False
    """Whether all updates have equal weights, so that the option ``weights`` is absent or has no effect."""
    sends_models: bool = True
    """Whether the model and the updates are sent. Else the methods below are those of devices that each train, store
    and are tested by a model of their own."""
    tables: int = 0
    """Models, [P], that are stored for each device which was ever merged, on the server and on the device together."""
    trainable_tables: int = 0
    """Vectors of trainable parameters, [trainable], that are stored beside `tables`."""

    @override
    def __init_subclass__(cls) -> None:
        refuse_old(cls, "protocols", "late_updates", "late_reason", "skips_rounds", "public_images", "check")

    def __init__(self, options: Any, sizes: Sizes, streams: Streams, sends_models: bool = True) -> None:
        self.options = options
        self.sizes = sizes
        self.streams = streams
        if not sends_models:
            self.sends_models, self.equal_weights, self.tables = False, True, 1

    def check_sizes(self) -> None:
        """Refuse a run whose data or fleet are too small or too large for the algorithm; raises `EdgesimError`."""

    # What the radio and the tables need: NumPy alone.

    def ledger(self, round: int) -> Any:
        """Records of arrays and numbers that the methods below use, as they are when ``round`` opens first."""
        return None

    def begin(self, devices: Devices, round: int, ledger: Any) -> None:
        """Note in the ledger, in place, that devices begin to work together in a round.

        From then on the methods below answer for what these do; before, for the most that they might have to do, since
        deadlines and bands are planned on it.
        """

    def start_note(self, config: RunConfig, rounds: float) -> str:
        """Messages shown to the user before the first of so many rounds; empty where there are none."""
        return ""

    def download_bits(self, devices: Devices, round: int, ledger: Any) -> Floats:
        """Bits that the server sends to each device, [n]; a device that gets 0 waits for no broadcast."""
        return repeated(self.sizes.model_bits * self.sends_models, len(devices.ids))

    def upload_bits(self, devices: Devices, round: int, ledger: Any) -> Floats:
        """Bits that each device sends, [n]."""
        return repeated(self.sizes.model_bits * self.sends_models, len(devices.ids))

    def compute_factor(self, devices: Devices, samples: Integers, round: int, ledger: Any) -> Floats:
        """Cost of jobs that train on so many of the devices' own ``samples`` [n], as multiples of FedAvg's, [n].

        Forward passes cost one unit and backward passes two; so a teacher adds a third.
        """
        return repeated((3 + len(self.teachers)) / 3, len(samples))

    def counts(self, samples: Integers) -> Floats:
        """Weights of updates of devices with so many samples [n], ages not included, [n]."""
        equal = self.equal_weights or self.options.weights == "equal"
        return repeated(1.0, len(samples)) if equal else np.asarray(samples, dtype=np.float64)

    def weigh(self, arrived: Arrivals) -> Floats:
        """alpha_n of each update in a round, [S]: D_n / sum of D (FedTeddi, eq. 3), times the weight of its age."""
        return normalised(self.counts(arrived.samples) * arrived.age_weight)

    def report(self, ledger: Any, arrived: Arrivals) -> dict[tuple[str, str], float]:
        """Rows of ``metrics`` on a round that is about to be merged, by (name, key)."""
        return {}

    def note(self, ledger: Any, arrived: Arrivals) -> None:
        """Note in the ledger, in place, that a round was merged."""

    # What trains, in the process of the run.

    def first_model(self, weights: Tensor, bench: Workbench) -> Tensor:
        """First model of the run, [P], which the server makes of the start weights, [P]."""
        return weights

    def start(self, weights: Tensor) -> State:
        """State of a server whose first model is ``weights``, [P]."""
        return State(weights)

    def in_new_frame(self, state: Any) -> State:
        """The state with which an algorithm that starts anew begins a frame."""
        return self.start(state.weights)

    def given(self, state: Any, kept: Mapping[str, Tensor], device: Device, ledger: Any) -> dict[str, Tensor]:
        """Tensors of a job by name: ``start``, its start weights [P], and whatever else training needs.

        ``kept`` are the tensors that the device stored after its last job that was merged, or `first_kept`. An empty
        tensor stands for one of the `teachers` that this job does without.
        """
        return {"start": state.weights, **state.shared, **kept}

    def epochs_over(self, sizes: Integers) -> list[tuple[int, int | None]]:
        """Sets on which devices or the server train by epochs, beside what the config asks for: their sizes, and the
        samples of a batch, None for the run's own. ``sizes`` are those of the devices' data sets, [n].
        """
        return []

    def phases(self, own: Phase, device: Device, samples: Samples, ledger: Any) -> tuple[Phase, ...]:
        """The steps of a job: ``own`` are those of the config, ``samples`` all that the device may train on."""
        return (own,)

    def merge(self, state: Any, arrived: Arrivals, alpha: Floats, ledger: Any) -> State:
        """The server's next state: w + the sum of alpha_n times update n, rows in the order of the sum.

        Buffers become the mean of the values that devices ended with, by the same weights, whatever the sum of these
        is. Unless models travel the state stays as it is.
        """
        before: State = state
        if not self.sends_models:
            return before
        change = mean_change(arrived, alpha)
        change[self.sizes.parameters :] /= float(alpha.sum())
        return replace(before, weights=before.weights + change)

    def counted(self, state: Any, arrived: Arrivals, alpha: Floats) -> Floats:
        """Weight of each update in the state after a merge, [S]: the column ``updates.weight``."""
        return alpha

    def counted_untrained(self, record: Any, arrived: Arrivals, alpha: Floats) -> tuple[Any, Floats]:
        """Record for the next merge, and weight of each update in this one, [S], in a run that trains nothing.

        ``record`` is that of the merge before, None in the first. In NumPy.
        """
        return record, alpha

    def judged(self, kept: Mapping[int, Mapping[str, Tensor]]) -> Mapping[int, Tensor]:
        """Models whose mean accuracy is the run's, [P] by device; empty where it is that of the server's model.

        ``kept`` is what each device that was ever merged has kept: their own models, unless models travel.
        """
        return {} if self.sends_models else {device: of["start"] for device, of in kept.items()}

    def scores(self, outputs: Outputs, state: Any) -> Tensor:
        """Scores of classes, [n, C]: of each sample the class of the greatest is predicted."""
        return outputs.logits

    def prepare(self, state: Any, bench: Workbench) -> Any:
        """The state from which the jobs of a round, or of a model, begin, with what the server computes for them."""
        return state

    def refine(self, state: Any, arrived: Arrivals, ledger: Any, bench: Workbench) -> Any:
        """The state after a merge, improved by training at the server."""
        return state

    def pooled_numbers(self) -> int:
        """Number of values in the tensors that `pooled_up` names."""
        return 0

    def pooled(self, state: Any, pool: UpdatePool, ledger: Any, bench: Workbench) -> Any:
        """The state after a merge and `refine`, with all that the server derives from its pool of models.

        The state's model is the pool's mean already.
        """
        return state

    def server_s(self, updates: int) -> float:
        """Simulated seconds that the server computes on so many updates of a round before its model is there."""
        return 0.0

    def derived(self, trained: Trained) -> Mapping[str, Tensor]:
        """Tensors that the server derives from an update and from what the job was given; they join those sent."""
        return {}

    def first_kept(self, weights: Tensor) -> dict[str, Tensor]:
        """Tensors that a device has before its first update is merged, by name; the run began with ``weights``, [P].

        Unless models travel that is the model, as ``start``: `given` then hands it on in place of the server's.
        """
        return {} if self.sends_models else {"start": weights.clone()}

    # What trains, wherever the device's job runs.

    def loss(self, step: Step) -> Tensor:
        """Loss of each sample, [n], whose mean is trained on; no row depends on others than by way of ``share``.

        Several devices may be worked out at once by `torch.func.vmap`, which allows no branch on the values of tensors.
        """
        from torch.nn.functional import cross_entropy

        return cross_entropy(step.own.logits, step.labels, reduction="none")

    def pull(self, given: Mapping[str, Tensor]) -> Pull:
        """Terms that are added to the gradients of the loss."""
        return Pull()

    def passes_over(self, device: Device, samples: Samples) -> Integers:
        """Samples over which `sent` asks for a pass, [n], which the job then carries."""
        return np.empty(0, dtype=np.int64)

    def sent(self, trained: Trained) -> Sent:
        """Tensors that the device sends beside its update and that it stores: its model, [P], unless models travel."""
        return Sent(keeps={} if self.sends_models else {"start": trained.given["start"] + trained.update})


def has_own(algorithm: Algorithm, method: str) -> bool:
    """Whether an algorithm, or the half that has the method, overrides a method of `Algorithm`."""
    return getattr(getattr(algorithm, method), "__func__", None) is not getattr(Algorithm, method)


def with_mean_buffers(parameters: Tensor, arrived: Arrivals) -> Tensor:
    """The model of trainable parameters [trainable] and the plain mean of the buffers that devices ended with, [P].

    For algorithms whose server corrects the trainable parameters alone.
    """
    import torch

    assert arrived.updates is not None
    size = len(parameters)
    if size == arrived.updates.shape[1]:
        return parameters
    ends = [start[size:] + update[size:] for start, update in zip(arrived.starts, arrived.separate, strict=True)]
    return torch.cat([parameters, torch.stack(ends).mean(0)])


def rebased(updates: Sequence[Tensor], starts: Sequence[Tensor], model: Tensor, trainable: int) -> Tensor:
    """Updates as rows, [S, P], whose buffers are those after the devices' training minus those of a model [P].

    A weighted mean of the rows, added to the model, then has the mean of the *values* of buffers, whichever models the
    updates started from. A mean of their changes would add those of other models: a running variance can become
    negative by it. Where all started from the model itself, rows are the updates.
    """
    import torch

    if not updates:
        return model.new_empty((0, len(model)))
    rows = torch.stack(list(updates))
    if trainable < len(model):
        rows[:, trainable:] += torch.stack([start[trainable:] for start in starts]) - model[trainable:]
    return rows


def mean_change(arrived: Arrivals, alpha: Floats, trainable: int | None = None) -> Tensor:
    """The sum of alpha_n times update n, [P], or without buffers, [trainable]; with the noise on it, if any."""
    assert arrived.updates is not None
    change = arrived.updates.new_tensor(alpha) @ arrived.updates[:, :trainable]
    if arrived.mean_noise is not None:
        change[: len(arrived.mean_noise)] += arrived.mean_noise
    return change


_STRETCH = 2**20
"""Numbers of a part that stays in a processor's last-level cache, 4 MB; sums of shorter parts are slower."""


def stretches(tensor: Tensor) -> Iterator[slice]:
    """Successive parts of a tensor [P] for sums of many tensors, which are added to one part before the next.

    The part's sum stays in the processor's cache, and each tensor is read from memory once. On an accelerator the whole
    tensor is one part.
    """
    length = _STRETCH if tensor.device.type == "cpu" else len(tensor)
    return (slice(start, start + length) for start in range(0, len(tensor), length))


def whole(tensor: Tensor) -> Tensor:
    """The tensor, or a copy where it keeps a larger one in memory: for tensors that outlive the round."""
    return tensor.clone() if tensor.untyped_storage().nbytes() > tensor.nbytes else tensor


def normalised(counts: Floats) -> Floats:
    """Shares of the sum, [n]; empty for no rows."""
    return np.asarray(counts / counts.sum()) if len(counts) else np.empty(0)
