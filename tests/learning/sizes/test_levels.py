"""Levels by weights and by losses: worked numbers, an independent solver, and whole runs."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusals import in_one_line
from scipy.optimize import minimize
from whole_runs import config_of, plays

from edgesim.learning.codecs import make_codec
from edgesim.learning.codecs.levels.fixed import rounded_up
from edgesim.learning.sizes.adaquant import AdaQuant
from edgesim.learning.sizes.dadaquant import DAdaQuant, Share
from edgesim.simulation.complete import complete

WEIGHT = np.array([0.5, 0.3, 0.2])
QSGD_8 = make_codec("qsgd", {"levels": 8})


def test_worked_numbers_of_levels_by_weight():
    dadaquant, share = DAdaQuant(QSGD_8, 1000).levels(WEIGHT), Share(QSGD_8, 1000).levels(WEIGHT)
    assert dadaquant.tolist() == pytest.approx([9.7424998072, 6.9306064666, 5.2890426213], abs=6e-11)
    assert share.tolist() == pytest.approx([11.2390297390, 6.7434178434, 4.4956118956], abs=6e-11)
    for levels in (dadaquant, share, np.full(3, 8)):
        assert (WEIGHT**2 / levels**2).sum() == pytest.approx(0.0059375, abs=1e-12)
    logs = [float(np.log2(levels).sum()) for levels in (np.full(3, 8), dadaquant, share)]
    assert logs == pytest.approx([9, 8.4802802008, 8.4124430765], abs=6e-11)
    assert DAdaQuant(QSGD_8, 1000).of_weights(WEIGHT) == [15, 7, 7]
    assert Share(QSGD_8, 1000).of_weights(WEIGHT) == [15, 7, 7]


@pytest.mark.parametrize(("rule", "cost"), [(DAdaQuant, np.sum), (Share, lambda s: np.log2(s).sum())])
@pytest.mark.parametrize("seed", range(5))
def test_no_other_levels_of_the_same_error_are_fewer(rule, cost, seed):
    """Against a general solver under the equality of the error."""
    weight = np.random.default_rng(seed).dirichlet(np.ones(4))
    levels = rule(QSGD_8, 1000).levels(weight)
    error = (weight**2).sum() / 64
    solved = minimize(
        cost,
        np.full(4, 8.0),
        bounds=[(1e-2, None)] * 4,
        constraints=[{"type": "eq", "fun": lambda s: np.log((weight**2 / s**2).sum() / error)}],
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert solved.success
    assert cost(levels) <= solved.fun + 1e-6 * abs(solved.fun)


def test_worked_number_of_levels_by_loss():
    rule = AdaQuant(make_codec("qsgd", {"levels": 2}), 1000)
    assert rule.levels == 2
    rule.hear(2.302585093)
    assert (rule.levels, rule.planned) == (2, 3)
    rule.hear(1.5)
    rule.hear(0.9)
    assert rule.levels == pytest.approx(3.1990172748, abs=6e-11)
    assert rule.planned == 7
    again = AdaQuant(rule.codec, 1000)
    again.restore(rule.state)
    assert (again.levels, again.planned) == (rule.levels, 7)
    rule.hear(0.0)
    assert rule.planned == 32_767


@pytest.mark.parametrize(("s", "levels"), [(0.2, 1), (1, 1), (1.01, 3), (3, 3), (7.0, 7), (8, 15), (1e6, 32_767)])
def test_levels_are_rounded_up_to_whole_bits(s, levels):
    assert rounded_up(s) == levels


BASE: dict[str, Any] = {
    "seed": 3,
    "rounds": 5,
    "devices": {"count": 6},
    "data": {"partition": "quantity"},
    "radio": {"bandwidth_hz": 20e6},
    "round": {"tmax_s": 2.0, "payload_bits": 32 * 100_000, "allocator": "equal_share"},
    "learning": {"training": "none", "steps": 2},
    "upload": {"codec": "qsgd", "levels": 7},
}


run = plays(BASE)


def widths_of(played):
    up = played.uploads.query("outcome == 'done'")
    return up.assign(width=(up["bits"] - 32 * np.ceil(100_000 / 512)) / 100_000)


@pytest.mark.parametrize(("size", "rule"), [("dadaquant", DAdaQuant), ("share", Share)])
def test_in_a_run_each_device_sends_levels_by_its_samples_among_those_taken(run, size, rule):
    played = run(upload={"size": size}, round={"admission": "count", "count": 4})
    up, devices = widths_of(played), played.devices.query("frame == 1").set_index("device")
    assert up["width"].nunique() > 1
    for _, rows in up.groupby("round"):
        assert len(rows) == 4
        samples = devices["samples"][rows["device"]].to_numpy(dtype=float)
        settings = rule(make_codec("qsgd", {}), 100_000).of_weights(samples / samples.sum())
        assert rows["width"].tolist() == pytest.approx([np.log2(s + 1) + 1 for s in settings])


def test_shares_of_the_band_go_by_the_bits_of_each(run):
    """With least bandwidths and room for all, every upload ends at the deadline."""
    played = run(upload={"size": "share"}, round={"allocator": "least", "admission": "count", "count": 4})
    up, starts_s = widths_of(played), played.rounds.set_index("round")["t_start_s"]
    assert len(up) == 20
    assert (up["t_end_s"] - up["round"].map(starts_s)).to_numpy() == pytest.approx(np.full(20, 2.0))


@pytest.mark.slow
@pytest.mark.parametrize("size", ["share", "dadaquant", "fixed"])
def test_levels_by_weight_that_break_a_promised_outage_are_noted(run, size):
    """A band that least bandwidths of ``levels`` fill has no room for what their bits are by weight."""
    fading = {"radio": {"bandwidth_hz": 3e4, "fading": "rayleigh"}, "rounds": 400}
    least = {"allocator": "least", "outage": 0.3, "close": "deadline", "tmax_s": 1.0}
    played = run(upload={"size": size, "levels": 3}, round=least, **fading)
    late = played.uploads["outcome"] == "late"
    notes, error = played.facts["notes"], np.sqrt(0.3 * 0.7 / len(late))
    assert (late.mean() > 0.3 + 3 * error) == ("outage" in notes) == (size != "fixed")
    page = " ".join((Path(__file__).parents[3] / "docs/compression.md").read_text().split())
    quoted = re.search(
        r"with 30 %, (\d+) % \(`share`\) and (\d+) % \(`dadaquant`\) of (\d+) uploads .* (\d+) % with", page
    )
    assert quoted is not None
    late_percent = dict(zip(("share", "dadaquant", "fixed"), quoted.group(1, 2, 4), strict=True))
    assert (late_percent[size], quoted[3]) == (f"{100 * late.mean():.0f}", f"{len(late)}")
    if size != "fixed":
        assert notes["outage"].startswith(f"round.outage = 0.3 may not be kept with upload.size = '{size}'")


def test_levels_rise_as_the_loss_falls(run):
    training = {"training": "real", "pretrain": False, "lr": 0.2, "back_end": "loop", "steps": 10}
    upload = {"size": "adaquant", "levels": 3}
    played = run(upload=upload, learning=training, rounds=12, evaluation={"every": 100})
    losses = played.rounds["train_loss"]
    up, rule = widths_of(played), AdaQuant(make_codec("qsgd", {"levels": 3}), 100_000)
    for number, rows in up.groupby("round"):
        assert rows["width"].unique().tolist() == pytest.approx([np.log2(rule.planned + 1) + 1])
        rule.hear(losses[number - 1])
    assert up["width"].nunique() > 1
    assert "levels rise" in played.facts["update_bits_notice"]


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"upload": {"codec": "topk", "levels": None, "size": "share"}}, r"upload\.size = 'share' needs upload\.codec"),
        ({"upload": {"size": "adaquant"}}, r"upload\.size = 'adaquant' needs learning\.training = 'real'"),
        (
            {
                "upload": {"size": "dadaquant"},
                "round": {"protocol": "buffered", "admission": "count", "count": 2, "allocator": "least"},
            },
            r"upload\.size = 'dadaquant' needs round\.protocol",
        ),
    ],
)
def test_what_does_not_go_with_levels_of_each_is_refused(sections, message):
    with in_one_line(message):
        complete(config_of(BASE, sections))
