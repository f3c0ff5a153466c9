"""``plan.json``, the plan of a study with complete configs; the state of a run is in the run's own folder."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edgesim.analysis.runs import PLAN, is_study, read_planned
from edgesim.analysis.runs import StudyEntry as Entry
from edgesim.base.errors import EdgesimError
from edgesim.base.lease import LEASE_S, is_of_lease, leased
from edgesim.config_file import parse
from edgesim.folder.records import write_whole
from edgesim.simulation.complete import as_toml, complete
from edgesim.simulation.past import is_longer
from edgesim.simulation.resumption import other_setting
from edgesim.studies.plan import PlannedRun, Study

_PATIENCE_S = 2 * LEASE_S


def grow(study: Study, out: Path) -> None:
    """Add a study's runs to the plan in a folder, or write a new plan; name, target and reference are replaced.

    Raises `EdgesimError` where the folder holds another study, or plans one of the runs otherwise.
    """
    with leased(out, "a study's folder", _PATIENCE_S):
        before = read_planned(out).planned if is_study(out) else ()
        _refuse_others(study, out, before)
        planned = {entry.run.folder.name: _kept(entry) for entry in before}
        for run in study.runs:
            config = json.loads(json.dumps(as_toml(run.config)))
            known = planned.setdefault(run.folder, {})
            key = other_setting(known["config"], config) if known else None
            if key is not None and not is_longer(known["config"], config):
                what = f"plans run {run.folder} with another config ({key} differs)"
                raise EdgesimError(f"{out}: {what}; choose another folder or remove it")
            known |= {"folder": run.folder, "knobs": dict(run.knobs), "seed": run.seed, "config": config}
        _refuse_twice(out, planned)
        plan = {"name": study.name, "target": study.target, "reference": study.reference}
        text = json.dumps(plan | {"runs": list(planned.values())}, indent=1) + "\n"
        if not (out / PLAN).is_file() or (out / PLAN).read_text(encoding="utf-8") != text:
            write_whole(out / PLAN, text, on_disk=True)


def read_plan(folder: Path) -> Study:
    """The study that a folder plans, with complete configs; raises `EdgesimError` for a plan that cannot be run."""
    known = read_planned(folder)
    runs = []
    for entry in known.planned:
        name = entry.run.folder.name
        config = complete(parse(entry.config, f"{folder}: run {name}"))
        runs.append(PlannedRun(name, entry.run.knobs, entry.run.seed, config))
    return Study(known.name, runs, known.target, known.reference)


def _kept(entry: Entry) -> dict[str, Any]:
    folder = entry.run.folder.name
    return {"folder": folder, "knobs": dict(entry.run.knobs), "seed": entry.run.seed, "config": dict(entry.config)}


def _refuse_others(study: Study, out: Path, planned: Sequence[Entry]) -> None:
    """Refuse a folder that holds a run, a study over other knobs or something else; raises `EdgesimError`."""
    # Another process may have begun the same tuning: its study has no runs to begin with, or some already.
    if planned and study.runs and (theirs := planned[0].run.knobs).keys() != study.runs[0].knobs.keys():
        over = ", ".join(sorted(theirs)) or "no knobs"
        raise EdgesimError(f"{out}: holds another study, over {over}; choose another folder or remove it")
    # A study that was killed while it wrote its plan has left the beginning of it.
    if not is_study(out) and not all(is_of_lease(path.name) or path.name == f"{PLAN}.part" for path in out.iterdir()):
        raise EdgesimError(f"{out}: is not empty and not a study's folder; choose another folder")


def _refuse_twice(out: Path, planned: dict[str, dict[str, Any]]) -> None:
    seen: dict[str, str] = {}
    for name, entry in planned.items():
        same = seen.setdefault(json.dumps([entry["knobs"], entry["seed"]], sort_keys=True), name)
        if same != name:
            raise EdgesimError(f"{out}: runs {same} and {name} have the same knobs and seed; choose another folder")
