"""Verdicts on the predictions of ``compression.py``, on tables written by hand."""

import runpy
from pathlib import Path

import pandas as pd
import pytest

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "scenarios/compression.py"))
PLACES = {"1 MHz, 1 s": (1.0, 1.0), "20 MHz, 1 s": (20.0, 1.0)}
NARROW, WIDE = PLACES


def judged(tmp_path, prediction, policies, **tables):
    """Verdict where every policy has the same tables, or its own where a table is a function of the policy."""
    for policy in policies:
        (tmp_path / policy).mkdir()
        for name, table in tables.items():
            of = table(policy) if callable(table) else table
            pd.DataFrame(of).assign(cost="seconds").to_csv(tmp_path / policy / f"{name}.csv", index=False)
    return SCRIPT["PREDICTIONS"][prediction]({policy: tmp_path / policy for policy in policies}, PLACES)[0]


def pair(place, better, worse, low, high, p):
    return {"place": place, "better": better, "worse": worse, "low": low, "high": high, "p_holm": p}


A, B, C, D = SCRIPT["PREDICTIONS"]


@pytest.mark.parametrize(
    ("winners", "verdict"),
    [
        (("topk", "none"), "confirmed"),
        (("topk", "topk"), "refuted"),
        (("topk", "cannot be told"), "inconclusive"),
        (("cannot be told", "cannot be told"), "inconclusive"),
    ],
)
def test_the_winner_changes_where_two_bands_have_different_ones(tmp_path, winners, verdict):
    rows = [{"place": place, "take": take} for place, take in zip(PLACES, winners, strict=True)]
    assert judged(tmp_path, A, ["random"], recommendation=rows) == verdict


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ([pair(WIDE, "topk", "none", 0.001, 0.2, 0.01)], "refuted"),
        ([pair(WIDE, "none", "topk", 0.001, 0.2, 0.01)], "confirmed"),
        ([pair(WIDE, "none", "topk", -0.02, 0.2, 0.9)], "inconclusive"),
        ([pair(WIDE, "none", "topk", -0.009, 0.2, 0.9), pair(NARROW, "topk", "none", 0.1, 0.2, 0.01)], "confirmed"),
        ([pair(NARROW, "topk", "none", 0.1, 0.2, 0.01)], "inconclusive"),
    ],
)
def test_codecs_in_the_widest_band_are_held_against_none(tmp_path, rows, verdict):
    assert judged(tmp_path, B, ["random"], pairs=rows) == verdict


@pytest.mark.parametrize(
    ("narrow", "wide", "verdict"),
    [
        (("topk that fits", "topk", 0.1, 0.2, 0.01), ("topk that fits", "topk", 0.1, 0.2, 0.01), "refuted"),
        (("topk that fits", "topk", 0.1, 0.2, 0.01), ("topk", "topk that fits", 0.1, 0.2, 0.01), "confirmed"),
        (("topk that fits", "topk", 0.1, 0.2, 0.01), ("topk that fits", "topk", -0.1, 0.2, 0.9), "inconclusive"),
        (("topk stream", "topk", 0.1, 0.2, 0.01), ("randk stream", "topk", 0.1, 0.2, 0.01), "inconclusive"),
    ],
)
def test_sizes_that_fit_are_held_against_every_codec_of_one_size(tmp_path, narrow, wide, verdict):
    rows = [pair(NARROW, *narrow), pair(WIDE, *wide)]
    assert judged(tmp_path, C, ["random"], pairs=rows) == verdict


@pytest.mark.parametrize(("apart", "verdict"), [(0.1, "confirmed"), (-0.1, "refuted"), (0.0, "inconclusive")])
def test_policies_lie_apart_by_their_highest_and_lowest_accuracy(tmp_path, apart, verdict):
    """Without a codec they differ by .2 + ``apart``, with topk by .2, give or take .01; where none is silent it counts
    for nothing."""

    def scores(policy):
        is_second = policy == "fedteddi"
        rows = []
        for seed in range(4):
            gain = 0.2 + apart + 0.01 * (-1) ** seed
            rows += [
                {"place": WIDE, "codec": "none", "seed": seed, "value": 0.5 + is_second * gain},
                {"place": WIDE, "codec": "topk", "seed": seed, "value": 0.5 - is_second * 0.2},
                {"place": NARROW, "codec": "topk", "seed": seed, "value": 0.5 + is_second * 0.4},
            ]
        return rows

    assert judged(tmp_path, D, ["random", "fedteddi"], scores=scores) == verdict
