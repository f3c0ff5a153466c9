"""Whole runs of each protocol replayed by NumPy from their rows: every merged update, from the model it started from.

The oracle is gradient descent on the whole data set of a device, written here a second time in float64, and the
protocols' formulas. Models move from merge to merge, so that an update on a wrong base, or of a wrong size, shows.
"""

from dataclasses import dataclass

import numpy as np
import pytest
from safetensors.numpy import load_file

from edgesim.config_file import parse
from edgesim.folder.records import read_table
from edgesim.learning.federation import make_federation
from edgesim.learning.learner import TorchLearner
from edgesim.simulation import composition as simulation
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
    lr: float

    def trained(self, model, device, frame=1):
        """What local training changes of a model."""
        held = self.devices[frame][device]
        now, velocity = list(model), [np.zeros_like(part) for part in model]
        for _ in range(EPOCHS):
            gradient = _gradient(now, self.images[held], self.labels[held])
            velocity = [MOMENTUM * v + g for v, g in zip(velocity, gradient, strict=True)]
            now = [part - self.lr * v for part, v in zip(now, velocity, strict=True)]
        return [after - before for after, before in zip(now, model, strict=True)]

    def end_of(self, counted, merge=lambda model, begun, change: change):
        """The last model: each adds the sum of ``merge(model, begun, change)`` times ``counted(rows)``, [n]."""
        models = [self.start]
        for _, rows in self.updates.groupby("round"):
            models.append(self.merged(models, rows, counted(rows), merge))
        return models[-1]

    def merged(self, models, rows, count, merge=lambda model, begun, change: change, frame=1):
        """The model after updates of these rows, the last of which started from the last of ``models``."""
        now = models[-1]
        for share, device, staleness in zip(count, rows["device"], rows["staleness"], strict=True):
            begun = models[-1 - staleness]
            step = merge(models[-1], begun, self.trained(begun, device, frame))
            now = [part + share * change for part, change in zip(now, step, strict=True)]
        return now

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
        learner = TorchLearner(config, federation, Streams(config.seed))
        result = simulation.run(config, tmp_path / "run", cores=1)
        assert result.status == "finished", result.reason
        dataset = federation.dataset
        images, _ = learner.data.train(learner.data.index(np.arange(len(dataset.train_labels))))
        start = {name: tensor.numpy() for name, tensor in learner.model.state().items()}
        return Replay(
            *(_parts(model) for model in (start, load_file(tmp_path / "run" / "model.safetensors"))),
            read_table(tmp_path / "run", "updates"),
            images.flatten(1).double().numpy(),
            dataset.train_labels,
            [list(frame.clients) for frame in federation.frames],
            config.learning.lr,
        )

    return play


def _parts(state):
    """First and last layer of ``mlp``, a weight and a bias each, whatever their order in a file."""
    return [np.asarray(state[name], dtype=np.float64) for name in ("1.weight", "1.bias", "3.weight", "3.bias")]


def test_a_late_update_adds_to_the_model_of_now_what_it_changed_of_the_one_it_started_from(play):
    """``late = "keep"``: sizes times (1 + s)^(-1/2), over their sum."""
    replay = play(10, round=PLANNED, staleness={"weight": "polynomial"})
    late = replay.updates["staleness"] > 0
    assert 3 < late.sum() < 0.8 * len(late)
    sizes = np.array([len(held) for held in replay.devices[1]])

    def counted(rows):
        count = sizes[rows["device"]] * (1.0 + rows["staleness"].to_numpy()) ** -0.5
        return count / count.sum()

    replay.assert_ends_at(replay.end_of(counted))


@pytest.mark.parametrize(("given", "eta"), [({}, 1.0), ({"server_lr": 0.4}, 0.4)])
def test_fedbuff_adds_a_server_rate_of_the_mean_of_its_scaled_deltas(play, given, eta):
    """w <- w + eta_g / K times the sum of (1 + s)^(-1/2) delta, each delta of the model it started from."""
    options = {"buffer": 3, **given}
    replay = play(8, round={"protocol": "buffered", "protocol_options": options, **WITHOUT_ROUNDS})
    assert replay.updates["staleness"].max() > 0
    assert (replay.updates.groupby("round").size() == 3).all()

    def counted(rows):
        return eta / 3 * (1.0 + rows["staleness"].to_numpy()) ** -0.5

    replay.assert_ends_at(replay.end_of(counted))


@pytest.mark.parametrize(("given", "alpha"), [({}, 0.6), ({"mixing": 0.25}, 0.25)])
def test_fedasync_mixes_in_six_tenths_of_the_trained_model_unless_told_otherwise(play, given, alpha):
    """w <- (1 - alpha_s) w + alpha_s w_client, alpha_s = alpha (1 + s)^(-1/2)."""
    round_ = {"protocol": "asynchronous", "protocol_options": given, **WITHOUT_ROUNDS}
    replay = play(20, round=round_, staleness={"weight": "polynomial"})
    assert replay.updates["staleness"].max() > 1

    def counted(rows):
        return alpha * (1.0 + rows["staleness"].to_numpy()) ** -0.5

    def mixed(model, begun, change):
        return [b + c - m for m, b, c in zip(model, begun, change, strict=True)]

    replay.assert_ends_at(replay.end_of(counted, mixed))


@pytest.mark.parametrize("keep_best", [True, False])
def test_a_further_frame_starts_from_the_best_model_of_the_one_before_though_it_is_not_the_last(
    keep_best, play, tmp_path
):
    """Best on all images that the devices hold in the frame; steps so long that losses rise again."""
    random = np.random.default_rng(0)
    labels = np.tile(np.arange(100), 6)
    images = random.integers(0, 256, (600, 4, 4), dtype=np.uint8)
    file = tmp_path / "images.npz"
    parts = {"train": slice(None), "test": slice(100)}
    arrays = {f"{name}_images": images[part] for name, part in parts.items()}
    np.savez(file, **arrays, **{f"{name}_labels": labels[part] for name, part in parts.items()})
    replay = play(
        [4, 2],
        data={"dataset": str(file), "partition": "fedteddi", "samples_per_device": 6},
        evaluation={"every": 1},
        learning={"keep_best": keep_best, "lr": 3.0},
        round={"payload_bits": 1.0},
    )
    sizes = [np.array([len(held) for held in frame]) for frame in replay.devices]

    models = [replay.start]
    for number, rows in replay.updates.groupby("round"):
        if number == 5:
            held = np.concatenate(replay.devices[1])
            losses = [_loss(model, replay.images[held], replay.labels[held]) for model in models[1:]]
            assert int(np.argmin(losses)) < 3, losses
            if keep_best:
                models.append(models[1 + int(np.argmin(losses))])
        frame = 1 if number < 5 else 2
        count = sizes[frame][rows["device"]]
        models.append(replay.merged(models, rows, count / count.sum(), frame=frame))
    assert number == 6
    replay.assert_ends_at(models[-1])
