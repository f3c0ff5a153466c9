"""The work that every side does: networks, data, plain training of one client, and how a result is reported.

Needs torch and NumPy alone, so that it runs in the environment of every side.
"""

import argparse
import importlib.util
import json
import os
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional


def _networks() -> dict[str, Callable[[tuple[int, ...], int], nn.Module]]:
    """edgesim's own networks, from their file alone: the environments of the peers do not hold the package."""
    path = Path(__file__).parents[3] / "edgesim/learning/models/plain.py"
    spec = importlib.util.spec_from_file_location("plain_networks", path)
    assert spec is not None
    assert spec.loader is not None
    plain = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(plain)
    return {"mlp": plain.mlp, "small-cnn": plain.small_cnn}


NETWORKS = _networks()


@dataclass(frozen=True)
class Work:
    """FedAvg over a few rounds: every client trains one epoch of plain SGD per round, updates weigh alike."""

    folder: Path
    """Holds ``data.npz`` (images [n, H, W] uint8 and labels, train and test), ``clients.npy`` and ``work.json``."""
    network: str
    """Its name in edgesim."""
    batch: int
    lr: float
    warm_up: int
    """Rounds that do not count."""
    rounds: int
    """Rounds that count."""

    @staticmethod
    def read(folder: Path) -> "Work":
        """The work that a folder describes."""
        return Work(folder=folder, **json.loads((folder / "work.json").read_text()))

    @property
    def all_rounds(self) -> int:
        """Rounds in all."""
        return self.warm_up + self.rounds

    @cached_property
    def clients(self) -> list[tuple[Tensor, Tensor]]:
        """Images and labels of each client."""
        images, labels = self._split("train")
        return [(images[held], labels[held]) for held in torch.from_numpy(np.load(self.folder / "clients.npy"))]

    def new_network(self) -> nn.Module:
        """The network with the same initial weights on every side that makes its own."""
        images, _ = self.clients[0]
        torch.manual_seed(0)
        return NETWORKS[self.network](tuple(images.shape[1:]), 10)

    def train(self, network: nn.Module, client: int) -> None:
        """One epoch of a client from the network's present weights, in place."""
        images, labels = self.clients[client]
        optimizer = torch.optim.SGD(network.parameters(), lr=self.lr)
        order = torch.randperm(len(labels))
        for batch in order.split(self.batch):
            optimizer.zero_grad()
            functional.cross_entropy(network(images[batch]), labels[batch]).backward()
            optimizer.step()

    def accuracy(self, network: nn.Module) -> float:
        """Share of the test images that are right."""
        images, labels = self._split("test")
        network.eval()
        with torch.no_grad():
            return float((network(images).argmax(dim=1) == labels).float().mean())

    def _split(self, part: str) -> tuple[Tensor, Tensor]:
        with np.load(self.folder / "data.npz") as data:
            train = data["train_images"]
            images = (data[f"{part}_images"] - train.mean(dtype=np.float64)) / train.std(dtype=np.float64)
            labels = data[f"{part}_labels"]
        return torch.from_numpy(images.astype(np.float32))[:, None], torch.from_numpy(labels.astype(np.int64))


def asked() -> tuple[Work, int, int]:
    """Work, processes and threads of each, from the command line of a side."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("processes", type=int)
    parser.add_argument("threads", type=int)
    arguments = parser.parse_args()
    return Work.read(arguments.folder), arguments.processes, arguments.threads


def report(work: Work, ends_s: list[float], accuracy: float, back_end: str = "", **versions: str) -> None:
    """Print the result as the last line: seconds per round after warm-up, from the times when rounds ended.

    ``back_end`` is how edgesim chose to train.
    """
    lengths_s = np.diff(ends_s)[-work.rounds :]
    assert len(lengths_s) == work.rounds
    result = {
        "round_s": statistics.median(lengths_s.tolist()),
        "accuracy": accuracy,
        "back_end": back_end,
        "versions": {"torch": torch.__version__, **versions},
    }
    print(f"\n{json.dumps(result)}", flush=True)
    # Simulators leave processes and threads behind that would keep this one waiting.
    os._exit(0)
