"""When the model is tested: by simulated seconds against a run that tests every model."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from whole_runs import Played, play, slow_but

from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.folder.records import SCHEMAS, read_table
from edgesim.learning.evaluation import predictions
from edgesim.learning.learner import TorchLearner

HUNDRED = Path(__file__).parents[1] / "compared" / "hundred-classes.npz"
TESTED = ["test_loss", "test_accuracy", "macro_f1"]
COUNT = {"admission": "count", "count": 4, "payload_bits": 1e6, "tmax_s": 0.8}
PROTOCOLS = {
    "synchronous": {"payload_bits": 17_881_664.0, "tmax_s": 0.8},
    "late": COUNT | {"late": "keep", "allocator": "equal_share", "payload_bits": 6e6},
    "buffered": COUNT | {"protocol": "buffered", "protocol_options": {"buffer": 3}},
    "asynchronous": COUNT | {"protocol": "asynchronous"},
}


BASE = {"seed": 3, "stop_at_s": 3.0, "learning": {"pretrain": False}, "data": {"partition": "fedteddi"}}


def run(folder, evaluation, round_=PROTOCOLS["synchronous"], **others) -> Played:
    played = play(folder, BASE, {"evaluation": evaluation, "round": round_}, **others)
    assert played.result.status == "finished"
    return played


def instants(played) -> pd.Series:
    """Instants, by the model that was in force."""
    return played.metric("tested_at_s")


OFTEN, SELDOM = [(0.1, protocol) for protocol in PROTOCOLS], [(0.7, protocol) for protocol in PROTOCOLS]


@pytest.mark.parametrize(("every_s", "protocol"), slow_but([*OFTEN, (0.7, "buffered")], OFTEN + SELDOM))
def test_at_each_multiple_the_model_in_force_is_tested_once_and_nothing_else_changes(
    tmp_path, monkeypatch, protocol, every_s
):
    tested_all, calls, plain = run(tmp_path / "all", {"every": 1}, PROTOCOLS[protocol]), [], TorchLearner.evaluate
    monkeypatch.setattr(TorchLearner, "evaluate", lambda self, frame: calls.append(frame) or plain(self, frame))
    seldom = run(tmp_path / "time", {"every_s": every_s}, PROTOCOLS[protocol])
    all_tested, by_time = tested_all.rounds, seldom.rounds
    at_s = every_s * np.arange(1, int(3.0 / every_s + 1e-9) + 1)
    in_force = np.searchsorted(all_tested["t_end_s"].to_numpy(), at_s, side="right")
    assert instants(seldom).index.tolist() == in_force.tolist()
    assert instants(seldom).tolist() == pytest.approx(at_s.tolist())
    tested = by_time["round"].isin(in_force)
    assert tested.any()
    expected = all_tested.copy()
    expected.loc[~tested, TESTED] = np.nan
    expected["model_held"] = expected["model_held"].astype(object).where(tested, None)
    pd.testing.assert_frame_equal(by_time.astype({"model_held": object}), expected)
    assert len(calls) == 1 + tested.sum(), "the start model and each model once"
    for table in set(SCHEMAS) - {"timing", "rounds", "metrics"}:
        assert getattr(seldom, table).equals(getattr(tested_all, table)), table
    per_class = seldom.metrics.query("name == 'class_accuracy' and round > 0")
    assert set(per_class["round"]) == set(by_time["round"][tested])


def test_an_instant_at_which_a_round_ends_falls_to_the_model_that_it_makes(tmp_path):
    """0.1 + 0.1 + 0.1 is above 0.3 by a rounding step; rounds 3, 6, 9 end at the instants all the same."""
    rounds = PROTOCOLS["synchronous"] | {"tmax_s": 0.1, "close": "deadline", "payload_bits": 1e5}
    played = run(tmp_path, {"every_s": 0.3}, rounds, stop_at_s=0.9)
    assert played.rounds.loc[played.rounds["test_accuracy"].notna(), "round"].tolist() == [3, 6, 9]
    assert instants(played).index.tolist() == [3, 6, 9]


def test_the_last_model_of_a_frame_is_tested_at_its_rows_end_and_the_best_is_kept(tmp_path):
    """So often that every model is tested, the further frame starts from the best one, as when testing each round."""
    data = {"dataset": str(HUNDRED), "samples_per_device": 6}
    deadline = PROTOCOLS["synchronous"] | {"close": "deadline", "payload_bits": 1e6}
    every, often, seldom = (
        run(tmp_path / str(of), of, deadline, stop_at_s=None, rounds=[3, 3], data=data)
        for of in ({"every": 1}, {"every_s": 0.4}, {"every_s": 100.0})
    )
    assert often.rounds.equals(every.rounds)
    assert (often.folder / "model.safetensors").read_bytes() == (every.folder / "model.safetensors").read_bytes()
    assert seldom.rounds.loc[seldom.rounds["test_accuracy"].notna(), "round"].tolist() == [3, 6]
    assert instants(seldom).to_dict() == pytest.approx({3: 2.4, 6: 4.8})


def test_a_model_that_diverged_is_named_by_the_round_that_made_it(tmp_path, monkeypatch):
    tests = []

    def broken(*arguments):
        losses, predicted = predictions(*arguments)
        tests.append(1)
        return (losses if len(tests) == 1 else losses * np.inf), predicted

    monkeypatch.setattr("edgesim.learning.learner.predictions", broken)
    knobs = PROTOCOLS["synchronous"] | {"close": "deadline"}
    more = {"stop_at_s": None, "rounds": 5, "round": knobs, "evaluation": {"every_s": 1.7}}
    result = play(tmp_path, BASE, more).result
    assert (result.status, result.reason.partition(":")[0]) == ("failed", "round 2")
    assert read_table(tmp_path, "rounds")["round"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"evaluation": {"every": 2, "every_s": 5.0}}, r"\.every = 2 does not go with evaluation\.every_s = 5"),
        ({"evaluation": {"every_s": 0.0}}, r"evaluation\.every_s: .* greater than or equal to 0\.001 \(got 0\.0\)"),
        ({"stop_at_s": 4.0, "evaluation": {"every_s": 5.0}}, r"every_s \(5\) must not be above stop_at_s \(4\)"),
    ],
)
def test_times_of_testing_that_cannot_be_are_refused(values, message):
    with pytest.raises(EdgesimError, match=message):
        parse(values, "test")


@pytest.mark.parametrize("stop_at_s", [6.0, 6.3])
def test_until_the_cloud_has_averaged_the_model_before_is_in_force(tmp_path, stop_at_s):
    wires = Path("topologies/three-cells.toml").read_text().replace("latency_s = 0.02", "latency_s = 0.7")
    (tmp_path / "slow-wires.toml").write_text(wires)
    topology = {"file": str(tmp_path / "slow-wires.toml"), "aggregation": "hierarchical", "cloud_every": 2}
    knobs = {"topology": topology, "stop_at_s": stop_at_s, "devices": {"radius_m": 200.0}}
    played = run(tmp_path / "run", {"every_s": 0.1}, {"payload_bits": 4e6, "tmax_s": 0.9}, **knobs)
    rounds, told = played.rounds, instants(played)
    ends_s = rounds["t_end_s"].to_numpy()
    assert np.diff(np.append(0.0, ends_s)).max() > 1.2, "the way to the cloud takes its time"
    at_s = 0.1 * np.arange(1, int(stop_at_s / 0.1 + 1e-9) + 1)
    assert told.tolist() == pytest.approx(at_s.tolist())
    assert told.index.tolist() == np.searchsorted(ends_s, at_s + 1e-9, side="right").tolist()
    with_values = rounds.dropna(subset="test_accuracy")["round"]
    assert set(told.index) - {0} == set(with_values)
