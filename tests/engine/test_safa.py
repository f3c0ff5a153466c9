"""SAFA in whole runs, against its rules written down once more as a plain loop over devices."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from whole_runs import configs, merged, phones, play, stays

from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.learning.batches import batch_samples, make_local_work
from edgesim.learning.federation import make_federation
from edgesim.learning.learner import TorchLearner
from edgesim.learning.models import make_model
from edgesim.learning.rates import rate_in
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams

ROUNDS, DEVICES, LAG, QUOTA = 12, 8, 2, 0.5
SPEED = [(0.1, 1e6), (0.2, 1e6), (0.05, 5e5), (0.1, 2e6), (0.3, 1e6), (0.1, 1e6), (0.2, 1e6), (0.05, 5e5)]
"""Seconds a sample and bit/s of each device."""
# Rounds begin every 10 s. Device 1 leaves in the middle of its third round and is back two rounds later; 2 and 3 are
# away for three rounds and are forced to the global model when they are back, with which 3 fails at first; 4 finishes
# every other round; 5 comes in round 10, having been forced to the global model twice meanwhile; 6 is never there.
PERIODS = {
    0: [(0, 200)],
    1: [(0, 22), (40, 200)],
    2: [(0, 30), (55, 200)],
    3: [(10, 20), (50, 52), (60, 64), (70, 200)],
    4: [(k, k + 15) for k in range(0, 120, 20)],
    5: [(90, 120)],
    7: [(0, 35), (52, 200)],
}
BITS = 1e6
HUNDRED = Path(__file__).parents[1] / "compared" / "hundred-classes.npz"


@pytest.fixture
def sections(tmp_path):
    rows = [(device, *period) for device, periods in PERIODS.items() for period in periods]
    base = {
        "seed": 5,
        "rounds": ROUNDS,
        "round": {"tmax_s": 10.0, "close": "deadline", "computes": "selected", "payload_bits": BITS},
        "data": {"partition": "quantity", "samples_per_device": 20},
        "learning": {"pretrain": False, "steps": 3, "batch_size": 8, "lr_decay": 0.98},
        "algorithm": {"name": "safa", "lag_tolerance": LAG},
        "selection": {"policy": "safa", "quota": QUOTA},
    }
    return merged(base, phones(tmp_path, *SPEED), stays(tmp_path, *rows, after_end="absent"))


class Reference:
    """SAFA on one table of models, device by device: who is there, who finishes when, what the server makes of it."""

    def __init__(self, config, start):
        self.config, self.streams = config, Streams(config.seed)
        self.federation = make_federation(config, self.streams)
        self.module = make_model("mlp", (1, 8, 8), 10)
        data = self.federation.dataset
        offset, divisor = (values.astype(np.float32)[:, None, None] for values in data.normalisation)
        self.images = torch.from_numpy((data.images[0].astype(np.float32) - offset) / divisor)
        self.labels = torch.from_numpy(data.train_labels)
        self.model, self.table, self.own = start, [start] * DEVICES, [start] * DEVICES
        self.versions, self.picked_before = [0] * DEVICES, []
        self.counts, self.fetched_in_vain = [], 0
        self.takes_s = [s * 24 + BITS / bps for s, bps in SPEED]

    def train(self, device, start, round):
        learning = self.config.learning
        work = make_local_work(learning, self.streams, DEVICES)
        vector_to_parameters(start.clone(), self.module.parameters())
        optimiser = torch.optim.SGD(self.module.parameters(), rate_in(learning, round), learning.momentum)
        (samples,) = batch_samples(self.federation.frames[1], self.streams, np.array([device]), round, work)
        for batch in samples.reshape(learning.steps, learning.batch_size):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(self.module(self.images[batch]), self.labels[batch]).backward()
            optimiser.step()
        return parameters_to_vector(self.module.parameters()).detach().clone()

    def round(self, r, sizes):
        now_s = 10.0 * (r - 1)
        stays_s = {d: end - now_s for d, periods in PERIODS.items() for start, end in periods if start <= now_s < end}
        finished = [d for d in stays_s if self.takes_s[d] <= min(10.0, stays_s[d])]
        started = [d for d in stays_s if self.takes_s[d] <= 10.0]
        behind = [r - 1 - version for version in self.versions]
        trained = {}
        for d in finished:
            tolerable = 0 < behind[d] <= LAG
            trained[d] = self.train(d, self.own[d] if tolerable else self.model, r)
        order = sorted(finished, key=lambda d: (d in self.picked_before, self.takes_s[d], d))
        picked = order[: math.ceil(QUOTA * len(stays_s))]
        for d in started:
            if behind[d] == 0:
                self.own[d] = self.model
                self.fetched_in_vain += d not in finished
        for d in range(DEVICES):
            if behind[d] > LAG:
                self.table[d] = self.own[d] = self.model
                self.versions[d] = r - 1
        for d in picked:
            self.table[d] = trained[d]
        self.model = sum(share * model for share, model in zip(sizes / sizes.sum(), self.table, strict=True))
        self.model = self.model.to(torch.float32)
        for d in finished:
            self.table[d] = self.own[d] = trained[d]
            self.versions[d] = r
        self.picked_before = picked
        self.counts.append(
            {
                "up_to_date": sum(behind[d] == 0 for d in started),
                "deprecated": sum(behind[d] > LAG for d in started),
                "tolerable": sum(0 < behind[d] <= LAG for d in started),
                "picked": len(picked),
                "undrafted": len(finished) - len(picked),
            }
        )
        return {d: sizes[d] / sizes.sum() for d in finished}


@pytest.mark.parametrize("weights", ["samples", "equal"])
def test_every_rounds_model_is_that_of_the_plain_loop(weights, sections, tmp_path, monkeypatch):
    models, evaluate = [], TorchLearner.evaluate

    def watched(self, frame):
        models.append(self.global_weights.clone())
        return evaluate(self, frame)

    monkeypatch.setattr(TorchLearner, "evaluate", watched)
    played = play(tmp_path / "run", sections, algorithm={"weights": weights})
    assert len(models) == ROUNDS + 1
    plain = Reference(simulation.complete(configs(sections)()), models[0])
    sizes = plain.federation.frames[1].sizes if weights == "samples" else np.ones(DEVICES)
    updates, metrics, rounds = played.updates, played.metrics, played.rounds
    for r in range(1, ROUNDS + 1):
        counted = plain.round(r, sizes)
        torch.testing.assert_close(models[r], plain.model, rtol=0, atol=1e-6, msg=lambda text, r=r: f"{r}: {text}")
        rows = updates[updates["round"] == r].set_index("device")["weight"]
        assert rows.to_dict() == pytest.approx(counted)
        found = metrics[(metrics["round"] == r) & (metrics["name"] == "safa")].set_index("key")["value"]
        assert found.to_dict() == plain.counts[-1]
        fetched = plain.counts[-1]["up_to_date"] + plain.counts[-1]["deprecated"]
        assert rounds["bits_down"][r - 1] == BITS * fetched
    # The run was worth looking at: everything that SAFA tells apart has happened.
    assert all(sum(count[key] for count in plain.counts) > 2 for key in plain.counts[0])
    assert (rounds["dropped"] > 0).any()
    assert plain.fetched_in_vain > 0
    assert (models[ROUNDS] - models[0]).abs().max() > 0.01


def standing_of(played):
    return played.metrics.query("name == 'safa'").pivot(index="round", columns="key")["value"]


def test_who_need_not_fetch_the_model_does_not_wait_for_it(sections, tmp_path):
    played = play(tmp_path / "run", sections, round={"download_s": 1.0}, learning={"training": "none"})
    took = played.activities.query("activity == 'download'").groupby("round")["device"].nunique()
    standing = standing_of(played)
    assert (standing["up_to_date"] + standing["deprecated"] - took).abs().max() == 0
    assert standing["tolerable"].sum() > 0


def test_a_plain_average_takes_in_those_picked_and_does_not_train_the_others(sections, tmp_path):
    played = play(tmp_path / "run", sections, {"algorithm": None})
    rounds, updates = played.rounds, played.updates
    taken = updates.groupby("round").size().reindex(rounds["round"], fill_value=0).to_numpy()
    assert (taken == np.minimum(np.ceil(QUOTA * rounds["candidates"]), rounds["arrived"])).all()
    assert (taken < rounds["arrived"]).any()
    assert rounds["jobs_trained"].tolist() == taken.tolist()
    assert updates.groupby("round")["weight"].sum().to_numpy() == pytest.approx(1.0)


@pytest.mark.parametrize("training", ["real", "none"])
def test_any_policy_works_with_the_cache_and_a_new_frame_begins_with_everybody_up_to_date(tmp_path, training):
    played = play(
        tmp_path,
        rounds=[4, 4],
        round={"payload_bits": 17_881_664.0, "tmax_s": 0.8},
        availability={"model": "bernoulli", "probability": 0.5},
        data={"dataset": str(HUNDRED), "samples_per_device": 6, "partition": "fedteddi"},
        algorithm={"name": "safa"},
        learning={"pretrain": False, "steps": 1, "training": training},
    )
    standing = standing_of(played)
    assert standing["undrafted"].sum() == 0
    assert standing["picked"].tolist() == played.rounds["arrived"].tolist()
    assert (standing["tolerable"] > 0).tolist() == [False, True, True, True, False, True, True, True]


EDGES = {"topology": {"file": "three-cells", "aggregation": "hierarchical", "cloud_every": 2}}


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        ({"round": {"late": "keep"}}, r"algorithm\.name = 'safa' needs round\.late = 'drop', not 'keep'"),
        ({"round": {"protocol": "asynchronous", "admission": "count", "count": 3}}, r"needs round\.protocol = 's"),
        (EDGES, r"topology\.aggregation = 'hierarchical' does not go with algorithm\.nam"),
        ({"algorithm": {"name": "fedavg", "lag_tolerance": 3}}, "lag_tolerance: is an option of algorithm 'safa'"),
    ],
)  # fmt: skip
def test_what_safa_cannot_go_with_is_refused(sections, expected):
    with pytest.raises(EdgesimError, match=expected):
        simulation.complete(parse({"algorithm": {"name": "safa"}} | sections, "test"))
