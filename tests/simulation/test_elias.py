"""Whole runs whose uploads take as many bits as their values need: plan and truth, and what stays as it is."""

from typing import Any

import numpy as np
import pytest
from refusals import in_one_line
from whole_runs import configs, plays

from edgesim.engine.run_parts import RunParts
from edgesim.learning.charges import UploadCharges
from edgesim.learning.codecs.levels import elias
from edgesim.learning.codecs.qsgd import Qsgd
from edgesim.learning.transforms.encode import Encode
from edgesim.radio.bandwidth import min_bandwidth_hz
from edgesim.simulation.complete import complete
from edgesim.simulation.simulation import Simulation

P = 2_410
BOUND_BITS = 1 + 32 + 4 * P
BASE: dict[str, Any] = {
    "seed": 3,
    "rounds": 4,
    "devices": {"count": 6},
    "data": {"partition": "iid", "samples_per_device": 40},
    "radio": {"bandwidth_hz": 3e4},
    "round": {"tmax_s": 1.0},
    "learning": {"pretrain": False, "steps": 2, "back_end": "loop"},
    "evaluation": {"samples": 40},
    "upload": {"codec": "qsgd", "coding": "elias", "norm": "l2", "bucket": P},
}


config = configs(BASE)
run = plays(BASE)


def uploads_of(played):
    return played.uploads.query("outcome == 'done'")


def over_plan(played):
    rows = played.metrics.query("name == 'codec' and key == 'bits_over_plan'")
    return rows.set_index("round")["value"]


def test_uploads_take_the_bits_of_the_levels_that_the_server_decodes_and_end_early(run, monkeypatch):
    """Caught where the server receives: each decoded update has the levels whose code was charged."""
    bits, apply = [], Encode.apply

    def caught(self, updates):
        passed = apply(self, updates)
        for received in passed.received:
            step = received.abs()[received != 0].min()
            levels = (received / step).round().numpy().astype(np.int64)
            bits.append(elias.size_bits(levels, P, 7))
        return passed

    monkeypatch.setattr(Encode, "apply", caught)
    played = run()
    up = uploads_of(played)
    assert len(up) > 8
    assert sorted(bits) == sorted(up["bits"].astype(int))
    assert (up["bits"] < BOUND_BITS / 2).all()
    # Planned by the most that they can take, least bandwidths leave time over.
    ends = up["t_end_s"] - up["round"].map(played.rounds.set_index("round")["t_start_s"])
    assert (ends < 1.0).all()
    for number, rows in up.groupby("round"):
        assert over_plan(played)[number] == pytest.approx((rows["bits"] - BOUND_BITS).mean())
    assert played.facts["update_bits"] == BOUND_BITS


@pytest.mark.parametrize("outage", [None, 0.2])
def test_planned_by_its_last_message_on_a_band_shared_anew_each_has_what_that_asked_for(run, monkeypatch, outage):
    """Reservations are the least bandwidths of each device's message before, on the gain that is planned with."""
    asked, grant = [], RunParts.grant

    def caught(parts, working, ids, round, hz, *more):
        asked.append((round, dict(zip(ids.tolist(), hz, strict=True)), parts.learner.accounts.up.last_bits.copy()))
        return grant(parts, working, ids, round, hz, *more)

    monkeypatch.setattr(RunParts, "grant", caught)
    radio = {"sharing": "reshared", "fading": "none" if outage is None else "rayleigh"}
    knobs = {"outage": outage, "close": "deadline"}
    played = run(upload={"plan": "last"}, radio=radio, round=knobs, rounds=5)
    up, rounds = uploads_of(played), played.rounds.set_index("round")
    last, config_of = np.full(6, float(BOUND_BITS)), complete(config(radio=radio, round=knobs))
    with Simulation(config_of) as again:
        for number, hz_of, planned in asked:
            assert planned.tolist() == last.tolist()
            ids, start_s = np.array(sorted(hz_of)), rounds["t_start_s"][number]
            gain = again.world.gain(ids, number, start_s, np.zeros_like(ids))
            power_w = again.world.rx_power_w(ids, gain) * (-np.log1p(-outage) if outage else 1.0)
            starts_s = up[up["round"] == number].set_index("device")["t_start_s"].reindex(ids).to_numpy() - start_s
            needs_hz = min_bandwidth_hz(last[ids], 1.0 - starts_s, power_w, again.world.links[0].noise_w_per_hz)
            sent = ~np.isnan(starts_s)
            assert np.array([hz_of[m] for m in ids])[sent] == pytest.approx(needs_hz[sent], rel=1e-9)
            rows = up[up["round"] == number]
            last[rows["device"]] = rows["bits"]
    assert len(asked) == 5
    if outage is None:
        assert (rounds["late"] == 0).all()


def test_all_jobs_of_a_round_run_when_the_first_upload_begins_but_none_of_those_that_left(run):
    slots = {"model": "bernoulli", "probability": 0.85, "slot_s": 0.05}
    knobs = {"round": {"close": "deadline"}, "devices": {"mu_samples_per_s": 300.0}}
    played = run(availability=slots, rounds=10, **knobs)
    rounds, gone = played.rounds.set_index("round"), 0
    for number, work in played.activities.groupby("round"):
        first_s = work.query("activity == 'upload'")["t_start_s"].min()
        left = work[(work["outcome"] == "dropped") & (work["t_end_s"] < first_s)]
        here = rounds["selected"][number] - left["device"].nunique()
        assert rounds["jobs_trained"][number] == (0 if np.isnan(first_s) else here)
        gone += len(left)
    assert gone > 0


def test_without_training_the_most_is_charged_and_run_json_says_so(run):
    played = run(learning={"training": "none", "pretrain": True, "back_end": "auto"}, evaluation=None)
    assert uploads_of(played)["bits"].unique().tolist() == [BOUND_BITS]
    assert played.facts["update_bits_notice"].startswith("the most that an update takes: without training")


@pytest.mark.parametrize("numbers", [50 * P, 1_000])
def test_a_payload_of_another_model_takes_the_code_of_as_many_numbers(run, monkeypatch, numbers):
    """Those of the update again and again, or the first of them, each with a draw of its own."""
    coded, written_bits = [], Qsgd.written_bits

    def caught(codec, vector, uniforms, setting):
        coded.append((vector, uniforms, written_bits(codec, vector, uniforms, setting)))
        return coded[-1][-1]

    monkeypatch.setattr(Qsgd, "written_bits", caught)
    up = uploads_of(run(round={"payload_bits": 32 * numbers, "tmax_s": 4.0}, radio={"bandwidth_hz": 8e6}, rounds=1))
    assert sorted(bits for *_, bits in coded) == sorted(up["bits"])
    for vector, uniforms, _ in coded:
        assert len(vector) == len(uniforms) == numbers
        assert vector.equal(vector[:P].repeat(50)[:numbers])
        assert numbers <= P or not uniforms[:P].equal(uniforms[P : 2 * P])


def test_where_the_band_is_full_messages_above_their_plan_are_late_and_no_others(run, monkeypatch):
    over, write = {}, UploadCharges.write

    def caught(charges, grant, device):
        write(charges, grant, device)
        over.setdefault(device, []).append(grant.over_plan_bits)

    monkeypatch.setattr(UploadCharges, "write", caught)
    played = run(upload={"plan": "last"}, radio={"bandwidth_hz": 1.5e3}, rounds=8, round={"close": "deadline"})
    up = played.uploads
    outcomes = {device: rows["outcome"].tolist() for device, rows in up.groupby("device")}
    assert outcomes == {device: ["late" if bits > 0 else "done" for bits in each] for device, each in over.items()}
    assert {"late", "done"} == set(up["outcome"])


DOWN = {"codec": "qsgd", "rounding": "nearest", "coding": "elias"}


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"upload": {"size": "fit"}}, r"upload\.coding = 'elias' needs upload\.size = 'fixed', not 'fit'"),
        ({"upload": {"size": "stream"}}, r"upload\.size: 'stream' does not go with .* coding = 'elias'"),
        ({"upload": {"coding": "fixed", "plan": "last"}}, r"upload\.plan.* needs upload\.coding = 'elias'"),
        ({"download": DOWN}, r"'qsgd' needs download\.coding = 'fixed', not 'elias': bits by values are of"),
        ({"upload": {"plan": "mean"}}, r"upload\.plan: "),
        ({"upload": {"coding": "rice"}}, r"upload\.coding: "),
    ],
)
def test_what_does_not_go_with_sizes_by_values_is_refused_in_a_line(sections, message):
    with in_one_line(message):
        complete(config(**sections))


def test_the_plan_by_bounds_is_written_out():
    assert complete(config()).upload.plan == "bound"
    assert complete(config(upload={"coding": "fixed"})).upload.plan is None


def test_a_plan_by_the_last_message_is_noted_where_an_outage_is_promised(run):
    timing = {"learning": {"training": "none", "pretrain": True, "back_end": "auto"}, "evaluation": None, "rounds": 1}
    fading = {"radio": {"fading": "rayleigh"}, "round": {"outage": 0.1, "close": "deadline"}}
    noted = {plan: run(plan, upload={"plan": plan}, **timing, **fading).facts["notes"] for plan in ("bound", "last")}
    assert "outage" not in noted["bound"]
    assert noted["last"]["outage"].startswith("round.outage = 0.1 may not be kept with upload.plan = 'last'")
