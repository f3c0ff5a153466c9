"""What servers make of updates, written once more in plain float64, for every algorithm of the registry.

It goes beside a run: it is told which jobs begin and which updates arrive, each with what its device trained and sent,
and works out by itself how stale they are, what each counts, the next model, and what is remembered of each device. It
shares no code with edgesim's merges. What happens within a job is not its business.
"""

import copy
from collections import defaultdict

import torch
from torch.nn import functional

EQUAL = {"scaffold", "feddyn", "mifa", "cfed"}
PLAIN_BUFFERS = {"scaffold", "feddyn", "mifa", "fedavgm", "fedadam", "fedyogi"}
OWN_MODELS = {"fedproto", "fedmd"}
SPEEDS = (1.0, 0.9, 0.8)


def staleness_weight(staleness):
    """Polynomial, a = 1/2."""
    return (1.0 + staleness) ** -0.5


class PlainServer:
    """The server of one run, and what its devices keep."""

    def __init__(self, learner, config, trainable):
        self.name, self.protocol, self.config = config.algorithm.name, config.round.protocol, config
        self.options, self.rule = config.algorithm.options, config.round.protocol_options
        self.count, self.size, self.learner = config.devices.count, trainable, learner
        self.first = self.model = learner.global_weights.clone()
        self.version = 0
        zero = torch.zeros(trainable, dtype=torch.float64)
        self.zero, self.started = zero, {}
        self.control, self.momentum = zero, zero
        self.second = torch.full_like(zero, 1e-3**2)
        # Of each device, by the newest of its updates: c_i, G_i or g_i, the last model, the velocity.
        self.own, self.last, self.velocity = defaultdict(lambda: zero), {}, {}
        self.shared = None
        self.entries, self.at_hand, self.finished = {}, {}, defaultdict(int)

    def lr(self, round):
        """Learning rate of a round."""
        return self.config.learning.lr * self.config.learning.lr_decay ** (round - 1)

    def begins(self, promise):
        """Look at what a job is given."""
        self.started[id(promise)] = self.version
        device, given = promise.device, promise.job.given
        start = self.model
        if self.name in OWN_MODELS:
            start = self.last.get(device, self.first)
        if self.name == "safa" and 0 < promise.round - 1 - self.finished[device] <= 5:
            start = self.at_hand.get(device, self.first)
        close(given["start"], start, f"start of device {device}")
        if self.name == "scaffold":
            close(given["control"] - given.get("own", self.zero), self.control - self.own[device], "control")
        if self.name == "feddyn":
            close(given.get("own", self.zero), self.own[device], "g_i")
        if self.name == "moon":
            close(given["previous"], self.last.get(device, self.first), "previous model")
        if self.name in OWN_MODELS and self.shared is not None:
            (table,) = (given[name] for name in ("prototypes", "consensus") if name in given)
            close(table.nan_to_num(nan=99), self.shared.nan_to_num(nan=99), "what devices learn from each other")
        if (velocity := promise.job.velocity) is not None or device in self.velocity:
            close(velocity, self.velocity[device], "velocity")

    def merges(self, promises, began, in_order):
        """The next model of updates: as many as arrived, in order of arrival if ``in_order``."""
        jobs = list(promises) if in_order else sorted(promises, key=lambda one: (one.device, one.round))
        if self.name == "safa":
            self._safa(jobs, began)
        elif jobs and self.protocol == "asynchronous":
            for one in jobs:
                share = self.rule["mixing"] * staleness_weight(self.version - self.started[id(one)])
                self.model = (1 - share) * self.model + share * (one.job.start + one.result.update)
                self._remember(one)
                self.version += 1
        elif jobs:
            self._merge(jobs)
            for one, _ in by_task(jobs, jobs):
                self._remember(one)
            self.version += 1

    def _weights(self, jobs):
        ages = [self.version - self.started[id(one)] for one in jobs]
        by_age = [staleness_weight(age) for age in ages]
        if self.protocol == "buffered":
            return torch.tensor(by_age, dtype=torch.float64) * self.rule["server_lr"] / len(jobs)
        counts = [1.0 if self.name in EQUAL else float(one.samples) for one in jobs]
        if self.name == "afl":
            lengths = [float(one.result.update[: self.size].norm()) for one in jobs]
            counts = [count / (1 + 0.1 * length) for count, length in zip(counts, lengths, strict=True)]
        if self.name == "fedstg":
            holders = sum((torch.as_tensor(one.class_counts) > 0).double() for one in jobs)
            for row, one in enumerate(jobs):
                holds = torch.as_tensor(one.class_counts) > 0
                rare = float((len(jobs) / holders[holds]).mean())
                counts[row] *= SPEEDS[one.device % 3] * min(1.5, 1 + (rare - 1) / 4)
        found = torch.tensor([count * age for count, age in zip(counts, by_age, strict=True)], dtype=torch.float64)
        return found / found.sum()

    def _merge(self, jobs):
        alpha, size = self._weights(jobs), self.size
        ends = [one.job.start + one.result.update for one in jobs]
        steps = [one.result.update[:size] for one in jobs]
        mean = sum(share * step for share, step in zip(alpha, steps, strict=True))
        share_of_buffers = torch.ones(len(jobs)) if self.name in PLAIN_BUFFERS else alpha
        buffers = sum(share * end[size:] for share, end in zip(share_of_buffers, ends, strict=True))
        buffers = buffers / share_of_buffers.sum()
        now = self.model[:size]
        if self.name in OWN_MODELS:
            now, buffers = now, self.model[size:]
            self.shared = self._learned_from_each_other(jobs)
        elif self.name == "feddyn":
            gone = dict(self.own)
            for one, step in zip(jobs, steps, strict=True):
                gone[one.device] = gone.get(one.device, self.zero) + step
            self.own.update(gone)
            now = now + mean + sum(self.own.values()) / self.count
        elif self.name == "mifa":
            for one, step in by_task(jobs, steps):
                self.own[one.device] = -step / self.lr(one.round)
            now = now - self.lr(self.learner._round) * sum(self.own.values()) / self.count
        elif self.name in ("fedavgm", "fedadam", "fedyogi"):
            now = now + self._of_moments(mean)
        else:
            now = now + mean
        self.model = torch.cat([now, buffers])
        if self.name == "scaffold":
            for one, step in by_task(jobs, steps):
                given, reach = one.job.given, (len(one.job.edges) - 1) * self.lr(one.round)
                self.own[one.device] = given.get("own", self.zero) - given["control"] - step / reach
            self.control = sum(self.own.values()) / self.count
        if self.name == "feddf" and len(jobs) > 1:
            self._distil(ends)

    def _of_moments(self, mean):
        if self.name == "fedavgm":
            self.momentum = 0.9 * self.momentum + mean
            return self.momentum
        self.momentum = 0.9 * self.momentum + 0.1 * mean
        square = mean**2
        if self.name == "fedadam":
            self.second = 0.99 * self.second + 0.01 * square
        else:
            self.second = self.second - 0.01 * square * torch.sign(self.second - square)
        return 0.1 * self.momentum / (self.second.sqrt() + 1e-3)

    def _learned_from_each_other(self, jobs):
        if self.name == "fedmd":
            return sum(one.result.up["logits"] for one in jobs) / len(jobs)
        return torch.stack([one.result.up["prototypes"] for one in jobs]).nanmean(0)

    def _remember(self, one):
        self.last[one.device] = one.job.start + one.result.update
        if one.result.velocity is not None:
            self.velocity[one.device] = one.result.velocity

    def _distil(self, ends):
        """FedDF's steps on all public images, with a net and an optimiser of torch."""
        learner, steps = self.learner, self.options["steps"]
        net, public = copy.deepcopy(learner.model.module), learner.federation.public
        images, _ = learner.data.train(learner.data.index(public))
        order = learner.streams.generator("distillation", round=learner._round)
        taught = 0
        for end in ends:
            _load(net, end)
            net.eval()
            with torch.no_grad():
                taught = taught + net(images)
        taught = functional.softmax(taught / len(ends), 1)
        _load(net, self.model)
        net.train()
        adam = torch.optim.Adam(net.parameters(), self.options["lr"])
        cosine = torch.optim.lr_scheduler.CosineAnnealingLR(adam, steps)
        for _ in range(steps):
            rows = torch.from_numpy(order.permutation(len(public)))
            adam.zero_grad()
            own = functional.log_softmax(net(images[rows]), 1)
            functional.kl_div(own, taught[rows], reduction="batchmean").backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 5.0)
            adam.step()
            cosine.step()
        self.model = torch.cat([tensor.detach().flatten() for tensor in _tensors(net)])

    def _safa(self, jobs, began):
        """All that arrive are picked; lag tolerance 5."""
        round, model = self.learner._round, self.model
        behind = {device: round - 1 - self.finished[device] for device in range(self.count)}
        forced = {device: model for device, lag in behind.items() if lag > 5}
        uploads = {one.device: one.job.start + one.result.update for one in jobs}
        fetched = {device: model for device in began if not 0 < behind[device] <= 5}
        self.entries |= forced | uploads
        sizes = torch.tensor(self.learner.accounts.held.sizes, dtype=torch.float64)
        shares = sizes / sizes.sum()
        self.model = sum(shares[device] * self.entries.get(device, self.first) for device in range(self.count))
        self.at_hand |= forced | fetched | uploads
        for device in forced:
            self.finished[device] = round - 1
        for device in uploads:
            self.finished[device] = round
            self._remember(next(one for one in jobs if one.device == device))


def _tensors(net):
    """Its parameters, and then its running moments."""
    return [*net.parameters(), *(buffer for buffer in net.buffers() if buffer.is_floating_point())]


def _load(net, weights):
    for tensor, part in zip(_tensors(net), weights.split([tensor.numel() for tensor in _tensors(net)]), strict=True):
        tensor.data = part.view_as(tensor).clone()


def by_task(jobs, of_jobs):
    """Jobs, and what is given of each, the older ones of a device before its newer ones."""
    return sorted(zip(jobs, of_jobs, strict=True), key=lambda pair: pair[0].task)


def close(found, expected, what):
    """Within 1e-12 of the largest number, or of 1."""
    apart = float((found - expected).abs().max()) if len(expected) else 0.0
    assert apart <= 1e-12 * max(1.0, float(expected.abs().max())), f"{what}: {apart:.3g} apart"
