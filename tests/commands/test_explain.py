"""What keys of a config mean, as a user asks for it."""

import subprocess
import sys

import pytest
from typed_commands import refused
from typer.testing import CliRunner

from edgesim.base.errors import EdgesimError
from edgesim.commands.cli import app
from edgesim.commands.explain import _branches, explained, sections
from edgesim.config import OpenSection, RunConfig


def lines(key):
    return [each.line() for each in explained(key)]


@pytest.mark.parametrize(
    ("key", "line"),
    [
        ("round.tmax_s", "round.tmax_s: a number, in s, at least 1e-06, at most 1e+10, default 1.0"),
        ("radio.sharing", "radio.sharing: 'reserved' or 'reshared' or 'own', default 'reserved'"),
        ("devices.battery_reserve", "devices.battery_reserve: a number, above 0, at most 1, absent by default"),
        (
            "a_s_per_sample",
            "devices.a_s_per_sample: a number, in s per sample, at least 0, at most 1e+10, default 0.0005",
        ),
        ("devices.links.file", "devices.links.file: a text, needed"),
        # A symbol of a formula, not seconds.
        ("a_s", "algorithm.a_s (option of algorithm 'fedgen'): a number, at least 0, at most 1e+06, default 1.0"),
        (
            "data.partition_options.shards_per_device",
            "data.partition_options.shards_per_device (option of partition 'shards'): a whole number, at least 1, "
            "at most 2.14748e+09, default 2",
        ),
    ],
)
def test_type_unit_bounds_and_default_stand_in_one_line(key, line):
    assert lines(key) == [line]


def test_an_option_of_several_is_explained_for_each():
    assert [line.partition(":")[0] for line in lines("algorithm.mu")] == [
        "algorithm.mu (option of algorithm 'fedprox')",
        "algorithm.mu (option of algorithm 'moon')",
    ]
    (of_moon,) = [each for each in explained("mu") if "moon" in each.owner]
    assert of_moon.meaning().startswith("Weight of the contrastive term")


def test_a_table_stands_for_its_keys():
    assert [each.name for each in explained("devices.links")] == [
        "devices.links.file",
        "devices.links.end_s",
        "devices.links.after_end",
    ]


def test_options_are_explained_in_every_table_that_has_any():
    for name, field in RunConfig.model_fields.items():
        if any(isinstance(kind, type) and issubclass(kind, OpenSection) for kind in _branches(field.annotation)):
            assert any(key.owner for key in explained(name)), name


def test_every_key_of_every_table_can_be_explained():
    tables = {name for name, field in RunConfig.model_fields.items() if hasattr(field.annotation, "model_fields")}
    assert tables <= set(sections())
    for section in sections():
        for key in explained(section):
            assert key.line().startswith(key.name)
            assert "\n" not in key.meaning()


@pytest.mark.parametrize(("key", "said"), [("round.tmax", "did you mean 'round.tmax_s'"), ("qqqq", "lists the tables")])
def test_what_is_no_key_is_refused_with_a_remedy(key, said):
    with pytest.raises(EdgesimError, match=f"^no key '{key}'.*{said}"):
        explained(key)


def test_the_command_wraps_what_it_tells():
    told = CliRunner().invoke(app, ["explain", "radio.sharing"]).stdout.splitlines()
    assert len(told) == 4
    assert all(line.startswith("    ") and len(line) <= 100 for line in told[1:])
    assert "selection" in CliRunner().invoke(app, ["explain"]).stdout


def test_scenarios_are_listed_and_unknown_ones_refused():
    told = CliRunner().invoke(app, ["scenario"]).stdout
    assert "trace_anatomy: What is an availability trace like?" in told
    assert "no file 'partitons', did you mean 'partitions'?" in refused("scenario", "partitons")


@pytest.mark.slow
def test_a_scenario_is_started_with_its_options(tmp_path):
    command = [sys.executable, "-m", "edgesim", "scenario", "partitions", "--partitions", "nix", "--quick"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert "nix" in done.stderr


def test_help_shows_the_extra_that_an_export_needs():
    told = " ".join(CliRunner().invoke(app, ["export", "--help"]).stdout.replace("│", " ").split())
    assert "pip install 'edgesim[perfetto]'" in told
