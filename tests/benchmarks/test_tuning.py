"""Tuning beside a grid, with real training; beside each number stands what the project aims at."""

import io

import numpy as np
import pytest
from rich.console import Console
from sizes import IS_LEAST, size

from edgesim import Study, grid, run_study
from edgesim.analysis.runs import RunFolder
from edgesim.base.errors import EdgesimError
from edgesim.tuning.journal import opened
from edgesim.tuning.knobs import Knob
from edgesim.tuning.objectives import OBJECTIVES, seen
from edgesim.tuning.search import search
from edgesim.tuning.trial import Outcome

BASE = {
    "stop_at_s": 14,
    "learning": {"lr": 0.1, "pretrain": True},
    "round": {"payload_bits": 1e7},
    "data": {"partition": "fedteddi"},
}
TMAX = size([0.3, 0.4, 0.5, 0.65, 0.8, 1.0, 1.25, 1.6], [0.8, 1.6])
BAND_HZ = size([5e6, 10e6, 20e6, 40e6, 80e6], [20e6, 80e6])
TARGET = 0.6
SEEDS = size(6, 1)
"""With three the best of the cells by joules lies alone, 16 % below the next, by the luck of one seed."""
SEARCHES = size(20, 1)


@pytest.mark.parametrize("measure", ["seconds_to_target", "joules_to_target"])
def test_how_near_the_best_of_a_grid_a_third_of_its_cells_come(benchmark, grid_of_runs, tmp_path, measure):
    """Aim: a Tmax x band cell within 5 % of the full grid's best in a third of the grid's runs.

    The grid is run whole; what the cells that each of `SEARCHES` searches proposes have of the objective is read from
    its runs.
    """
    knobs = [Knob("round.tmax_s", tuple(TMAX)), Knob("radio.bandwidth_hz", tuple(BAND_HZ))]
    objective = OBJECTIVES[measure.replace("_", "-")]
    known = {cell: outcome(runs, objective) for cell, runs in grid_of_runs.items()}
    reached = [one.seen.values[0] for one in known.values() if one.seen is not None and one.seen.short <= 0]
    best, trials = min(reached), len(known) // 3

    def searched(seed):
        out = tmp_path / str(seed)
        out.mkdir()
        with opened(out, {}, knobs, [objective], seed) as journal:
            search(
                journal,
                lambda values: [],
                lambda cells, _: {cell.number: known[tuple(cell.values.values())] for cell in cells},
                trials,
                1,
                None,
                lambda *_: None,
                lambda _: None,
            )
            return min((one.seen.values[0] for one in journal.trials() if one.counts), default=np.inf) / best

    ratios = np.array(benchmark.pedantic(lambda: [searched(seed) for seed in range(SEARCHES)], rounds=1))
    benchmark.extra_info |= {
        "cells": len(known),
        "trials": trials,
        "cells_within_5_percent": sum(value <= 1.05 * best for value in reached),
        "searches_within_5_percent": f"{(ratios <= 1.05).sum()} of {SEARCHES}",
        "median_ratio": round(float(np.median(ratios)), 4),
        "worst_ratio": round(float(ratios.max()), 4),
    }
    assert IS_LEAST or np.median(ratios) <= 1.05


def outcome(runs, objective):
    """What a trial of finished runs is told."""
    try:
        return Outcome("complete", seen(runs, [objective], TARGET))
    except EdgesimError as error:
        return Outcome("failed", reason=str(error))


@pytest.fixture(scope="module")
def grid_of_runs(tmp_path_factory):
    """The runs of each cell of a grid."""
    out = tmp_path_factory.mktemp("grid")
    planned = grid(BASE, {"round.tmax_s": TMAX, "radio.bandwidth_hz": BAND_HZ}, range(SEEDS))
    run_study(Study("grid", planned, TARGET), out, size(2, 1), Console(file=io.StringIO()))
    cells = {}
    for run in planned:
        place = run.knobs["tmax_s"], run.knobs["bandwidth_hz"]
        cells.setdefault(place, []).append(RunFolder(out / run.folder, run.knobs, run.seed))
    return cells
