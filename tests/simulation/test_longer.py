"""Finished runs that go on with more rounds, or until later."""

from pathlib import Path

import pytest
from kill_runs import KINDS, make_config
from small_runs import TRAINED
from stopped_runs import Broken, content, saved_rounds, stop_at
from whole_runs import TIMED, slow_but

from edgesim import Study, grid, run_study
from edgesim.analysis.runs import read_study
from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.folder import checkpoints
from edgesim.folder.records import read_config, read_run, read_table
from edgesim.simulation import composition as simulation
from edgesim.simulation.past import is_longer
from edgesim.studies.ledger import read_ledger
from edgesim.studies.plan_file import grow

VALUES = TRAINED | {"rounds": 6, "evaluation": {"samples": 20, "every": 4}}


def config(**changes):
    return parse({**VALUES, **changes}, "test")


def longer(short, long, folder, checkpoint_s=0.0):
    """Run the short one, then the long one into its folder, and the long one elsewhere: their results."""
    simulation.run(short, folder / "run", checkpoint_s=checkpoint_s)
    said = []
    result = simulation.run(long, folder / "run", on_note=lambda _, note: said.append(note), checkpoint_s=checkpoint_s)
    simulation.run(long, folder / "whole")
    found, expected = content(folder / "run"), content(folder / "whole")
    assert [name for name in expected if found.get(name) != expected[name]] == []
    assert read_config(folder / "run") == read_config(folder / "whole")
    return result, said


@pytest.mark.parametrize("kind", slow_but(["late"], KINDS))
def test_more_rounds_under_every_protocol_have_the_bytes_of_a_run_that_had_them_from_the_start(kind, tmp_path):
    short, long = (make_config(kind).model_copy(update={"rounds": rounds}) for rounds in (5, 9))
    result, _ = longer(short, long, tmp_path)
    # Behind the last round all work has ended, as it has not in the longer run.
    assert (result.status, result.resumed_after) == ("finished", 4)
    assert len(read_table(tmp_path / "run", "rounds")) == 9
    assert [checkpoints.round_of(path) for path in checkpoints.files(tmp_path / "run", "end")] == [8]
    assert not list((tmp_path / "run").glob("*.arrow"))


@pytest.mark.parametrize(
    "own", [{}, {"count": 2, "admission": "count", "protocol": "asynchronous", "payload_bits": 3e7}]
)
def test_a_later_end_in_simulated_time_too(own, tmp_path):
    sections = {"round": VALUES["round"] | own, "rounds": None}
    assert longer(config(**sections, stop_at_s=3.3), config(**sections, stop_at_s=5.9), tmp_path)[0].resumed_after > 0


def test_more_rounds_of_the_last_frame(tmp_path):
    hundred = str(Path(__file__).parents[1] / "compared/hundred-classes.npz")
    data = {"dataset": hundred, "partition": "fedteddi", "samples_per_device": 6}
    short, long = (config(rounds=[3, last], data=data) for last in (3, 6))
    assert longer(short, long, tmp_path)[0].resumed_after == 5


def test_a_run_that_was_too_short_for_checkpoints_is_played_again(tmp_path):
    result, _ = longer(config(), config(rounds=9), tmp_path, checkpoint_s=10.0)
    assert (result.resumed_after, result.restarted) == (0, "was shorter")


def test_a_run_that_was_killed_behind_its_last_round_goes_on_before_it(tmp_path):
    assert stop_at(config(), tmp_path / "run", 6) is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edgesim.engine.server.Server.stop", stop)
        with pytest.raises(Broken):
            simulation.run(config(), tmp_path / "run", checkpoint_s=0.0)
    assert saved_rounds(tmp_path / "run") == [6, 5]
    assert simulation.run(config(rounds=9), tmp_path / "run").resumed_after == 5
    simulation.run(config(rounds=9), tmp_path / "whole")
    assert content(tmp_path / "run") == content(tmp_path / "whole")


def stop(_):
    raise Broken


@pytest.mark.parametrize(
    ("own", "why"),
    [
        ({"selection": {"policy": "fedteddi"}}, r"selection.policy = 'fedteddi'"),
        ({"joining": {"law": "fedstg", "performance": 0.5}}, "joining.law"),
        ({"drift": {"law": "rotation"}, "data": {}}, "drift.law"),
    ],
)
def test_rounds_that_depend_on_how_many_there_are_are_refused_by_name(own, why, tmp_path):
    simulation.run(config(**own), tmp_path, checkpoint_s=0.0)
    before = content(tmp_path)
    with pytest.raises(EdgesimError, match=rf"holds a shorter run; .*depend on how many there are \({why}"):
        simulation.run(config(**own, rounds=9), tmp_path)
    assert content(tmp_path) == before
    assert read_run(tmp_path)["status"] == "finished"


@pytest.mark.parametrize(
    ("then", "now", "told"),
    [
        ({"rounds": 8}, {"rounds": 9}, True),
        ({"rounds": 8}, {"rounds": 7}, False),
        ({"rounds": 8}, {"rounds": 8}, False),
        ({"rounds": [3, 3]}, {"rounds": [3, 4]}, True),
        ({"rounds": [3, 3]}, {"rounds": [4, 3]}, False),
        ({"rounds": [3, 3]}, {"rounds": [3, 3, 3]}, False),
        ({"rounds": 8}, {"rounds": [9]}, False),
        ({"rounds": 8}, {"stop_at_s": 9.0}, False),
        ({"stop_at_s": 8.0}, {"stop_at_s": 9.0}, True),
        ({"rounds": 8, "stop_at_s": 8.0}, {"rounds": 9, "stop_at_s": 7.0}, False),
        ({"rounds": 8, "seed": 1}, {"rounds": 9, "seed": 2}, False),
    ],
)
def test_what_counts_as_longer(then, now, told):
    assert is_longer(then, now) is told


def test_a_study_with_more_rounds_goes_on_with_its_runs(tmp_path, studies_here):
    studies = [Study("s", grid(VALUES | TIMED | {"rounds": rounds}, {}, [0, 1])) for rounds in (4, 7)]
    run_study(studies[0], tmp_path / "out")
    grow(studies[1], tmp_path / "out")
    assert {state.status for state in read_ledger(tmp_path / "out").values()} == {"planned"}
    assert read_study(tmp_path / "out").finished == []
    run_study(studies[1], tmp_path / "out")
    assert {state.status for state in read_ledger(tmp_path / "out").values()} == {"finished"}
    assert [len(read_table(tmp_path / "out" / name, "rounds")) for name in ("s0", "s1")] == [7, 7]
