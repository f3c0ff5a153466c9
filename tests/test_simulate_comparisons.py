"""The simulation behind the table of errors in docs/compare.md."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from edgesim.analysis.power import power

SCRIPT = Path(__file__).with_name("simulate_comparisons.py")


def test_the_simulation_of_comparisons_prints_a_row_for_each_law_and_number_of_seeds(capsys):
    script = runpy.run_path(str(SCRIPT))
    script["main"].__globals__["SEEDS"] = (3,)
    script["main"](families=2)
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[0] for row in rows] == list(script["LAWS"])
    shares = [cell for row in rows for cell in (*row[2:5], *row[6:])]
    assert all(0 <= float(cell.removesuffix(" %")) <= 100 for cell in shares)


@pytest.mark.slow
@pytest.mark.parametrize("law", ["normal", "whole numbers", "25 % censored"])
def test_at_most_a_twentieth_of_studies_of_equal_choices_tells_a_difference_and_power_is_what_is_worked_out(law):
    """400 studies of five seeds, each of seven comparisons; within three standard errors."""
    cells = runpy.run_path(str(SCRIPT))["simulate"](law, 5, 400)
    error, coverage, equivalent, alone, among = (float(cell.removesuffix(" %")) / 100 for cell in cells)
    assert 0 < error < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    assert coverage > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 400)
    assert equivalent < 0.05
    assert among < alone
    if law == "normal":
        # A difference of 10 in runs that spread by 5 beyond their seed's world.
        expected = power(10.0, 5 * np.sqrt(2), 5)
        assert alone == pytest.approx(expected, abs=3 * np.sqrt(expected * (1 - expected) / 400))
