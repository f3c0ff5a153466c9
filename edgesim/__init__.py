"""edgesim: a discrete-event simulator of a wireless edge network whose devices really train."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgesim.config import RunConfig
    from edgesim.config_file import load, parse
    from edgesim.errors import EdgesimError
    from edgesim.runs.records import read_config, read_run, read_table
    from edgesim.simulation import Result, run
    from edgesim.studies.plan import PlannedRun, Study, grid
    from edgesim.studies.running import run_study

__all__ = [
    "EdgesimError",
    "PlannedRun",
    "Result",
    "RunConfig",
    "Study",
    "grid",
    "load",
    "parse",
    "read_config",
    "read_run",
    "read_table",
    "run",
    "run_study",
]

_HOMES = {
    "config": ("RunConfig",),
    "config_file": ("load", "parse"),
    "errors": ("EdgesimError",),
    "runs.records": ("read_config", "read_run", "read_table"),
    "simulation": ("Result", "run"),
    "studies.plan": ("PlannedRun", "Study", "grid"),
    "studies.running": ("run_study",),
}


def __getattr__(name: str) -> Any:
    """The public names, loaded when first used: reading a table needs no simulator."""
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"edgesim.{module}"), name)
    raise AttributeError(f"module 'edgesim' has no attribute {name!r}")
