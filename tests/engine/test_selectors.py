"""The selectors of FedDance's comparison in whole runs: any admission, any allocator, devices that come and go."""

import numpy as np
import pytest

from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.folder.records import read_table
from edgesim.selection import SELECTORS
from edgesim.simulation import composition as simulation

POLICIES = ["feddance", "oort", "refl", "safa", "safa-lite", "fedcs", "availability-first"]
BY_COUNT = {"admission": "count", "count": 5, "allocator": "equal_share", "computes": "selected", "close": "deadline"}
BY_BAND = {"admission": "band", "leftover": "equal_finish"}


def config(policy, knobs, training="real", rounds=8, **options):
    return parse(
        {
            "seed": 2,
            "rounds": rounds,
            "devices": {"count": 24},
            "availability": {"model": "bernoulli", "probability": 0.7},
            "round": {"tmax_s": 0.8, "payload_bits": 17_881_664.0, **knobs},
            "learning": {"training": training, "pretrain": False, "steps": 2},
            "evaluation": {"every": 8},
            "selection": {"policy": policy, **options},
            "data": {"partition": "fedteddi"},
        },
        "test",
    )


@pytest.mark.parametrize("knobs", [BY_COUNT, BY_BAND], ids=["count", "band"])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_selector_works_with_any_admission_and_runs_repeat_themselves(policy, knobs, tmp_path):
    for name in "ab":
        simulation.run(config(policy, knobs, **({"cool_down": 1} if policy == "refl" else {})), tmp_path / name)
    rounds, updates = (read_table(tmp_path / "a", name) for name in ("rounds", "updates"))
    assert rounds["selected"].sum() > 0
    assert len(updates) > 0
    assert np.isfinite(updates["loss"]).all()
    if knobs is BY_COUNT:
        assert rounds["selected"].max() <= 5
        assert (rounds["selected"] <= rounds["candidates"]).all()
    assert rounds["bandwidth_hz"].max() <= 20e6 * (1 + 1e-9)
    for table in ("rounds", "activities", "updates"):
        assert (tmp_path / "a" / f"{table}.parquet").read_bytes() == (tmp_path / "b" / f"{table}.parquet").read_bytes()


@pytest.mark.parametrize("policy", SELECTORS)
def test_a_timing_only_run_refuses_a_policy_that_looks_at_training_and_runs_with_any_other(policy, tmp_path):
    this = config(policy, BY_COUNT, training="none", rounds=3)
    if SELECTORS[policy].looks_at - {"class_counts"}:
        with pytest.raises(EdgesimError, match=r"needs learning\.training = 'real', not 'none'"):
            simulation.run(this, tmp_path)
        assert not (tmp_path / "rounds.parquet").exists()
    else:
        simulation.run(this, tmp_path)
        assert read_table(tmp_path, "rounds")["selected"].sum() > 0


@pytest.fixture
def witness(monkeypatch):
    """Random choice that keeps what it sees and hears in every round."""

    class Witness(SELECTORS["random"]):
        looks_at = frozenset({"training_losses", "training_accuracies"})
        views, reports = [], []

        def choose(self, view):
            self.views.append(view)
            return super().choose(view)

        def hear(self, report):
            self.reports.append(report)

    monkeypatch.setitem(SELECTORS, "random", Witness)
    return Witness


def test_the_feedback_of_a_round_is_of_all_updates_merged_in_it_late_ones_too(witness, tmp_path):
    """Planned delays miss one upload in five: what a latecomer brings is heard of in the round it arrives in."""
    knobs = {"delay_knowledge": "planned", "plan_quantile": 0.8, "late": "keep"}
    simulation.run(config("random", knobs, rounds=10), tmp_path)
    updates, acts = (read_table(tmp_path, name) for name in ("updates", "activities"))
    began_s = {}
    for _, row in acts.sort_values("t_start_s").iterrows():
        began_s.setdefault((row["round"], row["device"]), row["t_start_s"])
    ended_s = acts[acts["outcome"] == "done"].groupby(["round", "device"])["t_end_s"].max()
    late = 0
    for number, report in enumerate(witness.reports, start=1):
        merged = updates[updates["round"] == number]
        heard, devices = report.feedback, merged["device"].tolist()
        assert heard.ids.tolist() == devices
        assert heard.loss.tolist() == pytest.approx(merged["loss"].tolist(), rel=1e-6)
        assert heard.accuracy.tolist() == pytest.approx(merged["accuracy"].tolist(), rel=1e-6)
        assert (heard.loss_rms >= heard.loss * (1 - 1e-9)).all()
        assert heard.duration_s == pytest.approx([ended_s[number, m] - began_s[number, m] for m in devices])
        stale = merged[merged["staleness"] > 0]["device"].to_numpy()
        assert not np.isin(stale, report.arrived).any()
        late += len(stale)
    assert late > 5


@pytest.mark.parametrize(
    ("ends", "horizon"),
    [({"stop_at_s": 5.0}, 6), ({"stop_at_s": 2.4}, 3), ({"stop_at_s": 0.9}, 1), ({"rounds": 7}, 7)],
)
def test_the_horizon_of_a_frame_is_its_rounds_or_those_that_fit_into_the_time(ends, horizon, witness, tmp_path):
    """K_l of FedTeddi: floor(stop_at_s / tmax_s), here of 0.8 s, although rounds may end sooner and be more."""
    values = {"round": {"tmax_s": 0.8, "payload_bits": 1e6, "close": "arrivals"}, "devices": {"count": 4}}
    world = {"data": {"dataset": "digits", "partition": "iid"}, "learning": {"pretrain": True, "steps": 1}}
    simulation.run(parse({**values, **world, **ends}, "test"), tmp_path)
    assert len(witness.views) >= horizon
    assert {view.rounds_in_frame for view in witness.views} == {horizon}
    assert [view.round_in_frame for view in witness.views] == list(range(1, len(witness.views) + 1))


def test_feddance_and_oort_hear_of_latecomers(tmp_path):
    """Planned delays miss one upload in seven; what they bring counts when it arrives."""
    knobs = {"delay_knowledge": "planned", "plan_quantile": 0.8, "late": "keep"}
    for policy in ("feddance", "oort"):
        simulation.run(config(policy, knobs, rounds=12), tmp_path / policy)
        assert (read_table(tmp_path / policy, "updates")["staleness"] > 0).any()


@pytest.mark.parametrize(
    "protocol", [{"protocol": "asynchronous"}, {"protocol": "buffered", "protocol_options": {"buffer": 3}}]
)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_selector_works_without_rounds(policy, protocol, tmp_path):
    knobs = {"admission": "count", "count": 5, **protocol}
    simulation.run(config(policy, knobs, **({"cool_down": 1} if policy == "refl" else {})), tmp_path)
    updates_per_model = 3 if protocol["protocol"] == "buffered" else 1
    assert read_table(tmp_path, "rounds")["arrived"].tolist() == [updates_per_model] * 8


def test_a_policy_that_declines_everybody_for_ever_ends_the_run_with_one_line(tmp_path):
    """After 24 tasks every device rests for 50 models, and nobody is at work to make one."""
    knobs = {"protocol": "asynchronous", "admission": "count", "count": 5}
    this = config("refl", knobs, training="none", rounds=40, cool_down=50)
    always = this.model_copy(update={"availability": type(this.availability)()})
    with pytest.raises(EdgesimError, match="'refl', round 25: takes none of the 24 devices that are there") as refusal:
        simulation.run(always, tmp_path)
    assert "\n" not in str(refusal.value)
    assert len(read_table(tmp_path, "rounds")) == 24
