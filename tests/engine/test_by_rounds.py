"""Availability drawn by rounds holds from a round's start to its end, whatever the protocol makes of it."""

import numpy as np
import pytest
from refusals import in_one_line
from whole_runs import TIMED
from whole_runs import play as simulate

from edgesim.analysis.check import run_faults
from edgesim.streams import Streams

DEVICES, SEED = 12, 4
LATE = {"late": "keep", "delay_knowledge": "planned", "plan_quantile": 0.3}
BASE = {"seed": SEED, "devices": {"count": DEVICES}, "round": {"payload_bits": 17_881_664.0}}


def run(folder, rounds, devices=None, interruption="abort", **knobs):
    there = {"model": "bernoulli", "probability": 0.5, "interruption": interruption}
    return simulate(folder, TIMED, BASE, rounds=rounds, availability=there, devices=devices or {}, round=knobs)


def draws(slots):
    """Who is there in each slot by the law itself, [slots, devices]."""
    return Streams(SEED).uniform("availability", np.arange(DEVICES), np.arange(slots)[:, None]) < 0.5


@pytest.mark.parametrize("interruption", ["abort", "pause", "ignore"])
@pytest.mark.parametrize("sharing", [{}, {"leftover": "equal_finish"}], ids=str)
def test_latecomers_work_in_slots_in_which_their_device_is_there(tmp_path, interruption, sharing):
    played = run(tmp_path / "run", 120, interruption=interruption, **LATE, **sharing)
    acts, there, start_s = played.activities, draws(120), played.rounds["t_start_s"].to_numpy()
    assert played.rounds["late"].sum() > 20
    # Nor is the band overdrawn while they keep their reservations.
    assert run_faults(played.folder) == []
    # Seconds of each row in rounds for which its device was not drawn.
    ends_s, away_s = np.append(start_s[1:], np.inf), []
    for row in acts.itertuples():
        within_s = np.clip(np.minimum(ends_s, row.t_end_s) - np.maximum(start_s, row.t_start_s), 0, None)
        away_s.append(within_s[~there[:, row.device]].sum())
    left = acts["outcome"].isin(["dropped", "paused"])
    assert acts[left]["t_end_s"].isin(start_s).all()
    assert acts["away_s"].tolist() == pytest.approx(away_s, abs=1e-9)
    if interruption == "ignore":
        assert (acts["away_s"] > 0).sum() > 10
        assert not left.any()
        return
    assert max(away_s) < 1e-9
    assert set(acts["outcome"][left]) == {"dropped" if interruption == "abort" else "paused"}
    assert left.sum() > 10
    if interruption == "pause":
        # What goes on after a pause began in an earlier round than the one in which it goes on, and loses no bit.
        uploads = played.uploads.sort_values("t_start_s")
        assert uploads["t_start_s"].isin(start_s).sum() > 10
        ended = uploads.groupby(["device", "task"]).agg(bits=("bits", "sum"), outcome=("outcome", "last"))
        assert (ended["outcome"] == "done").sum() > 30
        assert ended.query("outcome == 'done'")["bits"].to_numpy() == pytest.approx(17_881_664.0, rel=1e-6)


def test_batteries_are_charged_while_the_server_waits_and_one_that_never_is_ends_the_run(tmp_path):
    battery = {"battery_j": 30.0, "battery_start": 0.5, "battery_reserve": 0.4}
    played = run(tmp_path / "waits", 60, devices={**battery, "recharge_w": 0.2}, min_candidates=6)
    rounds = played.rounds
    assert played.result.reason == "all rounds done"
    counts = draws(10_000).sum(axis=1)
    gaps_s = rounds["t_start_s"].to_numpy()[1:] - rounds["t_end_s"].to_numpy()[:-1]
    assert gaps_s == pytest.approx(np.round(gaps_s))
    assert gaps_s.max() >= 1
    # A round's draw is that of the slots before it: rounds and waits.
    slots = np.arange(60) + np.concatenate([[rounds["t_start_s"].iloc[0]], gaps_s]).cumsum().round().astype(int)
    assert np.all(rounds["candidates"] <= counts[slots])
    assert np.any(rounds["candidates"] < counts[slots])
    empty = run(tmp_path / "empty", 60, devices=battery, min_candidates=6)
    assert empty.result.reason.startswith("fewer than 6 devices are ever available and charged again, as far as ")
    assert 0 < len(empty.rounds) < 60


@pytest.mark.parametrize("protocol", ["asynchronous", "buffered"])
def test_slots_by_rounds_are_refused_without_rounds(tmp_path, protocol):
    half = {"model": "bernoulli", "probability": 0.5, "slots": "rounds"}
    knobs = {"protocol": protocol, "admission": "count", "count": 3}
    with in_one_line(r"availability\.slots = 'rounds' needs round\.protocol = 'synchronous'"):
        simulate(tmp_path / "run", TIMED, BASE, availability=half, round=knobs)
