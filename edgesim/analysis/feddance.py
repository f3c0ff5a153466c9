"""A study of FedDance's comparison beside what its paper reports (Chen et al., SoCC 2025, tables 2 and 3)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from edgesim.analysis.fairness import effective_devices, participations
from edgesim.analysis.metrics import final_accuracy
from edgesim.analysis.runs import Run, read_study
from edgesim.analysis.summary import summarise

PAPERS_TASKS = ("EMNIST", "Tiny-ImageNet", "Speech", "CIFAR-10")
PAPERS_ROUNDS = {
    "random": (421, 670, 522, 510),
    "safa-lite": (552, 989, 821, 711),
    "safa": (552, 989, 821, 711),
    "oort": (530, 978, 483, 532),
    "refl": (542, 890, 630, 989),
    "feddance": (303, 559, 420, 440),
}
"""Rounds to the target accuracy (79, 19, 31 and 45 %), one number per task; the paper does not say which form of SAFA
it ran, so both stand here with its numbers."""
PAPERS_ACCURACY = {
    "random": (84.30, 22.01, 44.99, 51.09),
    "safa-lite": (83.49, 19.48, 34.14, 45.71),
    "safa": (83.49, 19.48, 34.14, 45.71),
    "oort": (82.18, 19.82, 42.35, 49.07),
    "refl": (83.26, 20.80, 43.33, 44.28),
    "feddance": (85.99, 25.58, 46.97, 52.67),
}
"""Test accuracy in per cent after 1,000 rounds, mean of three runs."""


def beside_the_paper(study_folder: Path) -> pd.DataFrame:
    """One row per combination of a study's knobs; raises `EdgesimError`.

    Columns: the knobs; ``rounds`` to the target, NaN if ``never`` (the runs that did not reach it) is not 0, and then
    ``rounds_bound``, a lower bound; ``speed_up`` (rounds of random over ``rounds``, as in table 2); ``accuracy`` in per
    cent with its ``sd`` over seeds; ``points`` of accuracy above random; ``devices``, the mean `effective_devices`; and
    the paper's own ``paper_speed_up`` and ``paper_points``, texts with one number per task.
    """
    study = read_study(study_folder)
    summary = summarise(study_folder)
    others = [name for name in study.knob_names if name != "policy"]
    seeds: dict[tuple[object, ...], list[Run]] = {}
    for run in study.finished:
        seeds.setdefault(tuple(run.knobs.get(name) for name in study.knob_names), []).append(run)
    rows = []
    for row in summary.to_dict("records"):
        runs = seeds.get(tuple(row[name] for name in study.knob_names), [])
        if not runs:
            continue
        same = summary[(summary[others] == pd.Series({name: row[name] for name in others})).all(axis=1)]
        random = same[same["policy"] == "random"]
        accuracy = [100 * final_accuracy(run.rounds) for run in runs]
        paper = _of_the_paper(str(row["policy"]))
        rows.append(
            {name: row[name] for name in study.knob_names}
            | {
                "rounds": _rounds(row),
                "rounds_bound": row["rounds_to_target_bound"],
                "never": row["not_reached"],
                "speed_up": (_rounds(random.iloc[0]) if len(random) else np.nan) / _rounds(row),
                "paper_speed_up": paper[0],
                "accuracy": float(np.mean(accuracy)),
                "sd": float(np.std(accuracy, ddof=1)) if len(accuracy) > 1 else np.nan,
                "points": float(np.mean(accuracy)) - 100 * float(random["final_accuracy"].mean()),
                "paper_points": paper[1],
                "devices": float(
                    np.mean([effective_devices(participations(run.updates, run.devices)) for run in runs])
                ),
            }
        )
    return pd.DataFrame(rows)


def _rounds(row: Mapping[Any, Any] | pd.Series) -> float:
    """Mean rounds to the target; NaN unless all runs of this row of the summary reached it."""
    return np.nan if row["not_reached"] else float(row["rounds_to_target"])


def _of_the_paper(policy: str) -> tuple[str, str]:
    """The paper's speed-ups over random and points above it, one per task; empty for policies not in the paper."""
    if policy not in PAPERS_ROUNDS or policy == "random":
        return "", ""
    rounds = zip(PAPERS_ROUNDS["random"], PAPERS_ROUNDS[policy], strict=True)
    accuracy = zip(PAPERS_ACCURACY["random"], PAPERS_ACCURACY[policy], strict=True)
    return (
        " ".join(f"{theirs / own:.2f}" for theirs, own in rounds),
        " ".join(f"{own - theirs:+.1f}" for theirs, own in accuracy),
    )
