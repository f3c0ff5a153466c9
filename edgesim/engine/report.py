"""The rows that a round leaves in the run folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from edgesim.config import RunConfig
from edgesim.devices.energy import compute_energy_j, download_energy_j, upload_energy_j
from edgesim.devices.population import Population
from edgesim.engine.work import Span, Task
from edgesim.learning.interface import Evaluation, Merged
from edgesim.records import RunWriter

if TYPE_CHECKING:
    from edgesim.engine.synchronous import OpenRound


@dataclass(frozen=True)
class Report:
    """Turns what happened into rows."""

    writer: RunWriter
    population: Population

    def start(self, evaluation: Evaluation | None) -> None:
        """The start model, as round 0 of ``metrics``."""
        self._metrics(0, evaluation)

    def round(
        self,
        this: OpenRound,
        over: list[Task],
        merged: Merged,
        staleness: list[int],
        evaluation: Evaluation | None,
        t_end_s: float,
    ) -> None:
        """Rows of ``activities``, ``updates``, ``metrics`` and ``rounds``.

        A task has its rows in the round in which it ends: ``over`` are those of earlier rounds that ended in this one.
        """
        number = this.number.round
        tasks = [this.tasks[device] for device in sorted(this.tasks)]
        ended = sorted(over + [task for task in tasks if not task.carried], key=lambda task: task.device)
        rows = [(task, span) for task in ended for span in task.spans]
        energy_j = [self._energy_j(task.device, span) for task, span in rows]
        self.writer.write(
            "activities",
            {
                "round": [number] * len(rows),
                "device": [task.device for task, _ in rows],
                "activity": [span.activity for _, span in rows],
                "t_start_s": [span.t_start_s for _, span in rows],
                "t_end_s": [span.t_end_s for _, span in rows],
                "outcome": [_outcome(task, span) for task, span in rows],
                "bits": [span.bits for _, span in rows],
                "bandwidth_hz": [span.bandwidth_hz for _, span in rows],
                "energy_j": energy_j,
            },
        )
        updates = {
            "round": [number] * len(merged.ids),
            "device": merged.ids,
            "weight": merged.weight,
            "staleness": staleness,
        }
        if merged.loss is not None:
            updates |= {"loss": merged.loss, "accuracy": merged.accuracy, "update_norm": merged.update_norm}
        self.writer.write("updates", updates)
        self._metrics(number, evaluation)
        infeasible = {} if this.infeasible_share is None else {("infeasible_share", ""): this.infeasible_share}
        values = infeasible | _wasted(rows, energy_j, set(merged.ids.tolist()))
        self._write_metrics(number, values)
        fates = [task.fate for task in tasks if task.taken]
        self.writer.write(
            "rounds",
            {
                "round": [number],
                "frame": [this.number.frame],
                "t_start_s": [this.t_start_s],
                "t_end_s": [t_end_s],
                "candidates": [len(this.candidates)],
                "selected": [len(fates)],
                "arrived": [fates.count("done")],
                "late": [fates.count("late")],
                "dropped": [fates.count("dropped")],
                "jobs_trained": [this.training.jobs_trained],
                "bits_up": [sum(span.bits for _, span in rows if span.activity == "upload")],
                "bits_down": [self._bits_down(tasks)],
                "bandwidth_hz": [sum(task.bandwidth_hz for task in tasks)],
                "energy_j": [sum(energy_j)],
                "train_loss": [None if merged.loss is None or not len(merged.ids) else merged.weight @ merged.loss],
                "test_loss": [evaluation.loss if evaluation else None],
                "test_accuracy": [evaluation.accuracy if evaluation else None],
                "macro_f1": [evaluation.macro_f1 if evaluation else None],
            },
        )

    def _bits_down(self, tasks: list[Task]) -> float:
        """The model goes to everyone who computes; without a download time it arrives at once and whole."""
        return sum(next((span.bits for span in task.spans if span.activity == "download"), task.bits) for task in tasks)

    def timing(self, number: int, wall_s: Mapping[str, float]) -> None:
        """Wall seconds of the parts of a round."""
        self.writer.write(
            "timing", {"round": [number] * len(wall_s), "part": list(wall_s), "wall_s": list(wall_s.values())}
        )

    def _metrics(self, number: int, evaluation: Evaluation | None) -> None:
        if evaluation is None:
            return
        names = {("test_accuracy", ""): evaluation.accuracy} if number == 0 else {}
        names |= {("class_accuracy", str(label)): value for label, value in evaluation.class_accuracy.items()}
        self._write_metrics(number, names)

    def _write_metrics(self, number: int, values: Mapping[tuple[str, str], float]) -> None:
        """Rows of ``metrics`` from values by (name, key)."""
        self.writer.write(
            "metrics",
            {
                "round": [number] * len(values),
                "name": [name for name, _ in values],
                "key": [key for _, key in values],
                "value": list(values.values()),
            },
        )

    def _energy_j(self, device: int, span: Span) -> float:
        length_s = span.t_end_s - span.t_start_s
        rows = self.population
        if span.activity == "upload":
            return float(upload_energy_j(rows.tx_power_w[device], rows.pa_efficiency[device], length_s))
        if span.activity == "compute":
            return float(compute_energy_j(rows.compute_power_w[device], length_s))
        return float(download_energy_j(rows.download_power_w[device], length_s))


def _outcome(task: Task, span: Span) -> str:
    """Computing of a device that does not upload has led nowhere, whether or not it was finished."""
    return "unscheduled" if span.activity == "compute" and span.outcome == "done" and not task.taken else span.outcome


def _wasted(rows: list[tuple[Task, Span]], energy_j: list[float], merged: set[int]) -> dict[tuple[str, str], float]:
    """Seconds, bits and joules that led nowhere, by (name, kind); kinds that did not occur have none.

    The kinds are those that `edgesim.analysis.waste` reads off the tables.
    """
    amounts: dict[tuple[str, str], float] = {}
    for (task, span), joules in zip(rows, energy_j, strict=True):
        if task.device not in merged:
            kind = _why_wasted(task)
            values = {"wasted_s": span.t_end_s - span.t_start_s, "wasted_bits": span.bits, "wasted_j": joules}
            for name, value in values.items():
                amounts[name, kind] = amounts.get((name, kind), 0.0) + value
    return {place: amount for place, amount in sorted(amounts.items()) if amount > 0}


def _why_wasted(task: Task) -> str:
    if task.taken:
        return "unused" if task.fate == "done" else str(task.fate)
    return "dropped" if any(span.outcome == "dropped" for span in task.spans) else "unscheduled"


def write_devices(
    writer: RunWriter,
    config: RunConfig,
    population: Population,
    sizes: list[NDArray[np.int64]],
    class_counts: list[NDArray[np.int64]] | None,
) -> None:
    """The ``devices`` table: one row per device and frame."""
    count = config.devices.count
    for frame, samples in enumerate(sizes):
        columns = {
            "device": np.arange(count, dtype=np.int32),
            "frame": np.full(count, frame, dtype=np.int32),
            "x_m": population.x_m,
            "y_m": population.y_m,
            "station": population.station,
            "a_s": population.a_s,
            "mu_per_s": population.mu_per_s,
            "samples": samples.astype(np.int32),
        }
        if class_counts is not None:
            columns["class_counts"] = list(class_counts[frame].astype(np.int32))
        writer.write("devices", columns)
