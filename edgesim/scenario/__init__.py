"""Helpers of scenario scripts beside `edgesim` itself: common options, closing tables and figures.

`scenario` makes a command of a function, which plans its runs by `Runs`. The modules, which scripts import from here
(``from edgesim.scenario import tables``): `tables` beside those of `conclude`, `published` numbers of papers beside
ours, `figures` beside a study's own, `known` facts about data sets, layouts and algorithms by which a study is planned,
`recordings` of devices, `forecasts`, what predictors of availability are judged by, `equal_cost`, what to take at
equal seconds, bits and joules, and `reach`, runs in which nobody could send.
"""

from edgesim.scenario.closing import conclude, stop_if_failed
from edgesim.scenario.frame import Runs, scenario
from edgesim.scenario.options import (
    Bands,
    Deadlines,
    Devices,
    Model,
    Policies,
    Rounds,
    Seconds,
    Sharing,
    Speeds,
    Target,
    TracesFolder,
    Turn,
    counts,
    names,
    numbers,
    refuse_unknown,
    short_names,
)
from edgesim.screen.command_line import start
from edgesim.screen.plain import plain_errors

__all__ = [
    "Bands",
    "Deadlines",
    "Devices",
    "Model",
    "Policies",
    "Rounds",
    "Runs",
    "Seconds",
    "Sharing",
    "Speeds",
    "Target",
    "TracesFolder",
    "Turn",
    "conclude",
    "counts",
    "names",
    "numbers",
    "plain_errors",
    "refuse_unknown",
    "scenario",
    "short_names",
    "start",
    "stop_if_failed",
]
