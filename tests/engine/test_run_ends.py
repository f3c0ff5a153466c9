"""Work in flight when a run stops has rows and costs what it cost; no round has it."""

import pandas as pd
import pytest
from typed_commands import printed
from whole_runs import TIMED, Played, phones, stays
from whole_runs import play as simulate

from edgesim.analysis.energy_use import energy_by_activity_j, energy_by_device_j
from edgesim.analysis.measures import measure
from edgesim.analysis.metrics import scheduled_share
from edgesim.analysis.runs import RunFolder
from edgesim.base.errors import EdgesimError
from edgesim.plots.battery import draw_battery
from edgesim.plots.energy_bars import joules_per_round
from edgesim.tables.show import print_run

SENDING_W = 10 ** ((23 - 30) / 10) / 0.35


def play(folder, spans, rates_bps=(1e6,) * 9, **sections):
    """Phones that compute for 2 s and send for 3 s, at 1 Mbit/s, there in the given stays."""
    there = stays(folder, *((k, *span) for k, own in enumerate(spans) for span in own), after_end="absent")
    own = phones(folder, *((0.2, rate_bps) for _, rate_bps in zip(spans, rates_bps, strict=False)))
    base = {
        "round": {"admission": "count", "count": 2, "payload_bits": 3e6, "tmax_s": 10.0},
        "learning": {"steps": 1, "batch_size": 10},
    }
    return simulate(folder / "run", TIMED, own, there, base, sections)


def rows(activities: pd.DataFrame) -> list[tuple]:
    columns = ["round", "device", "task", "activity", "t_start_s", "t_end_s", "outcome"]
    return [
        tuple(round(value, 5) if isinstance(value, float) else value for value in row)
        for row in activities[columns].itertuples(index=False)
    ]


def test_fedbuff_in_which_every_update_is_lost_has_its_activities_and_joules(tmp_path):
    stays = [[(10.0 * k, 10.0 * k + 4.0) for k in range(9)]] * 2
    with pytest.raises(EdgesimError, match=r"^no model was made, since too few updates arrived: stop_at_s = 33; "):
        play(tmp_path, stays, stop_at_s=33.0, round={"protocol": "buffered", "protocol_options": {"buffer": 2}})
    played = Played(tmp_path / "run", None)
    assert played.rounds.empty
    acts = played.activities
    expected = []
    for device in (0, 1):
        for k in range(3):
            expected.append((1, device, k + 1, "compute", 10.0 * k, 10.0 * k + 2, "done"))
            expected.append((1, device, k + 1, "upload", 10.0 * k + 2, 10.0 * k + 4, "dropped"))
        expected.append((1, device, 4, "compute", 30.0, 32.0, "done"))
        expected.append((1, device, 4, "upload", 32.0, 33.00001, "cancelled"))
    assert rows(acts) == expected
    assert acts["energy_j"].sum() == pytest.approx(2 * (4 * 2 * 2.0 + 7 * SENDING_W), rel=1e-5)
    wasted = played.metric("wasted_j", "key")
    assert wasted.sum() == pytest.approx(acts["energy_j"].sum())
    assert wasted["unused"] == pytest.approx(2 * (2 * 2.0 + SENDING_W), rel=1e-5)
    text = printed(print_run, tmp_path / "run", 120)
    assert f"{acts['energy_j'].sum():,.1f} J" in text
    assert "unused" in text


def test_every_way_to_be_in_flight_when_a_round_is_cut(tmp_path):
    """Cut at 13 s, 3 s into the second round: one sends, one is away, one has not come."""
    stays = [[(0.0, 99.0)], [(0.0, 11.0), (14.0, 99.0)], [(50.0, 99.0)]]
    played = play(tmp_path, stays, stop_at_s=13.0, round={"close": "deadline"}, availability={"interruption": "pause"})
    assert played.rounds["round"].tolist() == [1]
    assert rows(played.activities.query("round == 2")) == [
        (2, 0, 2, "compute", 10.0, 12.0, "done"),
        (2, 0, 2, "upload", 12.0, 13.00001, "cancelled"),
        (2, 1, 2, "compute", 10.0, 11.0, "cancelled"),
    ]
    assert played.updates["task"].tolist() == [1, 1]


def test_what_waits_for_a_decision_that_never_falls_is_cancelled(tmp_path):
    knobs = {"delay_knowledge": "reported", "report_by_s": 9.0, "close": "deadline"}
    # Device 1 is paused over the stop, so that the last report does not come.
    stays = [[(0.0, 99.0)], [(0.0, 99.0)]]
    assert set(play(tmp_path, stays, stop_at_s=10.0, round=knobs).activities["outcome"]) == {"done"}
    stays = [[(0.0, 99.0)], [(0.0, 11.0), (60.0, 99.0)]]
    pause = {"interruption": "pause"}
    played = play(tmp_path / "cut", stays, stop_at_s=13.0, round=knobs, availability=pause)
    assert rows(played.activities.query("round == 2")) == [
        (2, 0, 2, "compute", 10.0, 12.0, "cancelled"),
        (2, 1, 2, "compute", 10.0, 11.0, "cancelled"),
    ]


def test_a_latecomer_that_is_kept_is_cancelled_when_nobody_comes_any_more(tmp_path):
    """The round closes at 4 s, an upload goes on and its device is the last to have been there; the other never is."""
    played = play(
        tmp_path,
        [[], [(0.0, 3.0)]],
        rates_bps=(1e7, 1e6),
        rounds=5,
        round={"late": "keep", "tmax_s": 4.0, "count": 1},
        availability={"interruption": "ignore"},
    )
    assert "ever available" in played.result.reason
    assert rows(played.activities) == [
        (2, 1, 1, "compute", 0.0, 2.0, "done"),
        (2, 1, 1, "upload", 2.0, 4.0, "cancelled"),
    ]
    assert played.rounds["energy_j"].tolist() == [0.0]
    assert played.updates.empty


@pytest.mark.parametrize("protocol", ["synchronous", "buffered"])
@pytest.mark.parametrize("battery", [{}, {"battery_j": 60.0, "recharge_w": 0.2}])
def test_all_totals_have_the_work_of_the_cut_round_and_means_over_rounds_do_not(tmp_path, protocol, battery):
    knobs = {
        "synchronous": {"close": "deadline"},
        "buffered": {"protocol": "buffered", "protocol_options": {"buffer": 3}},
    }[protocol]
    devices = {"idle_power_w": 0.1, **battery}
    played = play(tmp_path, [[(0.0, 999.0)]] * 4, stop_at_s=23.5, round=knobs, devices=devices)
    rounds, acts, metrics = played.rounds, played.activities, played.metrics
    last = rounds["round"].max()
    cut = acts[acts["round"] > last]
    assert set(cut["round"]) == {last + 1}
    assert (cut["outcome"] == "cancelled").any()
    run = RunFolder(tmp_path / "run", {}, 0)
    whole_j = acts["energy_j"].sum() + 4 * 0.1 * played.facts["t_end_s"]
    assert rounds["energy_j"].sum() < whole_j - 1
    assert measure(run, None)["energy_j"] == pytest.approx(whole_j)
    assert measure(run, None)["bits_up"] == acts.query("activity == 'upload'")["bits"].sum()
    assert energy_by_activity_j(acts, metrics).to_numpy().sum() == pytest.approx(whole_j)
    assert energy_by_device_j(acts, metrics, run.devices).sum() == pytest.approx(whole_j)
    text = printed(print_run, tmp_path / "run", 120)
    assert f"│ {whole_j:,.1f} J (" in text
    sent_down = 3e6 * acts.groupby(["device", "task"]).ngroups
    assert f"│ bits down │ {sent_down:.4g} │" in " ".join(text.split())
    assert f"{cut['energy_j'].sum():,.1f} J of {cut['device'].nunique()} task(s)" in text
    # Per round: of the rounds that there were.
    assert sum(joules_per_round(run).values()) == pytest.approx(rounds["energy_j"].mean())
    sent = acts[(acts["activity"] == "upload") & (acts["outcome"] == "done") & (acts["round"] <= last)]["bits"].sum()
    spans_s = (rounds["t_end_s"] - rounds["t_start_s"]).sum()
    efficiency = measure(run, None)["spectral_efficiency_bps_per_hz"]
    assert efficiency == pytest.approx(sent / (run.bandwidth_hz * spans_s))
    assert scheduled_share(acts[acts["round"] <= last], run.devices["device"].unique(), len(rounds)).max() <= 1
    if battery:
        draw_battery(run)
