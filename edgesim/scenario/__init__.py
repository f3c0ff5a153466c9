"""What scenario scripts use beside `edgesim` itself: common options, closing tables and figures.

Its modules, which scripts import from here (``from edgesim.scenario import tables``): `tables` beside those of
`conclude`, `figures` beside a study's own, `known` facts about data sets, layouts and algorithms by which a study is
planned, `recordings` of devices, and `forecasts`, what predictors of availability are judged by.
"""

from edgesim.scenario.closing import conclude, stop_if_failed
from edgesim.scenario.options import (
    Folder,
    Fresh,
    Jobs,
    Out,
    OutOrNone,
    Seeds,
    Set,
    counts,
    names,
    numbers,
    plain_errors,
    quick_option,
    short_names,
    start,
)

__all__ = [
    "Folder",
    "Fresh",
    "Jobs",
    "Out",
    "OutOrNone",
    "Seeds",
    "Set",
    "conclude",
    "counts",
    "names",
    "numbers",
    "plain_errors",
    "quick_option",
    "short_names",
    "start",
    "stop_if_failed",
]
