"""FedProto: worked prototypes and models, the nearest prototype, and the accuracy of devices with own models."""

import json
import math
import re

import numpy as np
import pytest
import torch
from contract import work
from eight_weights import ROUNDS, START, THREE, check_sum, federation_of, module
from quadratics import Play
from torch.nn import functional
from typer.testing import CliRunner

from edgesim.commands.cli import app
from edgesim.config_file import parse
from edgesim.folder.records import read_table
from edgesim.learning.algorithms.fedproto import FedProto
from edgesim.learning.algorithms.records import Outputs, Sizes
from edgesim.learning.learner import TorchLearner
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams

PROTOTYPES = [
    [[0.2867569099, 0.0644859100], [-0.1273620036, 0.2934461972]],
    [[0.5624150526, -0.1411910397], [-0.0496217442, 0.1989518097]],
    [[0.5212491140, -0.1649999538], [-0.4184388966, 0.2583640346]],
]
NONE = [math.nan, math.nan]


def play(**options):
    return Play(FedProto, THREE, options, START, lr=0.5)


def test_prototypes_and_models_of_devices_that_train_their_own():
    alone = play()
    for ids, expected in zip(ROUNDS, PROTOTYPES, strict=True):
        alone.round(*ids)
        assert alone.state.shared["prototypes"].numpy() == pytest.approx(np.array(expected), abs=1e-10)
        assert alone.state.weights.tolist() == list(START)
    models = [check_sum(alone.kept[device]["start"]) for device in range(3)]
    assert models == pytest.approx([3.5736810786, 7.1009092253, 4.6237307547], abs=1e-10)


def test_without_the_term_each_device_trains_alone():
    """Device 1 trains in the first two rounds, four steps in all, as if there were no other device."""
    alone, weights = play(strength=0.0), torch.tensor(START, dtype=torch.float64)
    for ids in ROUNDS:
        alone.round(*ids)
    for _ in range(4):
        weights = weights - 0.5 * THREE[1].gradient(weights)
    assert alone.kept[1]["start"].tolist() == pytest.approx(weights.tolist(), abs=1e-12)


@pytest.mark.parametrize(("stale", "rows"), [(False, [True, False]), (True, [False, False])])
def test_a_class_that_nobody_brought_has_no_prototype_unless_the_last_one_stays(stale, rows):
    """Device 1 holds class 1 alone."""
    found = play(stale_prototypes=stale)
    found.round(0)
    found.round(1)
    assert found.state.shared["prototypes"].isnan().all(-1).tolist() == rows
    assert np.count_nonzero(found.ledger.counts) == 2 - sum(rows)
    found.round()
    assert found.state.shared["prototypes"].isnan().all(-1).tolist() == rows


def test_prototypes_may_count_by_samples():
    """Of class 0 device 0 has three samples and device 2 one."""
    equal, by_samples = play(), play(proto_weights="samples")
    jobs = equal.begin(0, 2)
    own = [equal.local.sent(equal._train(job)).up["prototypes"][0].numpy() for job in jobs]
    equal.round(0, 2)
    by_samples.round(0, 2)
    assert equal.state.shared["prototypes"][0].numpy() == pytest.approx((own[0] + own[1]) / 2, abs=1e-12)
    assert by_samples.state.shared["prototypes"][0].numpy() == pytest.approx((3 * own[0] + own[1]) / 4, abs=1e-12)


def test_the_nearest_prototype_decides_among_those_that_are_there():
    algorithm = FedProto.Local(FedProto.Options(), Sizes(0.0, 0, 1, 3, 2), Streams(0))
    outputs = Outputs(torch.tensor([[0.0, 0.0, 9.0]] * 2), torch.tensor([[1.0, 0.0], [0.0, 3.0]]))

    def predicted(table):
        return algorithm.scores(outputs, {"prototypes": torch.tensor(table)}).argmax(1).tolist()

    assert predicted([[0.0, 2.0], [2.0, 0.0], NONE]) == [1, 0]
    assert predicted([[0.0, 2.0], NONE, NONE]) == [0, 0]
    # Before anything was merged the head decides.
    assert predicted([NONE, NONE, NONE]) == [2, 2]


@pytest.mark.parametrize("average", [False, True])
def test_accuracies_of_a_whole_learner_are_those_of_the_models_that_devices_keep(average, monkeypatch):
    """Against predictions worked out here from the models and prototypes; device 2 was never merged."""
    test = np.random.default_rng(1).normal(size=(40, 1, 1, 2))
    test_labels = (test[:, 0, 0, 0] < test[:, 0, 0, 1]).astype(np.int64)
    config = simulation.complete(
        parse(
            {
                "devices": {"count": 3},
                "data": {"partition": "fedteddi"},
                "learning": {"pretrain": False, "lr": 0.5, "momentum": 0.0, "steps": 2, "precision": "float64"},
                "round": {"admission": "count", "count": 3},
                "algorithm": {"name": "fedproto", "average_weights": average},
            },
            "run.toml",
        )
    )
    monkeypatch.setattr("edgesim.learning.learner.new_model", lambda *_: module())
    learner = TorchLearner(config, federation_of(test, test_labels), Streams(0))
    before = learner.evaluate(1)
    assert before.further == {}
    for round, ids in ((1, (1,)), (2, (0,))):
        work(learner, round, ids)
    found = learner.evaluate(1)
    learner.close()
    models = [learner.global_weights] if average else [learner.kept[device]["start"] for device in (0, 1)]
    table = learner.states[0].shared["prototypes"]
    accuracies, heads, owns, softmaxes = [], [], [], []
    x, y = torch.from_numpy(test).flatten(1), torch.from_numpy(test_labels)
    for weights, held in zip(models, ([0, 1], [1]), strict=False):
        first, last = weights.view(2, 2, 2)
        features = torch.tanh(x @ first.T)
        nearest = torch.cdist(features, table).nan_to_num(nan=math.inf).argmin(1)
        accuracies.append(float((nearest == y).double().mean()))
        heads.append(float(((features @ last.T).argmax(1) == y).double().mean()))
        mine = torch.isin(y, torch.tensor(held))
        owns.append(float((nearest == y)[mine].double().mean()))
        softmaxes.append(functional.softmax(features @ last.T, 1))
    assert found.accuracy == pytest.approx(np.mean(accuracies))
    assert 0.5 < found.accuracy < 1
    expected = {"head": np.mean(heads)}
    if not average:
        expected["own_classes"] = np.mean(owns)
        # Device 0 alone was in the last merge.
        expected["ensemble"] = float((softmaxes[0].argmax(1) == y).double().mean())
    assert found.further == pytest.approx(expected)
    assert found.class_f1 == {}


def test_a_run_tells_which_model_it_saved_and_the_rows_of_accuracy(tmp_path):
    config = {
        "rounds": 2,
        "devices": {"count": 4},
        "data": {"partition": "iid", "samples_per_device": 12},
        "learning": {"pretrain": False, "steps": 2, "batch_size": 8},
        "round": {"admission": "count", "count": 3},
        "algorithm": {"name": "fedproto"},
    }
    assert simulation.run(simulation.complete(parse(config, "run.toml")), tmp_path).status == "finished"
    said = json.loads((tmp_path / "run.json").read_text())
    assert said["saved_model"].startswith("of the device with the lowest id")
    assert said["test_loss"].startswith("cross-entropy of the logits")
    rows = read_table(tmp_path, "metrics")
    rows = rows[rows["name"] == "accuracy"]
    assert sorted(rows["key"].unique()) == ["ensemble", "head", "own_classes"]
    metrics, merged = read_table(tmp_path, "metrics"), read_table(tmp_path, "updates")
    models = metrics[metrics["name"] == "models_tested"].set_index("round")["value"].to_dict()
    assert models == {round: merged[merged["round"] <= round]["device"].nunique() for round in (1, 2)}
    assert models[1] == 3 < models[2] == 4
    assert rows["round"].unique().tolist() == [1, 2]
    shown = CliRunner().invoke(app, ["show", str(tmp_path)], env={"COLUMNS": "300"}).stdout
    assert "(means over the models of the devices that were ever merged)" in shown
    last = read_table(tmp_path, "rounds")["test_accuracy"].iloc[-1]
    assert f"{last:.4f} in round 2, of tests since the last device came new into the mean" in shown
    for key, text in (("head", "greatest logit"), ("own_classes", "each device holds"), ("ensemble", "mean softmax")):
        (value,) = rows[(rows["key"] == key) & (rows["round"] == 2)]["value"]
        assert re.search(rf"{text}[^0-9]* {value:.4f}", shown)
