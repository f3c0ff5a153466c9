"""Which cells of a summary are best: by one measure, and by several."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from edgesim.tuning.objectives import OBJECTIVES
from edgesim.tuning.ranking import front, has_reached, ranked

SECONDS, JOULES, ARRIVED = (OBJECTIVES[name] for name in ("seconds-to-target", "joules-to-target", "arrived"))


def summary(*rows):
    """Seconds, joules, runs of 3 that never got there, and runs left out."""
    return pd.DataFrame(
        {
            "tmax_s": place,
            "seeds": 3 - left_out,
            "left_out": left_out,
            "not_reached": never,
            # The mean over the seeds that got there, which says nothing of the others.
            "seconds_to_target": np.nan if never == 3 else 10 - seconds if never else seconds,
            "seconds_to_target_bound": seconds if never else np.nan,
            "joules_to_target": joules,
            "arrived": 100.0 - seconds,
        }
        for place, (seconds, joules, never, left_out) in enumerate(rows)
    )


def test_cells_that_all_seeds_solve_come_first_then_by_how_few_did_not_then_those_that_lack_runs():
    table = summary((4.0, 1, 1, 0), (9.0, 1, 0, 0), (8.0, 1, 0, 0), (1.0, 1, 0, 1), (5.0, 1, 3, 0), (3.0, 1, 1, 0))
    assert ranked(table, "seconds_to_target")["tmax_s"].tolist() == [2, 1, 5, 0, 4, 3]
    assert ranked(table, "arrived", is_maximised=True)["tmax_s"].tolist() == [5, 0, 4, 2, 1, 3]
    assert has_reached(table, [SECONDS]).tolist() == [False, True, True, False, False, False]
    assert has_reached(table, [ARRIVED]).tolist() == [True, True, True, False, True, True]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12))
def test_the_front_is_what_no_cell_beats(pairs):
    table = summary(*((float(s), float(j), 0, 0) for s, j in pairs))
    found = front(table, [SECONDS, JOULES])
    kept = set(found["tmax_s"])
    for place, (s, j) in enumerate(pairs):
        is_beaten = any(a <= s and b <= j and (a, b) != (s, j) for a, b in pairs)
        assert (place in kept) == (not is_beaten)
    assert found["seconds_to_target"].is_monotonic_increasing


def test_where_nothing_reached_the_target_the_front_is_empty_with_all_columns():
    found = front(summary((4.0, 1, 3, 0)), [SECONDS, JOULES])
    assert found.empty
    assert "joules_to_target" in found
