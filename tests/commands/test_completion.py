"""What shells offer, as they ask for it."""

import os
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import edgesim
from edgesim.commands import completion, explain
from edgesim.commands.cli import app


def test_keys_then_their_values():
    assert completion.settings("round.t") == ["round.tmax_s="]
    assert completion.settings("selection.policy=fedt") == ["selection.policy=fedteddi"]
    assert completion.settings("radio.fading=") == ["radio.fading=none", "radio.fading=rayleigh"]
    assert completion.settings("learning.pretrain=t") == ["learning.pretrain=true"]
    assert completion.settings("round.tmax_s=") == []
    assert "round" in completion.keys("rou")
    assert completion.scenarios("fad") == ["fading"]


def test_every_key_offered_is_one_that_can_be_explained():
    for text in completion.settings(""):
        assert explain.explained(text.removesuffix("="))


def test_every_list_of_names_belongs_to_a_key_that_there_is():
    assert set(completion._NAMES) <= set(explain.key_names())


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_gets_the_words(shell):
    words = "edgesim run a.toml --set selection.policy=fedt"
    told = {"_EDGESIM_COMPLETE": f"complete_{shell}", "COMP_WORDS": words, "COMP_CWORD": "4",
            "_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}  # fmt: skip
    command = [
        sys.executable,
        "-c",
        "import sys; sys.argv[0] = 'edgesim'; from edgesim.commands.entry import main; main()",
    ]
    done = subprocess.run(command, env=os.environ | told, capture_output=True, text=True, check=False)
    assert "selection.policy=fedteddi" in done.stdout, done.stderr


def test_the_command_can_install_it():
    said = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).output
    assert "--install-completion" in said
    assert "fading" in edgesim.scenarios()
