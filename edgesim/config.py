"""Every knob of a run: units in names, bounds checked, defaults from FedTeddi unless said otherwise."""

import difflib
import tomllib
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from edgesim.errors import EdgesimError

Model = TypeVar("Model", bound=BaseModel)


class Section(BaseModel):
    """A table of the config file: unknown keys are refused, numbers are finite."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class DevicesConfig(Section):
    """Where the devices are and what they can do (FedTeddi, section V-A; energy defaults of our own)."""

    count: int = Field(30, ge=1, le=2**31 - 1)
    radius_m: float = Field(250.0, gt=0)
    min_distance_m: float = Field(10.0, ge=0)
    tx_power_dbm: float = Field(23.0, ge=-50, le=60)
    pa_efficiency: float = Field(0.35, gt=0, le=1)
    compute_power_w: float = Field(2.0, ge=0)
    download_power_w: float = Field(0.9, ge=0)
    a_s_per_sample: float = Field(0.0005, ge=0)
    mu_samples_per_s: float = Field(2000.0, gt=0)

    @model_validator(mode="after")
    def _ring(self) -> Self:
        if self.min_distance_m >= self.radius_m:
            raise ValueError(f"min_distance_m ({self.min_distance_m:g}) must be below radius_m ({self.radius_m:g})")
        return self


class RadioConfig(Section):
    """The shared uplink band and the environment file that it lives in."""

    channel: str = "fedteddi-macro"
    bandwidth_hz: float = Field(20e6, gt=0)
    sharing: Literal["reserved", "reshared"] = "reserved"
    """Whether an upload keeps its reservation or the active ones split the band anew at every change."""
    shadowing: Literal["per_round", "per_run"] | None = None
    """How often shadowing is drawn; the environment file decides when absent."""
    fading: Literal["none", "rayleigh"] | None = None
    """Block fading of each upload; the environment file decides when absent."""


class AvailabilityConfig(Section):
    """Who is available when."""

    model: Literal["always", "bernoulli", "table"] = "always"
    probability: float = Field(1.0, gt=0, le=1)
    """Chance that a device is available in a slot (``bernoulli``)."""
    slot_s: float | None = Field(None, gt=0)
    """Length of a slot (``bernoulli``); the round's deadline when absent."""
    file: str | None = None
    """CSV or Parquet of device, start_s, end_s (``table``)."""

    @model_validator(mode="after")
    def _fits_the_model(self) -> Self:
        if self.probability != 1.0 and self.model != "bernoulli":
            raise ValueError(f"probability is for model = 'bernoulli', not {self.model!r}")
        if (self.model == "table") != (self.file is not None):
            raise ValueError("file is needed by, and only by, model = 'table'")
        return self


class RoundConfig(Section):
    """The synchronous round."""

    tmax_s: float = Field(1.0, gt=0)
    computes: Literal["candidates", "selected"] = "candidates"
    delay_knowledge: Literal["known", "reported", "planned"] = "known"
    report_by_s: float | None = Field(None, gt=0)
    """When the scheduler stops waiting for reports (``reported``); tmax_s / 2 when absent."""
    plan_quantile: float = Field(0.95, gt=0, lt=1)
    admission: Literal["band", "count"] = "band"
    """Who is taken of those offered: whoever's least bandwidth still fits the band, or the first ``count``."""
    count: int | None = Field(None, ge=1)
    allocator: Literal["least", "equal_share", "equal_finish", "proportional"] = "least"
    """How the uploads share the band."""
    leftover: Literal["idle", "equal_finish"] = "idle"
    """What becomes of the band that least bandwidths leave over: nothing, or a common earlier finish."""
    close: Literal["arrivals", "deadline"] = "arrivals"
    late: Literal["drop", "keep"] = "drop"
    """Whether an upload that is on the air at the deadline is broken off, or goes on into the next rounds on its own
    reservation and is merged in the round in which it arrives. A frame's last round breaks all of them off."""
    min_candidates: int = Field(1, ge=1)
    download_s: float = Field(0.0, ge=0)
    payload_bits: Literal["model"] | float = "model"
    """Bits of one upload; ``"model"`` is 32 times the number of trainable parameters."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.delay_knowledge == "reported" and self.computes != "candidates":
            raise ValueError("delay_knowledge = 'reported' requires computes = 'candidates'")
        if (self.admission == "count") != (self.count is not None):
            raise ValueError("count is needed by, and only by, admission = 'count'")
        if self.leftover != "idle" and self.allocator != "least":
            raise ValueError(f"allocator = {self.allocator!r} leaves nothing over; leave leftover out")
        if self.report_by_s is not None and self.report_by_s > self.tmax_s:
            raise ValueError(f"report_by_s ({self.report_by_s:g}) must not be above tmax_s ({self.tmax_s:g})")
        if self.download_s >= self.tmax_s:
            raise ValueError(f"download_s ({self.download_s:g}) must be below tmax_s ({self.tmax_s:g})")
        if self.payload_bits != "model" and self.payload_bits <= 0:
            raise ValueError("payload_bits must be above 0")
        return self


class DataConfig(Section):
    """Which images, and how they are spread over devices and frames."""

    dataset: str = "digits"
    """``digits``, ``cifar10``, ``cifar100``, a path to an ``.npz``, or ``none`` (timing only)."""
    folder: str = "data"
    """Where torchvision's datasets lie."""
    partition: Literal["fedteddi", "iid"] = "fedteddi"
    samples_per_device: int = Field(60, ge=2)
    permute_labels: bool = False
    """Control: labels permuted over the whole training set before pre-training and partition."""


class LearningConfig(Section):
    """Model, local training and pre-training."""

    training: Literal["real", "none"] = "real"
    model: str = "mlp"
    """``mlp``, ``fedteddi-cnn`` or the dotted path of a callable that returns an ``nn.Module``."""
    lr: float = Field(0.1, gt=0)
    lr_decay: float = Field(0.9992, gt=0, le=1)
    """Factor per round, counted over frames."""
    momentum: float = Field(0.5, ge=0, lt=1)
    batch_size: int = Field(32, ge=1)
    steps: int | None = Field(None, ge=1)
    """Local SGD steps per round (tau); 5 when neither steps nor epochs are given."""
    epochs: int | None = Field(None, ge=1)
    """Local epochs per round, instead of steps."""
    keep_best: bool = True
    """Start a further frame from the best model of the frame before (FedTeddi, Algorithm 1)."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    pretrain: bool = True
    """Train the start model on the old classes (those of frame 0)."""
    pretrain_target: float = Field(0.8, gt=0, le=1)
    pretrain_max_epochs: int = Field(30, ge=1)

    @model_validator(mode="after")
    def _steps_or_epochs(self) -> Self:
        if self.steps is not None and self.epochs is not None:
            raise ValueError("give steps or epochs, not both")
        return self


class EvaluationConfig(Section):
    """When and on what the global model is tested: always test images of the classes seen so far."""

    every: int = Field(1, ge=1)
    samples: int | None = Field(None, ge=1)
    """Size of a fixed sample of the test images; all of them when absent."""


class SelectionConfig(BaseModel):
    """The scheduling policy; its other keys are the policy's own options, checked by the policy."""

    model_config = ConfigDict(extra="allow", frozen=True, strict=True, allow_inf_nan=False)
    policy: str = "random"

    @property
    def options(self) -> dict[str, Any]:
        """The policy's own keys."""
        return dict(self.model_extra or {})


class RunConfig(Section):
    """One run, complete: rerunning it reproduces the run."""

    seed: int = Field(0, ge=0, lt=2**63)
    rounds: int | list[int] | None = None
    """Rounds of every frame, or one number per frame; 60 when neither rounds nor stop_at_s is given."""
    stop_at_s: float | None = Field(None, gt=0)
    """Simulated time at which the run ends."""
    devices: DevicesConfig = DevicesConfig()
    radio: RadioConfig = RadioConfig()
    availability: AvailabilityConfig = AvailabilityConfig()
    round: RoundConfig = RoundConfig()
    data: DataConfig = DataConfig()
    learning: LearningConfig = LearningConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    selection: SelectionConfig = SelectionConfig()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        counts = self.rounds if isinstance(self.rounds, list) else [self.rounds]
        if not counts or any(count is not None and count < 1 for count in counts):
            raise ValueError("rounds must be at least 1 in every frame")
        if self.data.dataset == "none" and self.learning.training == "real":
            raise ValueError("data.dataset = 'none' is for learning.training = 'none'")
        if self.stop_at_s is not None and self.stop_at_s < self.round.tmax_s:
            raise ValueError(f"stop_at_s ({self.stop_at_s:g}) must not be below round.tmax_s ({self.round.tmax_s:g})")
        if self.round.min_candidates > self.devices.count:
            raise ValueError("round.min_candidates must not be above devices.count")
        return self

    def resolved(self) -> "RunConfig":
        """The same run with every default that hangs on another value written out."""
        learning = self.learning
        if learning.steps is None and learning.epochs is None:
            learning = learning.model_copy(update={"steps": 5})
        round_ = self.round
        if round_.report_by_s is None:
            round_ = round_.model_copy(update={"report_by_s": round_.tmax_s / 2})
        availability = self.availability
        if availability.slot_s is None:
            availability = availability.model_copy(update={"slot_s": round_.tmax_s})
        rounds = self.rounds
        if rounds is None and self.stop_at_s is None:
            rounds = 60
        return self.model_copy(
            update={"rounds": rounds, "learning": learning, "round": round_, "availability": availability}
        )


def parse(values: Mapping[str, Any], where: str) -> RunConfig:
    """Check a plain nested mapping; raises `EdgesimError` that names ``where``, the key and what was expected."""
    return validate(RunConfig, values, where)


def load(path: Path, overrides: Iterable[str] = ()) -> RunConfig:
    """Read a TOML config, apply ``section.key=value`` overrides; raises `EdgesimError`."""
    values = read_toml(path)
    for override in overrides:
        set_value(values, override)
    return parse(values, str(path))


def read_toml(path: Path) -> dict[str, Any]:
    """Parse a TOML file; raises `EdgesimError` that names the file and the line."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise EdgesimError(f"{path}: no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise EdgesimError(f"{path}: cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise EdgesimError(f"{path}: not valid TOML: {error}") from None


def set_value(values: dict[str, Any], override: str) -> None:
    """Apply one ``section.key=value`` to a nested mapping; the value is TOML, or else a bare string."""
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise EdgesimError(f"--set {override}: expected section.key=value")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    set_key(values, key, value)


def set_key(values: dict[str, Any], key: str, value: object) -> None:
    """Set the value at a dotted key of a nested mapping; raises `EdgesimError` where a value is no section."""
    *sections, last = (part.strip() for part in key.split("."))
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise EdgesimError(f"{key}: {section!r} is a value, not a section")
    values[last] = value


def validate(model: type[Model], values: Mapping[str, Any], where: str) -> Model:
    """Validate against a model; the first error becomes one line, with the nearest name for an unknown key."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise EdgesimError(f"{where}: {_first_line(model, error)}") from None


def _first_line(model: type[BaseModel], error: ValidationError) -> str:
    # An unknown key is most often the cause of the other errors (a misspelt required key is missing too).
    details = sorted(error.errors(), key=lambda detail: detail["type"] != "extra_forbidden")
    detail = details[0]
    path = ".".join(str(part) for part in detail["loc"] if not _is_union_branch(part))
    if detail["type"] == "extra_forbidden":
        known = _keys_at(model, detail["loc"][:-1])
        near = difflib.get_close_matches(str(detail["loc"][-1]), known, n=1, cutoff=0.5)
        return f"unknown key {path!r}" + (f", did you mean {near[0]!r}?" if near else f"; known: {', '.join(known)}")
    message = detail["msg"].removeprefix("Value error, ")
    message = message[0].lower() + message[1:]
    got = "" if detail["type"] in ("missing", "value_error") else f" (got {detail['input']!r})"
    return f"{path}: {message}{got}" if path else message


def _is_union_branch(part: object) -> bool:
    """Pydantic appends the name of the branch of a union that failed; users did not write that."""
    return isinstance(part, str) and (part in ("int", "float", "str") or "[" in part)


def _keys_at(model: type[BaseModel], path: tuple[int | str, ...]) -> list[str]:
    """Field names of the (sub-)model that a path of keys leads to."""
    for part in path:
        annotation = model.model_fields[str(part)].annotation
        inner = typing.get_args(annotation) if isinstance(annotation, types.UnionType) else (annotation,)
        model = next(kind for kind in inner if isinstance(kind, type) and issubclass(kind, BaseModel))
    return sorted(model.model_fields)
