"""A study of learning under dynamic participation beside what the DPFL benchmark reports (tables 1 to 3 of its paper).

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
    """A column of the paper's tables, under static, timed-random and Markov participation."""

    we_percent: tuple[float, float, float]
    id_points: tuple[float, float, float]
    idp_points: tuple[float, float, float]
    """Nothing is lost against itself: the static value is not a number."""


LAWS = ("static", "random", "markov")
"""Names of the three laws, in the order of `Published`."""
SKEW = "heavy"
"""Name of the label skew of the paper's tables."""
_NONE = np.nan
PUBLISHED: dict[tuple[str, str, int], Published] = {
    ("fedavg", "own", 10): Published((63.02, 46.01, 50.92), (0.49, 1.58, 1.11), (_NONE, 20.87, 19.12)),
    ("fedprox", "own", 10): Published((64.99, 47.83, 53.30), (0.46, 1.74, 1.22), (_NONE, 20.57, 18.25)),
    ("scaffold", "own", 10): Published((63.20, 50.03, 51.32), (0.38, 1.44, 1.19), (_NONE, 17.82, 15.80)),
    ("fedmd", "own", 10): Published((52.75, 34.50, 33.59), (0.54, 1.24, 1.02), (_NONE, 15.80, 17.19)),
    ("fedgen", "own", 10): Published((73.23, 56.05, 54.75), (0.29, 1.72, 1.24), (_NONE, 20.65, 21.95)),
    ("moon", "own", 10): Published((63.07, 46.40, 52.44), (0.52, 1.72, 1.31), (_NONE, 21.06, 19.11)),
    ("fpl", "own", 10): Published((58.19, 46.15, 51.28), (0.69, 1.52, 1.03), (_NONE, 17.95, 15.72)),
    ("flwf", "own", 10): Published((65.33, 46.34, 53.22), (0.43, 1.68, 1.18), (_NONE, 21.19, 19.02)),
    ("cfed", "own", 10): Published((57.98, 51.74, 53.05), (0.29, 1.49, 1.10), (_NONE, 11.40, 11.62)),
    ("fedavg", "kpfl", 10): Published((66.79, 60.57, 58.10), (_NONE, 0.52, 0.50), (_NONE, 4.78, 8.17)),
    ("fedprox", "kpfl", 10): Published((66.06, 62.49, 59.88), (_NONE, 0.43, 0.45), (_NONE, 4.34, 6.82)),
    ("scaffold", "kpfl", 10): Published((66.75, 61.75, 57.79), (_NONE, 0.48, 0.52), (_NONE, 5.02, 8.63)),
    ("fedmd", "kpfl", 10): Published((53.51, 49.04, 44.15), (_NONE, 0.47, 0.36), (_NONE, 1.13, 5.39)),
    ("fedgen", "kpfl", 10): Published((72.17, 65.00, 62.66), (_NONE, 0.45, 0.47), (_NONE, 9.86, 11.18)),
    ("moon", "kpfl", 10): Published((65.59, 61.31, 60.50), (_NONE, 0.36, 0.41), (_NONE, 5.35, 7.91)),
    ("fpl", "kpfl", 10): Published((58.70, 54.06, 53.26), (_NONE, 0.48, 0.51), (_NONE, 5.31, 6.30)),
    ("flwf", "kpfl", 10): Published((65.93, 59.85, 59.05), (_NONE, 0.36, 0.40), (_NONE, 6.29, 8.03)),
    ("cfed", "kpfl", 10): Published((65.46, 63.12, 58.25), (_NONE, 0.47, 0.47), (_NONE, 4.38, 8.80)),
    ("fedprox", "own", 20): Published((59.48, 51.50, 45.50), (_NONE, 1.15, 1.48), (_NONE, 13.64, 11.63)),
    ("fedprox", "own", 50): Published((51.41, 45.20, 41.50), (_NONE, 1.12, 0.99), (_NONE, 9.17, 8.93)),
    ("fedprox", "kpfl", 20): Published((60.58, 57.41, 54.13), (_NONE, 0.39, 0.49), (_NONE, 4.23, 9.20)),
    ("fedprox", "kpfl", 50): Published((53.01, 50.30, 48.26), (_NONE, 0.29, 0.42), (_NONE, 3.59, 7.31)),
    ("fedprox", "mifa", 10): Published((64.04, 60.55, 61.03), (_NONE, 0.46, 0.40), (_NONE, _NONE, _NONE)),
    ("fedprox", "kpfl-first", 10): Published((65.79, 60.28, 57.89), (_NONE, 0.42, 0.38), (_NONE, _NONE, _NONE)),
    ("moon", "mifa", 10): Published((63.57, 59.15, 59.71), (_NONE, 0.51, 0.42), (_NONE, _NONE, _NONE)),
    ("moon", "kpfl-first", 10): Published((65.29, 60.98, 57.55), (_NONE, 0.47, 0.46), (_NONE, _NONE, _NONE)),
}
"""Tables 1 (10 clients), 2 and 3, by algorithm, server and number of clients; percent and percentage points.

Servers are the algorithm's ``own``, ``mifa``, ``kpfl`` and, without distillation, ``kpfl-first``.
"""
MEASURES = Published._fields


def beside_dpfl(study_folder: Path) -> pd.DataFrame:
    """One row per combination of a study's knobs that has a finished run; raises `EdgesimError`.

    Among the study's knobs are ``algorithm``, ``participation`` (one of `LAWS` or another), ``skew``, ``clients`` and
    perhaps ``server``.
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
    key = row["algorithm"], row.get("server", "own"), int(row["clients"])
    column = PUBLISHED.get(key) if row["skew"] == SKEW else None
    if column is None or row["participation"] not in LAWS:
        return float("nan")
    return float(getattr(column, measure)[LAWS.index(row["participation"])])
