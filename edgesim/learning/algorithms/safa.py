"""SAFA's server: Wu et al., "SAFA: a semi-asynchronous protocol for fast federated learning", IEEE TC 2021.

The server remembers one model per device and averages all of them, so that a device that is not picked, late or away
still counts. Which of the devices that finish are picked `edgesim.selection.safa` says. Where the paper leaves it open,
versions and local models are those of the published code (wingter562/SAFA, semiAysnc_FedAvg.py): a forced sync reaches
the devices that are away, too.
"""

from dataclasses import dataclass, field

import numpy as np
from pydantic import Field
from typing_extensions import override

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.base.needs import Rule
from edgesim.base.quantities import Count
from edgesim.learning.algorithms.algorithm import Algorithm, AveragingOptions
from edgesim.learning.algorithms.records import Arrivals, Device, Devices, State, Workbench
from edgesim.learning.algorithms.server_half import ServerHalf, counts, normalised, stretches, whole
from edgesim.learning.torch_types import Tensor, torch


class SafaOptions(AveragingOptions):
    """Options of SAFA's server."""

    lag_tolerance: Count = Field(5, ge=0)
    """Rounds that a device may lag behind and still continue with its own model."""


@dataclass
class Versions:
    """Model version of each device."""

    last: Integers
    """The last round in which each device finished its training or, if later, whose model it was forced to, [N]; all
    have that of the start model at first."""
    lag: int
    """Rounds behind that are tolerated."""

    def behind(self, round: int) -> Integers:
        """Rounds that each device lags behind when a round starts, [N]."""
        return round - 1 - self.last

    def deprecated(self, round: int) -> Booleans:
        """Devices that lag by more than is tolerated: forced to the global model, their own work is lost, [N]."""
        return np.asarray(self.behind(round) > self.lag)

    def tolerable(self, round: int) -> Booleans:
        """Devices that continue with their own model: the one they fetched or trained last, or the start model, [N]."""
        behind = self.behind(round)
        return np.asarray((behind != 0) & (behind <= self.lag))


@dataclass
class Cache(State):
    """Two models for each device: its entry in the mean, and its local one. Equal global models share a tensor."""

    first: Tensor | None = None
    """Start model, [P]: the entry of devices that have none."""
    entries: dict[int, Tensor] = field(default_factory=dict)
    """Entry of each device in the mean, [P]: its last upload, or the global model of its last forced sync."""
    local: dict[int, Tensor] = field(default_factory=dict)
    """Model on each device, [P]: the one that it uploaded, fetched or was forced to last. Where updates change on
    their way, what the server received counts, which the device knows: else neither could tell a start from it."""


class SafaServer(ServerHalf):
    """The mean of a cache of one model per device: lag-tolerant distribution and three-step aggregation.

    Cache and versions start anew in each frame.
    """

    merges = "all arrivals"

    stored = ("model",)

    @override
    def ledger(self, round: int, last: Versions | None) -> Versions:
        """Versions of the start model, with which all devices are up to date."""
        return Versions(np.full(self.sizes.devices, round - 1, dtype=np.int64), self.options.lag_tolerance)

    @override
    def download_bits(self, devices: Devices, round: int, ledger: Versions) -> Floats:
        """Bits of the model, or 0 for devices that continue with their own model, [n]."""
        return np.where(ledger.tolerable(round)[devices.ids], 0.0, super().download_bits(devices, round, ledger))

    @override
    def weigh(self, arrived: Arrivals) -> Floats:
        """Each device's share of the whole cache, [S]."""
        return self._shares(arrived)[arrived.ids]

    def _shares(self, arrived: Arrivals) -> Floats:
        """Share of each entry of the cache, [N]."""
        return normalised(counts(self, arrived.all_samples))

    @override
    def report(self, ledger: Versions, arrived: Arrivals) -> dict[tuple[str, str], float]:
        """Numbers of devices by the model that they began from, and of arrivals that were picked and not."""
        behind = ledger.behind(arrived.round)[arrived.began]
        tolerable = ledger.tolerable(arrived.round)[arrived.began]
        picked = np.count_nonzero(arrived.picked)
        numbers = {
            "up_to_date": np.count_nonzero(behind == 0),
            "deprecated": np.count_nonzero(behind > ledger.lag),
            "tolerable": np.count_nonzero(tolerable),
            "picked": picked,
            "undrafted": len(arrived.ids) - picked,
        }
        return {("safa", name): float(count) for name, count in numbers.items()}

    @override
    def note(self, ledger: Versions, arrived: Arrivals) -> Floats:
        """Devices that finished, picked or not, have the round's version; other deprecated ones that of its start."""
        ledger.last[ledger.deprecated(arrived.round)] = arrived.round - 1
        ledger.last[arrived.ids] = arrived.round
        return super().note(ledger, arrived)

    @override
    def start(self, weights: Tensor, bench: Workbench) -> Cache:
        """An empty cache."""
        return Cache(weights, first=weights)

    @override
    def prepare(self, state: Cache, bench: Workbench) -> Cache:
        """An empty cache again where a frame begins."""
        return self.start(state.weights, bench) if bench.opens_frame else state

    @override
    def given(self, state: Cache, device: Device, ledger: Versions) -> dict[str, Tensor]:
        """The global model, or the device's own if that is tolerated, as the start."""
        assert state.first is not None
        given = super().given(state, device, ledger)
        behind = device.round - 1 - int(ledger.last[device.id])
        if 0 < behind <= ledger.lag:
            given["start"] = state.local.get(device.id, state.first)
        return given

    @override
    def merge(self, state: Cache, arrived: Arrivals, alpha: Floats, ledger: Versions) -> Cache:
        """The mean of all devices' entries: SAFA, three-step aggregation.

        Before it, entries of deprecated devices become the global model, and those of picked devices what they
        uploaded. After it, uploads that were not picked enter the cache and count from the next round on. Devices that
        fetched the global model have it from now on, unless they finished.
        """
        assert state.first is not None
        model = state.weights
        uploads = {
            device: whole(update).add_(start)
            for device, start, update in zip(arrived.ids.tolist(), arrived.starts, arrived.separate, strict=True)
        }
        picked = set(arrived.ids[arrived.picked].tolist())
        forced = dict.fromkeys(np.flatnonzero(ledger.deprecated(arrived.round)).tolist(), model)
        fetched = arrived.began[~ledger.tolerable(arrived.round)[arrived.began]].tolist()
        entries = state.entries | forced | {device: own for device, own in uploads.items() if device in picked}
        counted: dict[int, float] = {}
        counting: dict[int, Tensor] = {}
        # Ascending ids: the floating-point sum must not depend on the order of arrival.
        for device, share in enumerate(self._shares(arrived).tolist()):
            entry = entries.get(device, state.first)
            counting[id(entry)] = entry
            counted[id(entry)] = counted.get(id(entry), 0.0) + share
        merged = model.clone()
        for part in stretches(merged):
            summed, base = merged[part], model[part]
            moved = torch.empty_like(base)
            for key, entry in counting.items():
                summed += torch.sub(entry[part], base, out=moved).mul_(counted[key])
        local = state.local | forced | dict.fromkeys(fetched, model) | uploads
        return Cache(merged, first=state.first, entries=entries | uploads, local=local)


class Safa(Algorithm):
    """FedAvg with SAFA's server."""

    Options = SafaOptions
    Server = SafaServer
    halves = frozenset({"server"})
    needs = frozenset({"rounds", "punctual updates", "merges in all rounds", "updates without residuals"})
    rules = (Rule({}, {"download": None}, "it counts on the model that devices have fetched"),)
