"""Scenarios that choose seeds and cells: what they run and what they say of it."""

import re
import runpy
from pathlib import Path

import pandas as pd
import pytest

SCENARIOS = Path(__file__).parents[2] / "scenarios"


@pytest.fixture
def tune():
    return runpy.run_path(str(SCENARIOS / "tune_tmax.py"))


def summary(*rows: tuple[float, float, float, float]) -> pd.DataFrame:
    """Deadline, seconds to the target with half their interval, and runs of 5 that never got there."""
    return pd.DataFrame(
        {
            "tmax_s": tmax_s,
            "bandwidth_hz": 40e6,
            "seeds": 5,
            "left_out": 0,
            "not_reached": never,
            "seconds_to_target": mean,
            "seconds_to_target_low": mean - half,
            "seconds_to_target_high": mean + half,
            "seconds_to_target_bound": 30.0 if never else float("nan"),
        }
        for tmax_s, mean, half, never in rows
    )


def test_a_cell_that_some_seeds_never_solve_ranks_behind_all_that_every_seed_does(tune):
    table = summary((0.2, 4.0, 1.0, 2), (0.4, 9.0, 2.0, 0), (0.6, 8.0, 1.0, 0))
    assert tune["best"](table, "seconds_to_target", 3) == [(0.6, 40e6), (0.4, 40e6), (0.2, 40e6)]


def test_the_best_cell_is_told_with_what_it_needs_on_the_seeds_that_chose_it_and_on_fresh_ones(tune):
    found = summary((0.2, 4.0, 1.0, 0), (0.4, 5.0, 1.5, 0), (0.6, 6.0, 1.0, 0), (0.8, 9.0, 1.0, 0))
    fresh = summary((0.2, 7.5, 2.0, 0), (0.4, 5.5, 1.0, 0), (0.6, 6.5, 1.0, 1))
    said = tune["answer"](found, fresh, "seconds_to_target", {(tmax_s, 40e6) for tmax_s in (0.2, 0.4, 0.6, 0.8)})
    first, *others = said.splitlines()
    assert "Tmax 0.2 s on 40 MHz, 4.0 ± 1.0 s on the seeds that chose it, 7.5 ± 2.0 s on fresh ones" in first
    assert "the grid's edge, widen --tmax" in first
    assert "5.0 ± 1.5 s on the seeds that chose it, 5.5 ± 1.0 s on fresh ones" in others[0]
    assert "> 30.0 (4 of 5) s on fresh ones" in others[1]
    assert others[-1].strip() == "On the fresh seeds Tmax 0.4 s on 40 MHz comes first of these."


@pytest.mark.slow
def test_a_fresh_search_tells_only_of_cells_that_it_asked_for(scenario):
    def told(*arguments):
        said = scenario("tune_tmax.py", "--quick", "--jobs", "1", "--out", "out", *arguments)
        assert said.exit_code == 0, said.output
        return set(re.findall("Tmax [0-9.]+ s on [0-9]+ MHz", said.output))

    assert len(told("--trials", "3")) == 3
    assert len(told("--trials", "1", "--fresh")) == 1
