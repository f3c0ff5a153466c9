"""Forks: beside runs that had the other knobs from that round on, made without forking."""

import json
import shutil
from pathlib import Path

import pytest
from edited_runs import forget_digests
from kill_runs import KINDS, make_config
from stopped_runs import content, stop_at
from typed_commands import edgesim, refused
from whole_runs import slow_but

from edgesim.analysis.compare import compare
from edgesim.analysis.pairing import pairings
from edgesim.analysis.runs import runs_of
from edgesim.base.errors import EdgesimError
from edgesim.config_file import changed, parse
from edgesim.folder import checkpoints
from edgesim.folder.records import read_config, read_run, read_table
from edgesim.plots.accuracy import draw_accuracy
from edgesim.plots.difference_curves import draw_difference_curves
from edgesim.plots.energy_bars import draw_energy_over_rounds
from edgesim.plots.groups import panels_of
from edgesim.plots.training_loss import draw_training_loss
from edgesim.plots.waste import draw_waste_over_rounds
from edgesim.selection import SELECTORS
from edgesim.simulation import composition as simulation
from edgesim.simulation import forking
from edgesim.simulation import simulation as run_object
from edgesim.simulation.composition import as_toml, complete

ROUND = 5
VALUES = {
    "seed": 5,
    "rounds": 9,
    "devices": {"count": 8},
    "round": {"payload_bits": 1e6, "tmax_s": 1.0, "admission": "count", "count": 3},
    "data": {"samples_per_device": 8, "partition": "fedteddi"},
    "learning": {"pretrain": False, "steps": 1, "back_end": "loop"},
    "evaluation": {"samples": 20, "every": 2},
}


def config(**changes):
    return parse({**VALUES, **changes}, "test")


def forked(run, out, *overrides, at=ROUND):
    """Fork, and run the fork; what was said of its past."""
    said = []

    def replay(settings, folder, until):
        simulation.run(settings, folder, until=until)

    settings = forking.prepare(run, at, dict.fromkeys(overrides), out, lambda _, note: said.append(note), replay)
    result = simulation.run(settings, out, strict=True)
    assert (result.status, result.resumed_after) == ("finished", at)
    return said


def assert_same(found, expected):
    """The tables and the model of two folders."""
    found, expected = content(found), content(expected)
    assert found.keys() == expected.keys()
    assert [name for name in expected if found[name] != expected[name]] == []


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of `VALUES` under random choice that keeps the checkpoint of `ROUND`."""
    folder = tmp_path_factory.mktemp("parent") / "run"
    simulation.run(config(checkpoint_at=[ROUND]), folder)
    return folder


def switching(policy, first="random"):
    """A policy that chooses as the ``first`` one until the end of `ROUND`, and then as a new ``policy`` does."""
    kind, first = SELECTORS[policy], SELECTORS[first]

    class Switch:
        Options = kind.Options
        looks_at = kind.looks_at | first.looks_at

        def __init__(self, options, device_count, class_count):
            self.before = first(first.Options(), device_count, class_count)
            self.behind = kind(options, device_count, class_count)
            self.round = 0

        @property
        def state(self):
            return self.behind.state

        @property
        def now(self):
            return self.before if self.round <= ROUND else self.behind

        def choose(self, view):
            self.round = view.round
            return self.now.choose(view)

        def hear(self, report):
            self.now.hear(report)

    return Switch


APART = {"random", "afl", "safa"}
"""afl charges its passes from the first round of a run that has it on, and whether a policy drafts, as safa does, is
asked once: a run that switches to them has another past."""


@pytest.mark.parametrize(
    ("policy", "first"),
    [("refl", "oort")]
    + slow_but([("oort", "random"), ("best-channel", "random")], [(n, "random") for n in sorted({*SELECTORS} - APART)]),
)
def test_a_fork_to_a_policy_has_the_bytes_of_a_run_that_switched_to_it_in_that_round(
    policy, first, run, tmp_path, monkeypatch
):
    if first != "random":
        run = tmp_path / "run"
        simulation.run(config(selection={"policy": first}, checkpoint_at=[ROUND]), run)
    forked(run, tmp_path / "fork", f"selection.policy={policy}")
    values = read_config(tmp_path / "fork")
    monkeypatch.setitem(SELECTORS, policy, switching(policy, first))
    simulation.run(parse(values, "fork"), tmp_path / "switched")
    assert_same(tmp_path / "fork", tmp_path / "switched")
    assert read_run(tmp_path / "fork")["fork"]["round"] == ROUND


OTHER_KNOBS = {
    "deadline": ("round.tmax_s=0.7",),
    "count": ("round.count=5", "round.close=deadline"),
    "evaluation": ("evaluation.every=1",),
    "instants": ("evaluation.every_s=0.4",),
    "rounds to instants": ("evaluation.every_s=0.4",),
    "instants to rounds": ("evaluation.every=2",),
}
OWN_TESTS = {
    "instants": {"every_s": 0.7},
    "rounds to instants": {"every": ROUND},
    "instants to rounds": {"every_s": 0.7},
}


@pytest.mark.parametrize("knobs", OTHER_KNOBS)
def test_a_fork_to_other_knobs_has_the_bytes_of_a_run_whose_knobs_were_turned_in_that_round(
    knobs, run, tmp_path, monkeypatch
):
    own = config(evaluation={"samples": 20, **OWN_TESTS.get(knobs, {"every": 2})})
    if knobs in OWN_TESTS:
        run = tmp_path / "run"
        simulation.run(own.model_copy(update={"checkpoint_at": [ROUND]}), run)
    forked(run, tmp_path / "fork", *OTHER_KNOBS[knobs])
    wanted = complete(parse(read_config(tmp_path / "fork"), "fork"))
    servers, make = [], run_object.Server

    def kept(*given):
        servers.append(make(*given))
        return servers[-1]

    def turn(done):
        if done.round == ROUND:
            ((server,), now) = servers, done.t_s
            for section in ("round", "evaluation"):
                # Frozen for all others.
                getattr(server.parts.world.config, section).__dict__.update(getattr(wanted, section).__dict__)
            server.process.deadlines.tmax_s = wanted.round.tmax_s
            server.process.deadlines.rounds = 0
            server.parts.report.holds_rows = wanted.evaluation.every_s is not None
            if not server.parts.report.holds_rows:
                server.parts.report.write_row()
            if wanted.evaluation.every_s:
                server.parts.evaluations._passed = sum(0.4 * k <= now for k in range(1, 1000))

    monkeypatch.setattr(run_object, "Server", kept)
    simulation.run(own, tmp_path / "turned", turn)
    assert_same(tmp_path / "fork", tmp_path / "turned")


@pytest.mark.parametrize("kind", KINDS)
def test_a_fork_in_which_nothing_but_what_is_kept_differs_is_the_run_itself_under_every_protocol(kind, tmp_path):
    own = make_config(kind).model_copy(update={"rounds": 12})
    simulation.run(own.model_copy(update={"checkpoint_at": [7]}), tmp_path / "run")
    forked(tmp_path / "run", tmp_path / "fork", "checkpoint_at=[7, 9]", at=7)
    assert_same(tmp_path / "fork", tmp_path / "run")


def test_a_past_without_a_checkpoint_is_played_again_and_this_is_said(run, tmp_path):
    forked(run, tmp_path / "kept", "selection.policy=best-channel")
    bare = shutil.copytree(run, tmp_path / "bare")
    for path in checkpoints.files(bare, "kept", "end"):
        path.unlink()
    said = forked(bare, tmp_path / "fork", "selection.policy=best-channel")
    assert f"{bare}: has no checkpoint of round 5; its past is repeated from the start" in said
    assert_same(tmp_path / "fork", tmp_path / "kept")
    said = forked(run, tmp_path / "later", "selection.policy=best-channel", at=7)
    assert f"{run}: has no checkpoint of round 7; its past is repeated after round 5" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bare", "fork", "kept", "later"]
    past = read_table(run, "rounds")
    assert read_table(tmp_path / "later", "rounds").iloc[:7].equals(past.iloc[:7])


def test_a_stopped_run_can_be_forked_and_a_fork_goes_on_and_can_be_forked_too(run, tmp_path):
    assert stop_at(config(), tmp_path / "run", ROUND + 1) is None
    out = tmp_path / "fork"
    settings = forking.prepare(tmp_path / "run", ROUND, {"selection.policy=oort": None}, out, print, None)
    assert stop_at(settings, out, 8) is None
    status, said = edgesim("resume", out)
    assert status == 0, said
    forked(run, tmp_path / "other", "selection.policy=oort")
    assert_same(out, tmp_path / "other")
    assert read_run(out)["fork"] == {
        "parent": str(tmp_path / "run"),
        "round": 5,
        "changed": {"selection.policy": "oort"},
    } | {"changed": read_run(out)["fork"]["changed"]}
    forked(out, tmp_path / "third", "evaluation.every=1")
    for path in checkpoints.files(out, "kept", "end"):
        path.unlink()
    with pytest.raises(EdgesimError, match="is a fork itself and has no checkpoint of round 5 or before"):
        forked(out, tmp_path / "fourth", "evaluation.every=1")


def test_a_fork_that_lost_its_past_does_not_begin_with_another(run, tmp_path):
    settings = forking.prepare(run, ROUND, {"selection.policy=oort": None}, tmp_path / "fork", print, None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulation, "input_digests", lambda *_, **__: {"edgesim": "other"})
        with pytest.raises(EdgesimError, match=f"is a fork of {run} that has lost its past"):
            simulation.run(settings, tmp_path / "fork")
    for path in (tmp_path / "fork").glob("*.safetensors"):
        path.write_bytes(b"cut")
    with pytest.raises(EdgesimError, match=f"is a fork of {run} that has lost its past"):
        simulation.run(settings, tmp_path / "fork")
    (tmp_path / "config.toml").write_bytes((tmp_path / "fork/config.toml").read_bytes())
    assert edgesim("run", tmp_path / "config.toml", "--out", tmp_path / "fork") == (
        2,
        f"error: {tmp_path / 'fork'}: holds a fork, whose past is another run's; choose another folder or remove it",
    )


@pytest.mark.parametrize(
    ("overrides", "at", "said"),
    [
        (["seed=7"], 5, "set seed: a fork has the past of its run, so only selection, round"),
        (["devices.count=9"], 5, "set devices.count: a fork has the past"),
        (["learning.lr=0.5"], 5, "set learning.lr: a fork has the past"),
        (["algorithm.name=scaffold"], 5, "set algorithm.name: a fork has the past"),
        (["round.protocol=buffered"], 5, "set round.protocol: a fork has the past"),
        (["evaluation.every_s=0.5", "evaluation.every=0"], 5, "set evaluation.every"),
        (["evaluation.every_s=0.5"], 5, "the model of round 5, whose row is written without a test; fork behind"),
        (["round.tmax_s=-1"], 5, "set round.tmax_s=-1: round.tmax_s"),
        (["round.tmax_s=1.0"], 5, "nothing differs from the run"),
        (["round.tmax_s=0.8"], 0, "--at-round 0: expected a round from 1 on, before the last one of"),
        (["round.tmax_s=0.8"], 9, "--at-round 9: expected a round from 1 on, before the last one of"),
    ],
)
def test_what_a_fork_cannot_be_is_refused_by_name_and_nothing_is_left(overrides, at, said, run, tmp_path):
    words = [word for each in overrides for word in ("--set", each)]
    assert said in refused("fork", run, "--at-round", at, *words, "--out", tmp_path / "fork")
    assert list(tmp_path.iterdir()) == []


def test_more_rounds_for_a_fork_and_none_where_the_past_depends_on_them_or_its_code_has_changed(run, tmp_path):
    forked(run, tmp_path / "longer", "rounds=12")
    simulation.run(config(rounds=12), tmp_path / "whole")
    assert_same(tmp_path / "longer", tmp_path / "whole")
    simulation.run(config(selection={"policy": "fedteddi"}, checkpoint_at=[5]), tmp_path / "ahead")
    with pytest.raises(EdgesimError, match=r"set rounds; it cannot be extended, since its rounds depend on how many"):
        forked(tmp_path / "ahead", tmp_path / "no", "rounds=12")
    told = json.loads((tmp_path / "whole/run.json").read_text())
    told["inputs"]["algorithm.name"] = "0"
    (tmp_path / "whole/run.json").write_text(json.dumps(told))
    with pytest.raises(EdgesimError, match=r"algorithm.name has changed since it ran, so its past cannot be repeated"):
        forked(tmp_path / "whole", tmp_path / "no", "round.tmax_s=0.8")


def test_a_fork_whose_frames_would_have_had_other_rounds_is_refused(tmp_path):
    file = str(Path(__file__).parent / "compared/hundred-classes.npz")
    data = {"dataset": file, "partition": "fedteddi", "samples_per_device": 6}
    simulation.run(config(rounds=[4, 4], data=data, checkpoint_at=[ROUND]), tmp_path / "run")
    forked(tmp_path / "run", tmp_path / "longer", "rounds=[4, 6]")
    with pytest.raises(EdgesimError, match="is of a run whose frames have other rounds"):
        forked(tmp_path / "run", tmp_path / "other", "rounds=[5, 4]")


def test_the_command_forks_and_compare_tells_the_common_past(run, tmp_path, monkeypatch):
    words = ["--at-round", ROUND, "--set", "selection.policy=best-channel", "--out", tmp_path / "fork"]
    status, said = edgesim("fork", run, *words)
    assert status == 0, said
    monkeypatch.chdir(run.parent)
    assert edgesim("fork", run.name, *words)[0] == 0
    # Two seeds, of which the other is a copy: only what is said counts here.
    for name in ("run", "fork"):
        folder = shutil.copytree(run if name == "run" else tmp_path / "fork", tmp_path / f"{name}-2")
        text = (folder / "config.toml").read_text()
        (folder / "config.toml").write_text(text.replace("seed = 5", "seed = 6"))
        told = json.loads((forget_digests(folder) / "run.json").read_text())
        if "fork" in told:
            told["fork"]["parent"] = str(tmp_path / "run-2")
            (folder / "run.json").write_text(json.dumps(told))
    folders = [run, tmp_path / "fork", tmp_path / "run-2", tmp_path / "fork-2"]
    status, said = edgesim("compare", *folders, "--metric", "final_accuracy", "--by", "policy")
    assert status == 0, said
    assert f"Common past: {tmp_path / 'fork'} is {run} until the end of round 5" in said
    assert "; the same until the end of round 5)" in said
    assert "common past" in said
    table = compare(folders, ["final_accuracy"], "policy").table
    assert table["common_past_rounds"].tolist() == [5]
    panels, fork = panels_of(runs_of(folders)), runs_of(folders[1:2])[0]
    (pair,) = pairings(runs_of(folders), "policy")
    for figure, place in (
        (draw_training_loss(panels), 5),
        (draw_difference_curves([pair], "rounds", "variant", "x"), 5),
        (draw_energy_over_rounds(fork), 5.5),
        (draw_waste_over_rounds(fork, "joules"), 5.5),
        (draw_accuracy(panels, "rounds"), 5.0),
        (draw_accuracy(panels, "seconds"), read_table(run, "rounds")["t_end_s"][4]),
    ):
        (line,) = [line for line in figure.axes[0].lines if line.get_linestyle() == ":"]
        assert line.get_xdata() == [place, place]


def test_set_value_and_the_kept_key_change_no_result(run, tmp_path):
    values = changed(as_toml(config()), {"checkpoint_at=[2]": None})
    simulation.run(parse(values, "test"), tmp_path)
    assert_same(tmp_path, run)
    assert simulation.run(config(), tmp_path).reused
    assert [checkpoints.round_of(path) for path in checkpoints.files(Path(tmp_path), "kept")] == [2]
