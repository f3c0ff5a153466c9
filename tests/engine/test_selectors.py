"""What selectors hear and see in whole runs; `test_resume_contract` plays and replays all of them."""

import numpy as np
import pytest
from refusals import in_one_line
from whole_runs import play

from edgesim.folder.records import read_table
from edgesim.selection import SELECTORS

BASE = {
    "seed": 2,
    "rounds": 8,
    "devices": {"count": 24},
    "availability": {"model": "bernoulli", "probability": 0.7},
    "round": {"tmax_s": 0.8, "payload_bits": 17_881_664.0},
    "learning": {"pretrain": False, "steps": 2},
    "evaluation": {"every": 8},
    "data": {"partition": "fedteddi"},
}
COUNT = {"admission": "count", "count": 5}


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
    played = play(tmp_path, BASE, rounds=10, round=knobs)
    updates, acts = played.updates, played.activities
    began_s = acts.groupby(["round", "device"])["t_start_s"].min()
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
    ("ends", "horizon"), [({"stop_at_s": 5.0}, 6), ({"stop_at_s": 2.4}, 3), ({"stop_at_s": 0.9}, 1), ({"rounds": 7}, 7)]
)
def test_the_horizon_of_a_frame_is_its_rounds_or_those_that_fit_into_the_time(ends, horizon, witness, tmp_path):
    """K_l of FedTeddi: floor(stop_at_s / tmax_s), here of 0.8 s, although rounds may end sooner and be more."""
    values = {"round": {"tmax_s": 0.8, "payload_bits": 1e6, "close": "arrivals"}, "devices": {"count": 4}}
    world = {"data": {"dataset": "digits", "partition": "iid"}, "learning": {"pretrain": True, "steps": 1}}
    play(tmp_path, values, world, ends)
    assert len(witness.views) >= horizon
    assert {view.rounds_in_frame for view in witness.views} == {horizon}
    assert [view.round_in_frame for view in witness.views] == list(range(1, len(witness.views) + 1))


def test_a_policy_that_declines_everybody_for_ever_ends_the_run_with_one_line(tmp_path):
    """After 24 tasks every device rests for 50 models, and nobody is at work to make one."""
    refl = {"selection": {"policy": "refl", "cool_down": 50}, "learning": {"training": "none"}, "availability": None}
    with in_one_line("'refl', round 25: takes none of the 24 devices that are there"):
        play(tmp_path, BASE, refl, rounds=40, round=COUNT | {"protocol": "asynchronous"})
    assert len(read_table(tmp_path, "rounds")) == 24
