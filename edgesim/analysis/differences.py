"""Differences of one value of a knob to another, seed by seed: the closing tables of a study."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from edgesim.analysis.judgement import judge
from edgesim.analysis.measures import measure_rounds
from edgesim.analysis.pairing import Comparison, comparisons, pairings
from edgesim.analysis.participation import course_measures
from edgesim.analysis.products import Products, digest_of_study
from edgesim.analysis.runs import Knob, read_study
from edgesim.analysis.static_pairs import pairs
from edgesim.analysis.statistics import Interval, reading
from edgesim.folder.records import write_whole

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
OUTCOMES = ("rounds_to_target", "final_accuracy")
"""Measures by which the policies of a study that trains are compared."""

MARGIN_SHARE, MARGIN_POINTS = 0.1, 0.01
"""Choices with a smaller difference count as equivalent: a tenth of the reference's mean, or one point of a share."""
_IN_POINTS = {
    "final_accuracy": MARGIN_POINTS,
    "final_macro_f1": MARGIN_POINTS,
    "final_roc_auc": MARGIN_POINTS,
    "best_accuracy": MARGIN_POINTS,
    "miss_rate": MARGIN_POINTS,
    "we_percent": 100 * MARGIN_POINTS,
    "idp_points": 100 * MARGIN_POINTS,
}
IDENTICAL = "identical"
"""Reading of a comparison whose choices made the same runs."""
LEAST_SEEDS = 3
"""Seeds from which choices may count as equivalent; the spread of two differences is next to unknown."""


def differences(study_folder: Path, knob: str, reference: Knob) -> list[Comparison]:
    """Compare every finished run with its partner in each of `MEASURES`; runs without a partner are left out.

    The partner is the finished run of the same seed that has ``reference`` as its ``knob`` and agrees with the run in
    all its other knobs. The run may have knobs that the partner lacks (such as the quantile of one way of planning).
    Policies are compared in `OUTCOMES` alone, wherever accuracy is tested. Where WE is compared final accuracy is not,
    which is the same of other units. Raises `EdgesimError`.
    """
    study = read_study(study_folder)
    of = {run.folder: measure_rounds(run, study.target) for run in study.finished}
    lost = {pair.run.folder: {"idp_points": pair.idp_points} for pair in pairs(study.finished)[0]}
    for run in study.finished if lost else []:
        of[run.folder] |= course_measures(run) | lost.get(run.folder, {})
    tested = any("final_accuracy" in measures for measures in of.values())
    names = tuple(name for name in MEASURES if not lost or name != "final_accuracy")
    names = OUTCOMES if knob == "policy" and tested else names
    return comparisons(pairings(study.finished, knob, reference), names, lambda run: of[run.folder])


def summarise_differences(compared: Sequence[Comparison]) -> pd.DataFrame:
    """One row per comparison, judged together: the knobs, ``measure``, and the columns of `judge` with ``reading``."""
    names = list(dict.fromkeys(name for comparison in compared for name in _knobs(comparison)))
    judged = judge([comparison.sides for comparison in compared])
    rows = [{name: _knobs(of).get(name) for name in names} | {"measure": of.measure} for of in compared]
    judged["reading"] = [read(of, row) for of, row in zip(compared, judged.to_dict("records"), strict=True)]
    return pd.concat([pd.DataFrame(rows, columns=[*names, "measure"]), judged], axis=1)


def _knobs(compared: Comparison) -> dict[str, Knob]:
    """All knobs of a comparison's first side, in the order of its runs."""
    both = {**compared.pairing.place, **compared.pairing.choice}
    return {name: both[name] for name in compared.runs[0].knobs}


def read(compared: Comparison, row: Mapping[Any, Any]) -> str:
    """Reading of a row of `judge` in words, by `edgesim.analysis.statistics.reading`.

    Choices whose runs are the same are ``identical``. They are never ``equivalent`` by fewer than `LEAST_SEEDS` seeds,
    nor where a run never reached the target: what comes after the restricted times is unknown.
    """
    below, above = WORDS.get(compared.measure, ("lower", "higher"))
    p = float(row["p_holm"])
    if not row["differing"] and compared.pairing.is_same:
        return IDENTICAL
    if row["never"]:
        with np.errstate(divide="ignore"):
            ratio = Interval(*(float(np.log(row[name])) for name in ("ratio", "ratio_low", "ratio_high")))
        return reading(ratio, p, 0.0, below, above)
    interval = Interval(float(row["difference"]), float(row["low"]), float(row["high"]))
    return reading(interval, p, margin(compared) if row["pairs"] >= LEAST_SEEDS else 0.0, below, above)


def margin(compared: Comparison) -> float:
    """The margin of equivalence of a comparison, in the unit of its measure.

    One point of a share, such as an accuracy, and otherwise a tenth of the reference's mean (of its restricted times
    where a run never reached the target).
    """
    return _IN_POINTS.get(compared.measure, MARGIN_SHARE * abs(float(compared.sides.times[1].mean())))


def differences_table(
    study_folder: Path, knob: str, reference: Knob, *, write: bool = False, called: str | None = None
) -> pd.DataFrame:
    """`summarise_differences` of `differences`; read from the study's folder if a current file is there.

    With ``write`` a new table is written there as ``differences-CALLED.csv``, by the knob's name when absent, but for
    one without pairs, which is empty. Raises `EdgesimError`.
    """
    products, name = Products(study_folder), f"differences-{called or knob}"
    digest = digest_of_study(read_study(study_folder), reference)
    if (lines := products.current(name, digest)) is not None:
        return _read(study_folder, lines)
    table = summarise_differences(differences(study_folder, knob, reference))
    if write:
        files = [] if table.empty else [study_folder / f"{name}.csv"]
        for path in files:
            write_whole(path, table.to_csv(index=False, lineterminator="\n"))
        products.note(name, digest, files, [path.name for path in files])
    return table


def _read(study_folder: Path, tables: list[str]) -> pd.DataFrame:
    """Read the table in a study's folder, or make an empty one if there were no pairs."""
    if not tables:
        return summarise_differences([])
    return pd.read_csv(study_folder / tables[0]).astype({"reading": object}).fillna({"reading": ""})
