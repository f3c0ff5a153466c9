"""Published and worked numbers through the whole simulator: a listed partition, programmed rounds and float64.

The net of eight weights: logits H tanh(A x); three clients, of which {0, 1}, {1, 2} and {0, 2} take part. The expected
numbers were computed in float64 by two programs that know nothing of this one.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from refusals import in_one_line
from safetensors.torch import load_file
from torch import Tensor, nn
from whole_runs import by_rounds
from worked_numbers import CONSENSUS, EIGHT_WEIGHTS, FEDMD, FEDMD_SUMS, KINDS, KPFL, OF_CFED

from edgesim.config import DataConfig, RunConfig
from edgesim.config_file import parse
from edgesim.folder.records import read_table
from edgesim.learning.datasets import load_dataset, load_shared
from edgesim.learning.datasets.public import Shared
from edgesim.learning.drift.frames import Framed
from edgesim.learning.federation import Federation, make_federation
from edgesim.learning.learner import TorchLearner
from edgesim.simulation import composition as simulation
from edgesim.simulation import simulation as run_object
from edgesim.streams import Streams

SAMPLES = [((1, 0), 0), ((0, 1), 1), ((1, 1), 0), ((-0.5, -1), 0), ((-1, 1), 1), ((2, -1), 1), ((0.5, -1), 0)]
OWNERS = [0, 0, 0, 0, 1, 1, 2]
THREE = [((1, -1), 0), ((-1, -1), 0), ((0.5, 2), 0)]
PUBLIC = {
    "feddf": THREE, "fedmd": THREE, "cfed": THREE * OF_CFED["shards"],
    "fedcl": [((1, -1), 0), ((-0.5, 1), 1)] * 2,
}  # fmt: skip
"""Public images of algorithms that need some, behind the devices' own."""
A, H = [[0.5, -0.3], [0.2, 0.4]], [[0.6, -0.1], [-0.2, 0.3]]


class EightWeights(nn.Sequential):
    """The net with its start weights, of float64 as few of them are numbers of float32."""

    def __init__(self, image_shape: tuple[int, int, int], classes: int) -> None:
        super().__init__(nn.Flatten(), nn.Linear(2, 2, bias=False), nn.Tanh(), nn.Linear(2, 2, bias=False))
        for layer, weights in ((self[1], A), (self[3], H)):
            layer.weight.data = torch.tensor(weights, dtype=torch.float64)


def config(folder: Path, rounds: int, algorithm: dict[str, object], **learning: object) -> dict[str, object]:
    """Three clients, each step on all samples of a client, two steps of 0.5."""
    every = SAMPLES + PUBLIC.get(str(algorithm["name"]), [])
    images = np.array([image for image, _ in every])[:, None, :]
    labels = np.array([label for _, label in every])
    np.savez(folder / "net.npz", train_images=images, train_labels=labels, test_images=images, test_labels=labels)
    rows = [f"{owner},{sample}" for sample, owner in enumerate(OWNERS)]
    (folder / "listed.csv").write_text("\n".join(["device,sample", *rows]))
    frames = {}
    if algorithm["name"] == "cfed":
        frames = {"seed": OF_CFED["seed"], "rounds": [1, rounds - 1] if rounds > 1 else 1}
    return {
        "rounds": rounds,
        **frames,
        "devices": {"count": 3},
        **by_rounds(folder, "101", "110", "011"),
        "round": {"payload_bits": 1e4, "admission": "count", "count": 3, "allocator": "equal_share"},
        "data": {
            "dataset": str(folder / "net.npz"), "scale": 1.0, "public": "carved",
            "partition": "listed", "partition_options": {"file": str(folder / "listed.csv")},
        },
        "learning": {
            "model": f"{__name__}.EightWeights", "precision": "float64", "pretrain": False, "batch_size": 8,
            "epochs": 2, "lr": 0.5, "lr_decay": 1.0, "momentum": 0.0,
            "back_end": "loop", **learning,
        },
        "algorithm": algorithm,
    }  # fmt: skip


@pytest.fixture
def merges(monkeypatch: pytest.MonkeyPatch) -> list[tuple[TorchLearner, dict[str, Tensor], Tensor]]:
    """The learner, what devices share before a merge, and the model behind it, of each merge."""
    merge, seen = TorchLearner.merge, []

    def spied(learner: TorchLearner, *arguments: Any) -> Any:
        shared = {name: tensor.clone() for name, tensor in learner.states[0].shared.items()}
        merged = merge(learner, *arguments)
        seen.append((learner, shared, learner.global_weights.clone()))
        return merged

    monkeypatch.setattr(TorchLearner, "merge", spied)
    return seen


@pytest.fixture(autouse=True)
def public_images_are_those_behind_the_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def shared(data: DataConfig) -> Shared:
        dataset = load_dataset(data)
        if not data.dataset.endswith("net.npz"):
            return load_shared(data)
        rows = np.arange(len(dataset.train_labels))
        return Shared(dataset, rows[: len(SAMPLES)], rows[len(SAMPLES) :])

    monkeypatch.setattr("edgesim.learning.federation.load_shared", shared)


@pytest.fixture(autouse=True)
def several_numbers_of_rounds_are_those_of_frames_with_the_same_data(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_frames(config: RunConfig, streams: Streams) -> Federation:
        federation = make_federation(config, streams)
        frames = len(config.rounds) if isinstance(config.rounds, list) else 1
        return replace(federation, drift=Framed([federation.frames[0]] * (1 + frames)))

    monkeypatch.setattr(run_object, "make_federation", in_frames)


def weights(folder: Path, rounds: int, algorithm: dict[str, object], **learning: object) -> Tensor:
    """A and H by rows after some rounds, [8]."""
    folder.mkdir()
    simulation.run(parse(config(folder, rounds, algorithm, **learning), "test"), folder / "run")
    assert read_table(folder / "run", "rounds")["arrived"].tolist() == [2] * rounds
    return torch.cat([tensor.flatten() for tensor in load_file(folder / "run" / "model.safetensors").values()])


NUMBERS = {
    name: [float(number) for number in numbers.split()]
    for name, _, numbers in (line.partition("  ") for line in EIGHT_WEIGHTS.strip().splitlines())
}
LINES = [
    pytest.param(
        {"name": KINDS[name][0]} | KINDS[name][1] | ({"kpfl": KPFL[name]} if name in KPFL else {}),
        0.5 if name == "MIFA, lr .5, .25, .125" else 1.0,
        numbers[:3],
        numbers[3:9],
        id=name,
    )
    for name, numbers in NUMBERS.items()
]
"""Algorithm, decay of the learning rate per round, check sums w_1 + 2 w_2 + ... + 8 w_8 after rounds 1, 2, 3, and A
and the first row of H after round 3."""


@pytest.mark.parametrize(("algorithm", "lr_decay", "sums", "last"), LINES)
def test_the_net_of_eight_weights_under_partial_participation(tmp_path, merges, algorithm, lr_decay, sums, last):
    found = weights(tmp_path / "run", 3, algorithm, lr_decay=lr_decay)
    assert torch.equal(merges[-1][2], found)
    for (_, _, model), expected in zip(merges, sums, strict=True):
        assert model.dtype == torch.float64
        assert float(model @ torch.arange(1.0, 9.0, dtype=torch.float64)) == pytest.approx(expected, abs=2e-10)
    assert found[:6].tolist() == pytest.approx(last, abs=2e-10)
    assert found[6:].tolist() == pytest.approx([0.4 - last[4], 0.2 - last[5]], abs=2e-10)


def test_worker_processes_train_in_float64(tmp_path):
    found = weights(tmp_path / "workers", 3, {"name": "fedavg"}, back_end="workers")
    assert found.dtype == torch.float64
    assert found[:6].tolist() == pytest.approx(NUMBERS["FedAvg"][3:9], abs=2e-10)


def test_the_consensus_and_the_models_of_fedmd_meet_their_numbers(tmp_path, merges):
    saved = weights(tmp_path / "fedmd", 3, {"name": "fedmd"} | FEDMD)
    learner = merges[-1][0]
    consensus = [shared["consensus"].numpy() for _, shared, _ in merges[1:]] + [learner.states[0].shared["consensus"]]
    assert np.array(consensus) == pytest.approx(np.array(CONSENSUS), abs=2e-10)
    models = [learner.kept[device]["start"] for device in range(3)]
    sums = [float(model @ torch.arange(1.0, 9.0, dtype=torch.float64)) for model in models]
    assert sums == pytest.approx(FEDMD_SUMS, abs=2e-10)
    assert torch.equal(saved, models[0])


def test_fedcls_omega_before_each_round_meets_its_numbers(tmp_path, merges):
    """Of both proxy images twice, and so divided by four images instead of two."""
    weights(tmp_path / "run", 3, {"name": "fedcl"} | KINDS["FedCL coe 10"][1])
    seen = np.array([shared["omega"].tolist() for _, shared, _ in merges])
    expected = [[0.0416986564, 0.0522018430], [0.0384970099, 0.0542513450], [0.0444607496, 0.0580769336]]
    assert 2 * seen == pytest.approx(np.array(expected), abs=2e-10)


def test_lengths_and_weights_of_afls_updates_meet_their_numbers(tmp_path):
    weights(tmp_path / "afl", 3, {"name": "afl"} | KINDS["AFL lambda .5"][1])
    updates = read_table(tmp_path / "afl" / "run", "updates").sort_values(["round", "device"])
    lengths = [0.2237028959, 0.3002850147, 0.3302902019, 0.4105965620, 0.2538416638, 0.4213041516]
    assert updates["update_norm"].tolist() == pytest.approx(lengths, abs=2e-10)
    assert updates["weight"].tolist()[::2] == pytest.approx([0.6741480125, 0.6741528861, 0.8112211522], abs=2e-10)


@pytest.mark.parametrize(
    ("model", "policy"),
    [("mlp", "fedteddi"), ("mlp", "best-norm"), pytest.param("small-cnn", "fedcgd", marks=pytest.mark.slow)],
)
def test_float64_starts_from_the_weights_of_float32_and_stays_near_it(tmp_path, model, policy):
    def trained(precision: str) -> dict[str, Tensor]:
        values = {
            "rounds": 2,
            "devices": {"count": 4},
            "round": {"payload_bits": 1e5},
            "learning": {"model": model, "precision": precision, "pretrain": False},
            "selection": {"policy": policy},
            "data": {"partition": "fedteddi"},
        }
        result = simulation.run(parse(values, "test"), tmp_path / precision)
        assert result.status == "finished"
        return load_file(tmp_path / precision / "model.safetensors")

    single, double = trained("float32"), trained("float64")
    apart = max(float((single[name].double() - double[name]).abs().max()) for name in single)
    assert {tensor.dtype for tensor in double.values()} == {torch.float64}
    assert 0 < apart < 1e-5


def test_pixels_are_divided_by_the_scale_that_the_config_gives():
    def pixels(**data: object) -> tuple[list[float], list[float]]:
        offset, divisor = load_dataset(parse({"data": data}, "test").data).normalisation
        return offset.tolist(), divisor.tolist()

    assert pixels(dataset="digits", scale=4.0) == ([0.0], [4.0])
    assert pixels(dataset="digits") == ([0.0], [16.0])
    assert pixels(dataset="iris", scale=1.0) == ([0.0] * 4, [1.0] * 4)
    assert pixels(dataset="iris")[0] != [0.0] * 4
    for scale in (0.0, -1.0, "big"):
        with in_one_line(r"data\.scale: input should be"):
            pixels(scale=scale)
