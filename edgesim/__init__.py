"""edgesim: a discrete-event simulator of a wireless edge network whose devices really train.

`run` and `study` simulate, `open` reads what they left; `policies`, `algorithms` and the like list what configs name.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgesim.analysis.compare import Compared
    from edgesim.api.dry_run import Outlook, dry_run
    from edgesim.api.figures import draw
    from edgesim.api.names import (
        algorithms,
        channels,
        datasets,
        drift_laws,
        joining_laws,
        metrics,
        models,
        partitions,
        path_loss_laws,
        policies,
        predictors,
        presence_models,
        protocols,
        recordings,
        scenarios,
        topologies,
    )
    from edgesim.api.opened import open
    from edgesim.api.run import Run, fork, resume, run
    from edgesim.api.study import StudyResult, compare, study
    from edgesim.base.errors import EdgesimError
    from edgesim.config import RunConfig
    from edgesim.config_file import load, parse
    from edgesim.folder.records import read_config, read_run, read_table
    from edgesim.studies.on_ray import Ray
    from edgesim.studies.plan import PlannedRun, Study, grid
    from edgesim.studies.running import run_study
    from edgesim.tuning.findings import Tuned
    from edgesim.tuning.tune import tune

_HOMES = {
    "analysis.compare": ("Compared",),
    "config": ("RunConfig",),
    "config_file": ("load", "parse"),
    "door.dry_run": ("Outlook", "dry_run"),
    "door.figures": ("draw",),
    "door.names": (
        "algorithms", "channels", "datasets", "drift_laws", "joining_laws", "metrics", "models", "partitions",
        "path_loss_laws", "policies", "predictors", "presence_models", "protocols", "recordings", "scenarios",
        "topologies",
    ),
    "door.opened": ("open",),
    "door.run": ("Run", "fork", "resume", "run"),
    "door.study": ("StudyResult", "compare", "study"),
    "errors": ("EdgesimError",),
    "runs.records": ("read_config", "read_run", "read_table"),
    "studies.on_ray": ("Ray",),
    "studies.plan": ("PlannedRun", "Study", "grid"),
    "studies.running": ("run_study",),
    "tuning.findings": ("Tuned",),
    "tuning.tune": ("tune",),
}  # fmt: skip

__all__ = [
    "Compared",
    "EdgesimError",
    "Outlook",
    "PlannedRun",
    "Ray",
    "Run",
    "RunConfig",
    "Study",
    "StudyResult",
    "Tuned",
    "algorithms",
    "channels",
    "compare",
    "datasets",
    "draw",
    "drift_laws",
    "dry_run",
    "fork",
    "grid",
    "joining_laws",
    "load",
    "metrics",
    "models",
    "open",
    "parse",
    "partitions",
    "path_loss_laws",
    "policies",
    "predictors",
    "presence_models",
    "protocols",
    "read_config",
    "read_run",
    "read_table",
    "recordings",
    "resume",
    "run",
    "run_study",
    "scenarios",
    "study",
    "topologies",
    "tune",
]


def __getattr__(name: str) -> Any:
    """The public names, loaded when first used: reading a table needs no simulator."""
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"edgesim.{module}"), name)
    raise AttributeError(f"module 'edgesim' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names; modules are found by importing them."""
    return sorted(__all__)
