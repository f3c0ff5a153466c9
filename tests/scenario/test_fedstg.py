"""FedStg's scenario: what each mode and method is, and a run on a made file of CIFAR-100's form."""

import itertools
import pickle
import runpy
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from edgesim.config_file import parse
from edgesim.folder.records import read_config
from edgesim.simulation import composition as simulation

SCENARIO = runpy.run_path(str(Path(__file__).parents[2] / "scenarios" / "fedstg.py"))
METHODS = list(SCENARIO["METHODS"])


def config(method, mode="paper", dataset="digits", pool="shared"):
    setting = SCENARIO["Setting"](mode, dataset, 100, 20, None)
    return simulation.complete(parse(setting.config(method, pool), "scenario"))


def flat(found):
    return {
        f"{section}.{key}": of for section, own in found.items() if isinstance(own, dict) for key, of in own.items()
    }


@pytest.mark.parametrize(
    ("mode", "dataset"), [*itertools.product(("paper", "code"), ("digits", "cifar10", "cifar100"))]
)
def test_methods_differ_in_what_they_are_named_for_alone(mode, dataset):
    found = {name: flat(simulation.as_toml(config(name, mode, dataset))) for name in METHODS}
    own = found["fedstg"]
    differ = {
        name: {key for key in own.keys() | of.keys() if own.get(key) != of.get(key)} for name, of in found.items()
    }
    assert differ["fedstg-no-rotation"] == {"drift.rotates"}
    assert {key.partition(".")[0] for key in differ["fedstg-all-join"]} == {"joining"}
    assert {key.partition(".")[0] for key in differ["fedstg-every-round"]} == {"merging"}
    assert differ["fedstg-carry"] == {"merging.skip"}
    assert differ["fedstg-no-rarity"] == {"algorithm.rarity"}
    assert differ["fedstg-no-speed"] == {"algorithm.speeds"}
    for name in ("fedavg", "fedprox", "feddyn"):
        clip = {"learning.clip_norm"} if name == "feddyn" else set()
        assert {key for key in differ[name] if not key.startswith(("algorithm.", "merging."))} == clip
    assert found["fedprox"]["algorithm.mu"] == found["feddyn"]["algorithm.alpha"] == 0.01


def test_modes_are_what_paper_and_program_say():
    paper, code = (config("fedstg", mode, "cifar10") for mode in ("paper", "code"))
    assert (paper.drift.options["speed"], code.drift.options["speed"]) == (2.0, 0.15)
    assert (paper.drift.options["classes"], code.drift.options["classes"]) == ([6, 8], [4, 6])
    assert (paper.learning.epochs, code.learning.epochs) == ([3, 5], 2)
    assert (paper.learning.batch_size, code.learning.batch_size) == ([32, 64], 32)
    assert (paper.merging.signal, code.merging.signal) == ("validation", "test")
    assert (paper.merging.skip, code.merging.skip) == ("discard", "sent")
    assert (paper.data.validation_per_class, code.data.validation_per_class) == (200, None)
    for of in (paper, code):
        assert (of.learning.model, of.learning.momentum, of.learning.weight_decay) == ("fedstg-cnn", 0.9, 5e-4)
        assert (of.data.augment, of.data.scale, of.data.offset) == ("fedstg", 127.5, 127.5)


@pytest.mark.slow
def test_it_runs_on_files_of_cifar_100(scenario, tmp_path):
    """25 images of each class, the colour of which tells it."""
    random = np.random.default_rng(0)
    folder = tmp_path / "data" / "cifar-100-python"
    folder.mkdir(parents=True)
    for part, count in (("train", 25), ("test", 2)):
        labels = np.tile(np.arange(100), count)
        images = np.repeat((labels[:, None] * [2.5, 1, 0.5]).astype(np.uint8), 1024, axis=1)
        images += random.integers(0, 3, images.shape, dtype=np.uint8)
        (folder / part).write_bytes(pickle.dumps({b"data": images, b"fine_labels": labels.tolist()}, protocol=2))
    done = scenario(
        "fedstg.py", "--quick", "--dataset", "cifar100", "--folder", "data", "--methods", "fedstg,fedavg", "--pools",
        "shared", "--devices", "3", "--rounds", "6", "--model", "small-cnn", "--out", "out",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    beside = pd.read_csv(tmp_path / "out" / "beside-the-paper.csv").set_index("method")
    assert beside["final_percent_paper"].to_dict() == {"fedstg": 64.78, "fedavg": 64.48}
    (run,) = (tmp_path / "out").glob("*-fedstg-s0")
    assert read_config(run)["data"]["dataset"] == "cifar100"
