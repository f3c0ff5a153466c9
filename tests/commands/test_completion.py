"""What shells offer, as they ask for it."""

import os
import subprocess
import sys

import pytest
from typed_commands import edgesim

from edgesim.commands import completion, explain


def test_keys_then_their_values():
    assert completion.settings("round.t") == ["round.tmax_s="]
    assert completion.settings("selection.policy=fedt") == ["selection.policy=fedteddi"]
    assert completion.settings("radio.fading=") == ["radio.fading=none", "radio.fading=rayleigh"]
    assert completion.settings("learning.pretrain=t") == ["learning.pretrain=true"]
    assert completion.settings("round.tmax_s=") == []
    assert "round" in completion.keys("rou")
    assert completion.scenarios("fad") == ["fading"]
    assert "--install-completion" in edgesim("--help")[1]


def test_every_list_of_names_belongs_to_a_key_that_there_is():
    assert set(completion._NAMES) <= set(explain.key_names())


@pytest.mark.slow
def test_the_shell_gets_the_words():
    words = "edgesim run a.toml --set selection.policy=fedt"
    told = {"_EDGESIM_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "4"}
    command = [
        sys.executable,
        "-c",
        "import sys; sys.argv[0] = 'edgesim'; from edgesim.commands.entry import main; main()",
    ]
    done = subprocess.run(command, env=os.environ | told, capture_output=True, text=True, check=False)
    assert "selection.policy=fedteddi" in done.stdout, done.stderr
