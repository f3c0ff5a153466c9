"""Two knobs crossed in one study: differences between the values of each, and which of the two matters more."""

from typing import NamedTuple

import pandas as pd

from edgesim.analysis.censored import known
from edgesim.analysis.differences import summarise_differences
from edgesim.analysis.judgement import Sides, judge
from edgesim.analysis.outcomes import outcomes
from edgesim.analysis.pairing import comparisons, pairings
from edgesim.analysis.runs import StudyFolder
from edgesim.analysis.variance import analyse
from edgesim.base.arrays import Floats


class Crossed(NamedTuple):
    """Result of a crossing."""

    measure: str
    knobs: tuple[str, str]
    differences: pd.DataFrame
    """Every other value of each knob against that knob's reference at each value of the other knob, all judged
    together: `summarise_differences` with the columns ``compared`` (which knob) and ``against``."""
    variance: pd.DataFrame
    """`analyse` of the measure over both knobs."""
    spreads: pd.DataFrame
    """A row per seed, and for each knob the standard deviation between its values, each a mean over the other knob."""
    answer: dict[str, float]
    """A row of `judge`: the first knob's spread less the second's, seed by seed."""


def cross(study: StudyFolder, first: tuple[str, str], second: tuple[str, str], name: str) -> Crossed:
    """Compare the finished runs of a study by two knobs, each given with its reference, in the measure ``name``.

    Seeds of which a combination of the two is missing have no spread; every run must have the measure, as `outcomes`
    demands.
    """
    runs = study.finished
    of = outcomes(runs, [name], study.target)
    compared, labels = [], []
    for knob, reference in (first, second):
        of_knob = comparisons(pairings(runs, knob, reference), [name], lambda run: of[run.folder])
        compared += of_knob
        labels += [(knob, reference)] * len(of_knob)
    named = pd.DataFrame(labels, columns=["compared", "against"])
    differences = pd.concat([named, summarise_differences(compared)], axis=1)
    knobs = first[0], second[0]
    rows = [{**run.knobs, "seed": run.seed, "value": of[run.folder][name]} for run in runs]
    values = pd.DataFrame(rows)[[*knobs, "seed", "value"]]
    spreads = _spreads(values, knobs)
    sides = Sides(known(spreads[knobs[0]].to_numpy()), known(spreads[knobs[1]].to_numpy()))
    return Crossed(
        name, knobs, differences, analyse(values, list(knobs)), spreads, judge([sides]).to_dict("records")[0]
    )


def _spreads(values: pd.DataFrame, knobs: tuple[str, str]) -> pd.DataFrame:
    table = values.pivot(index="seed", columns=list(knobs), values="value").dropna()
    spreads: dict[str, Floats] = {
        knob: table.T.groupby(level=knob).mean().std(ddof=1).to_numpy() for knob in knobs
    }  # fmt: skip
    return pd.DataFrame({"seed": table.index.to_numpy()} | spreads)
