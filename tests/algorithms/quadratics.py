"""Whole rounds of an algorithm on devices whose loss is (w - b)^2 / 2, so that every model can be worked out by hand.

SGD with momentum is written here once more; an algorithm is asked in the order in which a learner asks it. Without
momentum, K steps from w_0 by a pull mu (w - w_0) alone end at w_0 + (1 - (1 - lr (1 + mu))^K) (b - w_0) / (1 + mu).
"""

import numpy as np
import torch

from edgesim.algorithms.algorithm import Arrivals, Device, Phase, Sizes, Trained
from edgesim.streams import Streams


class Quadratics:
    """A server and its devices, one for each b of ``targets``."""

    def __init__(self, kind, targets, samples=None, start=0.0, lr=0.5, steps=2, momentum=0.0, **options):
        self.targets = torch.tensor(targets, dtype=torch.float64)
        self.samples = np.ones(len(targets), dtype=np.int64) if samples is None else np.array(samples)
        self.lr, self.steps, self.momentum = lr, steps, momentum
        self.algorithm = kind(kind.Options(**options), Sizes(32.0, 1, len(targets)), Streams(0))
        self.ledger = self.algorithm.ledger(1)
        self.state = self.algorithm.start(torch.tensor([start], dtype=torch.float64))
        self.kept, self.number = {}, 0

    def round(self, ids, unpicked=(), failed=()):
        """The server's model after a round in which updates of ``ids`` arrive, and then those of ``unpicked``.

        Devices that ``failed`` began, but nothing of theirs arrives.
        """
        self.number += 1
        given = {device: self._given(device) for device in (*ids, *unpicked, *failed)}
        arrived = np.array([*ids, *unpicked], dtype=np.int64)
        updates = [self._train(device, given[device]) for device in arrived.tolist()]
        sent = [
            self.algorithm.sent(Trained(update, 1, given[device], self.steps, self.lr, self.momentum))
            for device, update in zip(arrived.tolist(), updates, strict=True)
        ]
        arrivals = Arrivals(
            ids=arrived,
            samples=self.samples[arrived],
            round=self.number,
            staleness=np.zeros_like(arrived),
            age_weight=np.ones(len(arrived)),
            picked=np.arange(len(arrived)) < len(ids),
            lr=np.full(len(arrived), self.lr),
            began=np.array(list(given), dtype=np.int64),
            all_samples=self.samples,
            round_lr=self.lr,
            updates=torch.stack(updates) if updates else self.state.weights.new_empty((0, 1)),
            starts=[given[device]["start"] for device in arrived.tolist()],
            up={name: torch.stack([each.up[name] for each in sent]) for name in (sent[0].up if sent else ())},
        )
        alpha = self.algorithm.weigh(arrivals)
        self.state = self.algorithm.merge(self.state, arrivals, alpha, self.ledger)
        self.algorithm.note(self.ledger, arrivals)
        self.kept |= {device: each.keeps for device, each in zip(arrived.tolist(), sent, strict=True) if each.keeps}
        return float(self.state.weights)

    def _given(self, device):
        about = Device(device, int(self.samples[device]), self.number)
        return self.algorithm.given(self.state, self.kept.get(device, {}), about, self.ledger)

    def _train(self, device, given):
        """The update of a device, [1]; each step is on its whole loss."""
        own = Phase(np.zeros(self.steps, dtype=np.int64), np.arange(self.steps + 1))
        phases = self.algorithm.phases(own, Device(device, int(self.samples[device]), self.number))
        pull, start = self.algorithm.pull(given), given["start"]
        weights, velocity = start.clone(), torch.zeros_like(start)
        for _ in range(sum(len(phase.edges) - 1 for phase in phases)):
            gradient = weights - self.targets[device] + pull.to_start * (weights - start) + pull.decay * weights
            if pull.shift is not None:
                gradient = gradient + pull.shift
            velocity = self.momentum * velocity + gradient
            weights = weights - self.lr * velocity
        return weights - start
