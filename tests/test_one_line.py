"""Errors from Python are one line each, whatever of files, names and arguments they repeat."""

import json
import shutil

import pytest
from refusals import in_one_line
from small_runs import TIMING

import edgesim
from edgesim import EdgesimError, PlannedRun, Study, grid, run_study
from edgesim.analysis.runs import read_study
from edgesim.base.errors import Contradiction
from edgesim.base.lease import Lease, Taken
from edgesim.config_file import parse
from edgesim.simulation import composition as simulation

VALUES = TIMING | {"devices": {"count": 5}}
EVIL = "one\ntwo\x1b[2J\r\u2028three"


@pytest.mark.parametrize("kind", [EdgesimError, Contradiction, Taken])
def test_an_error_holds_no_line_breaks_and_nothing_that_steers_a_terminal(kind):
    assert str(kind(f"file: {EVIL}", "round.tmax_s")) == r"file: one\ntwo\x1b[2J\r\u2028three"


def test_a_cell_of_a_csv_with_a_line_break_is_told_in_one_line(tmp_path):
    path = tmp_path / "matrix.csv"
    path.write_text('device,start_s,end_s\n0,"1\n2",3\n')
    availability = {"model": "table", "file": str(path)}
    with pytest.raises(EdgesimError) as refusal:
        edgesim.run(VALUES | {"availability": availability}, tmp_path / "run", quiet=True)
    assert "\n" not in str(refusal.value)
    assert r"1\n2" in str(refusal.value)


@pytest.mark.parametrize("policy", ["refl", "feddance", "random"])
@pytest.mark.parametrize("value", [2, True, ["arima"], {"name": "arima"}, 0.5])
def test_a_predictor_that_is_no_text_is_one_line(policy, value, tmp_path):
    selection = {"policy": policy, "predictor": value}
    with in_one_line(r"selection\.predictor: "):
        edgesim.run(VALUES | {"selection": selection}, tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


def test_a_folder_that_is_removed_while_its_run_goes_on_is_told_as_that(tmp_path):
    def on_round(done: object) -> None:
        shutil.rmtree(tmp_path / "run", ignore_errors=True)

    with pytest.raises(EdgesimError, match="run: the folder was removed during its run; nothing more is") as told:
        simulation.run(parse(VALUES, "test"), tmp_path / "run", on_round)
    assert not isinstance(told.value, Taken)
    assert not (tmp_path / "run").exists()


def test_a_lease_that_is_gone_from_a_folder_was_taken_over(tmp_path):
    lease = Lease(tmp_path)
    (tmp_path / "lease-0001.json").unlink()
    with pytest.raises(Taken, match="another process has resumed it"):
        lease.check()


@pytest.mark.parametrize("name", [EVIL, "a/b", "..", ".", "", "x" * 300])
def test_a_run_of_a_study_has_the_name_of_a_folder(name, tmp_path):
    (run,) = grid(VALUES, {}, [1])
    with in_one_line("the folder of a run: expected "):
        run_study(Study("s", [PlannedRun(name, {}, 1, run.config)]), tmp_path / "study")
    assert not (tmp_path / "study").exists()
    (tmp_path / "plan.json").write_text(
        json.dumps(
            {
                "name": "s",
                "target": None,
                "reference": "random",
                "runs": [{"folder": name, "knobs": {}, "seed": 1, "config": {}}],
            }
        )
    )
    with in_one_line(r"plan\.json: runs\[0\]: folder: expected "):
        read_study(tmp_path)
