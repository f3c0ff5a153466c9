"""edgesim: a discrete-event simulator of a wireless edge network whose devices really train."""

from edgesim.config import RunConfig, load, parse
from edgesim.errors import EdgesimError
from edgesim.records import read_config, read_run, read_table
from edgesim.simulation import Result, run
from edgesim.study import Study, grid, run_study

__all__ = [
    "EdgesimError",
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
