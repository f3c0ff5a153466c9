"""Savings in rounds, against numbers worked by hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from edgesim.analysis.censored import Outcomes
from edgesim.analysis.judgement import Sides
from edgesim.analysis.kept_tests import KeptRun
from edgesim.analysis.savings import bounds, savings

TESTS = 6


def run(policy, seed, reached):
    """A run of six rounds, all tested, that is at 0.75 from round ``reached`` on, or never."""
    accuracies = [0.5] + [0.8 if reached and number >= reached else 0.6 for number in range(1, TESTS + 1)]
    table = {"status": "finished", "test_images": 100, "round": np.arange(TESTS + 1), "accuracy": accuracies}
    rows = pd.DataFrame(table).assign(t_s=lambda of: 2.0 * of["round"], clients=3.0, newcomers=1.0, energy_j=0.0)
    return KeptRun(Path(f"{policy}-{seed}"), {"policy": policy, "tmax_s": 1.2}, seed, rows)


def test_savings_are_means_over_seeds_with_the_p_of_the_paired_differences():
    rounds = {"random": (4, 6, 5), "fedcgd": (2, 2, 4), "fedteddi": (2, 3, 2)}
    runs = [run(policy, seed, reached) for policy, of in rounds.items() for seed, reached in enumerate(of)]
    table = savings(runs, "fedteddi", 0.75).set_index("policy")
    assert list(table.index) == ["random", "fedcgd"]
    for policy in table.index:
        theirs, own = np.array(rounds[policy]), np.array(rounds["fedteddi"])
        saved, row = 1 - own / theirs, table.loc[policy]
        ends = stats.t.interval(0.95, 2, saved.mean(), stats.sem(saved))
        assert [row["saving"], row["low"], row["high"]] == pytest.approx([saved.mean(), *ends])
        assert [row["rounds"], row["rounds_policy"]] == pytest.approx([theirs.mean(), own.mean()])
    # The differences 2, 4 and 3 spread by one round; 0, -1 and 2 by more. Both are judged together.
    p = [stats.ttest_rel(rounds[policy], rounds["fedteddi"]).pvalue for policy in table.index]
    assert table["p_holm"].tolist() == pytest.approx([2 * min(p), max(2 * min(p), max(p))])
    assert (table["seeds_needed"] > 3).all()
    assert table["never"].tolist() == table["never_policy"].tolist() == [0, 0]
    assert table["saving_most"].tolist() == table["saving"].tolist()


@pytest.mark.parametrize(
    ("theirs", "own", "never", "least", "most"),
    [
        ((0, 6, 4), (3, 3, 3), (1, 0), (1 / 2 + 1 / 2 + 1 / 4) / 3, (1 + 1 / 2 + 1 / 4) / 3),
        # What FedTeddi needs beyond six rounds has no end: nothing is known to be saved.
        ((3, 6, 4), (0, 3, 3), (0, 1), None, ((1 - 6 / 3) + 1 / 2 + 1 / 4) / 3),
        ((0, 6, 4), (0, 3, 3), (1, 1), None, (1 + 1 / 2 + 1 / 4) / 3),
    ],
)
def test_where_a_run_never_got_there_the_saving_is_known_between_two_ends(theirs, own, never, least, most):
    runs = [run("random", seed, reached) for seed, reached in enumerate(theirs)]
    runs += [run("fedteddi", seed, reached) for seed, reached in enumerate(own)]
    (row,) = savings(runs, "fedteddi", 0.75).to_dict("records")
    assert (row["never"], row["never_policy"]) == never
    assert row["saving"] == pytest.approx(np.nan if least is None else least, nan_ok=True)
    assert row["saving_most"] == pytest.approx(most)
    assert np.isnan([row["low"], row["high"]]).all()
    assert row["rounds"] == pytest.approx(np.mean([reached or 6 for reached in theirs]))


@given(st.lists(st.tuples(*[st.integers(1, 12)] * 2), min_size=2, max_size=5), st.integers(1, 6))
def test_the_saving_of_runs_that_go_on_lies_between_the_ends_of_those_that_were_cut(rounds, cut):
    """The same runs, tested for 12 rounds and for ``cut``: the first know what the second can only bound."""
    theirs, own = np.array(rounds, dtype=float).T
    tested = [Outcomes(np.where(of <= cut, of, np.nan), np.where(of <= cut, np.nan, cut)) for of in (theirs, own)]
    least, most = bounds(Sides(*tested))
    saved = 1 - own / theirs
    assert ((least <= saved) & (saved <= most)).all()
    known = (theirs <= cut) & (own <= cut)
    assert (least[known] == saved[known]).all()
    assert (most[known] == saved[known]).all()


def test_no_pair_has_no_row_and_staying_takes_longer_than_getting_there():
    late = run("fedteddi", 0, 2)
    late.rows.loc[3, "accuracy"] = 0.6
    for measure, needed in (("rounds_to_target", 2), ("rounds_to_stay", 4)):
        assert savings([run("random", 0, 6), late], "fedteddi", 0.75, measure)["rounds_policy"].tolist() == [needed]
    assert savings([late], "fedteddi", 0.75).empty
    assert savings([], "fedteddi", 0.75).empty
