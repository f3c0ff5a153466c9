"""What scenarios share: errors in the words of their own options."""

import ast
import sys
from pathlib import Path

import pytest

from edgesim.config import RunConfig
from edgesim.errors import EdgesimError
from edgesim.scenario import _OPTIONS, plain_errors, start

SCENARIOS = Path(__file__).parents[1] / "scenarios"


def said(capsys, message, **options):
    """What a scenario with the parameters match, devices and band_mhz prints of an error."""

    @plain_errors
    def main(match=None, devices=1, band_mhz=20.0):
        raise EdgesimError(message)

    with pytest.raises(SystemExit) as ended:
        main(**options)
    assert ended.value.code == 2
    return capsys.readouterr().err


def test_an_error_that_names_fields_says_which_options_set_them(capsys):
    assert said(capsys, 'row k for device k: devices.match = "position"') == (
        'error: row k for device k: devices.match = "position" (here devices.match is --match)\n'
    )
    assert said(capsys, "radio.bandwidth_hz = 1: too few; raise it or lower devices.count", devices=3).endswith(
        "devices.count (here devices.count is --devices, radio.bandwidth_hz is --band-mhz)\n"
    )


def test_fields_without_an_option_and_errors_without_fields_stay_as_they_are(capsys):
    assert said(capsys, "round.count = 9: more than there are") == "error: round.count = 9: more than there are\n"
    assert said(capsys, "--match: unknown 'odd'") == "error: --match: unknown 'odd'\n"


def test_replay_names_its_own_option_where_the_files_are_of_other_phones(tmp_path, scenario):
    """The recordings call their devices differently; the remedy is told as it is typed."""
    (tmp_path / "availability.csv").write_text("device_id,start_s,end_s\n1,0,7200\n2,0,7200\n")
    (tmp_path / "speeds.csv").write_text("device,s_per_sample,key\n0,0.1,1\n1,0.1,3\n")
    arguments = ["--count", "1", "--hours", "1", "--seeds", "1", "--jobs", "1", "--out", "out"]
    done = scenario("replay.py", "availability.csv", "--profile", "speeds.csv", *arguments)
    assert done.exit_code == 1, done.output
    assert "has no device '2'" in done.stderr
    assert done.stderr.endswith('devices.match = "position" (here devices.match is --match)\n')


def test_every_option_told_is_one_that_some_scenario_has_and_sets_a_field_that_there_is():
    scripts = [ast.parse(path.read_text()) for path in SCENARIOS.glob("*.py")]
    mains = [node for script in scripts for node in script.body if isinstance(node, ast.FunctionDef)]
    options = {argument.arg for main in mains if main.name == "main" for argument in main.args.args}
    config = RunConfig().model_dump()
    for field, name in _OPTIONS:
        section, key = field.split(".")
        assert key in config[section]
        assert name in options


def test_every_scenario_that_runs_a_study_can_run_it_afresh():
    for path in sorted(SCENARIOS.glob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        calls = [node for node in nodes if isinstance(node, ast.Call) and ast.unparse(node.func) == "run_study"]
        (main,) = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.name == "main"]
        asks = [argument for argument in main.args.args if argument.arg == "fresh"]
        assert bool(asks) == bool(calls), path.name
        assert all("fresh" in {keyword.arg for keyword in call.keywords} for call in calls), path.name


def test_an_option_that_a_scenario_lacks_suggests_only_what_is_spelt_like_it(capsys, monkeypatch):
    def main(out: str = "x", policies: str = "random", *, hours: float = 1.0) -> None:
        """Nothing."""

    for typed, suggested in (("--rounds", False), ("--policy", True)):
        monkeypatch.setattr(sys, "argv", ["script.py", typed, "5"])
        with pytest.raises(SystemExit) as ended:
            start(main)
        error = capsys.readouterr().err
        assert ended.value.code == 2
        assert f"No such option: {typed}" in error
        assert "--out" not in error
        assert ("--policies" in error) == suggested
