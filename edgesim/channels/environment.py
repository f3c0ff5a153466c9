"""A radio environment: path-loss law, shadowing and noise, read from a TOML file under ``channels/``."""

import difflib
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import Field

from edgesim.channels.decibels import ratio_from_db, watts_from_dbm
from edgesim.channels.laws import LAWS
from edgesim.channels.laws.law import Law
from edgesim.config import Section, read_toml, validate
from edgesim.content import find
from edgesim.errors import EdgesimError
from edgesim.streams import Streams

Shadowing = Literal["per_run", "per_round"]


class Environment(Section):
    """What the radio is like, whoever transmits; decibels stay here, the properties are linear."""

    name: str = Field(min_length=1)
    source: str = Field(min_length=1)
    path_loss: Law
    shadowing_std_db: float = Field(ge=0)
    shadowing: Shadowing
    """Whether the shadowing of a device is drawn once or anew in every round."""
    noise_dbm_per_hz: float = -174.0
    """Thermal noise at 290 K."""
    noise_figure_db: float = Field(ge=0)

    @property
    def noise_w_per_hz(self) -> float:
        """Noise density of the receiver, noise figure included, in W/Hz."""
        return float(watts_from_dbm(self.noise_dbm_per_hz + self.noise_figure_db))


def load_environment(name_or_path: str) -> Environment:
    """Read and check an environment, given as a path or as the bare name of a file under ``channels/``.

    Raises `EdgesimError` that names the file, the key and what was expected.
    """
    path = find("channels", name_or_path, ".toml")
    values = read_toml(path)
    if "path_loss" in values:
        values["path_loss"] = _law(values["path_loss"], str(path))
    return validate(Environment, values, str(path))


def _law(table: Any, where: str) -> Law:
    known = ", ".join(sorted(LAWS))
    if not isinstance(table, dict) or "law" not in table:
        raise EdgesimError(f"{where}: path_loss: expected a table [path_loss] with law = one of: {known}")
    parameters = dict(table)
    name = parameters.pop("law")
    if not isinstance(name, str) or name not in LAWS:
        near = difflib.get_close_matches(str(name), LAWS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {known}"
        raise EdgesimError(f"{where}: path_loss.law: unknown law {name!r}, {hint}")
    return validate(LAWS[name], parameters, f"{where}: path_loss")


def mean_power_gain(
    environment: Environment,
    distance_m: ArrayLike,
    streams: Streams,
    ids: ArrayLike,
    round: int,
    shadowing: Shadowing | None = None,
) -> NDArray[np.float64]:
    """Average power gain |H|^2 of each device, linear: path loss and log-normal shadowing, no fading.

    ``distance_m`` and the device ``ids`` have one row per device, [n]. ``shadowing`` overrides the mode of
    the environment. Draws: stream ``shadowing``, indexed by the round, or by round 0 when drawn once per run.

    FedTeddi, section V-A: 10^(-(loss + X) / 10), X ~ N(0, shadowing_std_db^2).
    """
    per_round = (shadowing or environment.shadowing) == "per_round"
    shadow_db = environment.shadowing_std_db * streams.normal("shadowing", ids, round if per_round else 0)
    return ratio_from_db(-(environment.path_loss.loss_db(distance_m) + shadow_db))
