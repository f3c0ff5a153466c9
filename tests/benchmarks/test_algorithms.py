"""What each algorithm costs beside federated averaging: a device's whole job, and the server's step.

Contenders take turns and each one's least processor time counts, so that other work on the machine harms all alike.
"""

import os
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sizes import cpu_s, least_cpu_s, size

from edgesim.config import AlgorithmConfig
from edgesim.config_file import parse
from edgesim.learning.algorithms import ALGORITHMS, Halves, make_halves
from edgesim.learning.algorithms.records import Arrivals, Outputs, Sizes, Trained
from edgesim.learning.algorithms.server_half import ServerHalf
from edgesim.learning.datasets import Dataset
from edgesim.learning.drift.frames import Framed
from edgesim.learning.drift.holdings import Frame
from edgesim.learning.federation import Federation
from edgesim.learning.jobs import Arrived, Promise
from edgesim.learning.learner import TorchLearner
from edgesim.learning.torch_settings import reproducible
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams

BATCH, CLASSES = 32, 10
EPOCHS, PUBLIC = size((2, 200), (1, 20))
WORKS = size(
    {"mlp": ((1, 8, 8), 10, 64, 60), "small-cnn": ((1, 28, 28), 4, 64, 90), "fedteddi-cnn": ((3, 32, 32), 2, 32, 240)},
    {"mlp": ((1, 8, 8), 2, 20, 0)},
)
"""Models, with the shape of their images, the devices that train, the samples of each, and seconds of taking turns."""

CASES = {name: {"name": name} for name in ALGORITHMS} | {
    "scaffold, option I": {"name": "scaffold", "option": "I"},
    "cfed, reviews": {"name": "cfed", "task_rounds": 1},
}
"""All algorithms, and options that change the job or the step."""

JOBS = CASES | {
    f"{local}, server {server}": {"name": local, "server": server}
    for local, of_devices in ALGORITHMS.items()
    for server, of_server in ALGORITHMS.items()
    if local not in ("fedavg", server)
    and "local" in of_devices.halves
    and "server" in of_server.halves
    and of_server.Server.given is not ServerHalf.given
}
"""And server halves that give jobs something else to start from."""


def in_third_round(algorithm: dict, model: str, back_end: str) -> tuple[TorchLearner, list[Promise]]:
    """A learner after two rounds in which every device was merged, and the promises of a third one."""
    shape, devices, samples, _ = WORKS[model]
    random = np.random.default_rng(0)
    labels = random.integers(0, CLASSES, devices * samples + PUBLIC)
    images = random.integers(0, 256, (len(labels), *shape), dtype=np.uint8)
    dataset = Dataset("random", labels, labels, CLASSES, shape, lambda: (images, images[:1]))
    counts = np.stack([np.bincount(part, minlength=CLASSES) for part in np.split(labels[:-PUBLIC], devices)])
    sizes = np.full(devices, samples)
    frame = Frame(sizes, counts, np.arange(CLASSES), np.arange(devices * samples))
    config = {
        "rounds": 3,
        "devices": {"count": devices},
        "data": {"samples_per_device": samples, "public": "carved", "partition": "fedteddi"},
        "learning": {"pretrain": False, "epochs": EPOCHS, "batch_size": BATCH, "model": model, "back_end": back_end},
        "algorithm": algorithm,
    }
    completed = simulation.complete(parse(config, "benchmark"))
    learner = TorchLearner(
        completed, Federation(dataset, Framed([frame, frame]), np.arange(devices * samples, len(labels))), Streams(3)
    )
    everyone = np.arange(devices)
    for number in (1, 2, 3):
        promises = learner.open_round(number, 1).start(everyone)
        if number < 3:
            for promise in promises:
                promise.due = True
            learner.merge([Arrived(promise) for promise in promises], everyone)
    return learner, promises


def jobs_of(algorithm: dict, model: str, back_end: str) -> tuple[Callable[[], None], float]:
    """The jobs of a third round, and the algorithm's compute factor."""
    learner, promises = in_third_round(algorithm, model, back_end)
    sizes = learner.federation.frames[1].sizes

    def train() -> None:
        results = learner.results([Promise(each.device, each.round, each.job) for each in promises])
        assert len(results) == len(promises)

    charged = learner.accounts.charged_samples(np.arange(len(sizes)), 3)
    return train, float(charged.sum() / (EPOCHS * sizes).sum())


@pytest.mark.parametrize("model", WORKS)
def test_a_whole_job_beside_that_of_federated_averaging(benchmark, model):
    """Aim: on the convolutional nets at most 1.25 times the compute factor, on either back end."""
    table: dict[str, dict[str, float]] = {}
    for back_end in ("loop", "stacked"):
        made = {name: jobs_of(algorithm, model, back_end) for name, algorithm in JOBS.items()}
        contenders = {name: train for name, (train, _) in made.items()}
        seconds = WORKS[model][-1] / 2
        if back_end == "loop":
            least = benchmark.pedantic(least_cpu_s, args=(contenders, size(4, 1), seconds), rounds=1)
        else:
            least = least_cpu_s(contenders, size(4, 1), seconds)
        for name, (_, factor) in made.items():
            cost = least[name] / least["fedavg"]
            row = table.setdefault(name, {"factor": factor})
            row |= {f"{back_end} ms": 1e3 * least[name], back_end: cost, f"{back_end} / factor": cost / factor}
    show(benchmark, f"jobs on {model}", table)


TRAIN = [
    name
    for name, kind in ALGORITHMS.items()
    if kind.Server.refine is not ServerHalf.refine or kind.Server.prepare is not ServerHalf.prepare
]
"""Algorithms whose servers train, or find clusters."""


@pytest.mark.parametrize("model", WORKS)
def test_what_servers_train_beside_merging(benchmark, model):
    """Seconds of a merge and of what comes before the next round, with all that a server trains there."""

    def servers(algorithm: dict) -> Callable[[], None]:
        learner, promises = in_third_round(algorithm, model, "stacked")
        for promise in promises:
            promise.due = True
        learner.results(promises)

        def between_rounds() -> None:
            learner.merge([Arrived(promise) for promise in promises], np.arange(len(promises)))
            learner.open_round(4, 1)

        return between_rounds

    contenders = {name: servers({"name": name}) for name in ["fedavg", *TRAIN]}
    least = benchmark.pedantic(least_cpu_s, args=(contenders, size(4, 1), WORKS[model][-1] / 4), rounds=1)
    show(benchmark, f"between two rounds of {model}", {name: {"ms": 1e3 * seconds} for name, seconds in least.items()})


def show(benchmark, title: str, table: dict[str, dict[str, float]]) -> None:
    """Print a table, and put it into ``extra_info``."""
    load = round(os.getloadavg()[0], 1)
    benchmark.extra_info |= {"load_average": load} | table
    columns = list(next(iter(table.values())))
    print(f"\n{title} (load average {load})\n{'':26}" + "".join(f"{column:>17}" for column in columns))
    for name, row in table.items():
        print(f"{name:26}" + "".join(f"{row[column]:17.2f}" for column in columns))


UPDATES, PARAMETERS, TURNS = size((100, 2_500_000, 12), (5, 2000, 2))
FEATURES = 120
"""Of FedTeddi's CNN."""


SERVERS_BENCH = SimpleNamespace(public=np.empty(0, dtype=np.int64), batches=lambda samples: [])


class Server:
    """A server that has merged an update of every device, and its next round."""

    def __init__(self, halves: Halves, updates: torch.Tensor) -> None:
        local, self.server = halves
        self.updates = updates
        start = updates.new_zeros(PARAMETERS)
        self.state, self.ledger = self.server.start(start, SERVERS_BENCH), self.server.ledger(1, None)
        given = {"start": start, **self.state.shared, **local.first_kept(start)}
        labels = torch.arange(CLASSES).repeat(2)

        def outputs() -> tuple[Outputs, torch.Tensor]:
            return Outputs(updates[0, : len(labels), None], torch.randn(len(labels), FEATURES)), labels

        def sent() -> dict[str, torch.Tensor]:
            return local.sent(Trained(updates[0], given, 5, 0.1, 0.9, lambda: updates[0], outputs)).up

        first = sent()
        self.sent = [name for name, tensor in first.items() if len(tensor) == PARAMETERS]
        # What is smaller than the model is another one for each device.
        self.small = {name: [sent()[name] for _ in updates] for name in first if name not in self.sent}
        # A state may hold the one while the other comes in.
        self.rows, self.spare = ([row.clone() for row in updates] for _ in range(2))
        ids, samples = np.arange(UPDATES), np.random.default_rng(0).integers(100, 600, UPDATES)
        self.arrived = Arrivals(
            ids=ids,
            samples=samples,
            round=1,
            began_in=np.ones(UPDATES, dtype=np.int64),
            staleness=np.zeros(UPDATES, dtype=np.int64),
            age_weight=np.ones(UPDATES),
            picked=np.ones(UPDATES, dtype=bool),
            lr=np.full(UPDATES, 0.1),
            began=ids,
            all_samples=samples,
            class_counts=np.ones((UPDATES, CLASSES), dtype=np.int64),
            round_lr=0.1,
            updates=updates,
            starts=[start] * UPDATES,
        )

    def step(self) -> float:
        """Processor seconds in which it merges the next round, the same updates again."""
        self.rows, self.spare = self.spare, self.rows
        for row, update in zip(self.rows, self.updates, strict=True):
            row.copy_(update)
        arrived = replace(self.arrived, separate=self.rows, up=dict.fromkeys(self.sent, self.rows) | self.small)

        def merge() -> None:
            self.state = self.server.merge(self.state, arrived, self.server.weigh(arrived), self.ledger)

        return cpu_s(merge)


@pytest.fixture(scope="module")
def updates():
    """[100, 2,500,000], a gigabyte."""
    return torch.randn(UPDATES, PARAMETERS, generator=torch.Generator().manual_seed(0)).mul_(1e-3)


def test_a_server_step_beside_one_weighted_sum(benchmark, updates):
    """Aim: at most 3 times the weighted sum that FedAvg takes; MIFA, which reads its whole table, is only measured.

    What servers train beside it is not in it. SCAFFOLD's server reads the c_i of all devices, or the old and new ones
    of those that arrived where this is less, as in the row with devices that are away: three reads beside one.
    """
    shares = np.full(UPDATES, 1 / UPDATES)
    table: dict[str, dict[str, float]] = {}

    def row(step_s: float, sum_s: float) -> dict[str, float]:
        return {"ms": 1e3 * step_s, "one sum, ms": 1e3 * sum_s, "ratio": step_s / sum_s}

    def measure(options: dict, away: int = 0) -> tuple[float, float]:
        public = {"private": 10 * PUBLIC, "public": PUBLIC}
        devices = UPDATES + away
        sizes = Sizes(32.0 * PARAMETERS, PARAMETERS, devices, CLASSES, FEATURES, 1, (PARAMETERS,), **public)
        server = Server(make_halves(AlgorithmConfig(**options), sizes, Streams(0)), updates)
        if away:
            # They were merged before; what they sent is not read.
            server.state.own |= dict.fromkeys(range(UPDATES, devices), updates[0])
        step, one_sum = [], []
        for _ in range(TURNS):
            one_sum.append(cpu_s(lambda: updates.new_tensor(shares) @ updates))
            step.append(server.step())
        return min(step[1:]), min(one_sum)

    with reproducible(updates.device):
        for name, options in CASES.items():
            # The first one stands for all in the times of pytest-benchmark.
            done = measure(options) if table else benchmark.pedantic(measure, args=(options,), rounds=1)
            table[name] = row(*done)
        table["scaffold, others away"] = row(*measure({"name": "scaffold"}, 2 * UPDATES))
    show(benchmark, f"merging {UPDATES} updates of {PARAMETERS:,} parameters", table)
