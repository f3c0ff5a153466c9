"""Networks of agents and their files: dense layers as safetensors, without pickle and without a library of learning."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from edgesim.base.arrays import Floats, Singles
from edgesim.base.errors import EdgesimError
from edgesim.base.on_disk import new_file
from edgesim.rl.observation import Observation, checked_features

ACTIONS = ("rank", "subset", "shares")
"""Meanings of a network's answer, as of the actions of the environment."""

ACTIVATIONS: dict[str, Callable[[Floats], Floats]] = {"tanh": np.tanh, "relu": lambda values: np.maximum(values, 0.0)}
"""Functions between two layers."""

_FORMAT = "edgesim-agent-1"


@dataclass(frozen=True)
class Network:
    """Dense layers that give each device of an observation a score."""

    layers: Sequence[tuple[Singles, Singles]]
    """Weights, [out, in], and biases, [out], of each layer."""
    features: tuple[str, ...]
    """Features that it observes, in their order."""
    action: str = "rank"
    """Meaning of the scores, one of `ACTIONS`."""
    devices: int | None = None
    """Number of devices N if it reads the whole observation at once, in the order ``candidates``, ``devices``,
    ``time``, N (F + 1) + 1 numbers, and answers with N scores. If absent it reads features and time of one device after
    another, F + 1 numbers, and so suits any number of devices."""
    activation: str = "tanh"
    """Function between two layers, one of `ACTIVATIONS`."""

    def __post_init__(self) -> None:
        """Raises `EdgesimError` if layers, features and devices do not fit."""
        checked_features(self.features, "features")
        for value, known, name in ((self.action, ACTIONS, "action"), (self.activation, [*ACTIVATIONS], "activation")):
            if value not in known:
                raise EdgesimError(f"{name}: expected one of {', '.join(known)} (got {value!r})")
        if self.devices is not None and not (isinstance(self.devices, int) and self.devices > 0):
            raise EdgesimError(f"devices: expected a whole number from 1 or None (got {self.devices!r})")
        one = len(self.features) + 1
        size, answers = (one, 1) if self.devices is None else (self.devices * one + 1, self.devices)
        for number, (weights, biases) in enumerate(self.layers):
            if not (isinstance(weights, np.ndarray) and isinstance(biases, np.ndarray)):
                raise EdgesimError(f"layer {number}: expected arrays (got {type(weights).__name__})")
            if weights.ndim != 2 or biases.shape != weights.shape[:1] or weights.shape[1] != size:
                raise EdgesimError(
                    f"layer {number}: expected weights [out, {size}] and biases [out] "
                    f"(got {list(weights.shape)} and {list(biases.shape)})"
                )
            if not (np.isfinite(weights).all() and np.isfinite(biases).all()):
                raise EdgesimError(f"layer {number}: expected finite numbers")
            size = len(weights)
        if size != answers or not self.layers:
            raise EdgesimError(f"layers: expected {answers} numbers behind the last layer (got {size})")

    def scores(self, seen: Observation) -> Floats:
        """Score of each device, [N], which may leave the range of the environment's action."""
        values = np.concatenate([seen.candidates, seen.devices.ravel(), seen.time], dtype=np.float64)
        if self.devices is None:
            rows = np.broadcast_to(seen.time, (len(seen.devices), 1))
            values = np.concatenate([seen.devices, rows], axis=1, dtype=np.float64)
        for weights, biases in self.layers[:-1]:
            values = ACTIVATIONS[self.activation](values @ weights.T + biases)
        weights, biases = self.layers[-1]
        return np.asarray((values @ weights.T + biases).ravel())

    def save(self, path: Path | str) -> None:
        """Write the network to a file, in single precision, whole or not at all; raises `EdgesimError`."""
        about = {"format": _FORMAT, "features": self.features, "action": self.action, "activation": self.activation}
        arrays: dict[str, Singles] = {}
        for number, (weights, biases) in enumerate(self.layers):
            arrays |= {f"{number}.weights": np.ascontiguousarray(weights, dtype=np.float32)}
            arrays |= {f"{number}.biases": np.ascontiguousarray(biases, dtype=np.float32)}
        content = save(arrays, {"edgesim": json.dumps(about | {"devices": self.devices})})
        with new_file(Path(path)) as part:
            part.write_bytes(content)


def load(path: Path | str, where: str) -> Network:
    """Read a network's file; raises `EdgesimError`, whose message begins with ``where``, if it is none."""
    try:
        with safe_open(path, framework="numpy") as file:
            about: Mapping[str, Any] = json.loads((file.metadata() or {}).get("edgesim", "{}"))
            count = sum(name.endswith(".weights") for name in file.keys())  # noqa: SIM118 - it is no mapping
            arrays = [(file.get_tensor(f"{n}.weights"), file.get_tensor(f"{n}.biases")) for n in range(count)]
        kind = about.get("format") if isinstance(about, dict) else None
        if kind != _FORMAT:
            raise EdgesimError(f"format {kind!r}, expected {_FORMAT!r}")
        if lacking := [name for name in ("features", "action", "activation", "devices") if name not in about]:
            raise EdgesimError(f"its metadata lack {lacking[0]!r}")
        named = {name: about[name] for name in ("action", "activation", "devices")}
        return Network(arrays, tuple(about["features"]), **named)
    except FileNotFoundError:
        raise EdgesimError(f"{where}: no file {str(path)!r}") from None
    except (EdgesimError, OSError, ValueError, LookupError, TypeError, SafetensorError) as error:
        why = str(error).partition("\n")[0]
        raise EdgesimError(f"{where}: {path}: not an agent's file: {why}") from None
