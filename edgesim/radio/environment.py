"""A radio environment from a TOML file under ``channels/``: a path-loss law with its noise, or a recorded capacity."""

import math
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from pydantic import ConfigDict, Field, model_validator

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.base.content import find
from edgesim.base.errors import EdgesimError
from edgesim.base.needs import value_at
from edgesim.base.quantities import Metres
from edgesim.base.registry import look_up
from edgesim.base.text_file import parse_toml, read_text, read_toml
from edgesim.base.validation import validate
from edgesim.config import Section
from edgesim.radio.capacity import CapacityTables
from edgesim.radio.capacity_file import read_capacity
from edgesim.radio.decibels import ratio_from_db, watts_from_dbm
from edgesim.radio.fading import Fading
from edgesim.radio.laws import LAWS
from edgesim.radio.laws.law import Law
from edgesim.radio.link import BandLink, RecordedLink, ShannonLink
from edgesim.streams import Streams

Shadowing = Literal["per_run", "per_round"]


class Environment(Section):
    """The radio environment of all devices: its fields may be in decibels, its properties are linear."""

    has_path_loss: ClassVar[bool] = True

    name: str = Field(min_length=1)
    source: str = Field(min_length=1)
    path_loss: Law
    shadowing_std_db: float | None = Field(None, ge=0, le=60)
    """Standard deviation of the shadowing; None for laws that have one for each branch."""
    shadowing: Shadowing
    """Whether the shadowing of a device is drawn once per run or anew in every round."""
    decorrelation_m: Metres | None = Field(None, ge=0.1, le=1e4)
    """Distance over which the correlation of a map of shadowing falls to 1/e; None for laws that have one for each
    branch, and where there are no maps."""
    fading: Fading = "none"
    noise_dbm_per_hz: float = Field(-174.0, ge=-250, le=-100)
    """Thermal noise at 290 K; no receiver is free of noise."""
    noise_figure_db: float = Field(ge=0, le=100)
    snr_gap_db: float = Field(0.0, ge=0, le=30)
    """SNR that a rate needs beyond Shannon's formula; 0 for ideal codes."""
    max_bps_per_hz: float | None = Field(None, gt=0, le=100)
    """Highest spectral efficiency that a modulation and code reaches; no cap when absent."""

    @model_validator(mode="after")
    def _one_place_for_the_deviation(self) -> Self:
        of_the_law = self.path_loss.shadowing_std_db(True) is not None
        if of_the_law and self.shadowing_std_db is not None:
            raise ValueError(
                "shadowing_std_db: this law has a deviation for each branch; "
                "set los_shadowing_std_db and nlos_shadowing_std_db in [path_loss]"
            )
        if not of_the_law and self.shadowing_std_db is None:
            raise ValueError("shadowing_std_db: field required by this law; 0 for none")
        if self.path_loss.decorrelation_m(True) is not None and self.decorrelation_m is not None:
            raise ValueError(
                "decorrelation_m: this law has a distance for each branch; "
                "set los_decorrelation_m and nlos_decorrelation_m in [path_loss]"
            )
        return self

    @property
    def noise_w_per_hz(self) -> float:
        """Noise density of the receiver, noise figure included, in W/Hz."""
        return float(watts_from_dbm(self.noise_dbm_per_hz + self.noise_figure_db))

    def link(self) -> ShannonLink:
        """The link of a band: Shannon's rate behind the SNR gap, up to the cap.

        Rate min(B log2(1 + p / (gap B n)), cap B), so that the gap acts as a factor on the noise (Mogensen et al.,
        IEEE VTC Spring 2007; truncated as in 3GPP TR 36.942, annex A.2).
        """
        cap = math.inf if self.max_bps_per_hz is None else self.max_bps_per_hz
        return ShannonLink(self.noise_w_per_hz * float(ratio_from_db(self.snr_gap_db)), cap)

    def links(self, bands_hz: Floats) -> Sequence[BandLink]:
        """The link over each of some bands, [M]."""
        return [self.link()] * len(bands_hz)

    def for_run_until(self, stop_at_s: float | None) -> Self:
        """The environment for a run whose end may be known."""
        return self

    def beyond_fit(self, distance_m: ArrayLike) -> Booleans:
        """Whether each distance lies outside the law's range, [n]."""
        return self.path_loss.beyond_fit(distance_m)

    @property
    def fitted_for(self) -> str:
        """The law's range, in words."""
        return self.path_loss.fitted_for

    def line_of_sight(self, distance_m: ArrayLike, streams: Streams, ids: ArrayLike, station: int = 0) -> Booleans:
        """Whether each device sees a station, [n]: drawn once per link and placement from the law's probability.

        ``distance_m`` and the device ``ids`` have one row per device, [n]. Draws: stream ``los`` of the station.
        """
        probability = self.path_loss.los_probability(distance_m)
        # A law of one branch needs no draws, and drawing would take as long as for the shadowing.
        if np.all(probability >= 1.0):
            return np.ones(probability.shape, dtype=bool)
        return streams.uniform(of_station("los", station), ids) < probability

    def mean_power_gain(
        self,
        distance_m: ArrayLike,
        streams: Streams,
        ids: ArrayLike,
        round: int | Integers,
        station: int = 0,
        los: ArrayLike | None = None,
    ) -> Floats:
        """Average power gain |H|^2 of each device to a station, linear: path loss and shadowing, no fading; [n].

        ``distance_m`` and the device ``ids`` have one row per device, [n]. ``los`` is the result of `line_of_sight`,
        [n], if the caller has it; else it is drawn.
        Draws: stream ``shadowing`` of the station, indexed by the round, or by round 0 if drawn once per run.

        FedTeddi, section V-A: 10^(-(loss + X) / 10), X ~ N(0, sigma^2), sigma that of the device's branch.
        """
        law = self.path_loss
        sees = self.line_of_sight(distance_m, streams, ids, station) if los is None else los
        std_db = law.shadowing_std_db(sees)
        if std_db is None:
            std_db = np.asarray(self.shadowing_std_db)
        drawn_in = round if self.shadowing == "per_round" else 0
        shadow_db = std_db * streams.normal(of_station("shadowing", station), ids, drawn_in)
        return ratio_from_db(-(law.loss_db(distance_m, sees) + shadow_db))

    def constant_power_gain(self, distance_m: ArrayLike, streams: Streams, ids: ArrayLike, station: int) -> Floats:
        """Part of `mean_power_gain` that is the same in all rounds, [n]: with shadowing if drawn once per run."""
        if self.shadowing == "per_run":
            return self.mean_power_gain(distance_m, streams, ids, 0, station)
        sees = self.line_of_sight(distance_m, streams, ids, station)
        return ratio_from_db(-self.path_loss.loss_db(distance_m, sees))


class RecordedEnvironment(Section):
    """An uplink described by its recorded capacity over time alone: no gain, no fading, no line of sight."""

    has_path_loss: ClassVar[bool] = False
    fading: ClassVar[Fading] = "none"
    fitted_for: ClassVar[str] = ""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    name: str = Field(min_length=1)
    source: str = Field(min_length=1)
    capacity: CapacityTables

    def links(self, bands_hz: Floats) -> Sequence[BandLink]:
        """The link over each of some bands, [M]."""
        return [RecordedLink(self.capacity, band_hz) for band_hz in bands_hz.tolist()]

    def for_run_until(self, stop_at_s: float | None) -> Self:
        """The environment for a run whose end may be known; raises `EdgesimError` for a recording that ends before."""
        return self.model_copy(update={"capacity": self.capacity.for_run_until(stop_at_s)})

    def beyond_fit(self, distance_m: ArrayLike) -> Booleans:
        """False everywhere, [n]: there is no law."""
        return np.zeros(np.shape(distance_m), dtype=bool)

    def line_of_sight(self, distance_m: ArrayLike, *_: object) -> Booleans:
        """True everywhere, [n]."""
        return np.ones(np.shape(distance_m), dtype=bool)

    def mean_power_gain(self, distance_m: ArrayLike, *_: object) -> Floats:
        """1 everywhere, [n]: only the capacity of the band is known."""
        return np.ones(np.shape(distance_m))

    def constant_power_gain(self, distance_m: ArrayLike, *_: object) -> Floats:
        """1 everywhere, [n]."""
        return np.ones(np.shape(distance_m))


def load_environment(name_or_path: str) -> Environment | RecordedEnvironment:
    """Read and check an environment of either kind, given by a path or the bare name of a file under ``channels/``.

    Raises `EdgesimError` that names the file, the key and what was expected.
    """
    path = find("channels", name_or_path, ".toml", "radio.channel")
    values = read_toml(path)
    if "capacity" in values and "path_loss" in values:
        raise EdgesimError(f"{path}: capacity: an environment has either [capacity] or [path_loss], not both")
    if "capacity" in values:
        values["capacity"] = read_capacity(values["capacity"], path)
        return validate(RecordedEnvironment, values, str(path))
    if "path_loss" in values:
        values["path_loss"] = _law(values["path_loss"], path)
    return validate(Environment, values, str(path))


def environment_files(name_or_path: str) -> list[Path]:
    """Files of an environment and of its capacity table, if any; raises `EdgesimError` if the environment has none."""
    path = find("channels", name_or_path, ".toml")
    capacity = _text_at("capacity.file", name_or_path)
    return [path] if capacity is None else [path, path.parent / capacity]


def path_loss_name(name_or_path: str) -> str | None:
    """The law that an environment names; None without one, or where the file cannot be read."""
    return _text_at("path_loss.law", name_or_path)


def _text_at(key: str, name_or_path: str) -> str | None:
    """The text at a dotted key of an environment file; None without one, or where the file cannot be read."""
    try:
        text = value_at(_parsed(read_text(find("channels", name_or_path, ".toml"))), key)
    except (EdgesimError, ValueError):
        return None
    return text if isinstance(text, str) else None


_parsed = lru_cache(maxsize=16)(parse_toml)
"""A run asks for names in its channel's file several times before it begins."""


def _law(table: Any, path: Path) -> Law:
    if not isinstance(table, dict) or "law" not in table:
        known = ", ".join(sorted(LAWS))
        raise EdgesimError(f"{path}: path_loss: expected a table [path_loss] with law = one of: {known}")
    parameters = dict(table)
    law = look_up(LAWS, str(parameters.pop("law")), f"{path}: path_loss.law")
    return validate(law, parameters, f"{path}: path_loss")


def of_station(stream: str, station: int) -> str:
    """Name of the stream for links to a station, one for each; that of station 0 has no suffix."""
    return f"{stream}-{station}" if station else stream
