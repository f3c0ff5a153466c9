"""The simulation behind the table of errors in docs/compare.md."""

import runpy
from pathlib import Path


def test_the_simulation_of_comparisons_prints_a_row_for_each_law_and_number_of_seeds(capsys):
    script = runpy.run_path(str(Path(__file__).with_name("simulate_comparisons.py")))
    script["main"].__globals__["SEEDS"] = (3,)
    script["main"](families=2)
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [row[0] for row in rows] == list(script["LAWS"])
    shares = [cell for row in rows for cell in (*row[2:5], *row[6:])]
    assert all(0 <= float(cell.removesuffix(" %")) <= 100 for cell in shares)
