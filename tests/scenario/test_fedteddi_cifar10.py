"""What ``scenarios/fedteddi_cifar10.py`` plans, chooses and refuses."""

import io
import runpy
import shutil
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from edgesim.base.errors import EdgesimError
from edgesim.learning.federation import make_federation
from edgesim.scenario import Runs, pictures, tables
from edgesim.streams import Streams

SCRIPT = "fedteddi_cifar10.py"


@pytest.fixture
def script(monkeypatch):
    folder = Path(__file__).parents[2] / "scenarios"
    monkeypatch.syspath_prepend(folder)
    return runpy.run_path(str(folder / SCRIPT))


def save(path, images, labels, test_labels=None):
    test = np.arange(10) if test_labels is None else np.array(test_labels)
    test_images = np.resize(images, (len(test), *images.shape[1:]))
    np.savez(path, train_images=images, train_labels=labels, test_images=test_images, test_labels=test)


@pytest.fixture
def cifar(tmp_path):
    """Noise in the shape of CIFAR-10, enough of each class for the paper's devices."""
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(10), 750)
    save(tmp_path / "cifar10.npz", random.integers(0, 256, (7500, 32, 32, 3), dtype=np.uint8), labels)
    return "cifar10.npz"


def test_settings_differ_from_the_first_one_in_what_their_names_say(script):
    runs = Runs()
    config = script["base"]("digits", 300, 1.2)
    script["add_settings"](runs, config, list(script["SETTINGS"]), ["random", "fedteddi"], 150)
    of = {(run.knobs["setting"], run.knobs["policy"]): run.config for run in runs.planned}
    assert len(of) == 2 * 8
    assert {run.seed for run in runs.planned} == {1000}
    # FedTeddi's lambda falls over 300 rounds, of which 150 are made.
    assert {(config.rounds, config.stop_at_s) for config in of.values()} == {(300, 180.0)}
    kept = {name for (name, _), config in of.items() if config.learning.persist_momentum}
    assert kept == {"tau5-kept", "tau10-kept", "tau24-kept"}
    assert {name: config.learning.steps for (name, _), config in of.items()} == {
        name: int(name.partition("-")[0].removeprefix("tau")) for name in script["SETTINGS"]
    }
    rates = {name: of[name, "random"].learning.lr for name in script["SETTINGS"]}
    assert rates == dict.fromkeys(rates, 0.1) | {"tau5-lr0.03": 0.03, "tau5-lr0.09": 0.09}


def test_the_comparison_is_of_the_papers_setting_and_ends_at_the_mark_for_good(script):
    runs = Runs(seeds=2)
    config = script["base"]("cifar10.npz", 300, 1.2)
    config["data"]["dataset"] = "digits"
    script["add_comparison"](runs, config, "tau10", script["names"](script["POLICIES"]), 0.75)
    assert [run.seed for run in runs.planned] == [0] * 8 + [1] * 8
    assert len({run.knobs["policy"] for run in runs.planned}) == 8
    for run in runs.planned:
        learning = run.config.learning
        assert (learning.model, learning.lr, learning.steps, learning.batch_size) == ("fedteddi-cnn", 0.01, 10, 32)
        assert (run.config.stop_at_accuracy, run.config.stop_after_tests, run.config.evaluation.every) == (0.75, 5, 5)
        assert (run.config.round.tmax_s, run.config.data.samples_per_device) == (1.2, 750)
        assert run.config.round.payload_bits == "model"


def run_of(setting, policy, accuracies, every=5):
    """A run whose start model has 0.1, tested every five rounds."""
    count = len(accuracies)
    rows = {"round": every * np.arange(count + 1), "accuracy": [0.1, *accuracies], "status": "finished"}
    knobs = {"setting": setting, "policy": policy}
    rows = pd.DataFrame(rows).assign(t_s=lambda of: 1.2 * of["round"], clients=3.0, newcomers=1.0, energy_j=0.0)
    return tables.KeptRun(Path(f"{setting}-{policy}"), knobs, 1000, rows)


def test_the_rule_takes_the_first_setting_in_which_random_is_at_75_percent(script):
    chosen, names = script["chosen"], list(script["SETTINGS"])
    below, there, short = [0.70] * 60, [0.6, 0.75, 0.6], [0.6] * 30
    # FedTeddi decides nothing.
    assert chosen([run_of(names[0], "fedteddi", there)]) is None
    assert chosen([run_of(names[0], "random", below), run_of(names[0], "fedteddi", there)]) is None
    assert chosen([run_of(names[0], "random", there)]) == ("tau5", 0.75)
    # What comes later counts only once all before went to round 300.
    later = [run_of(name, "random", there) for name in names[1:3]]
    assert chosen([run_of(names[0], "random", short), *later]) is None
    assert chosen([run_of(names[0], "random", below), *later]) == ("tau5-kept", 0.75)
    # Where it never is, the first setting stays and the mark falls.
    runs = [run_of(name, "random", [0.5] * 59 + [0.749]) for name in names[1:]]
    assert chosen([run_of(names[0], "random", []), *runs]) is None
    for best, mark in ((0.689, 0.68), (0.58, 0.58)):
        assert chosen([run_of(names[0], "random", [0.5] * 59 + [best]), *runs]) == ("tau5", mark)


def test_the_mark_is_that_of_the_rule_once_it_has_decided_and_never_above_early_ends(script):
    default_mark = script["default_mark"]
    runs = [run_of(name, "random", [0.5] * 59 + [0.689]) for name in script["SETTINGS"]]
    early = [run_of("tau5", "fed-cbs", [0.5] * 20 + [0.7, 0.66, 0.68, 0.7, 0.7]), run_of("tau5", "random", [0.6] * 60)]
    rows = pd.concat(
        run.rows.assign(study=study, run=run.folder.name, seed=1000, commit="0", test_images=100, **run.knobs)
        for study, of in (("settings", runs), ("comparison", early))
        for run in of
    )
    assert default_mark(rows) == 0.68
    assert default_mark(rows[rows["run"] != "tau24-random"]) == 0.66
    assert default_mark(rows[rows["run"] == "tau24-random"]) == 0.75
    assert default_mark(rows[:0]) == 0.75


def test_only_seeds_of_which_all_policies_are_finished_are_compared(script, capsys):
    whole = [*product(["x"], [1.2], [0], "abc"), *product(["x"], [0.8], [0, 1], "ab"), ("y", 1.2, 0, "a")]
    # Of seed 2 only the policy that ends early is there.
    runs = []
    for setting, tmax_s, seed, policy in [*whole, *product(["x"], [1.2], [1], "abc"), ("x", 0.8, 2, "b")]:
        status = "resumable" if (tmax_s, seed, policy) == (1.2, 1, "c") else "finished"
        knobs = {"setting": setting, "policy": policy, "tmax_s": tmax_s}
        runs.append(tables.KeptRun(Path("run"), knobs, seed, pd.DataFrame({"status": [status]})))
    found = [(*run.knobs.values(), run.seed) for run in script["whole_seeds"](runs)]
    assert found == [(setting, policy, tmax_s, seed) for setting, tmax_s, seed, policy in whole]
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == [
        "x, 0.8 s, seed 2",
        "x, 1.2 s, seed 1",
    ]


TESTS = Path(__file__).parents[2] / "docs/papers/fedteddi-cifar10.parquet"


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        (lambda rows: rows.drop(columns="setting"), [], "t.parquet: settings: a run has no 'setting'"),
        (lambda rows: rows.drop(columns="tmax_s"), [], "t.parquet: comparison: a run has no 'tmax_s'"),
        (lambda rows: rows.assign(policy=None), [], "t.parquet: settings: a run has no 'policy'"),
        (lambda rows: rows.assign(study=None), [], "t.parquet: row 0: study: expected a value (got None)"),
        (lambda rows: rows[rows["round"] > 0], [], "t.parquet: settings/tau5-random-s1000: expected rows by round"),
        (
            lambda rows: rows.assign(test_images=rows["test_images"].where(rows["seed"] != 1, 360)),
            [],
            "t.parquet: it, or the folder of --out, has tests on 360 pictures; expected one data set, here with 10000",
        ),
        (lambda rows: rows, ["--mark", "0.68"], "mark 0.68: comparison/tau5-best-norm-tmax1.2-s0 ended early"),
        (lambda rows: rows, ["--mark", "0.3"], "target 0.3 must lie above the start accuracy"),
    ],
)
def test_tests_that_cannot_be_reported_are_one_line_and_nothing_is_written(tmp_path, scenario, change, options, said):
    change(pd.read_parquet(TESTS)).to_parquet(tmp_path / "t.parquet")
    done = scenario(SCRIPT, "--tests", "t.parquet", "--out", "out", *options)
    assert done.exit_code == 2, done.output
    (error,) = done.stderr.splitlines()
    assert said in error
    assert not (tmp_path / "out").exists()


def reported(tmp_path, scenario, rows, *options):
    """Policies and pairs of seeds in the table of savings that a report of some rows writes, and what it prints."""
    rows.to_parquet(tmp_path / "t.parquet")
    done = scenario(SCRIPT, "--tests", "t.parquet", "--out", "out", *options)
    assert done.exit_code == 0, done.output
    savings = pd.read_csv(tmp_path / "out/savings-rounds_to_target.csv")
    return savings.set_index("policy")["pairs"].to_dict(), done.output


def test_reports_of_a_part_of_the_study(tmp_path, scenario, figures_as_text):
    rows = pd.read_parquet(TESTS)
    compared = rows[rows["study"] == "comparison"]
    others = set(compared["policy"]) - {"fedteddi"}
    # Without settings the mark is at most what the runs that ended early were at.
    pairs, said = reported(tmp_path, scenario, compared)
    assert pairs == dict.fromkeys(others, 2)
    assert "Rounds to the mark of 67 %" in said
    two = compared[compared["policy"].isin(["random", "fedteddi"])]
    pairs, said = reported(tmp_path, scenario, two, "--mark", "0.67")
    assert pairs == {"random": 2}
    assert "of 67 %: random, saved by FedTeddi" in said
    # The seed of an unfinished run is left out, also where the run has no test yet.
    run = (compared["policy"] == "random") & (compared["seed"] == 1)
    for last in (0, 100):
        some = compared[~run | (compared["round"] <= last)]
        pairs, said = reported(tmp_path, scenario, some.assign(status=some["status"].mask(run, "resumable")))
        assert pairs == dict.fromkeys(others, 1)
        assert "tau5, 1.2 s, seed 1: left out of savings" in said


def test_other_pictures_than_those_of_the_file_are_refused_before_any_run(tmp_path, scenario):
    pd.read_parquet(TESTS).to_parquet(tmp_path / "t.parquet")
    done = scenario(SCRIPT, "--step", "settings", "--dataset", "digits", "--tests", "t.parquet", "--out", "out")
    assert done.exit_code == 2, done.output
    assert "t.parquet: it, or the folder of --out, has tests on 10000 pictures; expected one data set" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_file_of_tests_is_refused_before_any_run(tmp_path, scenario):
    (tmp_path / "no.parquet").write_text("no table")
    (tmp_path / "folder.parquet").mkdir()
    for tests, said in (
        ("no.parquet", "no.parquet: not a readable Parquet file"),
        ("folder.parquet", "folder.parquet: a folder; expected a table of tests"),
        ("tests.csv", "--tests tests.csv: expected a name that ends in .parquet"),
    ):
        done = scenario(SCRIPT, "--step", "settings", "--dataset", "digits", "--tests", tests, "--out", "out")
        assert done.exit_code == 2, done.output
        (error,) = done.stderr.splitlines()
        assert said in error
        assert not (tmp_path / "out").exists()


def test_pictures_of_another_shape_are_one_line(tmp_path, scenario):
    images = np.zeros((7500, 28, 28, 3), dtype=np.uint8)
    save(tmp_path / "cifar10.npz", images, np.repeat(np.arange(10), 750))
    for step in ("comparison", "settings", "gathered"):
        done = scenario(SCRIPT, "--step", step, "--seeds", "1", "--out", "out")
        assert done.exit_code == 2, done.output
        (error,) = done.stderr.splitlines()
        assert "cifar10.npz: its pictures are 28x28 with 3 channels; expected those of CIFAR-10, 32x32" in error
        assert not (tmp_path / "out").exists()


def test_pictures_without_the_old_classes_are_one_line(tmp_path, scenario, cifar):
    arrays = dict(np.load(tmp_path / cifar))
    save(tmp_path / cifar, arrays["train_images"], arrays["train_labels"], [6, 7, 8, 9])
    for step, code, expected in (
        ("comparison", 1, "cifar10: no test image is of the old classes 0, 1, 2, 3, 4, 5"),
        ("gathered", 2, "cifar10: no test image is of class 0; expected pictures of all 10 classes"),
    ):
        done = scenario(SCRIPT, "--step", step, "--seeds", "1", "--jobs", "1", "--out", "out")
        assert done.exit_code == code, done.output
        # On a busy machine a line tells how far the study is.
        (error,) = [line for line in done.stderr.splitlines() if " runs finished" not in line]
        assert expected in error
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_report_needs_the_file_of_tests_alone(tmp_path, scenario, figures_as_text):
    """Settings are simulated in two goes, and a later one adds to the file of which the folders are gone."""
    quick = ["--dataset", "digits", "--tmax", "0.8", "--rounds", "20", "--jobs", "1", "--tests", "kept.parquet"]
    settings = [*quick, "--step", "settings", "--settings", "tau5,tau10"]
    done = scenario(SCRIPT, *settings, "--last-round", "10", "--out", "first")
    assert done.exit_code == 0, done.output
    longer = scenario(SCRIPT, *settings, "--policies", "random", "--last-round", "20", "--out", "first")
    assert longer.exit_code == 0, longer.output
    kept = pd.read_parquet(tmp_path / "kept.parquet")
    assert kept.groupby("run")["round"].max().to_dict() == {
        "tau5-random-s1000": 20, "tau10-random-s1000": 20, "tau5-fedteddi-s1000": 10, "tau10-fedteddi-s1000": 10,
    }  # fmt: skip
    shutil.rmtree(tmp_path / "first")
    compared = scenario(SCRIPT, "--quick", "--jobs", "1", "--tests", "kept.parquet", "--out", "second")
    assert compared.exit_code == 0, compared.output
    again = scenario(SCRIPT, "--tests", "kept.parquet", "--out", "third")
    assert again.exit_code == 0, again.output
    for name in ("settings.csv", "comparison.csv", "savings-rounds_to_target.csv", "plots/comparison_scheduled.png"):
        assert (tmp_path / "third" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()
    assert "by the rule: still open" in again.output
    # Beside folders of runs that the file lacks, a report reads it and leaves it as it is.
    kept.to_parquet(tmp_path / "older.parquet")
    older = (tmp_path / "older.parquet").read_bytes()
    beside = scenario(SCRIPT, "--tests", "older.parquet", "--out", "second")
    assert beside.exit_code == 0, beside.output
    assert (tmp_path / "second/comparison.csv").read_bytes() == (tmp_path / "third/comparison.csv").read_bytes()
    assert (tmp_path / "older.parquet").read_bytes() == older


def psnr_db(images, copies):
    return 10 * np.log10(255**2 / np.mean((images.astype(float) - copies) ** 2))


def test_copies_are_what_pillow_makes_and_moved_blocks_lose_again(tmp_path):
    """Smooth coloured pictures; on the same grid a second compression loses next to nothing."""
    random = np.random.default_rng(0)
    smooth = random.uniform(0, 255, (10, 4, 4, 3)).repeat(8, 1).repeat(8, 2)
    smooth += np.linspace(-40, 40, 32)[:, None]
    images = smooth.clip(0, 255).astype(np.uint8)
    save(tmp_path / "plain.npz", images, np.arange(10))
    for source, name, shift in (("plain", "once", 0), ("once", "same", 0), ("once", "moved", 4)):
        pictures.compress(str(tmp_path / f"{source}.npz"), tmp_path, tmp_path / f"{name}.npz", 75, shift)
    once, same, moved = (np.load(tmp_path / f"{name}.npz")["train_images"] for name in ("once", "same", "moved"))
    file = io.BytesIO()
    Image.fromarray(images[3]).save(file, "JPEG", quality=75)
    assert (once[3] == np.asarray(Image.open(file))).all()
    # Copies that lay elsewhere would have next to nothing of the picture.
    assert psnr_db(images, once) - 3 < psnr_db(once, moved) < psnr_db(once, same) - 3
    assert psnr_db(once, np.roll(once, 4, (1, 2))) < psnr_db(images, once) - 10
    assert np.load(tmp_path / "moved.npz")["train_labels"].tolist() == list(range(10))


def test_grey_pictures_stay_grey_and_floats_are_one_line(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (10, 28, 28), dtype=np.uint8)
    save(tmp_path / "grey.npz", images, np.arange(10))
    pictures.compress(str(tmp_path / "grey.npz"), tmp_path, tmp_path / "copy.npz", 75)
    assert np.load(tmp_path / "copy.npz")["test_images"].shape == (10, 28, 28, 1)
    save(tmp_path / "floats.npz", images.astype(np.float32), np.arange(10))
    with pytest.raises(EdgesimError, match=r"floats.npz: pictures are float32; expected uint8"):
        pictures.compress(str(tmp_path / "floats.npz"), tmp_path, tmp_path / "copy2.npz", 75)
    assert not (tmp_path / "copy2.npz").exists()


def test_gathered_pictures_are_those_of_all_devices_as_often_as_they_hold_them(tmp_path, script):
    runs = Runs()
    runs.add(script["base"]("digits", 300, 1.2), seeds=[1000])
    config = runs.planned[0].config
    pictures.gather(config, tmp_path / "held.npz")
    federation, held = make_federation(config, Streams(1000)), np.load(tmp_path / "held.npz")
    counts = np.bincount(held["train_labels"], minlength=10)
    # Twelve of 30 devices have half of their 60 pictures from classes 6 to 9 since the frame began.
    assert (counts[6:].sum(), counts.sum()) == (12 * 30, 30 * 60)
    assert counts.tolist() == federation.frames[-1].class_counts.sum(0).tolist()
    own = federation.frames[-1].samples_of(7)
    assert (held["train_images"][7 * 60 : 8 * 60, ..., 0] == federation.dataset.images[0][own, 0]).all()
    assert (held["test_images"][..., 0] == federation.dataset.images[1][:, 0]).all()
    for lacking, told in (
        ({"dataset": "none"}, r"data\.dataset: 'none' has no pictures"),
        (
            {"partition": "iid", "samples_per_device": 1},
            r"digits: no device holds class \d; expected pictures of all 10 classes",
        ),
    ):
        data = config.data.model_copy(update=lacking)
        few = config.model_copy(update={"data": data, "devices": config.devices.model_copy(update={"count": 1})})
        with pytest.raises(EdgesimError, match=told):
            pictures.gather(few, tmp_path / "none.npz")
    assert not (tmp_path / "none.npz").exists()


def test_gathered_pictures_in_colour_are_those_of_the_file(tmp_path, script, cifar):
    runs = Runs(folder=tmp_path)
    runs.add(script["base"](str(tmp_path / cifar), 300, 1.2), seeds=[0])
    pictures.gather(runs.planned[0].config, tmp_path / "held.npz")
    own = make_federation(runs.planned[0].config, Streams(0)).frames[-1].samples_of(0)
    held, given = (np.load(tmp_path / name)["train_images"] for name in ("held.npz", cifar))
    assert (held[:750] == given[own]).all()


@pytest.mark.slow
def test_a_model_is_trained_centrally_on_what_the_devices_hold(tmp_path, scenario):
    planned = ["--step", "gathered", "--dataset", "digits", "--epochs", "2", "--jobs", "1", "--out", "out"]
    done = scenario(SCRIPT, *planned)
    assert done.exit_code == 0, done.output
    kept = pd.read_parquet(tmp_path / "out/tests.parquet")
    assert kept[["study", "pictures", "round"]].to_numpy().tolist() == [
        ["gathered", "gathered", at] for at in (0, 1, 2)
    ]
    again = scenario(SCRIPT, *planned)
    assert again.exit_code == 0, again.output
    assert "1 of 1 runs reused" in again.output
