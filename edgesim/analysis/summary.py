"""The summary of a study: one row per combination of knobs, compared with the reference policy."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from edgesim.analysis import metrics
from edgesim.analysis.energy import energy_j
from edgesim.analysis.runs import Knob, Run, Study, read_study
from edgesim.analysis.statistics import mean_interval, pair_by_seed, paired_t_p, wilcoxon_floor, wilcoxon_p
from edgesim.analysis.waste import wasted_share_j
from edgesim.errors import EdgesimError
from edgesim.records import read_run

LEARNING_MEASURES = ("rounds_to_target", "seconds_to_target", "joules_to_target", "final_accuracy")
TIMING_MEASURES = (
    "scheduled",
    "arrived",
    "miss_rate",
    "spectral_efficiency_bps_per_hz",
    "simulated_s",
    "bits_up",
    "energy_j",
    "wasted_share_j",
    "infeasible_share",
)

Measures = dict[str, float]
Key = tuple[Knob | None, ...]


def measure(run: Run, target: float | None) -> Measures:
    """All measures of one run by name; those that it does not have are absent.

    ``reached`` is 1 or 0. Raises `EdgesimError` for a target that is not above the run's start accuracy.
    """
    rounds, activities = run.rounds, run.activities
    values = measure_rounds(run, target) | {
        "spectral_efficiency_bps_per_hz": metrics.spectral_efficiency_bps_per_hz(rounds, activities, run.bandwidth_hz),
        "simulated_s": metrics.simulated_s(rounds),
        "bits_up": metrics.bits_up(activities),
        "energy_j": energy_j(activities, run.metrics),
        "wasted_share_j": wasted_share_j(run.work_by_kind),
        "infeasible_share": metrics.infeasible_share(run.metrics),
    }
    return {name: value for name, value in values.items() if not np.isnan(value)}


def measure_rounds(run: Run, target: float | None) -> Measures:
    """The measures that the small table ``rounds`` tells; NaN where there is nothing to tell. Raises as `measure`."""
    rounds = run.rounds
    values = {
        "scheduled": metrics.mean_scheduled(rounds),
        "arrived": metrics.mean_arrived(rounds),
        "miss_rate": metrics.miss_rate(rounds),
    }
    if not metrics.evaluations(rounds).empty:
        values["final_accuracy"] = metrics.final_accuracy(rounds)
        if target is not None:
            values |= _speed(run, target)
    return values


def _speed(run: Run, target: float) -> Measures:
    start = metrics.start_accuracy(run.metrics)
    if start is None:
        raise EdgesimError(f"{run.folder}: metrics has no test_accuracy of round 0, which a target needs; run it again")
    try:
        rounds, reached = metrics.rounds_to_target(run.rounds, target, start)
        seconds, _ = metrics.seconds_to_target(run.rounds, target, start)
        joules, _ = metrics.joules_to_target(run.rounds, target, start)
    except EdgesimError as error:
        raise EdgesimError(f"{run.folder}: {error}") from None
    return {
        "rounds_to_target": rounds,
        "seconds_to_target": seconds,
        "joules_to_target": joules,
        "reached": float(reached),
    }


def summarise(study_folder: Path) -> pd.DataFrame:
    """One row per combination of knobs, in the plan's order; raises `EdgesimError`.

    Columns: the knobs; ``seeds`` (finished runs) and ``left_out`` (failed or unfinished ones); every measure
    that some run has, as its mean over seeds with ``_low`` and ``_high`` (95 % t interval). With a target
    ``not_reached`` counts the runs that never got there, and against the reference policy at the same other
    knobs, over the seeds that both finished (``pairs``), stand ``saving`` (1 - ratio of the mean rounds) and
    ``rounds_p`` (Wilcoxon signed-rank). ``accuracy_p`` is the paired t test of the final accuracy. The
    reference's own rows have no comparison.
    """
    study = read_study(study_folder)
    names = study.knob_names
    groups: dict[Key, dict[int, Measures]] = {}
    left_out: dict[Key, int] = {}
    for entry in study.planned:
        key = tuple(entry.run.knobs.get(name) for name in names)
        group = groups.setdefault(key, {})
        if entry.status == "finished":
            group[entry.run.seed] = measure(entry.run, study.target)
        else:
            left_out[key] = left_out.get(key, 0) + 1
    present = {name for group in groups.values() for values in group.values() for name in values}
    rows = []
    for key, group in groups.items():
        row: dict[str, object] = dict(zip(names, key, strict=True))
        row |= {"seeds": len(group), "left_out": left_out.get(key, 0)}
        for name in LEARNING_MEASURES:
            if name in present:
                row |= _averages(group, name)
        if "reached" in present:
            row["not_reached"] = sum(values.get("reached") == 0.0 for values in group.values())
        if "final_accuracy" in present and "policy" in names:
            row |= _comparison(group, _reference_group(groups, names, key, study.reference), study.target)
        for name in TIMING_MEASURES:
            if name in present:
                row |= _averages(group, name)
        rows.append(row)
    return _whole_knobs(pd.DataFrame(rows), names)


def _whole_knobs(summary: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Knobs that are whole numbers stay so, also where some combination lacks them."""
    for name in names:
        known = summary[name].dropna()
        if pd.api.types.is_float_dtype(known) and len(known) < len(summary) and (known % 1 == 0).all():
            summary[name] = summary[name].astype("Int64")
    return summary


def write_summary(study_folder: Path) -> Path:
    """Write the summary as ``summary.csv`` into the study's folder and return its path."""
    path = study_folder / "summary.csv"
    summarise(study_folder).to_csv(path, index=False, lineterminator="\n")
    return path


def footnotes(summary: pd.DataFrame, study_folder: Path) -> list[str]:
    """What a reader of the summary table must know, one sentence or two per note."""
    study = read_study(study_folder)
    notes = ["Means over seeds, with 95 % t intervals."]
    if "not_reached" in summary:
        missed, total = int(summary["not_reached"].sum()), int(summary["seeds"].sum())
        counted = "they count as one round more than they had."
        notes.append(
            f"Target accuracy {study.target:.4g}: {missed} of {total} runs never reached it; {counted}"
            if missed
            else f"Target accuracy {study.target:.4g}: all {total} runs reached it."
        )
    if "pairs" in summary:
        notes += _comparison_notes(summary, study)
    idle = [run for run in study.finished if not run.rounds["arrived"].any()]
    if idle:
        notes.append(f"No update arrived in any round of {_some(idle)}: the model stayed as it was.")
    replaced = [run for run in study.finished if "back_end_notice" in read_run(run.folder)]
    if replaced:
        notes.append(f"Not trained as asked for: {_some(replaced)}; edgesim show of the run says why.")
    lost = int(summary["left_out"].sum())
    if lost:
        notes.append(f"{lost} failed or unfinished {'run is' if lost == 1 else 'runs are'} left out.")
    return notes


def _some(runs: Sequence[Run]) -> str:
    """The first run by its folder, and how many others there are."""
    others = len(runs) - 1
    return runs[0].folder.name + (f" and {others} other{'s'[: others > 1]}" if others else "")


def _comparison_notes(summary: pd.DataFrame, study: Study) -> list[str]:
    pairs = sorted({int(count) for count in summary["pairs"].dropna() if count > 0})
    if set(summary["policy"]) == {study.reference}:
        return []
    if not pairs:
        return [f"No finished run of the reference policy {study.reference!r} to compare with."]
    rounds = "rounds by Wilcoxon signed-rank, " if "rounds_p" in summary else ""
    notes = [
        f"Compared with {study.reference} on the same seeds: {rounds}accuracy by paired t; "
        "p-values are not corrected for the number of comparisons."
    ]
    if rounds:
        notes += [
            f"With {count} {'seed' if count == 1 else 'seeds'} the Wilcoxon p cannot go below "
            f"{wilcoxon_floor(count):.4g}."
            for count in pairs
        ]
    return notes


def _averages(group: Mapping[int, Measures], name: str) -> dict[str, float]:
    mean, low, high = mean_interval([values[name] for values in group.values() if name in values])
    return {name: mean, f"{name}_low": low, f"{name}_high": high}


def _reference_group(
    groups: Mapping[Key, dict[int, Measures]], names: list[str], key: Key, reference: str
) -> dict[int, Measures]:
    """Runs of the reference policy at the same other knobs; empty for the reference itself."""
    place = names.index("policy")
    if key[place] == reference:
        return {}
    return groups.get((*key[:place], reference, *key[place + 1 :]), {})


def _comparison(
    group: Mapping[int, Measures], reference: Mapping[int, Measures], target: float | None
) -> dict[str, float]:
    mine, theirs = _paired(group, reference, "final_accuracy")
    row: dict[str, float] = {
        "pairs": mine.size if reference else np.nan,
        "accuracy_p": paired_t_p(mine, theirs),
    }
    if target is not None:
        mine, theirs = _paired(group, reference, "rounds_to_target")
        row["saving"] = metrics.saving(float(mine.mean()), float(theirs.mean())) if mine.size else np.nan
        row["rounds_p"] = wilcoxon_p(mine, theirs)
    return row


def _paired(
    group: Mapping[int, Measures], reference: Mapping[int, Measures], name: str
) -> tuple[np.ndarray, np.ndarray]:
    def of(runs: Mapping[int, Measures]) -> dict[int, float]:
        return {seed: values[name] for seed, values in runs.items() if name in values}

    return pair_by_seed(of(group), of(reference))
