"""Errors name what their reader has given: options in a command, arguments in a call from Python."""

import re

import pytest

import edgesim
from edgesim.base.argument_names import names_arguments
from edgesim.base.errors import EdgesimError
from edgesim.screen.plain import plain_errors

TIMING = {
    "rounds": 1,
    "learning": {"training": "none", "pretrain": True},
    "data": {"dataset": "none", "partition": "fedteddi"},
    "round": {"payload_bits": 1e5},
}
KNOB = {"round.tmax_s": (0.5, 1.0)}


@names_arguments
def called(text, out=None, fresh=False, user_code=True, executor=None, knobs=()):
    """A function of the interface."""
    raise EdgesimError(text, "round.tmax_s")


@pytest.mark.parametrize(
    ("typed", "given"),
    [
        ("choose another --out, or --fresh", "choose another out, or fresh=True"),
        ("--no-user-code refuses it", "user_code=False refuses it"),
        ("--address a:1: none answers; ray start --head", "address a:1: none answers; ray start --head"),
        ("--knob x: unknown", "knobs x: unknown"),
        ("(edgesim run --fresh begins again); or --fresh", "(edgesim run --fresh begins again); or fresh=True"),
        ("a --set for each", "a --set for each"),
        ("/data/a--out: cannot be written", "/data/a--out: cannot be written"),
        ("`edgesim resume a` goes on, or choose another --out", "`edgesim resume a` goes on, or choose another out"),
    ],
)
def test_options_become_arguments_but_in_commands(capsys, typed, given):
    with pytest.raises(EdgesimError) as refused:
        called(typed)
    assert str(refused.value) == given
    assert refused.value.fields == ("round.tmax_s",)
    with pytest.raises(SystemExit):
        plain_errors(called)(typed)
    assert capsys.readouterr().err == f"error: {typed}\n"
    with pytest.raises(EdgesimError, match=re.escape(given)):
        called(typed)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda out: edgesim.run(TIMING, out, {"round.tmx": 1}), "set round.tmx=1: unknown key 'round.tmx'"),
        (lambda out: edgesim.study(TIMING, {}, 1, out, set=["seed=1"]), "set seed=1: the study itself varies seed"),
        (lambda out: edgesim.grid(TIMING, {}, [0], ["seed=1"]), "overrides seed=1: the study itself varies seed"),
        (lambda out: edgesim.tune(TIMING, KNOB, "energy-j", 0, out), "trials 0: expected 1 or more"),
        (lambda out: edgesim.tune(TIMING, KNOB, "energy", 1, out), "objectives energy: unknown"),
        (lambda out: edgesim.tune(TIMING, {"round.x": (1, 2)}, "energy-j", 1, out), "knobs round.x: unknown key"),
        (lambda out: edgesim.run(TIMING, "/dev/null/x"), "/dev/null/x: cannot be made a run folder"),
    ],
)
def test_calls_from_python_name_no_option_of_a_command(tmp_path, call, said):
    pytest.importorskip("optuna")
    with pytest.raises(EdgesimError) as refused:
        call(tmp_path / "out")
    assert str(refused.value).startswith(said)
    assert "--" not in str(refused.value)
    assert not (tmp_path / "out").exists()
