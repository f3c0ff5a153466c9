"""SCAFFOLD where its option I learns nothing, round by round beside a program of its own in NumPy.

The setting is that of `scenarios/dpfl.py`: heavy label skew, and devices that come and go.
"""

import runpy
from pathlib import Path

import numpy as np
import pytest

from edgesim.config_file import parse
from edgesim.folder.records import read_table
from edgesim.learning.datasets import load_dataset
from edgesim.learning.learner import TorchLearner
from edgesim.simulation import composition as simulation

SCENARIO = runpy.run_path(str(Path(__file__).parents[2] / "scenarios/dpfl.py"))
LR, MOMENTUM, DEVICES = 0.1, 0.5, 10


def gradient(weights, images, labels):
    """Of the mean cross-entropy of 64-32-10 ReLU units, [2410]."""
    into_hidden, hidden_bias, out_of, out_bias = parts(weights)
    hidden = images @ into_hidden.T + hidden_bias
    active = np.maximum(hidden, 0)
    logits = active @ out_of.T + out_bias
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    wrong = shares / shares.sum(axis=1, keepdims=True)
    wrong[np.arange(len(labels)), labels] -= 1
    wrong /= len(labels)
    back = wrong @ out_of * (hidden > 0)
    return np.concatenate([(back.T @ images).ravel(), back.sum(0), (wrong.T @ active).ravel(), wrong.sum(0)])


def parts(weights):
    first, hidden_bias, second, out_bias = np.split(weights, np.cumsum([32 * 64, 32, 10 * 32]))
    return first.reshape(32, 64), hidden_bias, second.reshape(10, 32), out_bias


def scaffold(option, start, rounds, images, labels):
    """Algorithm 1 with eta_g = 1: models after each round; of a round its jobs by device, each of batches of samples.

    With momentum K steps along a constant gradient reach as far as the sum of (1 - beta^k) / (1 - beta) of them.
    """
    x, c, own, models = start, np.zeros_like(start), np.zeros((DEVICES, len(start))), []
    for jobs in rounds:
        moves, changes = [], []
        for device, batches in jobs.items():
            y, velocity, reach = x, np.zeros_like(x), 0.0
            for step, batch in enumerate(batches, start=1):
                velocity = MOMENTUM * velocity + gradient(y, images[batch], labels[batch]) - own[device] + c
                y, reach = y - LR * velocity, reach + LR * (1 - MOMENTUM**step) / (1 - MOMENTUM)
            held = np.unique(np.concatenate(batches))
            new = gradient(x, images[held], labels[held]) if option == "I" else own[device] - c + (x - y) / reach
            moves.append(y - x)
            changes.append(new - own[device])
            own[device] = new
        x, c = x + np.mean(moves, axis=0), c + np.sum(changes, axis=0) / DEVICES
        models.append(x)
    return models


@pytest.mark.slow
@pytest.mark.parametrize(("option", "least", "most"), [("I", 0.1, 0.35), ("II", 0.65, 0.8)])
def test_every_round_is_that_of_a_program_of_its_own(tmp_path, monkeypatch, option, least, most):
    """Same start, same devices and same samples in the same batches; all else is written here once more.

    After five rounds option II has learned much, and option I nothing: what it makes of a difference in the last bit
    grows tenfold with each round, so that no two programs could agree for long.
    """
    config = SCENARIO["World"]("digits", 5, None, None).base("markov", 0.1, DEVICES)
    config |= {"seed": 0, "algorithm": {"name": "scaffold", "option": option}}
    config["learning"] |= {"precision": "float64", "back_end": "loop"}
    rounds, models, merge = [], [], TorchLearner.merge

    def watched(self, arrived, *arguments):
        if not models:
            models.append(self.global_weights.numpy().copy())
        jobs = sorted((one.promise.job for one in arrived), key=lambda job: job.device)
        rounds.append({job.device: np.split(job.samples, job.edges[1:-1]) for job in jobs})
        merged = merge(self, arrived, *arguments)
        models.append(self.global_weights.numpy().copy())
        return merged

    monkeypatch.setattr(TorchLearner, "merge", watched)
    config = parse(config, "scaffold")
    simulation.run(config, tmp_path / "run")
    assert len({frozenset(jobs) for jobs in rounds}) > 3
    dataset = load_dataset(config.data)
    start, *found = models
    expected = scaffold(option, start, rounds, dataset.images[0].reshape(-1, 64) / 16, dataset.train_labels)
    for number, (mine, model) in enumerate(zip(found, expected, strict=True), start=1):
        assert np.linalg.norm(mine - model) <= 1e-9 * np.linalg.norm(model - start), f"round {number}"
    accuracy = read_table(tmp_path / "run", "rounds")["test_accuracy"].iloc[-1]
    assert least < accuracy < most
