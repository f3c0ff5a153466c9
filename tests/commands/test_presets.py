"""`edgesim init --like`: papers' settings have the papers' numbers, are those of scenarios, and run without images."""

import re
import runpy
import shlex
from pathlib import Path

import pytest
from typed_commands import refused
from typer.testing import CliRunner

import edgesim
from edgesim.base.errors import EdgesimError
from edgesim.commands import new_command
from edgesim.commands.cli import app
from edgesim.config_file import parse
from edgesim.simulation.complete import complete

ROOT = Path(__file__).parents[2]

PAPERS = {
    "fedteddi": (30, 300, {"devices.radius_m": 250, "radio.bandwidth_hz": 20e6, "devices.tx_power_dbm": 23,
                           "devices.a_s_per_sample": 0.5e-3, "devices.mu_samples_per_s": 2000, "learning.lr": 0.01,
                           "learning.lr_decay": 0.9992, "learning.momentum": 0.5, "learning.batch_size": 32,
                           "data.samples_per_device": 750, "selection.lambda_0": 2, "round.payload_bits": 32 * 558_802,
                           "learning.pretrain": True}),
    "feddance": (1000, 1000, {"round.count": 10, "round.tmax_s": 100, "learning.steps": 1, "learning.batch_size": 24,
                              "learning.lr": 0.1, "learning.lr_decay": 0.98, "learning.lr_decay_every": 10,
                              "learning.lr_min": 5e-5, "data.partition_options": {"alpha": 0.1},
                              "selection.accuracy_window": 5, "selection.history_rounds": 50,
                              "selection.future_rounds": 5}),
    "dpfl": (10, 100, {"availability.join_probability": 0.2, "availability.leave_probability": 0.2,
                       "data.partition_options": {"alpha": 0.1}, "learning.lr": 0.01, "learning.momentum": 0.9,
                       "learning.weight_decay": 1e-5, "learning.batch_size": 128, "learning.epochs": 5,
                       "learning.clip_norm": 10}),
    "fedstg": (20, 100, {"drift.classes": [6, 8], "drift.speed": 2, "learning.batch_size": [32, 64],
                         "learning.epochs": [3, 5], "learning.momentum": 0.9, "learning.weight_decay": 5e-4}),
    "afl": (50, 250, {"round.count": 17, "learning.optimiser": "adam", "learning.lr": 1e-3, "learning.batch_size": 64,
                      "learning.epochs": 2, "data.partition_options": {"alpha": 0.3}}),
    "privacy": (50, 100, {"round.count": 17, "privacy.mechanism": "local", "privacy.noise": 0.1, "privacy.clip": 1,
                          "privacy.delta": 1e-5}),
    "amiri": (30, 60, {"round.count": 5, "selection.channels": 10, "learning.model": "linear"}),
}  # fmt: skip
"""Devices, rounds and numbers of each paper, or where it has none those of its page."""


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def written(name: str) -> Path:
    """The config that the command writes."""
    answer = CliRunner().invoke(app, ["init", name, "--like", name])
    assert answer.output.split() == [f"{name}/run.toml"]
    assert [file.name for file in Path(name).iterdir()] == ["run.toml"]
    return Path(name, "run.toml")


def test_every_preset_has_numbers_here_and_is_named_on_the_page_of_its_paper():
    assert set(new_command.presets()) == set(PAPERS)
    listed = CliRunner().invoke(app, ["init", "--list"]).output
    for name, text in new_command.presets().items():
        assert f"{name}: {text}" in listed.replace("\n", " ")
        assert f"--like {name}" in (ROOT / f"docs/papers/{name}.md").read_text()


@pytest.mark.parametrize("name", PAPERS)
@pytest.mark.whole_family
def test_a_preset_has_the_numbers_of_its_paper(name):
    devices, rounds, numbers = PAPERS[name]
    config = complete(edgesim.load(written(name))).model_dump(by_alias=True)
    assert (config["devices"]["count"], config["rounds"]) == (devices, rounds)
    for key, value in numbers.items():
        table, _, last = key.partition(".")
        assert config[table][last] == value, key


def of_scenario(name: str) -> dict:
    """What the scenario of a paper runs on the paper's images, less the policy."""
    of = runpy.run_path(str(ROOT / f"scenarios/{name}.py"), run_name="read")
    if name == "fedteddi":
        base = of["settings"]("cifar10.npz")[1]
        return base | {"round": {"tmax_s": 1.0}, "data": {"partition": "fedteddi", **base["data"]}}
    if name == "feddance":
        return of["phones"]("cifar10", "cifar10", "synthetic", "same", 1000, 10, 1000)
    if name == "dpfl":
        return of["World"]("office-caltech", 100, "resnet10-bn", None).base("markov", 0.1, 10)
    if name == "fedstg":
        return of["Setting"]("paper", "cifar10", 100, 20, None).config("fedstg", "iid_partition")
    if name == "afl":
        return of["config"](of["world"]("fashion-mnist", 250, None, 50), of["AFL"], of["dealt"](0.3))
    if name == "privacy":
        section = of["mechanisms"](0.1, 1.0, 1e-5, ["local"])["local"]
        return of["config"](of["world"]("digits", 100, None, 50), {"share": 0.35, "privacy": section}, of["dealt"](1e4))
    return of["cell"](60, 5) | {"data": of["DATA"]["two classes"]}


@pytest.mark.parametrize("name", PAPERS)
def test_a_preset_is_the_world_of_the_papers_scenario(name, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "scenarios")
    preset = edgesim.load(written(name))
    theirs = edgesim.api.configs._plain(of_scenario(name))
    theirs["data"] = {key: of for key, of in theirs.get("data", {}).items() if of is not None}
    theirs["data"] |= {"dataset": preset.data.dataset, "download": preset.data.download}
    theirs["selection"] = {"policy": preset.selection.policy, **preset.selection.options}
    # The charge is that of the model, as a number on FedTeddi's page and that of another data set on Amiri's.
    theirs["round"]["payload_bits"] = preset.round.payload_bits
    assert complete(preset) == complete(parse(theirs, name))


@pytest.mark.parametrize("name", PAPERS)
def test_a_preset_runs_without_the_papers_images_by_the_command_in_it(name):
    (command,) = re.findall(r"#   (edgesim run run.toml .*)", written(name).read_text())
    small = "--set rounds=2 --set evaluation.samples=60"
    typed = [f"{name}/run.toml" if word == "run.toml" else word for word in shlex.split(command)[1:]]
    typed[typed.index("--out") + 1] = "small"
    answer = CliRunner().invoke(app, [*typed, *shlex.split(small)])
    assert answer.exit_code == 0, answer.output
    assert len(edgesim.open("small").rounds) == 2
    assert edgesim.open("small").rounds["arrived"].sum() > 0


def test_an_unknown_preset_is_refused_with_the_names_and_the_closest():
    line = refused("init", "x", "--like", "fedtedi")
    said = "error: --like fedtedi: no paper's setting has this name, did you mean 'fedteddi'?"
    assert line.startswith(said)
    assert "afl, amiri, dpfl, feddance, fedstg, fedteddi, privacy" in line
    assert not Path("x").exists()
    with pytest.raises(EdgesimError, match="not an empty folder"):
        new_command.write_preset("afl", Path.cwd().parent)
