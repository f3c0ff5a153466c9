"""Objectives of a tuning: measures of the study's summary, and their values in the runs of a trial."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from edgesim.analysis.measures import TO_STAY, TO_TARGET
from edgesim.analysis.outcomes import outcome
from edgesim.analysis.runs import RunFolder
from edgesim.base.errors import EdgesimError
from edgesim.base.registry import look_up


@dataclass(frozen=True)
class TuningObjective:
    """A measure of a run, whose mean over seeds is minimised or maximised."""

    measure: str
    """Name in ``summary.csv``."""
    is_maximised: bool = False
    only_grows: bool = False
    """Whether the measure never falls in the course of a run, so that a run's value so far is a lower bound."""

    @property
    def name(self) -> str:
        """Name on the command line, such as ``seconds-to-target``."""
        return self.measure.replace("_", "-")

    @property
    def words(self) -> str:
        """Name in sentences, without its unit."""
        return self.measure.removesuffix("_j").removesuffix("_bps_per_hz").replace("_", " ")

    @property
    def needs_target(self) -> bool:
        """Whether the objective is measured up to a target accuracy."""
        return self.measure in TO_TARGET + TO_STAY


_ALL = (
    *(TuningObjective(name, only_grows=True) for name in (*TO_TARGET, *TO_STAY)),
    TuningObjective("final_accuracy", is_maximised=True),
    TuningObjective("best_accuracy", is_maximised=True),
    TuningObjective("simulated_s", only_grows=True),
    TuningObjective("energy_j", only_grows=True),
    TuningObjective("bits_up", only_grows=True),
    TuningObjective("wasted_share_j"),
    TuningObjective("miss_rate"),
    TuningObjective("infeasible_share"),
    TuningObjective("arrived", is_maximised=True),
    TuningObjective("spectral_efficiency_bps_per_hz", is_maximised=True),
)
OBJECTIVES = {objective.name: objective for objective in _ALL}
"""All objectives by name."""


@dataclass(frozen=True)
class Seen:
    """Values of the objectives in the runs of a trial."""

    values: tuple[float, ...]
    """Means over seeds, in which a run that has not reached the target counts with what it had taken by its last
    test."""
    short: float
    """Distance of the worst seed's best accuracy below the target; 0 or negative where all seeds reached it."""


def find_objectives(names: Sequence[str], target: float | None) -> list[TuningObjective]:
    """Objectives by name; raises `EdgesimError` for an unknown one, one given twice and one that lacks a target."""
    if not names:
        raise EdgesimError(f"no objective to tune for; known: {', '.join(OBJECTIVES)}")
    for name in names:
        objective = look_up(OBJECTIVES, name, "objective")
        if names.count(name) > 1:
            raise EdgesimError(f"objective {name}: is given twice")
        if objective.needs_target and target is None:
            raise EdgesimError(f"objective {name}: needs a target accuracy; give a target, such as 0.75")
    return [OBJECTIVES[name] for name in names]


def seen(runs: Sequence[RunFolder], objectives: Sequence[TuningObjective], target: float | None) -> Seen:
    """Measure the objectives in runs, finished or not; raises `EdgesimError` if a run has no value of one."""
    outcomes = [outcome(run, [objective.measure for objective in objectives], target) for run in runs]
    values = []
    for objective in objectives:
        names = (objective.measure, f"{objective.measure}_bound")
        by_run = [next((measured[name] for name in names if name in measured), np.nan) for measured in outcomes]
        if lacking := [run for run, value in zip(runs, by_run, strict=True) if np.isnan(value)]:
            raise EdgesimError(f"{lacking[0].folder}: has no {objective.measure}")
        values.append(float(np.mean(by_run)))
    short = -np.inf
    stays = any(objective.measure in TO_STAY for objective in objectives)
    if target is not None and (stays or any(objective.needs_target for objective in objectives)):
        tested = [run.tests["accuracy"] for run in runs]
        short = target - min(float(accuracy.iloc[-1] if stays else accuracy.max()) for accuracy in tested)
    return Seen(tuple(values), short)


def dominates(values: Sequence[float], others: Sequence[float], objectives: Sequence[TuningObjective]) -> bool:
    """Whether values are worse than ``others`` in no objective, and better in at least one."""
    signs = np.array([-1.0 if objective.is_maximised else 1.0 for objective in objectives])
    difference = signs * (np.asarray(values) - np.asarray(others))
    return bool((difference <= 0).all() and (difference < 0).any())
