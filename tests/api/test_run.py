"""`edgesim.run` and what it answers."""

import json
import math
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tomli_w
from edited_runs import forget_digests
from matplotlib.figure import Figure
from refusals import in_one_line

import edgesim
from edgesim.folder.records import read_config, read_run, read_table, write_whole


@pytest.mark.parametrize("form", ["mapping", "text", "path", "config"])
def test_a_config_may_be_a_mapping_a_file_or_a_checked_config(timing, form):
    Path("mine.toml").write_text(tomli_w.dumps(timing))
    given = {"mapping": timing, "text": "mine.toml", "path": Path("mine.toml"), "config": edgesim.parse(timing, "x")}
    run = edgesim.run(given[form], "out", {"round.tmax_s": 0.75})
    assert run.folder == Path("out")
    assert run.status == "finished"
    assert run.config["round"]["tmax_s"] == 0.75
    # 3 rounds of one deadline each, since no round ends before its last upload has had all of it.
    assert len(run.rounds) == 3
    assert run.rounds["t_end_s"].iloc[-1] <= 3 * 0.75 + 1e-9


def test_without_a_folder_a_file_gives_its_name_and_a_mapping_one_of_its_own(timing):
    Path("mine.toml").write_text(tomli_w.dumps(timing))
    assert edgesim.run("mine.toml").folder == Path("runs/mine")
    first, again, other = (edgesim.run(timing, set={"seed": seed}).folder for seed in (0, 0, 1))
    assert first == again != other
    assert first.name.startswith("run-")


@pytest.mark.parametrize(
    ("config", "note"),
    [
        ({}, 'data.partition = "iid" (was "fedteddi"), learning.pretrain = false (was true)'),
        ({"data": {"partition": "shards"}}, "learning.pretrain = false (was true)"),
        ({"drift": {"law": "rotation"}, "learning": {"pretrain": False}}, ""),
        ({"data": {"dataset": "none"}, "learning": {"training": "none"}, "round": {"payload_bits": 1e6}}, ""),
    ],
)
@pytest.mark.whole_family
def test_a_run_that_leaves_keys_to_new_defaults_says_so_in_one_line(config, note, capsys):
    run = edgesim.run({"rounds": 1, "devices": {"count": 2}} | config, "out")
    printed = " ".join("".join(capsys.readouterr()).split())
    assert printed.count("new defaults") == bool(note)
    assert f"new defaults: {note}" in printed or not note
    assert run.config["learning"]["pretrain"] is False
    partition = None if "drift" in config else config.get("data", {}).get("partition", "iid")
    assert run.config["data"].get("partition") == partition


def test_arrays_paths_and_numpy_numbers_may_stand_in_a_mapping(timing):
    Path("data").mkdir()
    timing["data"]["folder"] = Path("data")
    timing["rounds"] = np.int64(2)
    timing["round"]["tmax_s"] = np.float64(0.9)
    assert len(edgesim.run(timing, "out").rounds) == 2


def test_the_last_test_counts_for_accuracy_and_the_first_that_is_good_enough_for_seconds(learning):
    """In a run that gets better and worse again."""
    folder = forget_digests(edgesim.run(learning, "out", {"evaluation.samples": 300}).folder)
    rounds = pd.read_parquet(folder / "rounds.parquet").assign(test_accuracy=[0.3, 0.6, 0.7, 0.5])
    rounds.to_parquet(folder / "rounds.parquet")
    run = edgesim.open("out")
    assert run.accuracy == 0.5
    assert run.seconds_to(0.55) == rounds["t_end_s"][1]
    assert run.seconds_to(0.7) == rounds["t_end_s"][2]
    assert run.seconds_to(0.71) == math.inf
    (start,) = run.metrics.query("round == 0 and name == 'test_accuracy'")["value"]
    assert 0 < start < 0.3
    assert run.seconds_to(start) == 0
    with pytest.raises(edgesim.EdgesimError, match="above 0 and at most 1"):
        run.seconds_to(80)


@pytest.mark.slow
def test_every_figure_can_be_had_by_its_name_and_is_saved_as_that(learning):
    run = edgesim.run(learning, "out")
    assert {"gantt", "accuracy_rounds", "energy", "partition"} <= {*run.figures}
    for name in run.figures:
        figure = run.plot(name)
        assert isinstance(figure, Figure)
        assert figure._repr_png_().startswith(b"\x89PNG")
    assert {path.stem for path in run.draw()} == {*run.figures}
    assert {path.parent for path in run.draw()} == {Path("out/plots")}


def test_a_run_answers_with_its_tables_figures_and_texts(timing, capsys):
    folder = Path("<b>bold</b>")
    run = edgesim.run(timing, folder, quiet=True)
    assert capsys.readouterr().out == ""
    for name in ("rounds", "activities", "updates", "devices", "metrics", "timing"):
        pd.testing.assert_frame_equal(getattr(run, name), edgesim.read_table(folder, name))
    # Nothing tested is no accuracy.
    assert math.isnan(run.accuracy)
    assert run.seconds_to(0.5) == math.inf
    assert "accuracy_rounds" not in run.figures
    with pytest.raises(edgesim.EdgesimError) as refused:
        run.plot("gannt")
    known = f"has no figure 'gannt', did you mean 'gantt'? its figures are {', '.join(run.figures)}"
    assert str(refused.value) == f"{folder}: {known}"
    gantt = run.plot("gantt", round=3)
    assert "3" in gantt.axes[0].get_title() + str(gantt.get_suptitle())
    with pytest.raises(edgesim.EdgesimError, match="round 9"):
        run.plot("gantt", round=9)
    assert repr(run).startswith("Run(folder <b>bold</b>, status finished, rounds 3, simulated ")
    assert "&lt;b&gt;bold&lt;/b&gt;" in run._repr_html_()
    run.show()
    assert "policy, seed" in capsys.readouterr().out
    shutil.rmtree(folder)
    assert "unreadable" in repr(run)


@pytest.mark.parametrize(
    ("config", "set", "said"),
    [
        ({"rounds": 2, "round": {"tmx": 1}}, None, "config: unknown key 'round.tmx', did you mean 'round.tmax_s'?"),
        ({}, {"round.tmax_s": -1}, "set round.tmax_s=-1: round.tmax_s: input should be"),
        ({}, {"rounds.count": 3}, "set rounds.count=3"),
        ({}, "round.tmax_s=1", "set: expected a mapping such as"),
        (None, None, "config: expected a mapping, the path of a TOML file or a RunConfig (got NoneType)"),
        ("nowhere.toml", None, "nowhere.toml"),
    ],
)
def test_bad_input_is_a_line_that_names_it(config, set, said):
    with in_one_line(re.escape(said)):
        edgesim.run(config, "out", set)
    assert not Path("out").exists()


def test_a_finished_run_is_reused_and_run_again_on_demand(timing, capsys):
    before = edgesim.run(timing, "out").rounds
    capsys.readouterr()
    edgesim.run(timing, "out")
    assert "finished before, reused" in capsys.readouterr().out
    pd.testing.assert_frame_equal(edgesim.run(timing, "out", fresh=True).rounds, before)
    assert "run again from the start" in capsys.readouterr().out


def test_a_run_of_an_older_edgesim_is_refused_in_a_line(timing):
    """With keys of then; `tests/test_damaged_runs.py` has its schema."""
    folder = edgesim.run(timing, "out").folder
    facts = json.loads((folder / "run.json").read_text())
    write_whole(folder / "run.json", json.dumps(facts | {"status": "interrupted", "digests": {}}))
    config = read_config(folder)
    config["learning"]["proximal"] = 0.5
    write_whole(folder / "config.toml", tomli_w.dumps(config))
    with pytest.raises(edgesim.EdgesimError, match=r"holds a run of another config \(learning\.proximal differs\)"):
        edgesim.run(timing, "out")
    for act in (edgesim.resume, lambda out: edgesim.fork(out, 1, {}, "fork")):
        with pytest.raises(edgesim.EdgesimError, match=r"config\.toml: unknown key 'learning\.proximal'"):
            act("out")


def test_open_refuses_what_is_neither_a_run_nor_a_study():
    Path("empty").mkdir()
    with pytest.raises(edgesim.EdgesimError, match="empty: not a run folder"):
        edgesim.open("empty")


def test_an_edited_policy_counts_at_once_in_one_process(timing, monkeypatch):
    """As in a notebook, where the module beside it is edited between two cells."""
    monkeypatch.syspath_prepend(Path.cwd())
    text = (Path(edgesim.__file__).parent / "templates/policy.py").read_text()
    Path("edited_policy.py").write_text(text)
    given = {"selection.policy": "edited_policy.LongestWait", "round.admission": "count", "round.count": 2}
    first = edgesim.run(timing, "out", given).updates
    Path("edited_policy.py").write_text(text + "\n\nraise RuntimeError('edited')\n")
    with pytest.raises(edgesim.EdgesimError, match="RuntimeError: edited"):
        edgesim.run(timing, "out", given)
    Path("edited_policy.py").write_text(text + "\n# again\n")
    pd.testing.assert_frame_equal(edgesim.run(timing, "out", given).updates, first)


LEARNS = {
    "rounds": 4,
    "devices": {"count": 6},
    "data": {"dataset": "digits", "partition": "iid", "samples_per_device": 20},
    "learning": {"model": "mlp", "pretrain": False},
    "round": {"payload_bits": 1e6, "download_s": 0.01},
    "evaluation": {"every": 2},
}


def test_on_round_is_called_with_what_the_row_of_each_round_says(tmp_path):
    called = []
    run = edgesim.run(LEARNS, tmp_path / "run", quiet=True, on_round=called.append)
    rounds = run.rounds
    assert [done.round for done in called] == rounds["round"].tolist()
    for name, column in {
        "t_s": "t_end_s",
        "bits_up": "bits_up",
        "bits_down": "bits_down",
        "energy_j": "energy_j",
    }.items():
        assert [getattr(done, name) for done in called] == rounds[column].tolist()
        assert rounds[column].min() > 0
    tested = rounds["test_accuracy"].ffill().tolist()
    assert [done.accuracy for done in called][1:] == tested[1:]


def test_what_on_round_raises_ends_the_run_which_keeps_its_rounds(tmp_path):
    def stop(done):
        if done.round == 2:
            raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        edgesim.run(LEARNS, tmp_path / "run", quiet=True, on_round=stop)
    assert read_run(tmp_path / "run")["status"] == "failed"
    assert read_table(tmp_path / "run", "rounds")["round"].tolist() == [1, 2]
