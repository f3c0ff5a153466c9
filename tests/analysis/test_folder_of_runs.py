"""A folder in which run folders lie is read as a study of these, without a plan."""

import re

import pytest
from small_runs import TIMING

import edgesim
from edgesim.analysis.check import check
from edgesim.analysis.runs import has_runs, read_study
from edgesim.errors import EdgesimError
from edgesim.report.report import report_html

WORLD = TIMING | {"rounds": 2, "devices": {"count": 6}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mine")
    for policy in ("best-channel", "random"):
        for seed in (0, 1):
            chosen = {"selection.policy": policy, "seed": seed}
            edgesim.run(WORLD, folder / f"{policy}-{seed}", chosen, quiet=True)
    return folder


def test_its_runs_are_distinguished_by_what_differs(folder):
    study = read_study(folder)
    assert (study.name, study.target, study.reference) == (folder.name, None, "random")
    assert [(run.folder.name, run.knobs["policy"], run.seed) for run in study.finished] == [
        ("best-channel-0", "best-channel", 0), ("best-channel-1", "best-channel", 1),
        ("random-0", "random", 0), ("random-1", "random", 1),
    ]  # fmt: skip
    assert study.knob_names == ["policy", "tmax_s"]
    assert not has_runs(folder / "random-0")


@pytest.mark.usefixtures("figures_as_text")
def test_it_is_shown_compared_checked_drawn_and_reported_as_a_study(folder, tmp_path, capsys):
    opened = edgesim.open(folder)
    opened.show()
    assert re.search(r"^random .*\n", capsys.readouterr().out, re.MULTILINE)
    table = opened.table()
    assert (table["policy"].tolist(), table["seeds"].tolist()) == (["best-channel", "random"], [2, 2])
    means = [
        sum(edgesim.open(folder / f"{policy}-{seed}").rounds["arrived"].mean() for seed in (0, 1)) / 2
        for policy in ("best-channel", "random")
    ]
    assert table["arrived"].tolist() == pytest.approx(means)
    found = edgesim.compare(folder, "arrived").table
    assert (found["choice"].tolist(), found["against"].tolist()) == (["best-channel"], ["random"])
    assert found["difference"].tolist() == pytest.approx([means[0] - means[1]])
    assert check(folder).summary().endswith("runs: 4 whole")
    assert any(file.stem == "waste-joules" for file in edgesim.draw(folder, tmp_path / "figures", format="svg"))
    assert "4 runs: 4 finished" in report_html(folder)


def test_what_it_lacks_is_one_line(folder, tmp_path):
    for study_command in (lambda: edgesim.studies.plan_file.read_plan(folder), lambda: read_study(tmp_path)):
        with pytest.raises(EdgesimError, match=r"not a study folder: plan\.json is missing"):
            study_command()
