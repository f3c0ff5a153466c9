"""Published and worked numbers through the whole simulator: a listed partition, programmed rounds and float64.

The net of eight weights: logits H tanh(A x); three clients, of which {0, 1}, {1, 2} and {0, 2} take part. The expected
numbers were computed in float64 by two programs that know nothing of this one.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from edgesim import simulation
from edgesim.config_file import parse
from edgesim.errors import EdgesimError
from edgesim.learning.datasets import load_dataset
from edgesim.runs.records import read_table

SAMPLES = [((1, 0), 0), ((0, 1), 1), ((1, 1), 0), ((-0.5, -1), 0), ((-1, 1), 1), ((2, -1), 1), ((0.5, -1), 0)]
OWNERS = [0, 0, 0, 0, 1, 1, 2]
A, H = [[0.5, -0.3], [0.2, 0.4]], [[0.6, -0.1], [-0.2, 0.3]]


class EightWeights(nn.Sequential):
    """The net with its start weights, of float64 as few of them are numbers of float32."""

    def __init__(self, image_shape: tuple[int, int, int], classes: int) -> None:
        super().__init__(nn.Flatten(), nn.Linear(2, 2, bias=False), nn.Tanh(), nn.Linear(2, 2, bias=False))
        for layer, weights in ((self[1], A), (self[3], H)):
            layer.weight.data = torch.tensor(weights, dtype=torch.float64)


def config(folder: Path, rounds: int, algorithm: dict[str, object], **learning: object) -> dict[str, object]:
    """Three clients, each step on all samples of a client, two steps of 0.5."""
    images = np.array([image for image, _ in SAMPLES])[:, None, :]
    labels = np.array([label for _, label in SAMPLES])
    np.savez(folder / "net.npz", train_images=images, train_labels=labels, test_images=images, test_labels=labels)
    rows = [f"{owner},{sample}" for sample, owner in enumerate(OWNERS)]
    (folder / "listed.csv").write_text("\n".join(["device,sample", *rows]))
    (folder / "rounds.csv").write_text("device,1,2,3\n0,1,0,1\n1,1,1,0\n2,0,1,1\n")
    return {
        "rounds": rounds,
        "devices": {"count": 3},
        "availability": {"model": "table", "file": str(folder / "rounds.csv"), "slots": "rounds"},
        "round": {"payload_bits": 1e4, "admission": "count", "count": 3, "allocator": "equal_share"},
        "data": {
            "dataset": str(folder / "net.npz"), "scale": 1.0,
            "partition": "listed", "partition_options": {"file": str(folder / "listed.csv")},
        },
        "learning": {
            "model": f"{__name__}.EightWeights", "precision": "float64", "pretrain": False, "batch_size": 8,
            "epochs": 2, "lr": 0.5, "lr_decay": 1.0, "momentum": 0.0, **learning,
        },
        "algorithm": algorithm,
    }  # fmt: skip


def weights(folder: Path, rounds: int, algorithm: dict[str, object], **learning: object) -> Tensor:
    """A and H by rows after some rounds, [8]."""
    folder.mkdir()
    simulation.run(parse(config(folder, rounds, algorithm, **learning), "test"), folder / "run")
    assert read_table(folder / "run", "rounds")["arrived"].tolist() == [2] * rounds
    return torch.cat([tensor.flatten() for tensor in load_file(folder / "run" / "model.safetensors").values()])


LINES = [
    ({"name": "fedavg"}, (5.5388701066, 6.0106982214, 5.7176515693),
     (0.7015496410, -0.4842546460, 0.2462592827, 0.4779178597, 0.7292711923, -0.1963521591)),
    ({"name": "fedavg", "weights": "equal"}, (5.6982402022, 6.0328530165, 5.8639312688),
     (0.6847909187, -0.5370059238, 0.2240134577, 0.5533746355, 0.7735241348, -0.2573307761)),
    ({"name": "fedprox", "mu": 0.5}, (5.5341020247, 5.9437494701, 5.6938426317),
     (0.6772278776, -0.4660592418, 0.2397349321, 0.4684026471, 0.7141299322, -0.1920888587)),
    ({"name": "scaffold", "option": "I"}, (5.6982402022, 5.8467054444, 5.9811995047),
     (0.6881674477, -0.5165026218, 0.2822164918, 0.5069979134, 0.7250723862, -0.2507704721)),
    ({"name": "scaffold"}, (5.6982402022, 5.8407991046, 5.9756662614),
     (0.6890040307, -0.518692461, 0.281848493, 0.5068913223, 0.7246543425, -0.2501225347)),
    ({"name": "feddyn", "alpha": 0.1, "adaptive": False}, (5.8222837334, 6.488617744, 6.6024744214),
     (0.8651062062, -0.7183790583, 0.3073106295, 0.7004895915, 0.8917576632, -0.4168757017)),
    ({"name": "feddyn", "alpha": 0.1}, (5.8175869712, 6.4743456591, 6.572037879),
     (0.8596985851, -0.6972874261, 0.3140736199, 0.676189368, 0.8707807914, -0.4007486987)),
    ({"name": "mifa"}, (5.6321601348, 5.7505471271, 5.8722345343),
     (0.653147213, -0.4974730869, 0.2683312599, 0.4845969094, 0.7010540453, -0.2363800842)),
    ({"name": "mifa", "wait": True}, (5.5, 5.5907224382, 5.6912494215),
     (0.6223107013, -0.478879189, 0.2291451338, 0.4812864559, 0.7043811689, -0.2114391055)),
    ({"name": "fedavgm"}, (5.5388701066, 6.0456813174, 6.1933250504),
     (0.8278280382, -0.6309972115, 0.3814552364, 0.4903331257, 0.7404873842, -0.3013839957)),
    ({"name": "fedadam"}, (5.6786491211, 6.2986324859, 6.6020694168),
     (0.8030775358, -0.6374850203, 0.3882990901, 0.5543881196, 0.7037470709, -0.3495031575)),
    ({"name": "fedyogi"}, (5.678366564, 6.2974526604, 6.6010170434),
     (0.8024139816, -0.636620618, 0.3881719719, 0.5541595724, 0.703708988, -0.3490540342)),
    ({"name": "moon", "mu": 1, "T": 0.5}, (5.5388701066, 5.7774745452, 5.324247506),
     (0.5763762125, -0.5329897212, -0.0424331828, 0.6375457932, 0.6987146064, -0.1941981621)),
]  # fmt: skip
"""Algorithm, check sums w_1 + 2 w_2 + ... + 8 w_8 after rounds 1, 2, 3, and A and the first row of H after round 3."""


@pytest.mark.parametrize(("algorithm", "sums", "last"), LINES, ids=lambda value: str(value)[:40])
def test_the_net_of_eight_weights_under_partial_participation(
    tmp_path: Path, algorithm: dict[str, object], sums: tuple[float, ...], last: tuple[float, ...]
) -> None:
    for rounds, expected in enumerate(sums, start=1):
        found = weights(tmp_path / str(rounds), rounds, algorithm)
        assert found.dtype == torch.float64
        assert float(found @ torch.arange(1.0, 9.0, dtype=torch.float64)) == pytest.approx(expected, abs=2e-10)
    assert found[:6].tolist() == pytest.approx(last, abs=2e-10)
    assert found[6:].tolist() == pytest.approx([0.4 - last[4], 0.2 - last[5]], abs=2e-10)


@pytest.mark.parametrize("back_end", ["loop", "workers", "stacked"])
def test_all_back_ends_train_in_float64(tmp_path: Path, back_end: str) -> None:
    found = weights(tmp_path / back_end, 3, {"name": "fedavg"}, back_end=back_end)
    assert found.dtype == torch.float64
    assert found[:6].tolist() == pytest.approx(LINES[0][2], abs=2e-10)


@pytest.mark.parametrize("model", ["mlp", "small-cnn"])
@pytest.mark.parametrize("policy", ["fedteddi", "fedcgd", "best-norm", "power-of-choice"])
def test_float64_starts_from_the_weights_of_float32_and_stays_near_it(tmp_path: Path, model: str, policy: str) -> None:
    def trained(precision: str) -> dict[str, Tensor]:
        values = {
            "rounds": 2,
            "devices": {"count": 4},
            "round": {"payload_bits": 1e5},
            "learning": {"model": model, "precision": precision, "pretrain": False},
            "selection": {"policy": policy},
        }
        result = simulation.run(parse(values, "test"), tmp_path / precision)
        assert result.status == "finished"
        return load_file(tmp_path / precision / "model.safetensors")

    single, double = trained("float32"), trained("float64")
    apart = max(float((single[name].double() - double[name]).abs().max()) for name in single)
    assert {tensor.dtype for tensor in double.values()} == {torch.float64}
    assert 0 < apart < 1e-5


def test_pixels_are_divided_by_the_scale_that_the_config_gives() -> None:
    def pixels(**data: object) -> tuple[list[float], list[float]]:
        offset, divisor = load_dataset(parse({"data": data}, "test").data).normalisation
        return offset.tolist(), divisor.tolist()

    assert pixels(dataset="digits", scale=4.0) == ([0.0], [4.0])
    assert pixels(dataset="digits") == ([0.0], [16.0])
    assert pixels(dataset="iris", scale=1.0) == ([0.0] * 4, [1.0] * 4)
    assert pixels(dataset="iris")[0] != [0.0] * 4
    for scale in (0.0, -1.0, "big"):
        with pytest.raises(EdgesimError, match=r"data\.scale: input should be") as refusal:
            pixels(scale=scale)
        assert "\n" not in str(refusal.value)
