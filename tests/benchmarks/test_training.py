"""How fast the back ends train, as ratios to a plain sequential PyTorch loop in the same run.

The yardstick is what one writes first: an `nn.Module` in NCHW, `torch.optim.SGD`, one client after another, the
images normalised and in memory, no DataLoader; with one thread and with torch's default number, whichever is faster.
Contenders take turns and each one's least time counts, so that other work on the machine harms all alike.
"""

import os
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sizes import IS_LEAST, cpu_s, least_cpu_s, size
from whole_runs import TIMED

from edgesim.base.processes import cores
from edgesim.config import LearningConfig
from edgesim.config_file import parse
from edgesim.folder.records import read_table
from edgesim.learning.algorithms.algorithm import AveragingOptions
from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.algorithms.records import Phase, Sizes
from edgesim.learning.back_ends import make_back_end
from edgesim.learning.datasets import Dataset
from edgesim.learning.flat import FlatModel
from edgesim.learning.jobs import BackEnd, Job, Optimiser, Promise
from edgesim.learning.models import new_model
from edgesim.learning.tensors import DeviceData
from edgesim.learning.torch_settings import reproducible
from edgesim.learning.training_round import TorchRound
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams

CPU = torch.device("cpu")
SEED = 3
FEDAVG = LocalHalf(AveragingOptions(), Sizes(0.0, 0, 30), Streams(0))


class Work:
    """Local epochs of some clients on random images of a given shape."""

    def __init__(self, model: str, shape: tuple[int, int, int], clients: int, samples: int, batch: int, device=CPU):
        self.model, self.shape, self.device = model, shape, device
        random = np.random.default_rng(0)
        labels = random.integers(0, 10, clients * samples)
        images = random.integers(0, 256, (len(labels), *shape), dtype=np.uint8)
        dataset = Dataset("random", labels, labels, 10, shape, lambda: (images, images[:1]))
        self.data = DeviceData(dataset, device)
        self.build = partial(new_model, model, shape, 10, SEED)
        edges = np.append(np.arange(0, samples, batch), samples)
        parts = np.split(random.permutation(len(labels)), clients)
        given, optimiser = {"start": FlatModel(self.build(), device).snapshot()}, Optimiser(0.01, 0.5)
        self.jobs = [Job(n, 1, n, (Phase(part, edges),), given, optimiser) for n, part in enumerate(parts)]

    def plain(self) -> Callable[[], None]:
        """The yardstick."""
        module = self.build().to(self.device).train()
        start = {name: tensor.clone() for name, tensor in module.state_dict().items()}
        images, labels = self.data.train(torch.arange(len(self.data.train_labels), device=self.device))

        def train() -> None:
            for job in self.jobs:
                module.load_state_dict(start)
                optimiser = torch.optim.SGD(module.parameters(), lr=job.optimiser.lr, momentum=job.optimiser.momentum)
                index = torch.from_numpy(job.samples).to(self.device)
                for first, last in zip(job.edges[:-1], job.edges[1:], strict=True):
                    batch = index[first:last]
                    optimiser.zero_grad()
                    F.cross_entropy(module(images[batch]), labels[batch]).backward()
                    optimiser.step()

        return train

    def back_end(self, name: str) -> BackEnd:
        """A back end on a model of its own."""
        with reproducible(self.device):
            model = FlatModel(self.build(), self.device)
            return make_back_end(LearningConfig(back_end=name), model, self.data, self.build, cores(), FEDAVG)[0]

    def contender(self, name: str) -> tuple[Callable[[], None], Callable[[], None]]:
        """One round on a back end, and how to close it."""
        back_end = self.back_end(name)

        def train() -> None:
            with reproducible(self.device):
                promises = [Promise(job.device, job.round, job) for job in self.jobs]
                assert back_end.run(promises) == len(self.jobs)

        return train, back_end.close


def now_s() -> float:
    """The time, when all is done that was given to a GPU."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def least_seconds(contenders: dict[str, Callable[[], None]], seconds: float) -> dict[str, float]:
    """The least wall time of each, taking turns for so many seconds and once at least."""
    return least_cpu_s(contenders, 1, size(seconds, 0.0), now_s)


def with_threads(count: int, work: Callable[[], None]) -> Callable[[], None]:
    """The work on so many threads of torch."""

    def run() -> None:
        before = torch.get_num_threads()
        torch.set_num_threads(count)
        try:
            work()
        finally:
            torch.set_num_threads(before)

    return run


def exact(device: torch.device, work: Callable[[], None]) -> Callable[[], None]:
    """The work in float32 throughout and the same in every run, as edgesim trains."""

    def run() -> None:
        with reproducible(device):
            work()

    return run


def compare(benchmark, work: Work, names: list[str], seconds: float) -> dict[str, float]:
    """Times of the yardstick and the back ends; ratios go into ``extra_info`` and are printed."""
    contenders: dict[str, Callable[[], None]] = {"plain, 1 thread": with_threads(1, work.plain())}
    if cores() > 1 and work.device == CPU:
        contenders[f"plain, {cores()} threads"] = with_threads(cores(), work.plain())
    if work.device != CPU:
        contenders["plain, no TF32"] = exact(work.device, work.plain())
    closers = []
    for name in names:
        contenders[name], close = work.contender(name)
        closers.append(close)
    chosen = work.back_end("auto")
    chosen.close()
    try:
        if not IS_LEAST:
            # Workers start, allocators and caches fill.
            least_seconds(contenders, seconds / 3)
        least = benchmark.pedantic(lambda: least_seconds(contenders, seconds), rounds=1)
    finally:
        for close in closers:
            close()
    yardstick = min(value for name, value in least.items() if name.startswith("plain"))
    best = min(least[name] for name in names)
    ratios = {name: round(yardstick / value, 2) for name, value in least.items()}
    facts = {"ms": {name: round(1e3 * value, 3) for name, value in least.items()}, "times_the_yardstick": ratios}
    facts |= {"auto_is": chosen.name, "auto_to_the_best": round(best / least[chosen.name], 2)}
    facts["load_average"] = round(os.getloadavg()[0], 1)
    benchmark.extra_info |= facts
    print(f"\n{work.model} {work.shape}, {len(work.jobs)} clients: {facts}")
    return least


# The middle one is an image of the size of Fashion-MNIST, the last one near the end of what `auto` stacks.
WORKS = {
    "digits mlp": (("mlp", (1, 8, 8), 10, 14, 8), ["loop", "workers", "stacked"], 12),
    "small-cnn": (("small-cnn", (1, 28, 28), 10, size(600, 20), 32), ["loop", "workers"], 45),
    "a wider mlp": (("mlp", (1, 28, 28), 10, size(600, 20), 32), ["loop", "workers", "stacked"], 15),
}
"""Work, back ends, and seconds of taking turns."""


@pytest.mark.parametrize("name", WORKS)
def test_back_ends_beside_the_plain_loop(benchmark, name):
    """Aims: `stacked` at least 4 times the yardstick on digits, the small CNN at least 1.7 times on two cores, and
    `auto` within 0.95 of the best."""
    work, back_ends, seconds = WORKS[name]
    compare(benchmark, Work(*work), back_ends, seconds)


def float32_rate(device: torch.device) -> float:
    """Operations per second of a product of two matrices of 8,192 x 8,192 in float32: what the card can reach."""
    matrices = torch.randn(2, 8192, 8192, device=device)
    seconds = least_seconds({"product": exact(device, lambda: torch.matmul(*matrices))}, 2)["product"]
    return float(2 * 8192**3 / seconds)


on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@on_a_gpu
def test_fedteddis_cnn_on_a_gpu(benchmark):
    """Aim: at least 3 times the yardstick; the rate of arithmetic beside what the card reaches on a large product."""
    gpu = torch.device("cuda")
    work = Work("fedteddi-cnn", (3, 32, 32), 30, 5 * 32, 32, gpu)
    least = compare(benchmark, work, ["loop", "stacked"], 20)
    # Multiply-adds of the four convolutions and two linear layers on 32x32 pixels, 2 operations each; a backward
    # pass costs twice a forward pass.
    pixels = 32 * 32
    forward = 9 * (3 * 32 + 32 * 32) * pixels + 9 * (32 * 64 + 64 * 64) * pixels / 4 + 4096 * 120 + 1200
    operations = 3 * 2 * forward * 30 * 5 * 32
    reached, possible = operations / least["stacked"], float32_rate(gpu)
    facts = {"tflop_per_s": reached / 1e12, "card_tflop_per_s": possible / 1e12, "share": reached / possible}
    benchmark.extra_info |= facts
    print(facts)


TEN_CLIENTS = {
    "devices": {"count": 10},
    "round": {"computes": "selected", "admission": "count", "count": 10, "allocator": "equal_share", "tmax_s": 1e4},
    "data": {"partition": "iid", "samples_per_device": 14},
    "learning": {"batch_size": 8, "epochs": 1, "momentum": 0.0, "pretrain": False},
}
"""The digits of the comparison with other simulators: 10 clients x 14 samples, batches of 8."""
FEDTEDDI = {
    "round": {"payload_bits": 17_881_664.0, "tmax_s": 1.0},
    "selection": {"policy": "fedteddi"},
    "data": {"partition": "fedteddi"},
    "learning": {"pretrain": False},
}


UNTRAINED = TIMED | {"round": FEDTEDDI["round"], "selection": {"policy": "random"}, "data": {"partition": "fedteddi"}}
OVERHEADS = {"untrained": (UNTRAINED, 200), "ten clients": (TEN_CLIENTS, 200), "fedteddi": (FEDTEDDI, 100)}
"""Worlds without training or evaluation; of ten digits clients; of thirty devices under FedTeddi's policy."""


@pytest.mark.parametrize("name", OVERHEADS)
def test_what_a_round_costs_beyond_training(benchmark, tmp_path, name):
    """Aim: far under 5 ms a round for engine, selection and tables: ``overhead`` is all but training, evaluation and
    passes for the policy."""
    world, full = OVERHEADS[name]
    rounds = size(full, 2)
    passes_s: dict[int, float] = {}

    def timed(method):
        def call(self, *arguments):
            started = time.perf_counter()
            found = method(self, *arguments)
            passes_s[self.round] = passes_s.get(self.round, 0.0) + time.perf_counter() - started
            return found

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in ("gradient_deviations", "class_gradient_distances"):
            patch.setattr(TorchRound, name, timed(getattr(TorchRound, name)))
        config = parse(world | {"rounds": rounds, "evaluation": {"every": rounds}}, "benchmark")
        benchmark.pedantic(lambda: simulation.run(config, tmp_path), rounds=1)
    parts = read_table(tmp_path, "timing").pivot_table(index="round", columns="part", values="wall_s", fill_value=0.0)
    parts["passes"] = [passes_s.get(number, 0.0) for number in parts.index]
    parts["overhead"] = parts["round"] - parts["train"] - parts["passes"] - parts.get("evaluate", 0.0)
    milliseconds = 1e3 * parts[["round", "train", "passes", "overhead"]]
    facts = {"median_ms": milliseconds.median(), "least_ms": milliseconds.min()}
    facts = {name: values.round(2).to_dict() for name, values in facts.items()}
    benchmark.extra_info |= facts | {"load_average": round(os.getloadavg()[0], 1)}
    print(f"\n{facts}")
    assert len(parts) == rounds


@pytest.mark.parametrize("world", [TEN_CLIENTS, FEDTEDDI], ids=["ten-clients", "fedteddi"])
def test_whole_digits_rounds_beside_the_training_of_ten_clients_by_the_plain_loop(benchmark, tmp_path, world):
    """Aim: 0.25 times the loop's time for ten clients, everything included, and 0.9 for FedTeddi's 30 devices.

    The median of a run's rounds counts, and the least of the runs, which take turns with the loop.
    """
    rounds, tries = size((60, 5), (2, 1))
    config = parse({"rounds": rounds, **world, "evaluation": {"every": rounds}}, "benchmark")
    plain = with_threads(1, Work("mlp", (1, 8, 8), 10, 14, 8).plain())
    folders = (tmp_path / str(number) for number in range(tries + 1))

    def run() -> float:
        ends_s: list[float] = []
        simulation.run(config, next(folders), lambda _: ends_s.append(time.process_time()))
        return float(np.median(np.diff(ends_s)))

    turns = range(size(20, 1))
    round_s, loop_s = np.min([(run(), min(cpu_s(plain) for _ in turns)) for _ in range(tries)], axis=0)
    benchmark.pedantic(run, rounds=1)
    benchmark.extra_info |= {"ms": 1e3 * round_s, "loop_ms": 1e3 * loop_s, "ratio": round_s / loop_s}
    print(f"\n{1e3 * round_s:.2f} and {1e3 * loop_s:.2f} ms, {round_s / loop_s:.2f}")
