"""What one value of a knob is worth against another, seed by seed."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from edgesim.analysis.made import Made, digest_of_study
from edgesim.analysis.participation import course_measures
from edgesim.analysis.runs import Run, read_study
from edgesim.analysis.static_pairs import pairs
from edgesim.analysis.statistics import Interval, holm, mean_interval, paired_t_p, reading
from edgesim.analysis.summary import Measures, measure_rounds
from edgesim.arrays import Floats
from edgesim.runs.records import write_whole

WORDS = {
    "scheduled": ("fewer", "more"),
    "arrived": ("fewer", "more"),
    "miss_rate": ("fewer", "more"),
    "rounds_to_target": ("fewer", "more"),
    "seconds_to_target": ("sooner", "later"),
    "joules_to_target": ("less", "more"),
    "final_accuracy": ("lower", "higher"),
    "we_percent": ("lower", "higher"),
    "idp_points": ("less", "more"),
    "id_points": ("less", "more"),
}
"""Measures that are compared, and what a negative and a positive difference of each are called."""
MEASURES = tuple(WORDS)

COURSE = ("we_percent", "idp_points", "id_points")
"""Three readings of the same accuracies, compared where a study has dynamic participation beside static runs."""

LEVEL_SHARE, LEVEL_POINTS = 0.1, 0.01
"""Differences smaller than this count as level: a tenth of the reference's mean, or one point of accuracy or misses."""
_IN_POINTS = {
    "final_accuracy": LEVEL_POINTS,
    "miss_rate": LEVEL_POINTS,
    "we_percent": 100 * LEVEL_POINTS,
    "idp_points": 100 * LEVEL_POINTS,
}


class Difference(NamedTuple):
    """By how much the measures of one run exceed those of its partner; measures that are censored are absent."""

    run: Run
    values: Measures
    censored: bool
    """Whether one of the two runs never reached the target, so that the difference in time to it is unknown."""
    partner: Measures
    """The partner's own measures."""


def differences(study_folder: Path, knob: str, reference: str | float) -> list[Difference]:
    """Every finished run against its partner, in the plan's order; runs without a partner are left out.

    The partner is the finished run of the same seed that has ``reference`` as its ``knob`` and agrees with the run in
    all its other knobs. The run may have knobs that the partner lacks (such as the quantile of one way of planning).
    Raises `EdgesimError`.
    """
    study = read_study(study_folder)
    of = {run.folder: measure_rounds(run, study.target) for run in study.finished}
    if lost := {pair.run.folder: {"idp_points": pair.idp_points} for pair in pairs(study.finished)[0]}:
        for run in study.finished:
            of[run.folder] |= course_measures(run) | lost.get(run.folder, {})
    partners = [run for run in study.finished if run.knobs.get(knob) == reference]
    found = []
    for run in study.finished:
        partner = next((other for other in partners if _pairs(run, other, knob)), None)
        if partner is None or run.knobs.get(knob) == reference:
            continue
        mine, theirs = of[run.folder], of[partner.folder]
        values = {name: mine[name] - theirs[name] for name in MEASURES if name in mine and name in theirs}
        known = {name: value for name, value in values.items() if not np.isnan(value)}
        censored = mine.get("reached") == 0.0 or theirs.get("reached") == 0.0
        found.append(Difference(run, known, censored, theirs))
    return found


def _pairs(run: Run, partner: Run, knob: str) -> bool:
    shared = {name: value for name, value in partner.knobs.items() if name != knob}
    return run.seed == partner.seed and all(run.knobs.get(name) == value for name, value in shared.items())


def summarise_differences(found: list[Difference]) -> pd.DataFrame:
    """One row per combination of knobs: ``pairs`` of seeds, and each measure's mean with its 95 % t interval.

    ``never`` counts the pairs of which one run never reached the target; they are left out of the rounds, seconds and
    joules to the target. The columns of a measure are its name alone (the mean) and its name with ``_low``, ``_high``,
    ``_p`` (paired t test), ``_p_holm`` (the p corrected for all rows of the column; those of `COURSE` for all rows of
    the three) and ``_reading`` (`edgesim.analysis.statistics.reading`).
    """
    names = list(dict.fromkeys(name for one in found for name in one.run.knobs))
    groups: dict[tuple[object, ...], list[Difference]] = {}
    for one in found:
        groups.setdefault(tuple(one.run.knobs.get(name) for name in names), []).append(one)
    table = pd.DataFrame(
        [
            dict(zip(names, key, strict=True)) | {"pairs": len(group), "never": sum(one.censored for one in group)}
            for key, group in groups.items()
        ]
    )
    rows = list(groups.values())
    made = [name for name in MEASURES if any(name in one.values for one in found)]
    p = {name: [paired_t_p(of, np.zeros(len(of))) for of in _samples(name, rows)] for name in made}
    for name, corrected in _corrected(p).items():
        columns = _compared(name, rows, p[name], corrected)
        table = pd.concat([table, columns.set_axis([f"{name}{end}" for end in columns], axis=1)], axis=1)
    return table


def differences_table(study_folder: Path, knob: str, reference: str, *, write: bool = False) -> pd.DataFrame:
    """`summarise_differences` of `differences`; read from the study's folder if a current file is there.

    With ``write`` a new table is written there as ``differences-KNOB.csv``, but for one without pairs, which is empty.
    Raises `EdgesimError`.
    """
    made, name, digest = Made(study_folder), f"differences-{knob}", digest_of_study(read_study(study_folder), reference)
    kept = made.current(name, digest)
    if kept is not None:
        return _read(study_folder, kept)
    table = summarise_differences(differences(study_folder, knob, reference))
    if write:
        files = [] if table.empty else [study_folder / f"{name}.csv"]
        for path in files:
            write_whole(path, table.to_csv(index=False, lineterminator="\n"))
        made.note(name, digest, files, [path.name for path in files])
    return table


def _read(study_folder: Path, tables: list[str]) -> pd.DataFrame:
    """The table kept in a study's folder, or an empty one if there were no pairs."""
    if not tables:
        return pd.DataFrame()
    table = pd.read_csv(study_folder / tables[0])
    texts = [column for column in table if str(column).endswith("_reading")]
    return table.astype(dict.fromkeys(texts, object)).fillna(dict.fromkeys(texts, ""))


def _samples(measure: str, groups: Sequence[Sequence[Difference]]) -> list[list[float]]:
    """The known differences of each group."""
    return [[one.values[measure] for one in group if measure in one.values] for group in groups]


def _corrected(p: Mapping[str, Sequence[float]]) -> dict[str, Floats]:
    """The p of each measure, [groups], corrected for all groups; those of `COURSE` for the groups of all of the three.

    Such measures are the last of `p`.
    """
    families = [[name] for name in p if name not in COURSE] + [[name for name in p if name in COURSE]]
    corrected: dict[str, Floats] = {}
    for family in filter(None, families):
        in_all = holm(np.concatenate([p[name] for name in family]))
        corrected |= zip(family, np.split(in_all, len(family)), strict=True)
    return corrected


def _compared(measure: str, groups: list[list[Difference]], p: Sequence[float], corrected: Floats) -> pd.DataFrame:
    """The columns of one measure, one row per group; a column's name is the suffix to the measure's name."""
    means = [mean_interval(sample) for sample in _samples(measure, groups)]
    texts = [
        reading(mean, float(in_all), _margin(measure, group), *WORDS[measure])
        for mean, in_all, group in zip(means, corrected, groups, strict=True)
    ]
    table = pd.DataFrame(means, columns=Interval._fields).rename(columns={"mean": "", "low": "_low", "high": "_high"})
    return table.assign(_p=p, _p_holm=corrected, _reading=texts)


def _margin(measure: str, group: list[Difference]) -> float:
    if measure in _IN_POINTS:
        return _IN_POINTS[measure]
    theirs = [one.partner[measure] for one in group if measure in one.values]
    return LEVEL_SHARE * float(np.mean(theirs)) if theirs else 0.0
