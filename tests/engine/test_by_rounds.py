"""Availability drawn by rounds holds from a round's start to its end, whatever the protocol makes of it."""

import tomllib

import numpy as np
import pytest

from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.folder.records import read_table
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams

DEVICES, SEED = 12, 4
LATE = {"late": "keep", "delay_knowledge": "planned", "plan_quantile": 0.3}


def run(folder, rounds=60, availability=None, devices=None, interruption="abort", policy="random", **knobs):
    half = {"model": "bernoulli", "probability": 0.5}
    values = {
        "seed": SEED,
        "rounds": rounds,
        "devices": {"count": DEVICES, **(devices or {})},
        "availability": {**(availability or half), "interruption": interruption},
        "round": {"payload_bits": 17_881_664.0, **knobs},
        "data": {"dataset": "none", "partition": "fedteddi"},
        "learning": {"training": "none", "pretrain": True},
        "selection": {"policy": policy},
    }
    result = simulation.run(parse(values, "test"), folder)
    return result, read_table(folder, "rounds"), read_table(folder, "activities")


def draws(slots, probability=0.5):
    """Who is there in each slot by the law itself, [slots, devices]."""
    return Streams(SEED).uniform("availability", np.arange(DEVICES), np.arange(slots)[:, None]) < probability


@pytest.mark.parametrize("interruption", ["abort", "pause"])
@pytest.mark.parametrize(
    "knobs", [{"leftover": "equal_finish"}, {"admission": "count", "count": 5, "allocator": "equal_share"}], ids=str
)
@pytest.mark.parametrize("model", [{"model": "bernoulli", "probability": 0.5}, {"model": "markov"}], ids=str)
def test_nobody_leaves_in_the_middle_of_a_round(tmp_path, model, knobs, interruption):
    _, rounds, acts = run(tmp_path / "run", 60, model, interruption=interruption, **knobs)
    assert rounds["dropped"].sum() == 0
    assert not set(acts["outcome"]) & {"dropped", "paused"}
    assert rounds["selected"].sum() > 100


def test_the_candidates_of_a_round_are_those_drawn_for_it_under_every_policy_and_close(tmp_path):
    there = draws(60)
    assert there.any(axis=1).all()
    for policy, knobs in (("random", {}), ("best-channel", {"leftover": "equal_finish"}), ("random", {"tmax_s": 2.0})):
        _, rounds, acts = run(tmp_path / f"{policy}-{len(knobs)}-{knobs.get('tmax_s')}", policy=policy, **knobs)
        assert rounds["candidates"].tolist() == there.sum(axis=1).tolist()
        for number, mine in acts.groupby("round"):
            assert there[number - 1, mine["device"].unique()].all()


def test_each_wait_for_enough_devices_lasts_a_deadline_and_has_a_draw_of_its_own(tmp_path):
    _, rounds, _ = run(tmp_path / "run", 40, min_candidates=8, close="deadline", tmax_s=1.5)
    counts = draws(5000).sum(axis=1)
    slots = np.flatnonzero(counts >= 8)[:40]
    assert rounds["candidates"].tolist() == counts[slots].tolist()
    assert rounds["t_start_s"].to_numpy() == pytest.approx(slots * 1.5)
    assert len(slots) < slots[-1]


@pytest.mark.parametrize(("limit", "most"), [("STEP_LIMIT", 50), ("DRAW_LIMIT", 49 * 2 * 12)])
def test_a_wait_that_does_not_end_is_given_up_with_the_remedy(tmp_path, monkeypatch, limit, most):
    monkeypatch.setattr(f"edgesim.engine.check_in.{limit}", most)
    rare = {"model": "bernoulli", "probability": 0.01}
    said = (
        r"^no round was finished: fewer than 12 devices are ever available again, as far as was searched \(up to 50 s "
        r"of the 30 years of availability\.search_s, since .*; raise availability\.probability .*, or lower round\.min"
    )
    with pytest.raises(EdgesimError, match=said):
        run(tmp_path / "run", 5, rare, min_candidates=12)


@pytest.mark.parametrize("interruption", ["abort", "pause", "ignore"])
@pytest.mark.parametrize("sharing", [{}, {"leftover": "equal_finish"}], ids=str)
def test_latecomers_work_in_slots_in_which_their_device_is_there(tmp_path, interruption, sharing):
    _, rounds, acts = run(tmp_path / "run", 120, interruption=interruption, **LATE, **sharing)
    there = draws(120)
    start_s = rounds["t_start_s"].to_numpy()
    away, begins_at_a_start, ends_at_a_start = 0, [], []
    for row in acts.itertuples():
        first = int(np.searchsorted(start_s, row.t_start_s, "right")) - 1
        last = int(np.searchsorted(start_s, row.t_end_s, "left")) - 1
        away += not there[first : last + 1, row.device].all()
        begins_at_a_start.append(row.t_start_s in start_s)
        ends_at_a_start.append(row.t_end_s in start_s)
    assert rounds["late"].sum() > 20
    left = acts["outcome"].isin(["dropped", "paused"])
    assert all(np.array(ends_at_a_start)[left])
    if interruption == "ignore":
        assert away > 10
        assert not left.any()
        return
    assert away == 0
    assert set(acts["outcome"][left]) == {"dropped" if interruption == "abort" else "paused"}
    assert left.sum() > 10
    if interruption == "pause":
        # What goes on after a pause began in an earlier round than the one in which it goes on, and loses no bit.
        uploads = acts.query("activity == 'upload'").sort_values("t_start_s")
        whole = 0
        for _, mine in uploads.groupby("device"):
            sent = 0.0
            for row in mine.itertuples():
                sent += row.bits
                if row.outcome == "done":
                    assert sent == pytest.approx(17_881_664.0, rel=1e-6)
                    whole += 1
                if row.outcome != "paused":
                    sent = 0.0
        assert whole > 30
        assert np.array(begins_at_a_start)[acts["activity"] == "upload"].sum() > 10


def test_batteries_are_charged_while_the_server_waits_and_one_that_never_is_ends_the_run(tmp_path):
    battery = {"battery_j": 30.0, "battery_start": 0.5, "battery_reserve": 0.4}
    result, rounds, _ = run(tmp_path / "waits", 60, devices={**battery, "recharge_w": 0.2}, min_candidates=6)
    assert result.reason == "all rounds done"
    counts = draws(10_000).sum(axis=1)
    gaps_s = rounds["t_start_s"].to_numpy()[1:] - rounds["t_end_s"].to_numpy()[:-1]
    assert gaps_s == pytest.approx(np.round(gaps_s))
    assert gaps_s.max() >= 1
    # A round's draw is that of the slots before it: rounds and waits.
    slots = np.arange(60) + np.concatenate([[rounds["t_start_s"].iloc[0]], gaps_s]).cumsum().round().astype(int)
    assert np.all(rounds["candidates"] <= counts[slots])
    assert np.any(rounds["candidates"] < counts[slots])
    result, rounds, _ = run(tmp_path / "empty", 60, devices=battery, min_candidates=6)
    assert result.reason.startswith("fewer than 6 devices are ever available and charged again, as far as ")
    assert 0 < len(rounds) < 60


def test_the_config_of_a_run_says_its_slots_and_reads_back(tmp_path):
    def written(name, availability, **knobs):
        run(tmp_path / name, 1, availability, **knobs)
        return tomllib.loads((tmp_path / name / "config.toml").read_text())

    half = {"model": "bernoulli", "probability": 0.5}
    found = written("rounds", half)
    assert found["availability"] == {**half, "slots": "rounds", "interruption": "abort"}
    assert simulation.why_run(tmp_path / "rounds", simulation.complete(parse(found, "test"))) is None
    assert written("seconds", {**half, "slot_s": 0.3})["availability"] == {
        **half, "slot_s": 0.3, "interruption": "abort",
    }  # fmt: skip
    assert written("solar", {"model": "solar"}, tmax_s=2.0)["availability"]["slot_s"] == 2.0
    without = {"protocol": "asynchronous", "admission": "count", "count": 3, "tmax_s": 2.0}
    assert written("no rounds", half, **without)["availability"] == {**half, "slot_s": 2.0, "interruption": "abort"}
    for protocol in ("asynchronous", "buffered"):
        with pytest.raises(EdgesimError, match=r"availability\.slots = 'rounds' needs round\.protocol = 'synchronous'"):
            run(tmp_path / "refused", 1, {**half, "slots": "rounds"}, **without | {"protocol": protocol})
        assert not (tmp_path / "refused").exists()


def test_seconds_away_of_latecomers_are_those_of_the_slots_in_which_they_were_away(tmp_path):
    _, rounds, acts = run(tmp_path / "run", 60, interruption="ignore", leftover="idle", close="deadline", **LATE)
    starts_s = rounds["t_start_s"].to_numpy()
    there = draws(60)
    ends_s = np.append(starts_s[1:], np.inf)
    away_s = [
        np.where(
            there[:, row.device],
            0.0,
            np.clip(np.minimum(ends_s, row.t_end_s) - np.maximum(starts_s, row.t_start_s), 0, None),
        ).sum()
        for row in acts.itertuples()
    ]
    assert acts["away_s"].tolist() == pytest.approx(away_s, abs=1e-9)
    crossing = acts["t_end_s"].to_numpy() > ends_s[np.searchsorted(starts_s, acts["t_start_s"], "right") - 1] + 1e-9
    assert (acts["away_s"][crossing] > 0).any()
    assert (acts["away_s"] == 0).any()
