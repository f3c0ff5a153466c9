"""A study of learning under dynamic participation beside what the DPFL benchmark reports (tables 1 and 2 of its paper).

The paper's runs are on Office-Caltech-10 with heavy label skew (Dirichlet, alpha 0.1) and ResNet-10, over 100 rounds.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from edgesim.analysis.runs import read_study
from edgesim.analysis.summary import summarise


class Published(NamedTuple):
    """A column of the paper's tables without KPFL, under static, timed-random and Markov participation."""

    we_percent: tuple[float, float, float]
    id_points: tuple[float, float, float]
    idp_points: tuple[float, float, float]
    """Nothing is lost against itself: the static value is not a number."""


LAWS = ("static", "random", "markov")
"""Names of the three laws, in the order of `Published`."""
SKEW = "heavy"
"""Name of the label skew of the paper's tables."""
_NONE = np.nan
PUBLISHED: dict[tuple[str, int], Published] = {
    ("fedavg", 10): Published((63.02, 46.01, 50.92), (0.49, 1.58, 1.11), (_NONE, 20.87, 19.12)),
    ("fedprox", 10): Published((64.99, 47.83, 53.30), (0.46, 1.74, 1.22), (_NONE, 20.57, 18.25)),
    ("scaffold", 10): Published((63.20, 50.03, 51.32), (0.38, 1.44, 1.19), (_NONE, 17.82, 15.80)),
    ("fedmd", 10): Published((52.75, 34.50, 33.59), (0.54, 1.24, 1.02), (_NONE, 15.80, 17.19)),
    ("fedgen", 10): Published((73.23, 56.05, 54.75), (0.29, 1.72, 1.24), (_NONE, 20.65, 21.95)),
    ("moon", 10): Published((63.07, 46.40, 52.44), (0.52, 1.72, 1.31), (_NONE, 21.06, 19.11)),
    ("fpl", 10): Published((58.19, 46.15, 51.28), (0.69, 1.52, 1.03), (_NONE, 17.95, 15.72)),
    ("flwf", 10): Published((65.33, 46.34, 53.22), (0.43, 1.68, 1.18), (_NONE, 21.19, 19.02)),
    ("cfed", 10): Published((57.98, 51.74, 53.05), (0.29, 1.49, 1.10), (_NONE, 11.40, 11.62)),
    ("fedprox", 20): Published((59.48, 51.50, 45.50), (_NONE, 1.15, 1.48), (_NONE, 13.64, 11.63)),
    ("fedprox", 50): Published((51.41, 45.20, 41.50), (_NONE, 1.12, 0.99), (_NONE, 9.17, 8.93)),
}
"""Table 1 (10 clients) and table 2, by algorithm and number of clients; percent and percentage points."""
MEASURES = Published._fields


def beside_dpfl(study_folder: Path) -> pd.DataFrame:
    """One row per combination of a study's knobs that has a finished run; raises `EdgesimError`.

    Among the study's knobs are ``algorithm``, ``participation`` (one of `LAWS` or another), ``skew`` and ``clients``.
    Columns: the knobs; ``seeds``; for each of `MEASURES` its mean over seeds with ``_low`` and ``_high`` (95 % t
    interval) and with ``_paper``, the paper's own number. What a row does not have is NaN.
    """
    columns = [*read_study(study_folder).knob_names, "seeds"]
    summary = summarise(study_folder)
    summary = summary[summary["seeds"] > 0]
    rows = []
    for row in summary.to_dict("records"):
        found: dict[str, Any] = {name: row[name] for name in columns}
        for measure in MEASURES:
            found |= {name: row.get(name, np.nan) for name in (measure, f"{measure}_low", f"{measure}_high")}
            found[f"{measure}_paper"] = _published(row, measure)
        rows.append(found)
    return pd.DataFrame(rows)


def _published(row: Mapping[Any, Any], measure: str) -> float:
    column = PUBLISHED.get((row["algorithm"], int(row["clients"]))) if row["skew"] == SKEW else None
    if column is None or row["participation"] not in LAWS:
        return float("nan")
    return float(getattr(column, measure)[LAWS.index(row["participation"])])
