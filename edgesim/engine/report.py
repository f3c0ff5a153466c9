"""Rows of a run folder: rounds, work of devices, updates and tests."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from edgesim.activities import ACTIVITIES, ON_AIR
from edgesim.base.arrays import Floats
from edgesim.devices.battery import Batteries
from edgesim.devices.population import Population
from edgesim.devices.topology import Backhaul
from edgesim.engine.ended_work import NUMBER_OF, Brought, EndedWork, ended_work
from edgesim.engine.interruptions import Interruptions
from edgesim.engine.work import Task
from edgesim.engine.world import World
from edgesim.folder import work_kinds
from edgesim.folder.records import TableWriter
from edgesim.learning.federation import Federation
from edgesim.learning.interface import Evaluation, Merged
from edgesim.selection.view import Spending

_NAMES = list(ACTIVITIES)
_ON_AIR = np.array([name in ON_AIR for name in ACTIVITIES])


@dataclass(frozen=True)
class RoundRow:
    """Columns of ``rounds`` that the protocol fills in."""

    round: int
    frame: int
    t_start_s: float
    t_end_s: float
    candidates: int
    selected: int
    arrived: int
    late: int
    dropped: int
    jobs_trained: int
    bandwidth_hz: float
    model_held: bool = True
    """Whether the model that is tested is one that a server has; if not, it is the mean of the edge servers' models."""


@dataclass(frozen=True)
class Origin:
    """Task and staleness of each merged update."""

    tasks: list[Brought]
    staleness: list[int]


@dataclass
class Totals:
    """Sums over a run, for the notes at its end."""

    rounds: int = 0
    candidates: int = 0
    selected: int = 0
    arrived: int = 0
    overfull: int = 0
    """Rounds in which the devices taken needed more than a band."""
    empty_slots: int | None = 0
    """Slots of availability in which nobody was there, while the server waited for the next round; None if these were
    more than can be looked at."""
    joules: dict[str, float] = field(default_factory=dict)
    """Energy by activity, including work that the run's end cut off."""
    uploads: dict[int, int] | None = None
    """Uploads that left each device, whatever became of them; None where they are not counted."""

    def add_round(self, row: RoundRow) -> None:
        """Add a round."""
        self.rounds += 1
        self.candidates += row.candidates
        self.selected += row.selected
        self.arrived += row.arrived

    def add_empty_slots(self, count: int | None) -> None:
        """Add empty slots; None if they cannot be counted."""
        self.empty_slots = None if count is None or self.empty_slots is None else self.empty_slots + count

    def add_work(self, work: EndedWork, energy_j: Sequence[float]) -> None:
        """Add the energy and the uploads of written rows; ``energy_j`` is [R]."""
        sums = self.joules
        for number, joules in zip(work.activity.tolist(), energy_j, strict=True):
            sums[_NAMES[number]] = sums.get(_NAMES[number], 0.0) + joules
        if self.uploads is not None:
            on_air = np.repeat(work.device, work.rows)[_ON_AIR[work.activity]]
            # A task may have sent in parts.
            of_task = np.repeat(work.number, work.rows)[_ON_AIR[work.activity]]
            for device, _ in dict.fromkeys(zip(on_air.tolist(), of_task.tolist(), strict=True)):
                self.uploads[device] = self.uploads.get(device, 0) + 1


@dataclass
class Report:
    """Writes the rows of rounds, tasks and tests into the run folder."""

    SAVED: ClassVar = (
        "totals",
        "spent",
        "_kept",
        "_waiting",
        "_told",
        "_told_until_s",
        "_idle_told_j",
        "_idle_of_devices_j",
    )

    writer: TableWriter
    population: Population
    batteries: Batteries | None
    """None for devices on mains."""
    interruptions: Interruptions
    """Presence of the devices during their work."""
    holds_rows: bool
    """Whether the row of a model that is not tested yet waits until the model is replaced: it may be tested by then."""
    writes_stations: bool = False
    """Whether `metrics` have the station of each task: where devices move among several."""
    totals: Totals = field(default_factory=Totals)
    _kept: list[Task] = field(default_factory=list)
    """Tasks since the last merge whose devices kept their weights; the next merge decides whether in vain."""
    _waiting: dict[str, list[Any]] = field(default_factory=dict)
    """The row of ``rounds`` that waits, if there is one."""
    spent: Spending = field(default_factory=lambda: Spending(0.0, 0.0, 0.0))
    """Bits and joules of the last round that has rows, as its row of ``rounds`` has them: with those of idling."""
    _told: int = 0
    """Number of the last round whose rows are written."""
    _told_until_s: float = 0.0
    """Instant at which that round ended."""
    _idle_told_j: float = 0.0
    """Idle energy of all devices up to its end, in J."""
    _idle_of_devices_j: Floats | None = None
    """Idle energy of each device, in J, [N]; None for devices on mains."""

    @cached_property
    def drawn(self) -> dict[str, tuple[Floats, Floats]]:
        """`Activity.drawn` of each activity."""
        return {name: activity.drawn(self.population) for name, activity in ACTIVITIES.items()}

    @cached_property
    def _idle_w(self) -> float:
        """Idle power of all devices together, in W."""
        return float(self.population.idle_power_w.sum())

    def round(
        self,
        row: RoundRow,
        ended: EndedWork,
        merged: Merged,
        origin: Origin,
        evaluation: Evaluation | None,
        values: Mapping[tuple[str, str], float],
    ) -> None:
        """Write a round's rows of ``activities``, ``updates``, ``metrics`` and ``rounds``.

        A task has its rows in the round in which it ends; ``ended`` is the work of this one. ``values`` are more rows
        of ``metrics`` by (name, key). With ``holds_rows`` the row of ``rounds`` of a model that is not tested yet waits
        for `write_row`.
        """
        energy_j = self._activities(row.round, ended)
        updates = {
            "round": [row.round] * len(merged.ids),
            "device": merged.ids,
            "weight": merged.weight,
            "task": [task.key[1] for task in origin.tasks],
            "staleness": origin.staleness,
        }
        if merged.loss is not None:
            updates |= {"loss": merged.loss, "accuracy": merged.accuracy, "update_norm": merged.update_norm}
        self.writer.write("updates", updates)
        self.totals.add_round(row)
        self._told, self._told_until_s = row.round, row.t_end_s
        idle_j = self._idle_j(row.t_end_s)
        used = {task.key for task in origin.tasks}
        metrics = {**values, **self._wasted(ended, energy_j, used), **self._supply(row.t_end_s, idle_j)}
        self.write_metrics(row.round, metrics.items())
        self.spent = Spending(_bits_up(ended), ended.down_bits, sum(energy_j) + idle_j)
        columns = vars(row) | vars(self.spent) | {"train_loss": _train_loss(merged)}
        self._waiting = {name: [value] for name, value in columns.items()}
        if not self.holds_rows:
            self.write_row(evaluation)
        elif evaluation is not None:
            self.write_row(evaluation, [row.t_end_s])

    def spending(self, ended: EndedWork) -> Spending:
        """Bits and joules of the work of ended tasks, which may have no rows yet."""
        return Spending(_bits_up(ended), ended.down_bits, sum(self._energy_j(ended)))

    def write_row(self, evaluation: Evaluation | None = None, instants_s: Sequence[float] = ()) -> None:
        """Write the row of ``rounds`` that waits, if one does, with the test of its model.

        ``instants_s`` become rows ``tested_at_s`` of ``metrics``: the instants of evaluation at which the model of the
        last test was the newest one. Only reports that hold rows back have any; else a test belongs to the end of
        its row.
        """
        self.write_test(self._told, evaluation)
        self.write_metrics(self._told, [(("tested_at_s", ""), instant_s) for instant_s in instants_s])
        # Cleared before it is written: a run interrupted in between then lacks the row instead of having it twice.
        row, self._waiting = self._waiting, {}
        if row:
            if evaluation is None:
                row["model_held"] = [None]
            else:
                row |= {"test_loss": [evaluation.loss], "test_accuracy": [evaluation.accuracy]}
                row["macro_f1"] = [evaluation.macro_f1]
            self.writer.write("rounds", row)

    def _wasted(
        self, work: EndedWork, energy_j: Sequence[float], used: set[tuple[int, int]]
    ) -> dict[tuple[str, str], float]:
        """Wasted work as from `_wasted_by_kind`; kept weights count in the round whose model is made without them."""
        if "kept" not in work.outcome and not self._kept:
            return _wasted_by_kind(work, energy_j, used)
        kept = [task for task in work.tasks if any(span.outcome == "kept" for span in task.spans)]
        decided = [task for task in work.tasks if task not in kept]
        self._kept += kept
        if used:
            devices = {device for device, _ in used}
            decided += [task for task in self._kept if task.device not in devices]
            self._kept = []
        work = ended_work(decided)
        return _wasted_by_kind(work, self._energy_j(work), used)

    def _energy_j(self, work: EndedWork) -> list[float]:
        """Energy of each row, in J, [R]."""
        device, lasted_s = np.repeat(work.device, work.rows), work.t_end_s - work.t_start_s
        energy_j = np.empty(len(device))
        for name, number in NUMBER_OF.items():
            rows = (work.activity == number).nonzero()[0]
            if len(rows):
                power_w, efficiency = self.drawn[name]
                there = device[rows]
                energy_j[rows] = power_w[there] * lasted_s[rows] / efficiency[there]
        return energy_j.tolist()

    def _activities(self, number: int, work: EndedWork) -> list[float]:
        """Write the rows of ``activities`` of ended tasks; returns the energy of each, in J."""
        if self.writes_stations:
            of_task = zip(*(column.tolist() for column in (work.device, work.number, work.station)), strict=True)
            stations = [(("task_station", f"{device}/{task}"), float(station)) for device, task, station in of_task]
            self.write_metrics(number, stations)
        energy_j, device = self._energy_j(work), np.repeat(work.device, work.rows)
        self.totals.add_work(work, energy_j)
        self.writer.write(
            "activities",
            {
                "round": np.full(len(device), number),
                "device": device,
                "task": np.repeat(work.number, work.rows),
                "activity": [_NAMES[kind] for kind in work.activity.tolist()],
                "t_start_s": work.t_start_s,
                "t_end_s": work.t_end_s,
                "outcome": work.outcome,
                "bits": work.bits,
                "bandwidth_hz": work.bandwidth_hz,
                "energy_j": np.array(energy_j),
                "away_s": self.interruptions.away_s(device, work.t_start_s, work.t_end_s),
            },
        )
        return energy_j

    def end(self, t_s: float, ended: EndedWork) -> None:
        """Write the work since the last round, at the end of the run, as rows of the round that was open.

        ``ended`` is the work that has no rows yet. That round gets no rows in ``rounds`` and ``updates``, so that
        what they were sent is a row ``bits_down`` of ``metrics``. Where an empty battery may have ended idling, what
        idling took of each device is written too.
        """
        number, idle_j = self._told + 1, self._idle_j(t_s)
        energy_j = self._activities(number, ended)
        if (sent_bits := ended.down_bits) > 0:
            self.write_metrics(number, [(("bits_down", ""), sent_bits)])
        if t_s > self._told_until_s or len(ended.rows) or self._kept:
            if self._kept:
                ended = ended_work([*ended.tasks, *self._kept])
                energy_j = self._energy_j(ended)
            wasted = _wasted_by_kind(ended, energy_j, set())
            self.write_metrics(number, (wasted | self._supply(t_s, idle_j)).items())
        if self._idle_of_devices_j is not None:
            by_device = enumerate(self._idle_of_devices_j.tolist())
            self.write_metrics(self._told, [(("idle_j", str(device)), joules) for device, joules in by_device])

    def _supply(self, t_s: float, idle_j: float) -> dict[tuple[str, str], float]:
        """Idle energy and charge of the batteries at an instant, in J, as rows of ``metrics`` by (name, key)."""
        values = {("idle_j", ""): idle_j} if idle_j else {}
        if self.batteries is None:
            return values
        charge_j = self.batteries.charge_at(np.arange(len(self.population)), t_s)
        return values | {("battery_j", "least"): float(charge_j.min()), ("battery_j", "mean"): float(charge_j.mean())}

    def _idle_j(self, t_s: float) -> float:
        """Idle energy since the rows of the last round, in J."""
        if self._idle_w == 0:
            return 0.0
        whole_j = self._idle_w * t_s
        if self.batteries is not None:
            self._idle_of_devices_j = self.batteries.idle_j(np.arange(len(self.population)), t_s)
            whole_j = float(self._idle_of_devices_j.sum())
        since_j, self._idle_told_j = whole_j - self._idle_told_j, whole_j
        return since_j

    def timing(self, number: int, wall_s: Mapping[str, float]) -> None:
        """Write the wall seconds of the parts of a round."""
        self.writer.write(
            "timing", {"round": [number] * len(wall_s), "part": list(wall_s), "wall_s": list(wall_s.values())}
        )

    def write_test(self, number: int, evaluation: Evaluation | None) -> None:
        """Write rows of ``metrics`` for the test of a round's model, if it was tested; the start model's is round 0."""
        if evaluation is None:
            return
        names = {("test_accuracy", ""): evaluation.accuracy} if number == 0 else {}
        names |= {("class_accuracy", str(label)): value for label, value in evaluation.class_accuracy.items()}
        names |= {("class_f1", str(label)): value for label, value in evaluation.class_f1.items()}
        names |= {("accuracy", name): value for name, value in evaluation.further.items()}
        names |= {} if evaluation.roc_auc is None else {("roc_auc", ""): evaluation.roc_auc}
        names |= {("domain_accuracy", name): value for name, value in evaluation.domain_accuracy.items()}
        names |= {("metric", name): value for name, value in evaluation.metrics.items()}
        names |= {} if evaluation.models is None else {("models_tested", ""): evaluation.models}
        self.write_metrics(number, names.items())

    def write_metrics(self, number: int, values: Collection[tuple[tuple[str, str], float]]) -> None:
        """Write rows of ``metrics`` of a round, each given as ((name, key), value)."""
        if not values:
            return
        self.writer.write(
            "metrics",
            {
                "round": [number] * len(values),
                "name": [name for (name, _), _ in values],
                "key": [key for (_, key), _ in values],
                "value": [value for _, value in values],
            },
        )


def _train_loss(merged: Merged) -> float | None:
    if merged.loss is None or not len(merged.ids):
        return None
    return float(np.average(merged.loss, weights=merged.weight))


def bits_on_wires(
    backhaul: Backhaul, tasks: Iterable[Brought], model_bits: float = 0.0
) -> dict[tuple[str, str], float]:
    """Bits that crossed each link on their way up, as rows of ``metrics``.

    Updates of merged ``tasks``, and the edge servers' own models of ``model_bits`` each where they went to the cloud.
    """
    bits: dict[tuple[str, str], float] = {}
    if not backhaul.has_wires:
        return bits
    crossed = [(backhaul.paths[task.server][task.station], task.bits) for task in tasks]
    if model_bits:
        crossed += [(links, model_bits) for links in backhaul.server_links]
    for links, size in crossed:
        for link in links:
            bits["backhaul_bits", link.key] = bits.get(("backhaul_bits", link.key), 0.0) + size
    return bits


def _bits_up(work: EndedWork) -> float:
    """Bits that devices sent."""
    return float(sum(work.bits[_ON_AIR[work.activity]].tolist()))


def _wasted_by_kind(
    work: EndedWork, energy_j: Sequence[float], used: set[tuple[int, int]]
) -> dict[tuple[str, str], float]:
    """Seconds, bits and joules that led nowhere, by (name, kind); kinds that did not occur are left out.

    ``used`` are the tasks, as (device, number), whose updates were merged.
    """
    merged = [key in used for key in zip(work.device.tolist(), work.number.tolist(), strict=True)]
    if all(merged) and work_kinds.USABLE.issuperset(work.outcome):
        # Nearly always so without rounds: no work was wasted, so none has to be sorted into kinds.
        return {}
    kinds = work_kinds.kinds(
        np.repeat(np.arange(len(merged)), work.rows),
        _ON_AIR[work.activity],
        np.array([work_kinds.NUMBER[outcome] for outcome in work.outcome]),
        np.array(merged, dtype=bool),
    )
    amounts: dict[tuple[str, str], float] = {}
    lasted_s = (work.t_end_s - work.t_start_s).tolist()
    for number, seconds, bits, joules in zip(kinds.tolist(), lasted_s, work.bits.tolist(), energy_j, strict=True):
        kind = work_kinds.KINDS[number]
        if kind != work_kinds.USEFUL:
            for name, value in {"wasted_s": seconds, "wasted_bits": bits, "wasted_j": joules}.items():
                amounts[name, kind] = amounts.get((name, kind), 0.0) + value
    return {place: amount for place, amount in sorted(amounts.items()) if amount > 0}


def write_stations(writer: TableWriter, world: World, backhaul: Backhaul) -> None:
    """Write the ``stations`` table: one row per station, with the server that merges its updates."""
    stations = world.topology.stations
    writer.write(
        "stations",
        {
            "station": list(range(len(stations))),
            "name": [station.name for station in stations],
            "x_m": [station.x_m for station in stations],
            "y_m": [station.y_m for station in stations],
            "bandwidth_hz": world.bands_hz,
            "server": [backhaul.servers[server] for server in backhaul.edge.tolist()],
        },
    )


def write_devices(writer: TableWriter, world: World, federation: Federation) -> None:
    """Write the ``devices`` table: one row per device and frame."""
    count, population = world.config.devices.count, world.population
    everyone = np.arange(count)
    x_m, y_m = world.places.positions_m(everyone, 0.0)
    for number, frame in enumerate(federation.frames):
        columns = {
            "device": everyone.astype(np.int32),
            "frame": np.full(count, number, dtype=np.int32),
            "x_m": x_m,
            "y_m": y_m,
            "station": world.places.stations(everyone, 0.0),
            "a_s": population.a_s,
            # Recorded speeds have no random part.
            "mu_per_s": [float(rate) if np.isfinite(rate) else None for rate in population.mu_per_s],
            "samples": frame.sizes.astype(np.int32),
        }
        if federation.class_count > 0:
            columns["class_counts"] = list(frame.class_counts.astype(np.int32))
        writer.write("devices", columns)
