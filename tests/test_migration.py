"""Configs in the keys of edgesim 0.2: refused with today's key, and moved there without changing a byte of a run."""

import tomllib
from pathlib import Path

import pytest
import tomli_w
from typer.testing import CliRunner

from edgesim.base.errors import EdgesimError
from edgesim.base.migration import RENAMED, migrated
from edgesim.base.text_file import read_toml
from edgesim.commands.cli import app
from edgesim.config_file import load, parse
from edgesim.simulation import composition as simulation

COUNT = {"admission": "count", "count": 4}
BASE = {
    "rounds": 4,
    "devices": {"count": 8},
    "availability": {"model": "bernoulli", "probability": 0.6},
    "round": {"payload_bits": 3e6},
    "data": {"partition": "quantity", "samples_per_device": 12},
    "learning": {"pretrain": False, "steps": 2, "batch_size": 8, "back_end": "loop"},
    "evaluation": {"samples": 20, "every": 2},
}
#: Sections as they were, and as they are.
CASES = {
    "nothing": ({}, {}),
    "defaults": (
        {"learning": {"proximal": 0.0, "weights": "samples", "aggregation": "average"}},
        {"algorithm": {"weights": "samples"}},
    ),
    "proximal": ({"learning": {"proximal": 0.5}}, {"algorithm": {"name": "fedprox", "mu": 0.5}}),
    "a whole number": ({"learning": {"proximal": 1}}, {"algorithm": {"name": "fedprox", "mu": 1.0}}),
    "equal weights": (
        {"learning": {"weights": "equal", "lr": 0.05}},
        {"learning": {"lr": 0.05}, "algorithm": {"weights": "equal"}},
    ),
    "safa": (
        {"learning": {"aggregation": "safa", "lag_tolerance": 1, "weights": "equal"}},
        {"algorithm": {"name": "safa", "lag_tolerance": 1, "weights": "equal"}},
    ),
    "safa and proximal": (
        {"learning": {"aggregation": "safa", "proximal": 0.5}},
        {"algorithm": {"name": "fedprox", "mu": 0.5, "server": "safa"}},
    ),
    "buffered": (
        {"round": {"protocol": "buffered", **COUNT, "buffer": 2, "server_lr": 0.5}},
        {"round": {"protocol": "buffered", **COUNT, "protocol_options": {"buffer": 2, "server_lr": 0.5}}},
    ),
    "asynchronous and proximal": (
        {"round": {"protocol": "asynchronous", **COUNT, "mixing": 0.3}, "learning": {"proximal": 0.2}},
        {
            "round": {"protocol": "asynchronous", **COUNT, "protocol_options": {"mixing": 0.3}},
            "algorithm": {"name": "fedprox", "mu": 0.2},
        },
    ),
}


def whole(sections):
    return BASE | {key: BASE.get(key, {}) | values for key, values in sections.items()}


def run(config, folder):
    """Every table and the model, as bytes."""
    simulation.run(config, folder)
    return {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.suffix in (".parquet", ".safetensors") and path.stem != "timing"
    }


@pytest.mark.parametrize("case", CASES)
def test_an_old_config_becomes_the_one_that_is_written_today(case):
    old, new = map(whole, CASES[case])
    before = tomllib.loads(tomli_w.dumps(old))
    assert migrated(old) == new
    assert old == before, "the mapping given was changed"
    assert migrated(new) == new


@pytest.mark.parametrize("case", [case for case in CASES if case != "nothing"])
def test_an_old_key_is_refused_with_todays_and_the_way_there(case):
    old, _ = CASES[case]
    with pytest.raises(EdgesimError, match=r"^run.toml: \w+\.\w+ is now .*; `edgesim migrate` writes") as refusal:
        parse(whole(old), "run.toml")
    assert "\n" not in str(refusal.value)


def test_an_old_key_that_was_typed_is_told_without_the_way_to_migrate_a_file(tmp_path):
    (tmp_path / "run.toml").write_text("seed = 1\n")
    with pytest.raises(
        EdgesimError, match=r"^overrides round.buffer=3: round.buffer is now round.protocol_options.buffer$"
    ):
        load(tmp_path / "run.toml", ["round.buffer=3"])


@pytest.mark.parametrize("key", RENAMED)
def test_every_old_key_is_told_by_itself(key):
    section, _, name = key.partition(".")
    with pytest.raises(
        EdgesimError, match=rf"^run.toml: {section}\.{name} is now (algorithm|round\.protocol_options)\."
    ):
        parse({section: {name: 1}}, "run.toml")


@pytest.mark.parametrize("case", CASES)
def test_the_command_writes_a_file_that_runs_to_the_bytes_of_one_written_by_hand(case, tmp_path):
    old, new = map(whole, CASES[case])
    (tmp_path / "old.toml").write_text("# as it was\n" + tomli_w.dumps(old))
    done = CliRunner().invoke(app, ["migrate", str(tmp_path / "old.toml"), "--out", str(tmp_path / "new.toml")])
    assert done.exit_code == 0, done.output
    found = run(parse(read_toml(tmp_path / "new.toml"), "new.toml"), tmp_path / "migrated")
    expected = run(parse(new, "by hand"), tmp_path / "by-hand")
    assert "model.safetensors" in found
    assert found.keys() == expected.keys()
    assert [name for name in found if found[name] != expected[name]] == []


def test_without_a_file_to_write_the_command_prints_the_config(tmp_path):
    old, new = map(whole, CASES["safa"])
    (tmp_path / "old.toml").write_text(tomli_w.dumps(old))
    done = CliRunner().invoke(app, ["migrate", str(tmp_path / "old.toml")])
    assert tomllib.loads(done.stdout) == new
    assert [path.name for path in tmp_path.iterdir()] == ["old.toml"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[learning]\naggregation = 'average'\nlag_tolerance = 3\n",
            "old.toml: learning.lag_tolerance: algorithm.lag_tolerance: is",
        ),
        (
            "[round]\nbuffer = 3\n",
            "old.toml: round.buffer: round.protocol_options.buffer: is an option of",
        ),
        (
            "[learning]\nproximal = -1.0\n",
            "old.toml: learning.proximal: algorithm 'fedprox': algorithm.mu: input",
        ),
        ("[learning]\nproximal = 'much'\n", "algorithm.mu: input should be a valid number (got 'much')"),
        ("[learning]\nprocsimal = 1.0\n", "old.toml: unknown key 'learning.procsimal'"),
        ("learning = 3\n", "learning: expected a table of keys"),
        ("[round]\nbuffer = 3\nprotocol_options = 3\n", "round.protocol_options: input should be a valid dictionary"),
        ("algorithm = 'fedavg'\n[learning]\nproximal = 0.1\n", "algorithm: expected a table of keys (got 'fedavg')"),
        (
            "[learning]\naggregation = 'saffa'\n",
            "old.toml: learning.aggregation: expected 'average' or 'safa' (got",
        ),
        ("[learning]\naggregation = 'fedprox'\n", "expected 'average' or 'safa' (got 'fedprox')"),
        ("[learning]\nproximal = ''\n", "mu: input should be a valid number (got '')"),
        ("[learning]\nproximal = false\n", "mu: input should be a valid number (got False)"),
        (
            "[learning]\nproximal = 0.2\n[algorithm]\nmu = 0.3\n",
            "old.toml: algorithm.mu = 0.3 contradicts 0.2 of an old key",
        ),
        (
            "[round]\nbuffer = 3\n[round.protocol_options]\nbuffer = 4\n",
            "protocol_options.buffer = 4 contradicts 3",
        ),
        ("[learning\n", "old.toml"),
    ],
)
def test_a_config_that_was_wrong_before_is_one_line_and_nothing_is_written(text, said, tmp_path):
    (tmp_path / "old.toml").write_text(text)
    done = CliRunner().invoke(app, ["migrate", str(tmp_path / "old.toml"), "--out", str(tmp_path / "new.toml")])
    assert done.exit_code == 2
    lines = [line for line in done.output.splitlines() if line]
    assert len(lines) == 1, done.output
    assert lines[0].startswith("error: ")
    assert said in lines[0]
    assert not (tmp_path / "new.toml").exists()


@pytest.mark.parametrize(
    ("out", "said"),
    [
        *((out, "is there already; choose another file") for out in ("old.toml", "there.txt", "folder", "link", "")),
        ("missing/new.toml", "there is no folder 'missing'; choose another file"),
        ("there.txt/new.toml", "there is no folder 'there.txt'; choose another file"),
        (f"{'a' * 250}.toml", "cannot be written: File name too long"),
    ],
)
def test_nothing_that_lies_there_is_written_over(out, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("old.toml").write_text("[learning]\nproximal = 0.5\n")
    Path("there.txt").write_text("precious")
    Path("folder").mkdir()
    Path("link").symlink_to("there.txt")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    done = CliRunner().invoke(app, ["migrate", "old.toml", "--out", out])
    assert done.exit_code == 2
    # Of long names the message has the beginning and the end.
    assert done.output.startswith(f"error: --out {str(Path(out))[:50]}")
    assert done.output.rstrip().endswith(said) or f"{Path(out)}: {said}" in done.output
    assert len(done.output.splitlines()) == 1
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before
    assert Path("link").is_symlink()


def test_a_folder_of_an_older_run_is_refused_as_such(tmp_path):
    old, new = map(whole, CASES["proximal"])
    run(parse(new, "test"), tmp_path / "run")
    (tmp_path / "run/config.toml").write_text(tomli_w.dumps(old))
    with pytest.raises(EdgesimError, match=r"run: holds a run of edgesim 0\.2 or before; choose another --out"):
        simulation.run(parse(new, "test"), tmp_path / "run")
