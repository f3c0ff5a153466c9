import re
from itertools import pairwise

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner
from whole_runs import play

from edgesim.commands.cli import app
from edgesim.learning.learner import TorchLearner
from edgesim.learning.ranking import roc_auc, why_without_roc_auc


def test_roc_auc_is_that_of_scikit_learn_ties_among_it():
    random = np.random.default_rng(4)
    labels = random.integers(0, 4, 300)
    scores = random.integers(1, 6, (300, 4)) + 2.0 * (np.arange(4) == labels[:, None])
    scores /= scores.sum(axis=1, keepdims=True)
    expected = roc_auc_score(labels, scores, multi_class="ovr", average="macro")
    assert roc_auc(scores, labels, np.arange(4)) == pytest.approx(expected, abs=1e-12)


def test_a_class_that_is_missing_or_all_of_the_samples_leaves_none():
    assert why_without_roc_auc(np.array([0, 2, 2]), np.arange(3)) == "class 1 is missing from the test samples"
    assert why_without_roc_auc(np.array([1, 1]), np.array([1])) == "class 1 is all of the test samples"
    assert why_without_roc_auc(np.array([1, 0]), np.arange(2)) is None


def run(folder, **evaluation):
    config = {
        "rounds": 4,
        "devices": {"count": 5},
        "round": {"payload_bits": 1e5, "tmax_s": 5.0},
        "data": {"partition": "dirichlet"},
        "learning": {"pretrain": False, "lr": 0.3, "precision": "float64"},
        "evaluation": evaluation,
    }
    played = play(folder, config)
    return played, played.facts


def test_a_run_tells_roc_auc_and_the_cosine_of_successive_changes_on_request(tmp_path, monkeypatch):
    models, evaluate, tested = [], TorchLearner.evaluate, []

    def spied(learner, frame):
        evaluation = evaluate(learner, frame)
        models.append(learner.global_weights)
        learner.model.load(learner.global_weights)
        learner.model.module.eval()
        images, labels = learner.data.test(torch.arange(len(learner.dataset.test_labels)))
        with torch.no_grad():
            scores = learner.model.module(learner.model.inputs(images)).softmax(1).numpy()
        tested.append(roc_auc_score(labels.numpy(), scores, multi_class="ovr"))
        return evaluation

    monkeypatch.setattr(TorchLearner, "evaluate", spied)
    played, said = run(tmp_path / "all", measures="all")
    metrics = played.metrics
    assert metrics[metrics["name"] == "roc_auc"]["value"].tolist() == pytest.approx(tested, abs=1e-12)
    assert len(tested) == 5
    changes = [after - before for before, after in pairwise(models)]
    cosines = [float(torch.cosine_similarity(one, other, dim=0)) for one, other in pairwise(changes)]
    assert metrics[metrics["name"] == "update_cosine"]["value"].tolist() == pytest.approx(cosines, abs=1e-12)
    assert max(np.abs(cosines)) < 0.99
    assert "roc_auc_notice" not in said
    by_class = metrics[metrics["name"] == "class_f1"].groupby("round")["value"]
    assert by_class.size().tolist() == [10] * 5
    assert by_class.mean().loc[1:].tolist() == pytest.approx(played.rounds["macro_f1"].tolist(), abs=1e-12)
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "all"), "--all"], env={"COLUMNS": "300"}).stdout
    assert re.search(rf"F1 by class\W+0: {by_class.get_group(4).iloc[0]:.3f}, 1: ", shown)
    basic, _ = run(tmp_path / "basic")
    assert not set(basic.metrics["name"]) & {"roc_auc", "update_cosine", "class_f1"}


def test_a_sample_without_some_class_has_no_roc_auc_and_says_why(tmp_path):
    played, said = run(tmp_path / "few", measures="all", samples=6)
    assert "roc_auc" not in set(played.metrics["name"])
    assert said["roc_auc_notice"].endswith("is missing from the test samples")
