"""Several comparisons judged together."""

import math
from unittest import mock

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from edgesim.analysis.censored import Outcomes, known
from edgesim.analysis.judgement import Sides, describe, judge
from edgesim.analysis.statistics import holm_levels
from edgesim.config_file import parse
from edgesim.runs.records import read_table
from edgesim.simulation import run

RANDOM = np.random.default_rng(8)


def sides(first, second) -> Sides:
    return Sides(known(np.array(first, dtype=float)), known(np.array(second, dtype=float)))


def never(first, second) -> Sides:
    """NaN stands for a run that never got there in 60 rounds."""
    made = []
    for side in (first, second):
        values = np.array(side, dtype=float)
        made.append(Outcomes(values, np.where(np.isnan(values), 60.0, np.nan)))
    return Sides(*made)


def test_p_is_scipys_and_corrected_by_holm_over_all_comparisons_of_both_tests():
    some = [sides(RANDOM.normal(i, 1, 6), RANDOM.normal(0, 1, 6)) for i in range(4)]
    late = never([30, 35, np.nan, 40, np.nan, 50], [20, 22, 25, 30, 31, 33])
    table = judge([*some, late])
    p = [stats.ttest_rel(one.first.values, one.second.values).pvalue for one in some]
    p.append(stats.binomtest(6, 6).pvalue)
    assert table["p"].tolist() == pytest.approx(p)
    assert table["p_holm"].tolist() == pytest.approx(multipletests(p, method="holm")[1].tolist())
    assert table["test"].tolist() == ["paired t"] * 4 + ["sign"]
    assert (table["alpha"].to_numpy() == 1 - holm_levels(p)).all()


def test_a_corrected_interval_excludes_zero_exactly_where_the_corrected_p_tells_the_difference():
    table = judge([sides(RANDOM.normal(shift, 1, 7), RANDOM.normal(0, 1, 7)) for shift in np.linspace(0, 4, 12)])
    told = table["p_holm"] < 0.05
    assert 0 < told.sum() < len(told)
    assert ((table["low_holm"] > 0) | (table["high_holm"] < 0)).tolist() == told.tolist()
    assert (table["high_holm"] - table["low_holm"] >= table["high"] - table["low"]).all()


def test_the_last_round_of_a_run_that_never_got_there_is_no_number():
    row = judge([never([30, np.nan, 40], [20, 25, 30])]).iloc[0]
    assert (row["pairs"], row["never"], row["below"], row["above"]) == (3, 1, 0, 3)
    assert row[["difference", "low", "high", "low_holm", "high_holm"]].isna().all()
    further = describe([never([30, np.nan, 40], [20, 25, 30])], [0.05]).iloc[0]
    assert further[["wilcoxon_p", "d_z", "d_av", "seeds_needed"]].isna().all()
    assert 0 < further["log_rank_p"] < 1


def test_a_comparison_in_which_no_pair_differs_is_told_level_and_costs_the_others_nothing():
    other = sides([3.0, 4.0, 5.5], [1.0, 2.0, 3.0])
    alone, beside = judge([other]), judge([other, sides([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])])
    assert beside["p_holm"].tolist() == [alone["p_holm"][0], 1.0]
    assert beside["p_holm"][0] == beside["p"][0]


def test_of_one_pair_or_none_nothing_is_judged():
    table = judge([sides([1.0], [2.0])])
    assert math.isnan(table["p"][0])
    assert math.isnan(table["p_holm"][0])
    assert judge([]).empty


def test_seeds_are_counted_at_the_level_at_which_a_comparison_was_judged():
    some = sides([1.0, 2.0, 4.0, 3.0], [0.0, 2.5, 3.0, 1.0])
    strict, easy = describe([some, some], [0.05 / 20, 0.05])["seeds_needed"]
    assert strict > easy
    assert describe([some], [0.05], 100.0)["seeds_needed"][0] == 2


STUDIES, SEEDS, POOL = 1_000, 5, 120
NAMES = 4


@pytest.fixture(scope="module")
def null_runs(tmp_path_factory):
    """Outcomes of timing-only runs of one policy, each of a seed of its own: [measures, runs]."""
    found = []
    for seed in range(POOL):
        config = parse(
            {
                "seed": seed,
                "rounds": 4,
                "round": {"tmax_s": 0.8, "payload_bits": 17_881_664.0, "delay_knowledge": "planned"},
                "learning": {"training": "none"},
            },
            "a run of the pool",
        )
        folder = tmp_path_factory.mktemp("null") / "run"
        run(config, folder)
        rounds = read_table(folder, "rounds")
        found.append(
            [rounds["selected"].mean(), rounds["late"].sum() / rounds["selected"].sum(), rounds["energy_j"].sum()]
        )
    return np.array(found).T


@pytest.mark.slow
def test_of_names_for_one_policy_at_most_a_twentieth_of_studies_tells_any_difference(null_runs):
    """1,000 studies of five seeds: names for one policy are given other runs of it, drawn from a pool of timing-only
    runs, since with the same seed two names have the very same run. Each compares three names with a fourth in three
    measures; a study errs if one of its nine comparisons "differs"."""
    draws = np.random.default_rng(9)
    erring = differing = 0
    for _ in range(STUDIES):
        chosen = null_runs[:, draws.choice(POOL, NAMES * SEEDS, replace=False)].reshape(3, NAMES, SEEDS)
        # statsmodels collects garbage in each call, which takes a third of a second beside torch.
        with mock.patch("gc.collect"):
            table = judge([sides(of[name], of[0]) for of in chosen for name in range(1, NAMES)])
        told = (table["p_holm"] < 0.05).sum()
        erring += told > 0
        differing += told
    error = np.sqrt(0.05 * 0.95 / STUDIES)
    assert erring / STUDIES <= 0.05 + 3 * error
    assert differing / (STUDIES * 9) <= 0.05
    # Without the correction some third of the studies would err.
    assert erring / STUDIES > 0.005
