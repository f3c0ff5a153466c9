"""Views of a round that selectors get before it, and reports that they get after it."""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.config import Section
from edgesim.selection.column import Column
from edgesim.streams import Streams

Source = Literal["batch", "dataset"]

#: A selector yields a device id and hears whether the admission rule took it; or, where no answer would change what
#: comes next, an array of ids in order, and hears of all of them at once.
Choice = Generator[int | Integers, bool | Booleans, None]


class Knowledge(Protocol):
    """Quantities of devices that take a pass over data to know: computed when asked, for the devices asked about."""

    def class_counts(self, ids: Integers, source: Source) -> Integers:
        """Samples per class, [n, C]: of the round's mini-batches or of the frame's data sets."""

    def previous_class_counts(self, ids: Integers) -> Integers:
        """Samples per class of the data sets of the frame before, [n, C]."""

    def global_shares(self, source: Source) -> Floats:
        """Class shares over all devices of the run, weighted by data-set size, [C]."""

    def losses(self, ids: Integers) -> Floats:
        """Mean loss of the global model on each device's data set, [n] (a forward pass)."""

    def update_norms(self, ids: Integers) -> Floats:
        """Norm of each device's update of this round, [n] (runs the training jobs)."""

    def sent_norms(self, ids: Integers, room_bits: Callable[[], Floats] | None = None) -> Floats:
        """Norm of each device's update of this round as the server would receive it, [n] (runs the training jobs).

        ``room_bits`` answers with the bits for which each upload has time and rate, [n]. It is asked where sizes follow
        the channel; without it they are as the codec's options say.
        """

    def gradient_deviations(self, ids: Integers) -> Floats:
        """Standard deviation of per-sample gradients on each device's first batch, [n] (a pass of its own)."""


class Estimates(Protocol):
    """Estimated times of the coming round for candidates, by their rows in the view; computed when asked.

    Instants count from the round's start, in seconds.
    """

    def places(self) -> int:
        """Most candidates that the admission can take: its count, or as many least bandwidths as fit the bands."""

    def download_s(self, rows: Integers) -> Floats:
        """Seconds that each download takes, [n]."""

    def ready_s(self, rows: Integers) -> Floats:
        """Earliest start of each upload in s, as far as the scheduler knows, [n]."""

    def due_s(self, rows: Integers) -> Floats:
        """Latest end of each upload in s, [n]."""

    def upload_s(self, rows: Integers, at_once: int) -> Floats:
        """Seconds that each upload takes on average gain when so many share the stations' bands equally, [n]."""

    def finish_s(self, rows: Integers, at_once: int) -> Floats:
        """End of each whole upload in s, [n], as of `upload_s`: of a stream when all of it would be sent, of a size
        that fits not before it is due."""

    def room_bits(self, rows: Integers, at_once: int) -> Floats:
        """Bits that each upload's time carries on average gain when so many share the stations' bands equally, [n]."""

    def leaves_s(self, rows: Integers, horizon_s: float) -> Floats:
        """End of each device's present stay in s, [n]; inf at the horizon or later. An oracle: no server can know."""

    def leaves_cell_s(self, rows: Integers, horizon_s: float) -> Floats:
        """Instant in s at which each device leaves the cell of its station, [n]; inf at the horizon or later.

        It goes by what is known of the paths (``round.path_knowledge``): inf where that is the present place alone.
        """


@dataclass(frozen=True)
class RoundView:
    """One round's candidates: one row per candidate, ascending device id, as an array or a `Column`."""

    round: int
    """Number of the round over the whole run, from 1."""
    frame: int
    """Number of the frame, from 1 (frame 0 is the state before the first round)."""
    round_in_frame: int
    """k of FedTeddi, from 1."""
    rounds_in_frame: int
    """K_l of FedTeddi."""
    t_s: float
    """Simulated time at the round's start."""
    tmax_s: float
    """Seconds from the round's start to its deadline."""
    batch_size: float
    """Samples of a step, the mean over the candidates."""
    ids: Integers
    """Device ids, [n]."""
    gain: Floats | Column
    """Average power gain on which the scheduler plans, [n]."""
    delay_s: Floats | Column
    """Compute delay of this round as far as it is known, [n]: the draw, the report or the planned quantile."""
    need_hz: Floats | Column
    """Least bandwidth that meets the deadline, [n]; inf where none does."""
    samples: Integers
    """Data-set sizes D_n, [n]."""
    work_samples: Integers
    """Samples that each processes in a round, repeats counted, [n]."""
    times_selected: Integers
    """Number of earlier rounds in which each was scheduled, [n]."""
    streams: Streams
    """Random draws by name, device and round."""
    knowledge: Knowledge
    """Answers that take a pass over data, computed when asked."""
    estimates: Estimates
    """Estimated times of the round, computed when asked."""


class Gradients(Protocol):
    """Class gradients at the new global model, streamed over devices (FedTeddi, eq. 18)."""

    def class_gradient_distances(self, ids: Integers, part: Literal["all", "last_linear"]) -> "ClassGradients":
        """Distances of the devices' class gradients to the global class gradients (a pass of its own)."""


@dataclass(frozen=True)
class ClassGradients:
    """One batch per device at the new global model: how far class gradients lie from the global ones."""

    distances: Floats
    """|| g_n^(c) - g^(c) || for each device asked about, [n, C]."""
    shares: Floats
    """p_n: class shares of the batch of each device asked about, [n, C]."""
    global_shares: Floats
    """p: class shares over the batches of all devices, weighted by data-set size, [C]."""


@dataclass(frozen=True)
class Feedback:
    """Durations and losses of the updates merged in a round, a row per device, late ones of earlier rounds included."""

    ids: Integers
    """Device ids, [a], in no particular order."""
    duration_s: Floats
    """From the start of the round in which each began to the arrival of its update, [a]."""
    upload_s: Floats
    """Seconds of it in which the update was on the air, [a]."""
    loss: Floats | None
    """Mean training loss over each device's own samples, before the step they went into, [a]; of public images where a
    device trained on these alone. Absent in timing-only runs, like the two below."""
    loss_rms: Floats | None
    """Root of the moving mean square of these samples' losses, [a]."""
    accuracy: Floats | None
    """Share of these samples classified rightly before the step they went into, [a]."""
    loss_drop: Floats | None = None
    """Mean loss on the device's data set before its training less that after it, in evaluation mode, [a]: two passes
    of its own, which are made and charged only for a policy that says that it looks at ``loss_drops``."""


@dataclass(frozen=True)
class Spending:
    """Bits and joules of the work of a round, or since the model before."""

    bits_up: float
    """Bits that devices sent."""
    bits_down: float
    """Bits that devices were sent."""
    energy_j: float
    """Joules of that work: downloads, computing and uploads."""


@dataclass(frozen=True)
class RoundReport:
    """Outcome of a round, for the selector."""

    round: int
    """Number of the round over the whole run, from 1."""
    who_checked_in: Callable[[], Integers]
    """Answers with `checked_in`; asked while the report is heard, and only if the policy wants to know."""
    selected: Integers
    """Devices that were taken, [s], in no particular order."""
    arrived: Integers
    """Those selected whose updates were in time, [a]."""
    feedback: Feedback
    """Durations and losses of the updates merged."""
    gradients: Gradients
    """Class gradients at the new model, computed when asked."""
    length_s: float
    """Simulated seconds from the round's start to its close; without rounds, since the model before was made."""
    t_s: float
    """Simulated instant of the close, in s."""
    accuracy: float | None
    """Accuracy of the last test until then, which is never that of the model just made; None if there was none."""
    what_was_spent: Callable[[], Spending]
    """Answers with `spent`; asked while the report is heard."""
    received: Floats | None = None
    """Share of the numbers of each of ``selected`` that was received by the deadline, in that order, [s], 0 where
    nothing came and NaN of a device that left; None unless uploads are streams."""

    @cached_property
    def spent(self) -> Spending:
        """Bits and joules of the work that ended in the round, without the joules of idle devices."""
        return self.what_was_spent()

    @cached_property
    def checked_in(self) -> Integers:
        """Devices that were there when the round opened, [c], also those still at work for an earlier one, ascending.

        Without rounds, those that are there now.
        """
        return self.who_checked_in()


class Options(Section):
    """Base of a selector's knobs: typed, bounded, unknown names refused."""


class Selector(Protocol):
    """A scheduling policy; made once per run from its options, the number of devices and of classes."""

    Options: ClassVar[type[Options]] = Options
    looks_at: frozenset[str] = frozenset()
    """Inputs of the policy beyond the view's arrays: ``class_counts`` (not to be had without a data set), ``losses``,
    ``update_norms``, ``sent_norms``, ``gradient_deviations``, ``class_gradients``, and the feedback's
    ``training_losses``, ``training_accuracies`` and ``loss_drops`` (not to be had in timing-only runs)."""
    state: Any
    """Memory of the policy from one round to the next: one data class that `edgesim.base.saved` can pack, or
    None for a policy without memory. Nothing else of a selector changes: a new selector that is given the state of
    another makes the same choices as that other."""

    def __init__(self, options: Any, device_count: int, class_count: int) -> None: ...

    def choose(self, view: RoundView) -> Choice:
        """Yield device ids, singly or as an array in order; the answers say who was taken."""

    def hear(self, report: RoundReport) -> None:
        """Record the outcome of a round; a policy without memory ignores it."""
        return


@runtime_checkable
class Drafter(Protocol):
    """A policy that picks, in a round, among those whose updates have arrived; the others were trained in vain, or
    count later (`edgesim.learning.algorithms.safa`)."""

    def draft(self, arrived: Integers, candidates: int) -> Integers:
        """Pick from the devices that ``arrived``, in order of arrival, in a round of so many candidates."""
