"""The measures of a run by name: the one list behind summaries, closing tables and comparisons."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from edgesim.analysis import convergence, metrics
from edgesim.analysis.energy_use import energy_j
from edgesim.analysis.participation import course_measures, why_undefined
from edgesim.analysis.runs import RunFolder
from edgesim.analysis.waste import wasted_share_j
from edgesim.base.errors import EdgesimError

Measures = dict[str, float]

TO_TARGET = ("rounds_to_target", "seconds_to_target", "joules_to_target")
TO_STAY = ("rounds_to_stay", "seconds_to_stay")
_OF_ROUNDS = ("final_accuracy", "scheduled", "arrived", "miss_rate")
_OF_ACTIVITIES = ("spectral_efficiency_bps_per_hz", "simulated_s", "bits_up", "energy_j", "wasted_share_j")
_OF_COURSE = ("best_accuracy", "we_percent", "we_variance", "idp_points", "id_points", "forgetting_points")


def to_target(run: RunFolder, target: float | None) -> Measures:
    """`TO_TARGET` and `TO_STAY`; none without a target or tests.

    ``reached`` (the target accuracy) and ``stayed`` (there until the end) are 1 or 0. Where one is 0, the rounds,
    seconds and joules to it are absent, and ``<measure>_bound`` is what the run had taken by its last test. Raises
    `EdgesimError` for a target that is not above the run's start accuracy.
    """
    if target is None or metrics.evaluations(run.rounds).empty:
        return {}
    start = metrics.start_accuracy(run.metrics)
    if start is None:
        raise EdgesimError(f"{run.folder}: metrics has no test_accuracy of round 0, which a target needs; run it again")
    try:
        first, stays = (find(run.tests, target, start) for find in (metrics.to_target, metrics.to_stay))
    except EdgesimError as error:
        raise EdgesimError(f"{run.folder}: {error}") from None
    values = {"reached": float(first.reached), "stayed": float(stays.reached)}
    joules = metrics.joules_until(run.rounds, first.round)
    for test, names in (
        (first, dict(zip(TO_TARGET, (first.round, first.t_s, joules), strict=True))),
        (stays, dict(zip(TO_STAY, (stays.round, stays.t_s), strict=True))),
    ):
        values |= {name if test.reached else f"{name}_bound": value for name, value in names.items()}
    return values


def _of_rounds(run: RunFolder, target: float | None) -> Measures:
    rounds = run.rounds
    return {
        "final_accuracy": metrics.final_accuracy(rounds),
        "scheduled": metrics.mean_scheduled(rounds),
        "arrived": metrics.mean_arrived(rounds),
        "miss_rate": metrics.miss_rate(rounds),
    }


def _of_activities(run: RunFolder, target: float | None) -> Measures:
    rounds, activities = run.rounds, run.activities
    return {
        "spectral_efficiency_bps_per_hz": metrics.spectral_efficiency_bps_per_hz(rounds, activities, run.bandwidth_hz),
        "simulated_s": metrics.simulated_s(rounds),
        "bits_up": metrics.bits_up(activities),
        "energy_j": energy_j(activities, run.metrics),
        "wasted_share_j": wasted_share_j(activities, run.updates),
    }


SOURCES: Mapping[tuple[str, ...], Callable[[RunFolder, float | None], Measures]] = {
    TO_TARGET + TO_STAY: to_target,
    _OF_ROUNDS: _of_rounds,
    _OF_ACTIVITIES: _of_activities,
    ("infeasible_share",): lambda run, target: {"infeasible_share": metrics.infeasible_share(run.metrics)},
    ("epsilon",): lambda run, target: {"epsilon": run.epsilon},
    ("noise_to_update",): lambda run, target: {"noise_to_update": metrics.noise_to_update(run.metrics)},
    _OF_COURSE: lambda run, target: course_measures(run),
    convergence.MEASURES: lambda run, target: convergence.convergence_measures(run),
}
"""Functions that compute a group of measures from a run and a target accuracy; NaN is an undefined value.

`course_measures` has the forgetting of each class as well, and ``idp_points``, which takes two runs, comes from
`edgesim.analysis.static_pairs.pairs`.
"""
IN_ROUNDS = ("rounds_to_target", "rounds_to_stay", "rounds_to_own_peak", "best_round")
IN_SECONDS = ("seconds_to_target", "seconds_to_stay", "seconds_to_own_peak")
"""Measures that name a test, by its round or its instant."""
_OF_TESTS = {*TO_TARGET, *TO_STAY, *_OF_COURSE, "final_accuracy", "final_macro_f1", *convergence.OF_ONE_FRAME}
"""Measures that need tests of the model."""
NAMES = tuple(name for names in SOURCES for name in names)
"""Names of all measures, but for the forgetting of single classes, in the order of a summary's columns."""


def own_metrics(run: RunFolder) -> Measures:
    """Mean of the last five values of each metric that the run's config adds to its tests, by name."""
    is_own = (run.metrics["name"] == "metric").to_numpy()
    # Most runs have none, and no config has to be read to know it.
    if not is_own.any():
        return {}
    rows = run.metrics[is_own & (run.metrics["round"] > 0)].sort_values("round")
    means = {str(name): values.tail(metrics.FINAL_EVALUATIONS).mean() for name, values in rows.groupby("key")["value"]}
    return {name: float(means[name]) for name in run.own_metrics if name in means}


def step(name: str, runs: Sequence[RunFolder]) -> float:
    """Step in which a measure of one choice's runs is known; 0 for measures that take any value.

    A run reaches its target between two tests, and counts from the later one: the median interval between tests, in
    rounds or seconds. An accuracy is a share of the test images, and a final one the mean of five; where a run does not
    say how many there are, it is 0.
    """
    if name in IN_ROUNDS + IN_SECONDS:
        column = "round" if name in IN_ROUNDS else "t_s"
        between = [np.diff(np.unique(run.tests[column].to_numpy(dtype=np.float64)), prepend=0.0) for run in runs]
        return float(np.median(np.concatenate(between)))
    tests = {"final_accuracy": metrics.FINAL_EVALUATIONS, "best_accuracy": 1}.get(name)
    images = [run.test_images for run in runs] if tests else []
    return 1 / (max(images) * tests) if tests and all(images) else 0.0


def measure(run: RunFolder, target: float | None) -> Measures:
    """All defined measures of one run by name, from `SOURCES` and `own_metrics`.

    Raises as `to_target`.
    """
    values: Measures = {}
    for source in SOURCES.values():
        values |= source(run, target)
    return _defined(values | own_metrics(run))


def measure_rounds(run: RunFolder, target: float | None) -> Measures:
    """Measures of one run that need no large table, by name; raises as `to_target`."""
    return _defined(_of_rounds(run, target) | to_target(run, target))


def _defined(values: Measures) -> Measures:
    return {name: value for name, value in values.items() if not np.isnan(value)}


def why_without(run: RunFolder, name: str) -> str:
    """Reason why a run lacks the measure of a name; empty if it is not known."""
    if name in _OF_TESTS and run.tests.empty:
        return "no model was tested"
    if name in convergence.OF_ONE_FRAME:
        return convergence.why_without_peak(run)
    if name in _OF_COURSE and name != "best_accuracy":
        return why_undefined(run)
    return run.why_without_roc_auc if name == "final_roc_auc" else run.why_without_metric(name)
