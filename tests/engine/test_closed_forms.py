"""Whole runs against closed forms: the longest of many compute delays, and energy that adds up."""

import numpy as np
import pytest

from edgesim.analysis.energy_use import energy_by_activity_j, energy_by_device_j
from edgesim.analysis.waste import totals, work_by_kind
from edgesim.config_file import parse
from edgesim.folder.records import read_table
from edgesim.simulation import composition as simulation

PAPER_CNN_BITS = 17_881_664.0


@pytest.mark.parametrize("devices", [1, 5, 30])
def test_without_an_uplink_a_round_lasts_as_long_as_the_longest_of_its_compute_delays(tmp_path, devices):
    # The largest of K delays a m + (m/mu) Exp(1) has mean a m + (m/mu) H_K and variance (m/mu)^2 sum 1/k^2. One bit on
    # an equal share of the band takes nanoseconds, and nobody misses 10 s.
    count = 400
    values = {
        "seed": 2,
        "rounds": count,
        "devices": {"count": devices, "a_s_per_sample": 0.001, "mu_samples_per_s": 800.0},
        "data": {"dataset": "none", "partition": "fedteddi"},
        "learning": {"training": "none", "steps": 5, "batch_size": 32, "pretrain": True},
        "round": {"payload_bits": 1.0, "tmax_s": 10.0, "admission": "count", "count": devices},
    }
    values["round"] |= {"allocator": "equal_share"}
    simulation.run(parse(values, "test"), tmp_path)
    rounds = read_table(tmp_path, "rounds")
    assert rounds["arrived"].tolist() == [devices] * count
    k = np.arange(1, devices + 1)
    spread_s = 160 / 800.0
    expected_s = 0.001 * 160 + spread_s * np.sum(1 / k)
    standard_error_s = spread_s * np.sqrt(np.sum(1 / k**2) / count)
    lasted_s = rounds["t_end_s"] - rounds["t_start_s"]
    assert lasted_s.mean() == pytest.approx(expected_s, abs=3 * standard_error_s)
    assert rounds["t_end_s"].iloc[-1] == pytest.approx(lasted_s.sum())


BERNOULLI = {"model": "bernoulli", "probability": 0.8, "slot_s": 0.3}


@pytest.mark.parametrize(
    ("outcomes", "sections"),
    [
        ({"done", "unscheduled"}, {"round": {"download_s": 0.05}}),
        (
            {"done", "unscheduled", "late", "dropped"},
            {"round": {"delay_knowledge": "planned", "plan_quantile": 0.6}, "availability": BERNOULLI},
        ),
        (
            {"done", "unscheduled", "dropped"},
            {
                "round": {"delay_knowledge": "planned", "late": "keep"},
                "radio": {"sharing": "reshared", "fading": "rayleigh"},
                "devices": {"battery_j": 3.0, "recharge_w": 0.3, "battery_start": "drawn"},
            },
        ),
        ({"done", "unscheduled"}, {"topology": {"file": "three-cells"}, "devices": {"count": 60}}),
        ({"done", "unscheduled"}, {"devices": {"idle_power_w": 0.25}}),
        ({"done", "unscheduled", "dropped"}, {"devices": {"idle_power_w": 0.25, "battery_j": 0.6, "recharge_w": 0.3}}),
    ],
)
def test_energy_is_power_times_time_and_adds_up_over_activities_devices_rounds_and_kinds(tmp_path, outcomes, sections):
    values = {
        "seed": 7,
        "rounds": 25,
        "data": {"partition": "fedteddi"},
        "learning": {"training": "none", "pretrain": True},
        **sections,
        "round": {"payload_bits": PAPER_CNN_BITS, "tmax_s": 0.8, **sections.get("round", {})},
    }
    simulation.run(parse(values, "test"), tmp_path)
    rounds, acts, updates, devices, metrics = (
        read_table(tmp_path, name) for name in ("rounds", "activities", "updates", "devices", "metrics")
    )
    assert set(acts["outcome"]) == outcomes
    assert (updates["staleness"] > 0).any() == (values["round"].get("late") == "keep")
    power_w = acts["activity"].map({"compute": 2.0, "upload": 10 ** ((23 - 30) / 10) / 0.35, "download": 0.9})
    joules = power_w * (acts["t_end_s"] - acts["t_start_s"])
    assert acts["energy_j"].to_numpy() == pytest.approx(joules.to_numpy(), rel=1e-12)
    count, equipped = devices["device"].nunique(), {"battery_j": np.inf, **values.get("devices", {})}
    idle_j = metrics[(metrics["name"] == "idle_j") & (metrics["key"] == "")]["value"].sum()
    end_s = rounds["t_end_s"].iloc[-1]
    if np.isinf(equipped["battery_j"]):
        assert idle_j == pytest.approx(count * equipped.get("idle_power_w", 0.0) * end_s)
    else:
        left_j = metrics[(metrics["name"] == "battery_j") & (metrics["key"] == "mean")]["value"].iloc[-1]
        given_j = equipped["battery_j"] + equipped["recharge_w"] * end_s
        # What a full battery could not take is lost.
        assert joules.sum() + idle_j + count * left_j <= count * given_j * (1 + 1e-12)
    whole_j = joules.sum() + idle_j
    by_round = acts.groupby("round")["energy_j"].sum().reindex(rounds["round"], fill_value=0.0).to_numpy()
    idle_by_round = metrics[(metrics["name"] == "idle_j") & (metrics["key"] == "")].set_index("round")["value"]
    by_round = by_round + idle_by_round.reindex(rounds["round"], fill_value=0.0).to_numpy()
    assert rounds["energy_j"].to_numpy() == pytest.approx(by_round, rel=1e-12)
    assert rounds["energy_j"].sum() == pytest.approx(whole_j)
    assert energy_by_activity_j(acts, metrics).to_numpy().sum() == pytest.approx(whole_j)
    by_device = np.asarray(energy_by_device_j(acts, metrics, devices))
    assert len(by_device) == devices["device"].nunique()
    assert by_device.sum() == pytest.approx(whole_j)
    assert totals(work_by_kind(acts, updates))["joules"].sum() == pytest.approx(joules.sum())
