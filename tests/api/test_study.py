"""`edgesim.study` and what it answers."""

from pathlib import Path

import pandas as pd
import pytest
from matplotlib.figure import Figure

import edgesim
from edgesim.analysis.summary import summarise

AXES = {"selection.policy": ["random", "best-channel"], "round.tmax_s": [0.8, 1.2]}


@pytest.fixture(autouse=True)
def _in_this_process(studies_here):
    pass


def test_a_study_has_its_runs_by_name_its_summary_and_figures_and_is_opened_and_compared(timing, figures_as_text):
    found = edgesim.study(timing, AXES, seeds=2, out="out", set={"rounds": 2})
    names = [f"{policy}-tmax{tmax}-s{seed}" for policy in ("random", "best-channel") for tmax in (0.8, 1.2)
             for seed in (0, 1)]  # fmt: skip
    assert [*found.runs] == names
    assert found.unfinished == {}
    one = found.runs["best-channel-tmax1.2-s1"]
    assert isinstance(one, edgesim.Run)
    assert (one.knobs["policy"], one.knobs["tmax_s"], one.seed) == ("best-channel", 1.2, 1)
    assert len(one.rounds) == 2
    table = found.table()
    assert table[["policy", "tmax_s", "seeds"]].values.tolist() == [
        [policy, tmax, 2] for policy in ("random", "best-channel") for tmax in (0.8, 1.2)
    ]
    pd.testing.assert_frame_equal(table, summarise(found.folder), check_dtype=False)
    assert "<table" in found._repr_html_()
    assert repr(found) == "StudyResult(folder out, runs 8 of 8 finished)"
    opened = edgesim.open("out")
    assert isinstance(opened, edgesim.StudyResult)
    assert [*opened.runs] == names
    assert {path.stem for path in found.draw()} == {*found.figures}
    assert "scheduled" in found.figures
    assert isinstance(found.plot("scheduled"), Figure)
    with pytest.raises(edgesim.EdgesimError, match="did you mean 'scheduled'"):
        found.plot("schedule")
    compared = found.compare("arrived", within=["tmax_s"])
    assert compared.table[["tmax_s", "measure", "choice", "against", "pairs"]].values.tolist() == [
        [tmax, "arrived", "best-channel", "random", 2] for tmax in (0.8, 1.2)
    ]
    assert "<table" in compared._repr_html_()
    pd.testing.assert_frame_equal(edgesim.compare(["out"], ["arrived"], within=["tmax_s"]).table, compared.table)
    pd.testing.assert_frame_equal(edgesim.compare("out", "arrived", within=["tmax_s"]).table, compared.table)


def test_planned_runs_may_be_given_instead_of_a_base(timing):
    runs = edgesim.grid(timing, {}, range(1), labels={"variant": "a"})
    runs += edgesim.grid(timing | {"rounds": 2}, {}, range(1), labels={"variant": "b"})
    found = edgesim.study(runs, out="out")
    assert [*found.runs] == ["a-s0", "b-s0"]
    with pytest.raises(edgesim.EdgesimError, match=r"give these to edgesim\.grid"):
        edgesim.study(runs, AXES, out="out")


def test_without_a_folder_the_name_or_what_the_runs_are_gives_it(timing):
    one = edgesim.study(timing, {}, seeds=[4], name="mine")
    assert one.folder == Path("runs/mine")
    assert one.plan.name == "mine"
    other, again = (edgesim.study(timing, {}, seeds=[4]).folder for _ in range(2))
    assert other == again
    assert other.name.startswith("study-")


def test_the_reference_is_random_or_the_first_policy(timing):
    assert edgesim.study(timing, {}, seeds=1, out="a").plan.reference == "random"
    axes = {"selection.policy": ["best-channel", "fedcs"]}
    assert edgesim.study(timing, axes, seeds=1, out="b").plan.reference == "best-channel"
    assert edgesim.study(timing, axes, seeds=1, out="c", reference="fedcs").plan.reference == "fedcs"


def test_what_the_study_varies_cannot_be_set(timing):
    for given in ({"round.tmax_s": 1}, ["round.tmax_s=1"], {"seed": 1}):
        with pytest.raises(edgesim.EdgesimError, match="the study itself varies"):
            edgesim.study(timing, AXES, out="out", set=given)


def test_a_run_that_fails_stands_beside_those_that_finish(timing, capsys):
    found = edgesim.study(timing, {"round.payload_bits": [1e6, 1e15]}, seeds=1, out="out", quiet=True)
    assert [*found.runs] == ["payload1000000-s0"]
    assert found.unfinished == {"payload1e+15-s0": "failed"}
    assert capsys.readouterr().out == ""
