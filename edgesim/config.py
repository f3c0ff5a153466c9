"""Every knob of a run: units in names, bounds checked; defaults of devices and radio are FedTeddi's cell."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from edgesim.base.errors import Contradiction
from edgesim.base.needs import GIVEN, Condition, Except, Rule, refuse, refuse_above
from edgesim.base.quantities import Bits, Count, Devices, Factor, Hertz, Joules, Metres, Seconds, Watts
from edgesim.base.registry import Registry
from edgesim.base.validation import entry_of


class Section(BaseModel):
    """A table of the config file: unknown keys are refused, numbers are finite."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True)

    goes_with: ClassVar[tuple[Rule, ...]] = ()
    """Rules that values of its keys must meet together."""
    at_most: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Pairs of its keys of which the first must not be above the second, where both are given."""

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        refuse(self, self.goes_with, Contradiction)
        refuse_above(self, self.at_most, Contradiction)
        return self


AnySection = TypeVar("AnySection", bound=Section)

AtLeastOne = Annotated[Count, Field(ge=1)]
Range = Annotated[list[AtLeastOne], Field(min_length=2, max_length=2)]
"""Least and most, of which each device draws its own number."""


class OpenSection(BaseModel):
    """A table of the config file; the keys that are no fields are options of what it names, and checked by that."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, allow_inf_nan=False, defer_build=True)

    @property
    def options(self) -> dict[str, Any]:
        """The keys that are no fields."""
        return dict(self.model_extra or {})

    def with_options(self, options: Mapping[str, Any]) -> Self:
        """The section with these options instead of its own."""
        return self.model_validate({**self.model_dump(include=set(type(self).model_fields)), **options})

    def with_defaults(self, registry: Registry[Any]) -> Self:
        """The section with all options of the entry that it names of a registry; raises `EdgesimError`."""
        name = getattr(self, registry.field.rpartition(".")[2])
        entry: BaseModel = entry_of(registry, name, self.options, beside=type(self).model_fields)
        return self.with_options(entry.model_dump(exclude_none=True))


class LinksConfig(Section):
    """Recorded uplinks, one for each device (``radio.sharing = "own"``)."""

    goes_with: ClassVar[tuple[Rule, ...]] = (Rule({"after_end": "hold"}, {"end_s": None}, "the last row never ends"),)

    file: str = Field(min_length=1)
    """Path, or name of a file under ``traces/``: CSV or Parquet with the columns device, t_s, bps and perhaps end_s."""
    end_s: Seconds | None = Field(None, ge=1e-6)
    """Instant at which the last row of every link ends, for a file that does not say."""
    after_end: Literal["wrap", "hold"] | None = None
    """``wrap``: each link is repeated after its end; ``hold``: its last row never ends; None: unknown after its end."""


_BATTERY_DEFAULTS = {"battery_start": 1.0, "battery_reserve": 0.2, "recharge_w": 0.0}
"""Defaults of these keys for devices with a battery."""


class DevicesConfig(Section):
    """Positions and abilities of the devices (FedTeddi, section V-A; the energy defaults are edgesim's own)."""

    count: Devices = Field(30, ge=1)
    """Number of devices."""
    radius_m: Metres = Field(250.0, ge=1e-3)
    """Devices lie uniformly over the ring between ``min_distance_m`` and this distance from (0, 0)."""
    min_distance_m: Metres = Field(10.0, ge=0)
    """Least distance of a device from (0, 0), where the one station stands."""
    tx_power_dbm: float = Field(23.0, ge=-50, le=60)
    """Transmit power of every upload."""
    pa_efficiency: float = Field(0.35, ge=1e-3, le=1)
    """Efficiency of the power amplifier: an upload draws the transmit power divided by it."""
    compute_power_w: Watts = Field(2.0, ge=0)
    """Power of computing, unless the profile gives the clock of the processor."""
    kappa: float | None = Field(None, ge=1e-40, le=1e-20)
    """Switched capacitance of a processor whose clock the profile gives: it draws kappa f^3 W; 1e-28 when absent."""
    download_power_w: Watts = Field(0.9, ge=0)
    """Power of receiving the model."""
    idle_power_w: Watts = Field(0.0, ge=0)
    """Power that every device draws all the time; the other powers are added to it."""
    a_s_per_sample: Seconds = Field(0.0005, ge=0)
    """Least time for a sample, a of FedTeddi, eq. 4."""
    mu_samples_per_s: float = Field(2000.0, ge=1e-6, le=1e15)
    """Rate of the random part of the compute delay, mu of FedTeddi, eq. 4: on average 1/mu s are added per sample."""
    battery_j: Joules | None = Field(None, ge=1e-6)
    """Capacity of each battery; devices are on mains when absent."""
    battery_start: Annotated[float, Field(ge=0, le=1)] | Literal["drawn"] | None = None
    """Charge at t = 0 as a share of the capacity, or drawn uniformly for each device; full when absent."""
    battery_reserve: float | None = Field(None, gt=0, le=1)
    """Least charge to check in with, as a share of the capacity; 0.2 when absent."""
    recharge_w: Watts | None = Field(None, ge=0)
    """Power with which each battery is charged all the time; 0 when absent."""
    profile: str | None = None
    """File of recorded seconds per sample, a path or a name under ``traces/``, instead of ``a_s_per_sample`` and
    ``mu_samples_per_s``: device k of the run computes as fast as device k of the file, without randomness."""
    links: LinksConfig | None = None
    """Uplinks that vary over time, instead of the profile's ``link_bps``: device k of the run sends over link k of the
    file."""
    match: Literal["position"] | None = None
    """Files of availability, profile and links that have keys are matched by them; ``position`` takes row k of each
    file for device k, whatever its key."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.min_distance_m >= self.radius_m:
            raise ValueError(f"min_distance_m ({self.min_distance_m:g}) must be below radius_m ({self.radius_m:g})")
        reserve = self.battery_reserve or _BATTERY_DEFAULTS["battery_reserve"]
        if isinstance(self.battery_start, float) and self.battery_start < reserve and not self.recharge_w:
            raise ValueError(
                f"battery_start ({self.battery_start:g}) is below battery_reserve ({reserve:g}) and nothing recharges "
                "the batteries, so no device would ever check in; give recharge_w"
            )
        return self


class RadioConfig(Section):
    """The uplink: its band, its environment file, and how uploads share the band; the defaults are FedTeddi's cell."""

    channel: str = "fedteddi-macro"
    """The environment: a name of a file under ``channels/``, or a path."""
    bandwidth_hz: Hertz = Field(20e6, ge=1)
    """The uplink band of a station with a whole share of it."""
    sharing: Literal["reserved", "reshared", "own"] = "reserved"
    """``reserved``: an upload keeps the bandwidth reserved for it; ``reshared``: the active uploads split the band anew
    whenever one begins or ends; ``own``: each device has its own link, recorded in ``devices.links`` or as one rate in
    ``devices.profile``."""
    shadowing: Literal["per_round", "per_run", "map"] | None = None
    """How often shadowing is drawn, or a map of it over the plane, for devices that move; when absent the environment
    file decides, and with ``[mobility]`` it is a map."""
    grid_m: Metres | None = Field(None, ge=0.1, le=1000)
    """Side of the squares on each of which the gain of a device that moves is constant; 5 when absent."""
    between_stations: float | None = Field(None, ge=0, le=1)
    """Correlation of the maps of shadowing of two stations; 0 when absent."""
    fading: Literal["none", "rayleigh"] | None = None
    """Block fading of each upload; the environment file decides when absent."""


class TopologyConfig(Section):
    """Which stations serve the devices, and where updates are merged."""

    file: str | None = None
    """A file under ``topologies/``; one station at the centre, with the server beside it, when absent."""
    attach: Literal["strongest", "nearest", "least_loaded"] = "strongest"
    """How a device's station is chosen, for the whole run or, of a device that moves, for each task: by the gain common
    to all rounds, distance or devices per hertz."""
    aggregation: Literal["flat", "hierarchical"] = "flat"
    """Whether updates are merged in the cloud, or in edge servers first."""
    cloud_every: Count | None = Field(None, ge=1)
    """Rounds between two averages of the edge servers' models in the cloud (``hierarchical``)."""


class MobilityConfig(OpenSection):
    """How devices move; the other keys are the model's own options, checked by the model."""

    model: str
    """The model of motion (``edgesim list`` prints the names), or ``package.module.Class``."""


class HandoverConfig(Section):
    """How devices that move change stations while they work; without this table a task keeps its station."""

    hysteresis_db: float = Field(3.0, ge=0, le=30)
    """How much stronger a neighbour must be, in dB, on top of ``offset_db`` (event A3 of 3GPP TS 38.331)."""
    offset_db: float = Field(0.0, ge=-30, le=30)
    """Offset of the own station's gain, in dB."""
    trigger_s: float = Field(0.256, ge=0, le=60)
    """Time for which a neighbour must be that much stronger without a break."""
    interruption_s: float = Field(0.05, ge=0, le=60)
    """Time after a handover in which nothing is sent; download and computing go on."""
    upload: Literal["continue", "restart", "lost"] = "continue"
    """Fate of an upload at a handover: what is left goes on, all bits are sent again, or the update is lost."""
    merge: Literal["where_arrived", "where_started"] | None = None
    """Which edge server merges an update (``hierarchical``): that of the station where the upload ends, also into
    another model than the one that it began from, or, over the wires, that of the station where the task began;
    ``where_arrived`` when absent."""

    @model_validator(mode="after")
    def _come_to_rest(self) -> Self:
        if self.trigger_s == 0 and self.hysteresis_db + self.offset_db < 0:
            raise ValueError("trigger_s: expected more than 0, or hysteresis_db + offset_db of 0 or more: else two "
                             "stations hand a device to one another for ever at one instant")  # fmt: skip
        return self


YEAR_S = 365.25 * 86_400
"""A Julian year."""


class AvailabilityConfig(OpenSection):
    """When devices are available; the other keys are the model's own options, checked by the model."""

    model: str = "always"
    """The law of presence (``edgesim list`` prints the names), or ``package.module.Class``."""
    interruption: Literal["abort", "pause", "ignore"] = "abort"
    """Fate of the work of a device that leaves. ``abort``: it is lost; ``pause``: it resumes where it stopped when the
    device is back; ``ignore``: it continues as if the device had stayed. Without rounds a paused device remains
    one of the ``count`` at work."""
    search_s: Seconds | None = Field(None, ge=1e-6)
    """Simulated time that is searched for the next instant at which a device, or enough of them, are there, no further
    than ``stop_at_s``; if there is none, or the search takes too many steps, the run ends. 30 years when absent."""

    @property
    def searched_s(self) -> float:
        """``search_s``, or its default."""
        return self.search_s or 30 * YEAR_S


class RoundConfig(Section):
    """The protocol: rounds with a deadline, or updates that are merged as they arrive."""

    protocol: str = "synchronous"
    """When models are made (``edgesim list`` prints the names), or ``package.module.Class``. Where a protocol has no
    rounds, ``count`` devices are always at work and ``tmax_s`` is no deadline; the scheduler's least bandwidths still
    refer to it."""
    protocol_options: dict[str, Any] = {}
    """The protocol's own options, checked by it (`edgesim.engine.protocols`)."""
    over_commitment: Factor = Field(1.0, ge=1)
    """Take this many times ``count`` devices and close the round at the ``count``-th arrival (FedScale: 1.3)."""
    moving_deadline: float | None = Field(None, ge=0, lt=1)
    """a of REFL: the next deadline is (1 - a) times the last round's length + a times the last deadline; fixed when
    absent. Since no round is longer than its deadline, the deadline can only fall, in the end below what devices need:
    it is for ``late = "keep"``, as in REFL, and rounds that close at the last arrival. With ``over_commitment`` it
    falls within a few rounds; in that setting REFL moves no deadline but only the window of its selector
    (``selection.window``)."""
    tmax_s: Seconds = Field(1.0, ge=1e-6)
    """Deadline of a round, from its start."""
    computes: Literal["candidates", "selected"] = "candidates"
    """Devices that compute: all candidates, so that the decision can wait for them, or only the devices taken."""
    delay_knowledge: Literal["known", "reported", "planned"] = "known"
    """Compute delays of a round that the scheduler knows: all beforehand (``known``), those reported until
    ``report_by_s`` (``reported``), or only their law (``planned``)."""
    report_by_s: Seconds | None = Field(None, ge=1e-6)
    """When the scheduler stops waiting for reports (``reported``); tmax_s / 2 when absent."""
    plan_quantile: float | None = Field(None, gt=0, lt=1)
    """Quantile of each device's delay law that the scheduler plans with (``planned``); 0.95 when absent."""
    outage: float | None = Field(None, gt=0, lt=1)
    """Each upload is planned with the gain that its fading falls below with this probability, such as 0.05, so that
    this share of reserved uploads misses the deadline; with the average gain when absent."""
    path_knowledge: Literal["present", "straight", "known", "worst"] | None = None
    """What the scheduler knows of the paths of devices that move, when it plans least bandwidths: the gain at the
    decision (``present``, when absent), the present velocity, for ever (``straight``), or the path itself (``known``),
    of which ``worst`` takes the least gain."""
    admission: Literal["band", "count"] = "band"
    """Which offered devices are taken: those whose least bandwidth still fits the band, or the first ``count``."""
    count: Count | None = Field(None, ge=1)
    """Devices of a round, or at work at any time without rounds (``admission = "count"``)."""
    allocator: str = "least"
    """How the uploads share the band: ``least``, ``equal_share``, ``proportional`` (by payload, so that it equals
    ``equal_share`` if all payloads are equal), ``equal_bits`` (the same, greatest number of bits for everybody),
    ``least_error`` (of the bits of levels with ``upload.codec = "qsgd"`` and ``size = "fit"``), or the dotted path of
    an allocator of one's own."""
    leftover: Literal["idle", "equal_finish"] = "idle"
    """Use of the bandwidth that least bandwidths leave over: it stays idle, or is used to end all uploads
    together earlier. With ``equal_finish``, uploads that do not fit into the band end together after the deadline."""
    close: Literal["arrivals", "deadline"] = "arrivals"
    """When a round closes: once the last upload has arrived, at the latest at the deadline, or always at the
    deadline."""
    late: Literal["drop", "keep"] = "drop"
    """Fate of latecomers' work at the close: it is dropped, or continues in the next rounds with its own
    reservation and is merged in the round in which it arrives. A frame's last round ends all work."""
    min_candidates: Count = Field(1, ge=1)
    """Candidates for which the server waits before it opens a round."""
    download_s: Annotated[Seconds, Field(ge=0)] | Literal["link"] = 0.0
    """How long the download of the model takes, twice as long if an algorithm sends twice as much: the same for all
    devices, or (``"link"``, for ``radio.sharing = "own"``) the payload over the ``link_bps`` of ``devices.profile``."""
    payload_bits: Annotated[Bits, Field(ge=1)] | Literal["model"] = "model"
    """Bits of one model, in either direction; ``"model"`` is 32 times the number of trainable parameters. What an
    algorithm sends beside it is charged as well."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.download_s != "link" and self.download_s >= self.tmax_s:
            raise ValueError(f"download_s ({self.download_s:g}) must be below tmax_s ({self.tmax_s:g})")
        return self


_STALENESS_DEFAULTS = {"polynomial": {"a": 0.5}, "hinge": {"a": 10.0, "b": 4}, "refl": {"beta": 0.35}}
"""Options of the weights of stale updates, with the papers' defaults."""


StaleWeight = Literal["constant", "polynomial", "hinge", "refl"]
"""Names of the weights of stale updates."""


class StalenessConfig(Section):
    """Weights of stale updates, which started from an older model (`edgesim.learning.algorithms.staleness`)."""

    weight: StaleWeight | None = None
    """When absent the protocol's own: ``constant`` in rounds, ``polynomial`` without."""
    a: Factor | None = Field(None, gt=0)
    """Exponent (``polynomial``, default 0.5) or slope (``hinge``, default 10) of FedAsync."""
    b: Count | None = Field(None, ge=0)
    """Staleness up to which an update counts in full (``hinge``, default 4) in FedAsync."""
    beta: float | None = Field(None, ge=0, le=1)
    """Share of the part of REFL's weight that depends on the update itself (``refl``, default 0.35)."""
    limit: Count | None = Field(None, ge=0)
    """Updates with a higher staleness are dropped; no update is when absent."""

    def resolved(self, of_protocol: StaleWeight) -> "StalenessConfig":
        """The section with the protocol's weight and the papers' defaults filled in."""
        weight = self.weight or of_protocol
        return filled(self, {"weight": weight} | _STALENESS_DEFAULTS.get(weight, {}))


class DataConfig(Section):
    """The data set, and its division among devices and frames."""

    dataset: str = "digits"
    """A name of `edgesim.learning.datasets.DATASETS` (``edgesim list`` prints them), a path to an ``.npz`` or to a
    folder of images or of spoken words (wav files), or ``none`` (timing only)."""
    folder: str = "data"
    """Folder of the files of torchvision's data sets, and of Office-Caltech's four domains."""
    download: bool = False
    """Whether torchvision's data sets are downloaded if they are not in ``folder``."""
    image_size: int | None = Field(None, ge=1, le=4096)
    """Height and width to which images are resized: those of a folder when they are decoded (when absent, all must have
    the same size; 32 for ``office-caltech``), all others, bilinearly, on the training device."""
    scale: Factor | None = Field(None, ge=1e-6)
    """Pixels are divided by this number; when absent by 16 (``digits``), else standardised per channel."""
    offset: Factor | None = Field(None, ge=0)
    """Taken off pixels before they are divided by ``scale``, which it needs; 127.5 with a scale of 127.5 brings bytes
    to -1 to 1. 0 when absent."""
    augment: Literal["none", "flip", "crop-flip", "fedstg"] = "none"
    """Augmentation of training images: a horizontal flip with probability 1/2 (``flip``), and a random crop after
    padding by 4 pixels too (``crop-flip``; He et al., CVPR 2016, section 4.2); or flip, rotation, brightness, contrast
    and an enlarged crop as FedStg has them (`edgesim.learning.jitter`)."""
    public: Literal["none", "carved", "other"] = "none"
    """Images that server and devices all have, beside the devices' own: taken out of the training set before it is
    divided (``carved``), or of another data set (``other``, for ``digits``, ``fashion-mnist`` and ``cifar10``)."""
    public_per_class: Count | None = Field(None, ge=1)
    """How many images of each class are carved; when absent 20 of ``digits``, else a tenth of the smallest class."""
    validation_per_class: Count | None = Field(None, ge=1)
    """How many training images of each class the server keeps to validate on, and no device may hold; none when
    absent."""
    small: bool = False
    """Whether the devices divide but 200 images of each class, as many as small benchmarks have."""
    partition: str | None = None
    """``fedteddi``, ``iid``, ``dirichlet``, ``dirichlet-labels``, ``classes``, ``shards``, ``quantity`` or ``listed``;
    when absent ``iid``, or none where ``drift.law`` deals the samples."""
    partition_options: dict[str, Any] = {}
    """The partition's own options, checked by the partition."""
    samples_per_device: Count | None = Field(None, ge=2)
    """When absent 60 (``fedteddi``, ``iid`` and no dataset), else as many as dividing the whole training set gives. For
    partitions that draw the sizes this is the average."""
    permute_labels: bool = False
    """Control: labels permuted over the whole training set before pre-training and partition."""


_LR_DECAY, _MOMENTUM = 0.9992, 0.5


class LearningConfig(Section):
    """Model, local training and pre-training."""

    training: Literal["real", "none"] = "real"
    """Whether devices train, or time, bits and energy alone are simulated."""
    model: str = "mlp"
    """A name such as ``mlp`` or ``resnet18-gn`` (``edgesim list`` prints them), ``torchvision:`` and the name of one of
    its classifiers, or the dotted path of a callable that returns an ``nn.Module``."""
    model_options: dict[str, Any] = {}
    """Keywords with which the model's callable, or torchvision's, is called beside the shape of the images and the
    number of classes, such as ``{ rank = 8 }``. edgesim's own models take none."""
    lr: Factor = Field(0.1, gt=0)
    """Learning rate of local training in the first round."""
    lr_decay: float = Field(_LR_DECAY, gt=0, le=1)
    """Factor per round, or per ``lr_decay_every`` rounds, counted over frames; without rounds, per model made."""
    lr_decay_every: Count = Field(1, ge=1)
    """Rounds (models made) between two applications of ``lr_decay``."""
    lr_offset: Factor | None = Field(None, ge=0)
    """With it the learning rate falls as one over the rounds, and not by ``lr_decay``: in round t it is
    lr (1 + lr_offset) / (t + lr_offset)."""
    lr_min: Factor = Field(0.0, ge=0)
    """Least learning rate of either decay."""
    lr_schedule: Literal["decay", "fedstg"] | None = None
    """``fedstg``: its published schedule instead of either decay (`edgesim.learning.rates`); ``decay`` when absent."""
    lr_rounds: Count | None = Field(None, ge=1)
    """Rounds that ``fedstg`` is meant for; 100 when absent."""
    optimiser: Literal["sgd", "adam"] = "sgd"
    """Of local training: SGD with ``momentum``, or Adam (b1 0.9, b2 0.999), whose moments begin at zero in every job;
    it wants a far lower ``lr``, such as 0.001."""
    momentum: float = Field(_MOMENTUM, ge=0, lt=1)
    """Momentum of SGD."""
    weight_decay: Factor = Field(0.0, ge=0)
    """This factor times the weights is added to each gradient of local training, as by `torch.optim.SGD` and
    `torch.optim.Adam`."""
    clip_norm: Factor | None = Field(None, gt=0)
    """Largest norm of a gradient of local training, the algorithm's terms included; a longer one is scaled down to it
    before ``weight_decay`` is added, as by `torch.nn.utils.clip_grad_norm_`. No gradient is when absent."""
    persist_momentum: bool = False
    """Whether a device's momentum continues from its last job that was merged; else it begins at zero in every job."""
    batch_size: AtLeastOne | Range = 32
    """Samples of a step; with ``[least, most]`` each device has its own for the whole run, each number as likely. What
    is trained at the server, and before the first round, then has the least."""
    steps: Count | None = Field(None, ge=1)
    """Local SGD steps per round (tau); 5 when neither steps nor epochs are given."""
    epochs: AtLeastOne | Range | None = None
    """Local epochs per round, instead of steps; ``[least, most]`` as for ``batch_size``."""
    keep_best: bool = True
    """Start a further frame from the best model of the frame before (FedTeddi, Algorithm 1)."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where tensors live; ``auto`` takes a GPU where there is one."""
    back_end: Literal["auto", "loop", "workers", "stacked", "ray"] = "auto"
    """How jobs run: one after another, in several processes, as one model, or over a cluster of Ray (that of
    $RAY_ADDRESS, or else one of this machine); ``auto`` chooses one of the first three by model and device."""
    workers: int | None = Field(None, ge=1, le=1024)
    """Number of processes of ``workers``; when absent, the number of cores that the run may use. Of ``ray`` the number
    of actors; when absent, as many as the cluster has room for."""
    cpus_per_actor: float | None = Field(None, ge=0.001, le=1e6)
    """Processor cores that an actor of ``ray`` takes of its node, for one thread; 1 when absent."""
    gpus_per_actor: float | None = Field(None, ge=0, le=1e6)
    """GPUs that an actor of ``ray`` takes, on which jobs then run (0.25: four share one, each with a quarter of its
    memory); jobs run on processors when absent or 0."""
    memory_budget_mib: Count = Field(4096, ge=1)
    """Memory for the clients that ``stacked`` trains at once, for the devices in one pass of gradients, and for what
    the algorithm may remember of all devices of the run: each of the three may take as much."""
    precision: Literal["float32", "float64", "mixed"] = "float32"
    """Of weights, gradients and images in the model; ``mixed``: float32, but forward passes of training run in bfloat16
    where that is safe, by torch's autocast. Payloads are charged with 32 bits per number all the same."""
    pretrain: bool = False
    """Train the start model on the old classes (those of frame 0), as FedTeddi does."""
    pretrain_target: float = Field(0.8, gt=0, le=1)
    """Accuracy on the old classes at which pre-training ends ..."""
    pretrain_max_epochs: Count = Field(30, ge=1)
    """... at the latest after so many epochs."""

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        for key in ("batch_size", "epochs"):
            drawn = getattr(self, key)
            if isinstance(drawn, list) and drawn[0] > drawn[1]:
                raise ValueError(f"{key}: the least number comes first (got {drawn})")
        for key in ("cpus_per_actor", "gpus_per_actor"):
            share = getattr(self, key)
            if share is not None and share > 1 and share % 1:
                raise ValueError(f"{key}: expected a whole number above 1 (got {share:g})")
        return self


class AlgorithmConfig(OpenSection):
    """The learning algorithm; its other keys are the algorithm's own options, checked by it."""

    name: str = "fedavg"
    """Learning algorithm of devices and server (``edgesim list`` prints the names)."""
    server: str = "own"
    """Another algorithm whose server half takes the place of the algorithm's own."""
    compute_cost: Literal["passes", "equal"] = "passes"
    """Whether passes that an algorithm makes beside FedAvg's steps, such as those of MOON's two frozen models, lengthen
    the simulated computing, or all algorithms take FedAvg's time."""
    kpfl: dict[str, Any] | None = None
    """KPFL's options (`edgesim.learning.algorithms.kpfl_settings`), if its server is around the algorithm's."""


class UploadConfig(OpenSection):
    """Coding of updates on their way up; the other keys are the codec's own options, checked by it."""

    codec: str = "none"
    """What becomes of an update's numbers and how many bits they take: a name of `edgesim.learning.codecs.CODECS`
    (``edgesim list`` prints them), or ``package.module.Class``. With ``none`` each number takes 32 bits."""
    size: Literal["fixed", "fit", "stream", "dadaquant", "share", "adaquant"] = "fixed"
    """Size of an update: as the codec's options say (``fixed``), or the largest that rate and time left carry
    (``fit``: of ``topk``, ``randk`` and, up to a tenth, ``stc`` the numbers sent, of ``qsgd`` the bits of a level), or
    so many of the most important numbers as are through by the deadline (``stream``: ``topk`` and ``randk``); it tells
    the server in 32 bits. With ``fit`` admission plans with the smallest one (``least``). Levels of ``qsgd`` can go by
    the updates' weights (``dadaquant``: fewest levels in all for the same error, ``share``: fewest bits), or rise as
    the training loss falls (``adaquant``)."""
    fit_at: Literal["plan", "start"] | None = None
    """When ``fit`` decides: as the band is shared, on planned gain and computing (``plan``; with ``round.outage`` all
    uploads fail as often), or as the upload begins, on its fading (``start``, when absent)."""
    least: Factor | None = Field(None, gt=0)
    """Smallest size with ``fit``, which is late where it does not fit: the share of numbers sent, 0.001 when absent;
    with ``qsgd`` the bits of a level, 2 when absent; with a codec of one's own a setting, 1 when absent. With
    ``stream`` the size that admission plans with, when absent that by the codec's options."""
    plan: Literal["bound", "last"] | None = None
    """Bits with which uploads are planned whose own depend on the values (``coding = "elias"``): the most that they can
    take (``bound``, when absent), or what the device's last one took."""
    feedback: Literal["none", "residual", "ef21"] | None = None
    """Memory of each device against what coding loses: what is missing so far (``residual``), or the update as the
    server has it (``ef21``). When absent ``residual`` where the codec's error is shorter than the update, else none."""
    lost: Literal["forget", "add"] = "forget"
    """Fate of an update whose upload is lost after it was computed: ``add`` puts it into the device's residual, for
    which its job is trained."""
    beside: Literal["plain", "coded"] = "plain"
    """Whether tensors that travel beside the update with a number for each parameter, such as SCAFFOLD's control, are
    coded, too; all else beside it costs 32 bits a number."""
    encode: Factor | None = Field(None, ge=0)
    """Training samples that take as long as it takes a device to encode an update, by which its computing is longer.
    When absent a third of the codec's passes over the numbers; 0 with ``algorithm.compute_cost = "equal"``."""


class DownloadConfig(OpenSection):
    """Coding of models on their way down: changes of a public copy; the other keys are the codec's own options."""

    codec: str = "none"
    """Codec of the changes, of those for ``upload.codec`` whose error is shorter than what they code."""


class MergingConfig(Section):
    """Which rounds make a model (FedStg, SAC 2026)."""

    rule: Literal["every", "stagnation"] = "stagnation"
    """``every``: all rounds, as without this table; ``stagnation``: every second round, and all while accuracy does not
    improve (`edgesim.engine.stagnation`). The other rounds are skipped."""
    signal: Literal["validation", "test"] | None = None
    """The accuracy that the rule uses: on the images that the server keeps to validate on
    (``data.validation_per_class``), or on the test images; ``validation`` when absent."""
    skip: Literal["discard", "carry", "sent"] | None = None
    """Work of devices in a skipped round. ``discard``: they train, and the result is lost; ``carry``: a device keeps
    its weights and continues from them if it takes part again before the next model is made; ``sent``: as in any
    round, but the server drops the updates. ``discard`` when absent. Unless updates are sent, a device that has the
    server's model already is not sent it again."""


class PrivacyConfig(Section):
    """Clipping of updates and Gaussian noise (`edgesim.learning.algorithms.privacy`)."""

    mechanism: Literal["none", "clip", "local", "central"] = "none"
    """``clip``: updates are clipped alone; ``local``: each device adds noise to its clipped update before it leaves;
    ``central``: the server adds noise to the weighted mean of the clipped updates."""
    noise: Factor | None = Field(None, gt=0)
    """Noise multiplier z: the standard deviation in each coordinate, over what one device can change (``local``: the
    clipping norm; ``central``: that times the largest weight)."""
    clip: Factor | None = Field(None, gt=0)
    """S: longest trainable part of an update, a longer one is scaled down to it; 1 when absent."""
    delta: float | None = Field(None, gt=0, lt=1)
    """The delta for which epsilon is reported; 1e-5 when absent."""


class EvaluationConfig(Section):
    """When and on what the global model is tested: always test images of the classes seen so far."""

    every: Count | None = Field(None, ge=1)
    """Test at the end of every so many rounds (without rounds: models made); 1 when neither this nor every_s is given.
    The last round of a frame is tested in any case."""
    every_s: Seconds | None = Field(None, ge=0.001)
    """Test the server's model at each multiple of so many simulated seconds, each model once, so that the number of
    tests does not depend on the protocol. The last model of a frame is tested in any case, at its row's end."""
    samples: Count | None = Field(None, ge=1)
    """Size of a fixed sample of the test images; all of them when absent."""
    measures: Literal["basic", "all"] = "basic"
    """``all``: ``metrics`` also has ``class_f1``, of which ``macro_f1`` is the mean, ``roc_auc``, one class against the
    rest, mean over classes, for which the test images are passed over once more, and ``update_cosine``, of the model's
    last two changes."""
    metrics: dict[str, dict[str, Any]] | None = None
    """Further measures at each test: names of `edgesim.learning.measures.METRICS` (``edgesim list`` prints them)
    or dotted paths, each with a table of its options. Rows ``metric`` of ``metrics``, with the name as key."""


class DriftConfig(OpenSection):
    """Data of devices over rounds or seconds; the other keys are the law's own options, checked by it."""

    law: str = "frames"
    """A name of `edgesim.learning.drift.LAWS` (``edgesim list`` prints them); ``frames``: what ``data.partition``
    deals, for ever or for one frame of rounds each."""


class JoiningConfig(OpenSection):
    """Which of the candidates join a round; the other keys are the law's own options, checked by it."""

    law: str
    """A name of `edgesim.joining.LAWS` (``edgesim list`` prints them)."""


class SelectionConfig(OpenSection):
    """The scheduling policy; its other keys are the policy's own options, checked by the policy."""

    policy: str = "random"
    """The scheduling policy (``edgesim list`` prints the names), or ``package.module.Class``."""


def _only_for(needs: Mapping[str, Condition], *keys: str) -> list[Rule]:
    """Rules for keys each of which, where it is given, needs the same."""
    return [Rule({key: GIVEN}, needs) for key in keys]


_FLAT = {"topology.aggregation": "flat"}
_EDGES = {"topology.aggregation": "hierarchical"}
_OWN_LINKS = {"radio.sharing": "own"}
_TRAINING = {"learning.training": "real"}
_FEDSTG_RATE = {"learning.lr_schedule": "fedstg"}
_ADAM = {"learning.optimiser": "adam"}
_LAW = {"drift.law": Except(["frames"])}
_SKIPS = {"merging.rule": "stagnation"}
_NOISY = {"privacy.mechanism": ("local", "central")}
_CENTRAL = {"privacy.mechanism": "central"}
_MOTION = {"mobility": GIVEN}
_MAP = {"radio.shadowing": "map"}
_COUNT = {"round.admission": "count"}
_LATE = {"round.late": "keep"}
_OF_DECAY = ("lr_decay", "lr_decay_every", "lr_offset", "lr_min")

_GOES_WITH = (
    Rule({"devices.kappa": GIVEN}, {"devices.profile": GIVEN}, "it is for processors whose clock_hz a profile gives"),
    *_only_for({"devices.battery_j": GIVEN}, *(f"devices.{key}" for key in _BATTERY_DEFAULTS)),
    Rule({"topology.attach": Except(["strongest"])}, {"topology.file": GIVEN}),
    *_only_for(_MOTION, "radio.grid_m", "radio.between_stations", "round.path_knowledge"),
    Rule({"handover": GIVEN}, _MOTION, "devices that stand still keep their stations"),
    *_only_for(_EDGES, "handover.merge"),
    Rule(_MAP, _MOTION, "it is for devices that move"),
    Rule({"radio.between_stations": GIVEN}, {"radio.shadowing": (None, "map")}, "it is for maps"),
    Rule(_MOTION, {"radio.sharing": ("reserved", "reshared")}, "links of their own contain the motion"),
    Rule(_MOTION, {"topology.attach": ("strongest", "nearest")}, "devices that move join by gain or distance alone"),
    *_only_for(_EDGES, "topology.cloud_every"),
    Rule(_EDGES, {"topology.file": GIVEN, "topology.cloud_every": GIVEN}),
    Rule(_COUNT, {"round.count": GIVEN}, "how many devices are taken, such as round.count=10"),
    Rule({"round.count": GIVEN}, _COUNT, "else as many are taken as fit into the band"),
    Rule({"round.leftover": Except(["idle"])}, {"round.allocator": "least"}, "another leaves nothing over"),
    Rule(
        {"round.outage": GIVEN, **_COUNT, "upload.fit_at": Except(["plan"])},
        {"round.allocator": "least"},
        "by count it enters least bandwidths alone, which no other allocator uses",
    ),
    Rule({"round.delay_knowledge": "reported"}, {"round.computes": "candidates"}),
    *_only_for({"round.delay_knowledge": "reported"}, "round.report_by_s"),
    *_only_for({"round.delay_knowledge": "planned"}, "round.plan_quantile"),
    Rule({"round.moving_deadline": GIVEN}, {"round.close": "arrivals", **_LATE}, "in the end all updates are late"),
    Rule({"round.over_commitment": Except([1])}, {"round.close": "arrivals", **_COUNT}),
    *_only_for({"staleness.weight": ("polynomial", "hinge")}, "staleness.a"),
    *_only_for({"staleness.weight": "hinge"}, "staleness.b"),
    *_only_for({"staleness.weight": "refl"}, "staleness.beta"),
    Rule({"staleness.weight": "refl"}, _TRAINING, "it depends on the updates"),
    *_only_for({"data.scale": GIVEN}, "data.offset"),
    Rule({"data.dataset": "none"}, {"learning.training": "none"}),
    *_only_for({"learning.epochs": None}, "learning.steps"),
    Rule({"learning.lr_offset": GIVEN}, {"learning.lr_decay": (_LR_DECAY, 1), "learning.lr_decay_every": 1}),
    Rule(_FEDSTG_RATE, {f"learning.{key}": LearningConfig.model_fields[key].default for key in _OF_DECAY}),
    *_only_for(_FEDSTG_RATE, "learning.lr_rounds"),
    *_only_for({"learning.back_end": ("workers", "ray", "auto")}, "learning.workers"),
    *_only_for({"learning.back_end": "ray"}, "learning.cpus_per_actor", "learning.gpus_per_actor"),
    Rule(_ADAM, {"learning.momentum": (_MOMENTUM, 0)}, "Adam's moments have decays of their own"),
    Rule(_ADAM, {"learning.persist_momentum": False}, "Adam's moments begin at zero in every job"),
    Rule({"learning.persist_momentum": True}, {"learning.momentum": Except([0])}),
    *_only_for(_SKIPS, "merging.signal", "merging.skip"),
    Rule(_SKIPS, _FLAT, "one server skips rounds"),
    Rule(_SKIPS, {"round.late": "drop"}, "late updates would arrive in skipped rounds"),
    Rule(_SKIPS, _TRAINING, "it depends on accuracy"),
    Rule(
        {**_SKIPS, "merging.signal": (None, "validation")},
        {"data.validation_per_class": GIVEN},
        "it depends on images to validate on; or set merging.signal = 'test'",
    ),
    Rule({**_SKIPS, "merging.skip": "carry"}, {"learning.persist_momentum": False}, "devices keep weights alone"),
    *_only_for(_NOISY, "privacy.noise", "privacy.delta"),
    *_only_for({"privacy.mechanism": ("clip", "local", "central")}, "privacy.clip"),
    Rule(_NOISY, {"privacy.noise": GIVEN}),
    Rule(_CENTRAL, _FLAT, "noise is added to one weighted mean; use 'local'"),
    *_only_for({"upload.size": "fit"}, "upload.fit_at"),
    *_only_for({"upload.size": ("fit", "stream")}, "upload.least"),
    Rule({"upload.size": "stream"}, {"upload.beside": "plain"}, "one vector is sent in order"),
    *_only_for({"evaluation.every_s": None}, "evaluation.every"),
    Rule({"stop_at_accuracy": GIVEN}, _TRAINING, "there are no tests without training"),
    *_only_for({"stop_at_accuracy": GIVEN}, "stop_after_tests"),
    Rule(
        {**_OWN_LINKS, "devices.profile": None},
        {"devices.links": GIVEN},
        "a devices.profile with link_bps will do, too",
    ),
    *_only_for(_OWN_LINKS, "devices.links"),
    Rule({"round.download_s": "link"}, {**_OWN_LINKS, "devices.links": None}, "it is link_bps of devices.profile"),
    Rule(_OWN_LINKS, {"round.allocator": "least", "round.leftover": "idle"}, "there is no band to allocate"),
    Rule({"round.outage": GIVEN}, {"radio.sharing": ("reserved", "reshared")}, "it is for uploads that fade"),
    Rule({"round.outage": GIVEN}, {"radio.fading": Except(["none"])}, "it is for uploads that fade; use 'rayleigh'"),
    Rule(_LAW, {"data.partition": None, "data.partition_options": {}}, "the law deals the samples"),
    Rule(_LAW, {"rounds": lambda rounds: not isinstance(rounds, list)}, "it has no frames"),
    Rule(_LAW, {"data.dataset": Except(["none"])}, "it needs classes"),
)
"""Which keys go with which, as far as the config alone says; what it names has needs of its own."""

_AT_MOST = (
    ("round.report_by_s", "round.tmax_s"),
    ("learning.lr_min", "learning.lr"),
    ("round.tmax_s", "stop_at_s"),
    ("evaluation.every_s", "stop_at_s"),
    ("round.min_candidates", "devices.count"),
    ("round.count", "devices.count"),
)


class RunConfig(Section):
    """The complete config of one run, which reproduces it."""

    goes_with: ClassVar[tuple[Rule, ...]] = _GOES_WITH
    at_most: ClassVar[tuple[tuple[str, str], ...]] = _AT_MOST

    seed: int = Field(0, ge=0, lt=2**63)
    """Seed of all random draws: same config and seed, same tables and model."""
    rounds: AtLeastOne | Annotated[list[AtLeastOne], Field(min_length=1)] | None = None
    """Rounds of every frame, or one number per frame; 60 when neither rounds nor stop_at_s is given."""
    stop_at_s: Seconds | None = Field(None, ge=1e-6)
    """Simulated time at which the run ends; with ``rounds`` given as well, whichever comes first ends it."""
    stop_at_accuracy: float | None = Field(None, gt=0, le=1)
    """Test accuracy at which the run ends: after the round, or the model, in whose course the first test reaches
    it; a start model that has it already is refused. Give ``rounds`` or ``stop_at_s`` as well, which end a run that
    does not."""
    stop_after_tests: Count | None = Field(None, ge=2)
    """How many tests in a row must be at ``stop_at_accuracy`` or above before the run ends; one when absent."""
    checkpoint_at: list[AtLeastOne] | None = None
    """Rounds whose checkpoints stay when the run has finished, to fork it from there. Changes no result."""
    devices: DevicesConfig = DevicesConfig()
    radio: RadioConfig = RadioConfig()
    topology: TopologyConfig = TopologyConfig()
    mobility: MobilityConfig | None = None
    """Devices stand still when absent."""
    handover: HandoverConfig | None = None
    """A task keeps its station when absent."""
    availability: AvailabilityConfig = AvailabilityConfig()
    round: RoundConfig = RoundConfig()
    staleness: StalenessConfig = StalenessConfig()
    data: DataConfig = DataConfig()
    drift: DriftConfig = DriftConfig()
    joining: JoiningConfig | None = None
    """All candidates join when absent."""
    learning: LearningConfig = LearningConfig()
    algorithm: AlgorithmConfig = AlgorithmConfig()
    merging: MergingConfig | None = None
    """Every round makes a model when absent."""
    upload: UploadConfig | None = None
    """Updates travel as they are, with 32 bits a number, when absent."""
    download: DownloadConfig | None = None
    """Models travel as they are, with 32 bits a number, when absent."""
    privacy: PrivacyConfig = PrivacyConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    selection: SelectionConfig = SelectionConfig()

    @property
    def expected_rounds(self) -> int:
        """Rounds of all frames; where only ``stop_at_s`` ends the run, as many as last up to their deadlines.

        A single number of rounds counts for one frame, since the number of frames is not known before the data are
        read.
        """
        if self.rounds is None:
            return int((self.stop_at_s or 0.0) / self.round.tmax_s + 1e-9)
        return sum(self.rounds) if isinstance(self.rounds, list) else self.rounds

    def resolved(self) -> "RunConfig":
        """The same run with every default that depends on another value filled in, but those of what it names."""
        knowledge = {"reported": {"report_by_s": self.round.tmax_s / 2}, "planned": {"plan_quantile": 0.95}}
        planned = knowledge.get(self.round.delay_knowledge, {}) | (
            {"path_knowledge": "present"} if self.mobility else {}
        )
        merging = None if self.merging is None or self.merging.rule == "every" else self.merging
        sections: dict[str, Section | OpenSection | None] = {
            "devices": filled(self.devices, {} if self.devices.battery_j is None else _BATTERY_DEFAULTS),
            "round": filled(self.round, planned),
            "learning": filled(self.learning, {"steps": 5} if self.learning.epochs is None else {}),
            "merging": merging and filled(merging, {"signal": "validation", "skip": "discard"}),
            "download": None if self.download == DownloadConfig() else self.download,
            "evaluation": filled(self.evaluation, {"every": 1} if self.evaluation.every_s is None else {}),
        }
        if self.handover is not None and self.topology.aggregation == "hierarchical":
            sections["handover"] = filled(self.handover, {"merge": "where_arrived"})
        if self.mobility is not None:
            radio = filled(self.radio, {"shadowing": "map", "grid_m": 5.0})
            sections["radio"] = filled(radio, {"between_stations": 0.0} if radio.shadowing == "map" else {})
        if self.privacy.mechanism != "none":
            delta = {} if self.privacy.noise is None else {"delta": 1e-5}
            sections["privacy"] = filled(self.privacy, {"clip": 1.0} | delta)
        return (filled(self, {"rounds": 60}) if self.stop_at_s is None else self).model_copy(update=sections)


def filled(section: AnySection, defaults: Mapping[str, Any]) -> AnySection:
    """The section with the defaults of those keys that are absent."""
    return section.model_copy(update={key: of for key, of in defaults.items() if getattr(section, key) is None})
