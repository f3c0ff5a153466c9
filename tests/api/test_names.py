"""Lists of names: what they hold can be named, and one place knows them all."""

import os
import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import edgesim
from edgesim.api.names import LISTS
from edgesim.commands.cli import app
from edgesim.simulation.kinds import KINDS

EXAMPLES = {
    "policies": "fedteddi", "algorithms": "scaffold", "partitions": "shards", "drift_laws": "swap",
    "joining_laws": "fedstg", "presence_models": "markov", "motion_models": "waypoint",
    "path_loss_laws": "uma", "protocols": "buffered",
    "predictors": "persistence", "metrics": "worst-class", "codecs": "topk", "allocators": "equal_share",
    "channels": "free-space", "topologies": "three-cells", "recordings": "sample-week", "models": "small-cnn",
    "datasets": "digits", "scenarios": "fading",
}  # fmt: skip


def test_every_list_has_its_names_once_and_sorted():
    assert {names.__name__ for names in LISTS} == {*EXAMPLES}
    for names in LISTS:
        found = names()
        assert EXAMPLES[names.__name__] in found
        assert found == sorted({*found})
        assert getattr(edgesim, names.__name__) is names


NAMED = {
    "policies": {"selection.policy": {}},
    "algorithms": {"algorithm.name": {}, "algorithm.server": {}},
    "partitions": {"data.partition": {}},
    "drift_laws": {"drift.law": {}},
    "joining_laws": {"joining.law": {}},
    "presence_models": {"availability.model": {}},
    "motion_models": {"mobility.model": {}},
    "predictors": {"selection.predictor": {"selection.policy": "feddance"}},
    "metrics": {"evaluation.metrics": {}},
    "allocators": {"round.allocator": {}},
    "codecs": {"upload.codec": {}, "download.codec": {}},
    "protocols": {"round.protocol": {}},
    "channels": {"radio.channel": {}},
    "topologies": {"topology.file": {}},
    "recordings": {
        "availability.file": {"availability.model": "table"},
        "devices.profile": {},
        "mobility.file": {"mobility.model": "recorded"},
        "devices.links.file": {"radio.sharing": "own", "devices.links.after_end": "wrap"},
    },
    "models": {"learning.model": {}},
    "datasets": {"data.dataset": {}},
}
"""The keys by which a config names what a list holds, and what else is set to be asked for the name."""


@pytest.mark.parametrize("key", [key for keys in NAMED.values() for key in keys])
def test_a_name_that_no_list_has_is_refused_with_its_key(tmp_path, key):
    (set_beside,) = [keys[key] for keys in NAMED.values() if key in keys]
    base = {"rounds": 2, "learning": {"model": "mlp"}, "data": {"dataset": "digits"}}
    named = {key: {"nonesuch": {}} if key == "evaluation.metrics" else "nonesuch"}
    with pytest.raises(edgesim.EdgesimError, match="nonesuch") as refused:
        edgesim.run(base, tmp_path / "out", set_beside | named, quiet=True)
    assert f"{key}: " in str(refused.value)
    assert key in refused.value.fields
    assert not (tmp_path / "out").exists()


def test_a_law_of_path_loss_that_is_unknown_is_refused_with_its_file_and_key(tmp_path):
    file = tmp_path / "own.toml"
    file.write_text("name = 'own'\nsource = 'here'\n[path_loss]\nlaw = 'nonesuch'\n")
    with pytest.raises(edgesim.EdgesimError) as refused:
        edgesim.run({}, tmp_path / "out", {"radio.channel": str(file)}, quiet=True)
    assert str(refused.value).startswith(f"{file}: path_loss.law: unknown law 'nonesuch'")


def test_the_keys_of_all_lists_are_tried():
    assert {*NAMED} == {names.__name__ for names in LISTS} - {"scenarios", "path_loss_laws"}
    for names in LISTS:
        told = re.findall(r"``([a-z_]+\.[a-z_.]+)``", names.__doc__)
        assert {*told} <= {*NAMED.get(names.__name__, {})}, names.__name__


def test_every_kind_of_plug_in_has_a_list():
    assert {*KINDS} <= {names.__name__ for names in LISTS}


def test_the_command_prints_them_all():
    lines = CliRunner().invoke(app, ["list"]).output.splitlines()
    assert [line.partition(":")[0] for line in lines] == [names.__name__.replace("_", " ") for names in LISTS]
    for line, names in zip(lines, LISTS, strict=True):
        assert line.partition(": ")[2].split(", ")[: len(names())] == names()


def test_dir_and_all_are_the_public_names():
    assert dir(edgesim) == sorted(edgesim.__all__)
    assert edgesim.__all__ == sorted(edgesim.__all__)
    with pytest.raises(AttributeError, match="attribute nothing"):
        edgesim.nothing  # noqa: B018


def test_importing_takes_less_than_a_third_of_a_second_of_a_processor_and_no_torch():
    code = "import sys, edgesim; dir(edgesim); print('torch' in sys.modules, 'pandas' in sys.modules)"
    before = os.times()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    after = os.times()
    assert done.stdout.split() == ["False", "False"]
    assert after.children_user + after.children_system - before.children_user - before.children_system < 0.3


@pytest.mark.slow
def test_timing_only_runs_need_no_torch_and_training_no_large_library_beside_it(tmp_path):
    code = """
import sys, edgesim, edgesim.commands.cli
edgesim.policies(), edgesim.algorithms(), edgesim.datasets()
config = {"rounds": 1, "data": {"dataset": "none"}, "learning": {"training": "none"}, "round": {"payload_bits": 1e6}}
edgesim.run(config, "timed").rounds
print("torch" in sys.modules)
edgesim.run({"rounds": 1, "selection": {"policy": "fedteddi"}, "round": {"payload_bits": 1e6}}, "trained", log=True)
print(sorted(sys.modules.keys() & {"sympy", "sklearn", "scipy.stats", "scipy.optimize", "matplotlib", "optuna"}))
import edgesim.scenario
print("optuna" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    said = [line for line in done.stdout.splitlines() if line in ("True", "False") or line[0] == "["]
    assert said == ["False", "[]", "False"]
