"""Whole runs of each protocol replayed by NumPy from their rows: every merged update, from the model it started from.

The oracle is gradient descent on the whole data set of a device, written here a second time in float64, and the
protocols' formulas. Models move from merge to merge, so that an update on a wrong base, or of a wrong size, shows.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from safetensors.numpy import load_file

from edgesim import simulation
from edgesim.config import parse
from edgesim.learning.federation import make_federation
from edgesim.learning.learner import make_learner
from edgesim.records import read_table
from edgesim.streams import Streams

LR, MOMENTUM, EPOCHS = 0.3, 0.5, 2
PLANNED = {"late": "keep", "delay_knowledge": "planned", "plan_quantile": 0.5, "payload_bits": 3e6, "tmax_s": 0.6}
WITHOUT_ROUNDS = {"admission": "count", "count": 4, "payload_bits": 3e6}


def _forward(model, images):
    first, bias, last, last_bias = model
    hidden = np.maximum(images @ first.T + bias, 0)
    logits = hidden @ last.T + last_bias
    share = np.exp(logits - logits.max(axis=1, keepdims=True))
    return hidden, share / share.sum(axis=1, keepdims=True)


def _loss(model, images, labels):
    _, share = _forward(model, images)
    return -np.log(share[np.arange(len(labels)), labels]).mean()


def _gradient(model, images, labels):
    """Of the mean cross-entropy of a network with one hidden layer of ReLU units."""
    hidden, share = _forward(model, images)
    error = (share - np.eye(share.shape[1])[labels]) / len(labels)
    behind = (error @ model[2]) * (hidden > 0)
    return [behind.T @ images, behind.sum(axis=0), error.T @ hidden, error.sum(axis=0)]


@dataclass
class Replay:
    """A run of a federation whose devices train on their whole data sets at each step."""

    start: list[np.ndarray]
    end: list[np.ndarray]
    updates: object
    images: np.ndarray
    labels: np.ndarray
    devices: list[list[np.ndarray]]
    """Samples of each device, per frame."""

    def trained(self, model, device, frame=1):
        """What local training changes of a model."""
        held = self.devices[frame][device]
        now, velocity = list(model), [np.zeros_like(part) for part in model]
        for _ in range(EPOCHS):
            gradient = _gradient(now, self.images[held], self.labels[held])
            velocity = [MOMENTUM * v + g for v, g in zip(velocity, gradient, strict=True)]
            now = [part - LR * v for part, v in zip(now, velocity, strict=True)]
        return [after - before for after, before in zip(now, model, strict=True)]

    def models(self, counted, merge):
        """The models of all rounds, the start model first, if ``counted`` says what updates count.

        ``counted(rows)`` are numbers [n], ``merge(model, start, change, count)`` what one of them adds to the model.
        """
        models = [self.start]
        for number in range(1, int(self.updates["round"].max()) + 1):
            model = models[-1]
            rows = self.updates[self.updates["round"] == number]
            added = [np.zeros_like(part) for part in model]
            for (_, row), count in zip(rows.iterrows(), counted(rows), strict=True):
                begun = models[number - 1 - int(row["staleness"])]
                change = self.trained(begun, int(row["device"]))
                step = merge(model, begun, change)
                added = [total + count * part for total, part in zip(added, step, strict=True)]
            models.append([part + total for part, total in zip(model, added, strict=True)])
        return models

    def assert_ends_at(self, model):
        """Within single precision of what the run moved."""
        moved = np.sqrt(sum(np.sum((a - b) ** 2) for a, b in zip(self.end, self.start, strict=True)))
        apart = np.sqrt(sum(np.sum((a - b) ** 2) for a, b in zip(self.end, model, strict=True)))
        assert apart < 1e-4 * moved


@pytest.fixture
def play(tmp_path):
    def play(rounds, **sections) -> Replay:
        config = simulation.complete(
            parse(
                {
                    "rounds": rounds,
                    "devices": {"count": 8},
                    "data": {"partition": "quantity", "samples_per_device": 12},
                    "selection": {"policy": "random"},
                    "evaluation": {"samples": 20, "every": 100},
                    **sections,
                    "learning": {
                        "pretrain": False,
                        "epochs": EPOCHS,
                        "batch_size": 1000,
                        "lr": LR,
                        "lr_decay": 1.0,
                        "momentum": MOMENTUM,
                        **sections.get("learning", {}),
                    },
                },
                "test",
            )
        )
        federation = make_federation(config, Streams(config.seed))
        learner = make_learner(config, federation, Streams(config.seed))
        result = simulation.run(config, tmp_path, cores=1)
        assert result.status == "finished", result.reason
        dataset = federation.dataset
        images, _ = learner.data.train(learner.data.index(np.arange(len(dataset.train_labels))))
        start = {name: tensor.numpy() for name, tensor in learner.model.state().items()}
        return Replay(
            *(_parts(model) for model in (start, load_file(tmp_path / "model.safetensors"))),
            read_table(tmp_path, "updates"),
            images.flatten(1).double().numpy(),
            dataset.train_labels,
            [list(frame.clients) for frame in federation.frames],
        )

    return play


def _parts(state):
    """First and last layer of ``mlp``, a weight and a bias each, whatever their order in a file."""
    return [np.asarray(state[name], dtype=np.float64) for name in ("1.weight", "1.bias", "3.weight", "3.bias")]


def _added(model, begun, change):
    return change


def test_a_late_update_adds_to_the_model_of_now_what_it_changed_of_the_one_it_started_from(play):
    """``late = "keep"``: sizes times (1 + s)^(-1/2), over their sum."""
    replay = play(10, round=PLANNED, staleness={"weight": "polynomial"})
    late = replay.updates["staleness"] > 0
    assert 3 < late.sum() < 0.8 * len(late)
    sizes = np.array([len(held) for held in replay.devices[1]])

    def counted(rows):
        count = sizes[rows["device"]] * (1.0 + rows["staleness"].to_numpy()) ** -0.5
        return count / count.sum()

    replay.assert_ends_at(replay.models(counted, _added)[-1])


@pytest.mark.parametrize(("given", "eta"), [({}, 1.0), ({"server_lr": 0.4}, 0.4)])
def test_fedbuff_adds_a_server_rate_of_the_mean_of_its_scaled_deltas(play, given, eta):
    """w <- w + eta_g / K times the sum of (1 + s)^(-1/2) delta, each delta of the model it started from."""
    replay = play(8, round={"protocol": "buffered", "buffer": 3, **WITHOUT_ROUNDS, **given})
    assert replay.updates["staleness"].max() > 0
    assert (replay.updates.groupby("round").size() == 3).all()

    def counted(rows):
        return eta / 3 * (1.0 + rows["staleness"].to_numpy()) ** -0.5

    replay.assert_ends_at(replay.models(counted, _added)[-1])


@pytest.mark.parametrize(("given", "alpha"), [({}, 0.6), ({"mixing": 0.25}, 0.25)])
def test_fedasync_mixes_in_six_tenths_of_the_trained_model_unless_told_otherwise(play, given, alpha):
    """w <- (1 - alpha_s) w + alpha_s w_client, alpha_s = alpha (1 + s)^(-1/2)."""
    replay = play(
        20, round={"protocol": "asynchronous", **WITHOUT_ROUNDS, **given}, staleness={"weight": "polynomial"}
    )
    assert replay.updates["staleness"].max() > 1

    def counted(rows):
        return alpha * (1.0 + rows["staleness"].to_numpy()) ** -0.5

    def mixed(model, begun, change):
        return [b + c - m for m, b, c in zip(model, begun, change, strict=True)]

    replay.assert_ends_at(replay.models(counted, mixed)[-1])
