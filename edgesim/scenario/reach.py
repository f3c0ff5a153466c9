"""Runs in which no device could ever send: a finding of a study, not a failure of its runs."""

from collections.abc import Sequence

import pandas as pd

from edgesim.base.errors import EdgesimError, OutOfReach
from edgesim.config import SelectionConfig
from edgesim.scenario.frame import Runs
from edgesim.simulation.complete import complete
from edgesim.simulation.simulation import Simulation
from edgesim.studies.plan import PlannedRun

__all__ = ["leave_out_silent"]


def leave_out_silent(runs: Runs, knobs: Sequence[str]) -> pd.DataFrame:
    """Take planned runs out of the plan with whose ``knobs`` no device could send by the deadline, with any seed.

    All seeds of such values of the ``knobs`` are left out, so that what remains is paired. Returns a row for each of
    these values, in the order of the plan: columns ``knobs`` and ``seeds``, the number of seeds with which nobody can
    send.
    """
    silent: dict[tuple[object, ...], int] = {}
    for run in runs.planned:
        if not _can_send(run):
            named = tuple(run.knobs[knob] for knob in knobs)
            silent[named] = silent.get(named, 0) + 1
    runs.planned = [run for run in runs.planned if tuple(run.knobs[knob] for knob in knobs) not in silent]
    return pd.DataFrame([(*named, seeds) for named, seeds in silent.items()], columns=[*knobs, "seeds"])


def _can_send(run: PlannedRun) -> bool:
    """Whether any device could send by the deadline, as timing alone tells; other errors are left to the run itself."""
    timing = {
        "learning": run.config.learning.model_copy(update={"training": "none"}),
        "selection": SelectionConfig(policy="random"),
    }
    try:
        Simulation(complete(run.config.model_copy(update=timing))).close()
    except OutOfReach:
        return False
    except EdgesimError:
        return True
    return True
