"""`docs/coming-from.md`: its files run, devices hold what clients had, and a plain loop ends with the same model."""

import copy
import importlib
import runpy
from pathlib import Path

import numpy as np
import pytest
import torch
from quoted import DOCS, examples
from safetensors.torch import load_file

import edgesim

NAMES = ("mine.py", "bring.py", "smooth.py", "brought.toml")
FILES = dict(zip(NAMES, examples(DOCS / "coming-from.md", "python", "toml"), strict=True))


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """The page's files in the current folder, with a network that begins with the same weights wherever it is made."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)
    same = "    torch.manual_seed(7)\n    return Net(classes)"
    Path("mine.py").write_text(FILES["mine.py"].replace("    return Net(classes)", same))
    runpy.run_path("bring.py")
    return importlib.import_module("mine")


def plain_loop(mine, rounds: int) -> dict[str, torch.Tensor]:
    """FedAvg as one writes it, by steps over all that a client has."""
    model = mine.net((1, 8, 8), 10)
    loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    for _ in range(rounds):
        trained = []
        for own in mine.client_sets():
            client = copy.deepcopy(model)
            images, labels = (torch.stack([torch.as_tensor(sample[part]) for sample in own]) for part in (0, 1))
            optimiser = torch.optim.SGD(client.parameters(), lr=0.1)
            loss_of(client(images), labels).backward()
            optimiser.step()
            trained.append(client.state_dict())
        model.load_state_dict({key: torch.stack([of[key] for of in trained]).mean(0) for key in trained[0]})
    return model.state_dict()


@pytest.mark.slow
def test_what_is_brought_runs_and_a_plain_loop_ends_with_the_same_model(mine):
    run = edgesim.run("brought.toml", set={"learning.batch_size": 50, "rounds": 3})
    held = np.stack(run.devices.query("frame == 0").sort_values("device")["class_counts"].to_list())
    expected = [np.bincount([int(label) for _, label in own], minlength=10) for own in mine.client_sets()]
    np.testing.assert_array_equal(held, expected)
    weights, theirs = load_file(run.folder / "model.safetensors"), plain_loop(mine, 3)
    assert {key.rpartition("model.")[2] for key in weights} >= {*theirs}
    for key, tensor in theirs.items():
        torch.testing.assert_close(weights[key], tensor, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_the_page_as_it_stands_learns(mine):
    assert edgesim.run("brought.toml").accuracy > 0.7
