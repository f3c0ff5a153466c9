"""Run folders and plans of studies that are edited or written by hand."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from edgesim.folder.records import SCHEMA_VERSION, read_config


def edit_json(path: Path, **keys: object) -> None:
    """Change keys of a file that holds an object."""
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))


def edit_table(folder: Path, table: str, change: Callable[[pd.DataFrame], pd.DataFrame]) -> None:
    """Put in the place of a table what a function makes of it."""
    path = folder / f"{table}.parquet"
    change(pd.read_parquet(path)).to_parquet(path, index=False)


def forget_digests(folder: Path) -> Path:
    """Remove the digests from ``run.json``, so that the tables of the folder may be other ones; returns the folder."""
    path = folder / "run.json"
    run = json.loads(path.read_text())
    del run["digests"]
    path.write_text(json.dumps(run))
    return folder


def write_plan(
    folder: Path, name: str, runs: Sequence[Mapping[str, Any]], target: float | None = None, reference: str = "random"
) -> Path:
    """Write the plan of a study over run folders that are there already; returns the study's folder.

    ``runs`` have folder, knobs, seed and status; where a run has no folder, its status decides what is written there:
    nothing for a finished run, which was removed since, and for one that is not run yet.
    """
    planned = []
    for run in runs:
        place, status = folder / run["folder"], run["status"]
        if not place.exists() and status not in ("finished", "not run"):
            place.mkdir(parents=True)
            facts = {"schema_version": SCHEMA_VERSION, "status": status}
            (place / "run.json").write_text(json.dumps(facts))
        config = read_config(place) if (place / "config.toml").is_file() else {}
        planned.append({key: run[key] for key in ("folder", "knobs", "seed")} | {"config": config})
    plan = {"name": name, "target": target, "reference": reference, "runs": planned}
    (folder / "plan.json").write_text(json.dumps(plan))
    return folder
