"""Lists of names: what they hold can be named, and one place knows them all."""

import ast
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import edgesim
from edgesim.cli import app
from edgesim.config import RunConfig
from edgesim.door.names import LISTS
from edgesim.runs.kinds import KINDS

EXAMPLES = {
    "policies": "fedteddi", "algorithms": "scaffold", "partitions": "shards", "drift_laws": "swap",
    "joining_laws": "fedstg", "presence_models": "markov", "path_loss_laws": "uma", "protocols": "buffered",
    "predictors": "persistence", "metrics": "worst-class",
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


def test_every_list_is_called_by_a_word_of_the_project_and_says_the_key_that_takes_it():
    words = (Path(__file__).parents[2] / "docs/words.md").read_text()
    listed = {word.strip() for line in words.splitlines() for cell in line.split("|")[1:2] for word in cell.split(",")}
    sections = {*RunConfig().model_dump(), "joining", "law"}
    for names in LISTS:
        one = names.__name__.replace("_", " ").replace("path loss", "path-loss")
        one = f"{one[:-3]}y" if one.endswith("ies") else one.removesuffix("s")
        assert one in listed
        keys = re.findall(r"``([a-z_.]+)``", names.__doc__)
        assert names is edgesim.scenarios or any(key.partition(".")[0] in sections for key in keys)


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
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        edgesim.nothing  # noqa: B018


def test_importing_takes_less_than_a_third_of_a_second_and_no_torch():
    code = "import sys, edgesim; dir(edgesim); print('torch' in sys.modules, 'pandas' in sys.modules)"
    took_s = []
    for _ in range(3):
        started = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        took_s.append(time.perf_counter() - started)
    assert done.stdout.split() == ["False", "False"]
    assert min(took_s) < 0.3


@pytest.mark.slow
def test_lists_timing_only_runs_and_their_tables_need_no_torch(tmp_path):
    code = """
import sys, edgesim
edgesim.policies(), edgesim.algorithms(), edgesim.datasets()
config = {"rounds": 1, "data": {"dataset": "none"}, "learning": {"training": "none"}, "round": {"payload_bits": 1e6}}
edgesim.run(config, "out").rounds
print("torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split()[-1] == "False"


COMMANDS = [
    Path(edgesim.__file__).parent / "cli.py",
    *(Path(edgesim.__file__).parent / "terminal").glob("*_command.py"),
]


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_commands_call_what_the_door_offers_through_the_door(path):
    """What `edgesim` itself offers is taken from there; its error is the one thing that all modules raise."""
    offered = {(f"edgesim.{module}", name) for module, names in edgesim._HOMES.items() for name in names}
    tree = ast.parse(path.read_text())
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    found = {(node.module, name.name) for node in imported for name in node.names}
    assert found & offered <= {("edgesim.errors", "EdgesimError"), ("edgesim.config", "RunConfig")}


def test_the_page_of_the_interface_has_every_public_name():
    page = (Path(__file__).parents[2] / "docs/api.md").read_text()
    told = dict(re.findall(r"^::: (edgesim[\w.]*)\n(?:    options:\n      members: \[(.*)\]\n)?", page, re.MULTILINE))
    for module, names in edgesim._HOMES.items():
        members = told[f"edgesim.{module}"]
        assert not members or {*names} <= {*members.split(", ")}
