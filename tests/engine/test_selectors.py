"""The selectors of FedDance's comparison in whole runs: any admission, any allocator, devices that come and go."""

import numpy as np
import pytest

from edgesim import simulation
from edgesim.config import parse
from edgesim.errors import EdgesimError
from edgesim.records import read_table

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


@pytest.mark.parametrize("policy", POLICIES)
def test_a_timing_only_run_refuses_whoever_looks_at_training(policy, tmp_path):
    this = config(policy, BY_COUNT, training="none", rounds=3)
    if policy in ("feddance", "oort"):
        with pytest.raises(EdgesimError, match="training_losses, which a timing-only run does not have"):
            simulation.run(this, tmp_path)
    else:
        simulation.run(this, tmp_path)
        assert read_table(tmp_path, "rounds")["selected"].sum() > 0


def test_feddance_and_oort_hear_of_latecomers(tmp_path):
    """Planned delays miss one upload in seven; what they bring counts when it arrives."""
    knobs = {"delay_knowledge": "planned", "plan_quantile": 0.8, "late": "keep"}
    for policy in ("feddance", "oort"):
        simulation.run(config(policy, knobs, rounds=12), tmp_path / policy)
        assert (read_table(tmp_path / policy, "updates")["staleness"] > 0).any()


@pytest.mark.parametrize("protocol", [{"protocol": "asynchronous"}, {"protocol": "buffered", "buffer": 3}])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_selector_works_without_rounds(policy, protocol, tmp_path):
    knobs = {"admission": "count", "count": 5, **protocol}
    simulation.run(config(policy, knobs, **({"cool_down": 1} if policy == "refl" else {})), tmp_path)
    assert read_table(tmp_path, "rounds")["arrived"].tolist() == [protocol.get("buffer", 1)] * 8


def test_a_policy_that_declines_everybody_for_ever_ends_the_run_with_one_line(tmp_path):
    """After 24 tasks every device rests for 50 models, and nobody is at work to make one."""
    knobs = {"protocol": "asynchronous", "admission": "count", "count": 5}
    this = config("refl", knobs, training="none", rounds=40, cool_down=50)
    always = this.model_copy(update={"availability": type(this.availability)()})
    with pytest.raises(EdgesimError, match="'refl' takes none of the 24 devices that are there") as refusal:
        simulation.run(always, tmp_path)
    assert "\n" not in str(refusal.value)
    assert len(read_table(tmp_path, "rounds")) == 24
