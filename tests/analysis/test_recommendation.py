"""Hand-made tables of scores: which choice is taken, which cannot be told apart, which is ruled out."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from edgesim.analysis.recommendation import UNDISTINGUISHED, compare, recommend, stand
from edgesim.base.errors import EdgesimError

FAR_BELOW = [0.60, 0.62, 0.59, 0.61, 0.63, 0.60]
LEVEL = [0.80, 0.82, 0.79, 0.81, 0.83, 0.80]
LEVEL_TOO = [0.81, 0.80, 0.80, 0.80, 0.84, 0.81]
ABOVE = [0.90, 0.93, 0.89, 0.90, 0.94, 0.91]


def table(places):
    """Scores of {place: {choice: [value of seed 0, 1, ...]}}."""
    rows = [
        {"band": place, "algorithm": name, "seed": seed, "value": value}
        for place, choices in places.items()
        for name, values in choices.items()
        for seed, value in enumerate(values)
    ]
    return pd.DataFrame(rows)


def decide(scores):
    """Comparisons, standings and recommendation of a table."""
    pairs = compare(scores, ["band"], "algorithm")
    standings = stand(scores, pairs, ["band"], "algorithm")
    return pairs, standings, recommend(standings, ["band"], "algorithm").set_index("band")


def test_a_choice_that_is_better_than_every_other_one_is_taken():
    pairs, standings, told = decide(table({5: {"a": LEVEL, "b": ABOVE, "c": FAR_BELOW}}))
    assert told.loc[5].to_dict() == {"take": "b", "left": "b", "ruled_out": "a, c"}
    assert pairs[["better", "worse"]].to_numpy().tolist() == [["b", "a"], ["a", "c"], ["b", "c"]]
    assert standings["algorithm"].tolist() == ["b", "a", "c"]
    assert standings["ruled_out_by"].tolist() == ["", "b", "a, b"]
    assert standings["value"].tolist() == pytest.approx([np.mean(ABOVE), np.mean(LEVEL), np.mean(FAR_BELOW)])
    assert standings["behind"].tolist()[1:] == pytest.approx([np.mean(ABOVE) - np.mean(LEVEL), 5.47 / 6 - 3.65 / 6])
    assert standings.loc[0, ["behind", "behind_low", "behind_high", "p_holm"]].isna().all()


def test_where_two_are_level_it_cannot_be_told_and_both_are_named():
    _, standings, told = decide(table({5: {"a": LEVEL, "b": LEVEL_TOO, "c": FAR_BELOW}}))
    assert told.loc[5].to_dict() == {"take": UNDISTINGUISHED, "left": "b, a", "ruled_out": "c"}
    assert standings.set_index("algorithm").loc["a", "p_holm"] > 0.05


def test_p_is_that_of_the_paired_t_test_corrected_by_holm_for_the_pairs_of_all_places():
    """p of 0.035 alone would rule b out; with a second comparison in another place it does not."""
    close = {"a": [0.50, 0.52, 0.51, 0.55, 0.53], "b": [0.49, 0.49, 0.51, 0.53, 0.51]}
    vague = {"a": [0.50, 0.52, 0.51, 0.55, 0.53], "b": [0.52, 0.50, 0.50, 0.56, 0.52]}
    p = [stats.ttest_rel(of["a"], of["b"]).pvalue for of in (close, vague)]
    assert p[0] < 0.05 < 2 * p[0] < p[1]
    alone, _, told = decide(table({5: close}))
    assert alone["p_holm"].tolist() == pytest.approx([p[0]])
    assert told.loc[5, "take"] == "a"
    both, _, told = decide(table({5: close, 20: vague}))
    assert both["p"].tolist() == pytest.approx(p)
    assert both["p_holm"].tolist() == pytest.approx([2 * p[0], p[1]])
    # Pairs are of equal seeds in whatever order the rows stand.
    mixed = table({5: close, 20: vague}).sample(frac=1, random_state=np.random.RandomState(1))
    assert sorted(compare(mixed, ["band"], "algorithm")["p"]) == pytest.approx(sorted(p))
    # The least p is held against half the level, and so is its interval.
    each = np.subtract(close["a"], close["b"])
    ends = stats.t.interval(0.975, 4, each.mean(), stats.sem(each))
    assert both.loc[0, ["low", "high"]].tolist() == pytest.approx(list(ends))
    assert told["take"].tolist() == [UNDISTINGUISHED] * 2
    assert told["left"].tolist() == ["a, b"] * 2


def test_all_pairs_are_compared_not_only_those_with_the_first():
    """The first is too unsteady to rule anything out, but a is shown to be better than b."""
    unsteady = [1.0, 0.2, 1.0, 1.0, 1.0, 0.75]
    _, _, told = decide(table({5: {"unsteady": unsteady, "a": LEVEL, "b": FAR_BELOW}}))
    assert told.loc[5].to_dict() == {"take": UNDISTINGUISHED, "left": "unsteady, a", "ruled_out": "b"}


@pytest.mark.parametrize("seed", [0, 2])
def test_a_missing_seed_is_refused_in_one_line(seed):
    scores = table({5: {"a": LEVEL, "b": ABOVE}, 20: {"a": LEVEL, "b": ABOVE}})
    gone = (scores["band"] == 20) & (scores["algorithm"] == "b") & (scores["seed"] == seed)
    with pytest.raises(
        EdgesimError, match=rf"^band = 20: algorithm = b has no value of seed {seed}, which others have; [^\n]*$"
    ):
        compare(scores[~gone], ["band"], "algorithm")


def test_a_single_seed_tells_nothing():
    pairs, standings, told = decide(table({5: {"a": [0.9], "b": [0.1]}}))
    assert pairs[["low", "high", "p", "p_holm"]].isna().all(axis=None)
    assert standings["low"].isna().all()
    assert told.loc[5, "take"] == UNDISTINGUISHED
    pairs, standings, told = decide(table({5: {"a": LEVEL}}))
    assert pairs.empty
    assert told.loc[5, "take"] == "a"
    assert np.isnan(standings["behind"].astype(float)).all()
