"""The command line, as typed: what it prints, and that bad input is one line without a traceback."""

import os
import re
import runpy
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from typed_commands import edgesim_lines, refused

from edgesim.folder.records import read_config, read_table

CONFIG = """
seed = 1
rounds = 3
[round]
payload_bits = 17881664.0
tmax_s = 0.8
[data]
partition = "fedteddi"
[learning]
training = "none"
pretrain = true
"""


@pytest.fixture
def config(tmp_path, monkeypatch, figures_as_text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run.toml").write_text(CONFIG)
    images, labels = np.zeros((40, 3, 8, 8), dtype=np.uint8), np.arange(40) % 10
    arrays = {"train_images": images, "train_labels": labels, "test_images": images, "test_labels": labels}
    np.savez(tmp_path / "channels_first.npz", **arrays)
    cell = Path(__file__).parents[1] / "channels" / "fedteddi-macro.toml"
    (tmp_path / "noiseless.toml").write_text(cell.read_text().replace("-174.0", "-4000.0"))
    return tmp_path / "run.toml"


def test_run_show_and_plot_work_as_typed(config, tmp_path):
    typed = "run", "run.toml", "--set", "selection.policy=best-channel"
    status, output = edgesim_lines(*typed)
    assert status == 0
    assert "best-channel" in output
    assert read_config(tmp_path / "runs/run")["selection"]["policy"] == "best-channel"
    assert "reused" in edgesim_lines(*typed)[1]
    assert "finished before, run again from the start" in edgesim_lines(*typed, "--fresh")[1]
    status, output = edgesim_lines("show", "runs/run")
    assert status == 0
    assert "finished" in output
    assert edgesim_lines("plot", "runs/run", "--round", "2")[0] == 0
    assert (tmp_path / "runs/run/plots/gantt.png").exists()
    assert (tmp_path / "runs/run/plots/gantt.svg").exists()
    assert refused("plot", "runs/run", "./runs/run").endswith(
        "run: is given more than once, and would count as several seeds; give it once"
    )
    line = refused(*typed, "--set", "seed=2", "--out", "runs/run")
    assert "holds a run of another config (seed differs)" in line


def test_the_class_mix_over_time_is_drawn_before_any_run(config, tmp_path):
    status, output = edgesim_lines("plot", "run.toml", "--drift")
    assert (status, output.split()) == (0, ["runs/run-drift/drift.png", "runs/run-drift/drift.svg"])
    assert (tmp_path / "runs/run-drift/drift.png").exists()
    assert not (tmp_path / "runs/run").exists()
    status, output = edgesim_lines("plot", "run.toml", "--drift", "--device", "3", "--out", "here")
    assert (status, output.split()[0]) == (0, "here/drift-device-3.png")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("watch x --port 99999", "invalid value for '--port': Input should be less than or equal to 65535"),
        ("tune run.toml", "missing option '--knob'"),
        ("fork x --at-round 1 --out y", "missing option '--set'"),
        ("compare", "missing argument 'RUN_OR_STUDY...'"),
        ("show a b", "got unexpected extra argument(s) (b)"),
        ("show --outt", "no such option: --outt"),
        ("study run x --executor slurm", "invalid value for '--executor': 'slurm' is not one of"),
        ("study rn", "no such command 'rn'. Did you mean 'run'?"),
        ("trace show", "missing argument 'FILE'"),
    ],
)
def test_what_is_wrong_with_the_words_of_a_command_is_one_line_with_where_to_look(config, words, said):
    # Versions of click differ in how they write an option's name.
    line = refused(*words.split()).replace("option '--outt'", "option: --outt")
    assert line.startswith(f"error: {said}")
    assert re.search(r"[;?] `.* --help` shows what it takes$", line)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("run run.toml --rounds 5", "no such option: --rounds; --set rounds=VALUE sets it in the config"),
        ("run run.toml --count 5", "--set devices.count=VALUE or --set round.count=VALUE sets it in the config"),
        ("study run run.toml --seeds 2 --seeds 3", "error: --seeds: is given twice; give it once"),
        ("run run.toml --out a --out=b", "error: --out: is given twice; give it once"),
        ("init --list --like fedteddi", "error: --list: lists all settings; leave --like out"),
        ("run run.toml --outt 5", "no such option: --outt, did you mean '--out'?"),
        ("run nowhere.toml", "nowhere.toml: no such file"),
        ("run bad.toml --set seed=2 --set round.count=3", "error: bad.toml: round.tmax_s"),
        (f"run run.toml --out {'x' * 300}", "File name too long"),
        ("show nowhere", "nowhere: no such folder"),
        ("plot nowhere", "nowhere"),
        ("plot run.toml --drift --device 30", "device: expected 0 to 29 (got 30)"),
        ("plot run.toml run.toml --drift", "--drift: expected one config (got 2)"),
        ("plot runs/run --device 3", "--device: is for --drift"),
        ("run run.toml --set round.tmax_s=-1", "set round.tmax_s=-1: round.tmax_s: input should be greater"),
        ("run run.toml --set round=3", "error: --set round=3: round: expected a table of keys"),
        ("run run.toml --set seed.x=3", "error: --set seed.x=3: seed.x: 'seed' is a value, not a section"),
        (
            "run run.toml --set seed=2 --set round.admission=count",
            "error: --set round.admission=count: round.admission = 'count' needs round.count: ",
        ),
        ("run run.toml --set round.count=5", "set round.count=5: round.count = 5 needs round.admission = 'count', not"),
        (
            "run run.toml --set mobility.model=waypoint --set mobility.speed_mps=[0,1]",
            "set mobility.speed_mps=[0,1]: model 'waypoint': mobility.speed_mps: expected a least speed above 0",
        ),
        (
            "run run.toml --set selection.policy=fedcs --set selection.x=3",
            "error: --set selection.x=3: policy 'fedcs': unknown key 'selection.x'",
        ),
    ],
)
def test_bad_input_is_one_line_that_names_the_option_the_file_or_what_was_set(config, words, said):
    Path("bad.toml").write_text(CONFIG.replace("tmax_s = 0.8", "tmax_s = -1"))
    assert said in refused(*words.split())


def test_a_command_that_needs_words_and_has_none_shows_its_help(config):
    for words in ([], ["study"], ["trace"]):
        status, output = edgesim_lines(*words)
        assert status == 2
        assert "Commands" in output
        assert "error" not in output


@pytest.mark.parametrize("module", ["edgesim", "edgesim.commands.entry"])
def test_the_command_runs_as_a_module(module, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["edgesim", "--version"])
    # As in a new process, into which nothing has loaded the module yet.
    monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(SystemExit) as end:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    assert not end.value.code
    assert capsys.readouterr().out == f"edgesim {metadata.version('edgesim')}\n"


def test_list_names_policies_channels_and_scenarios(config):
    status, output = edgesim_lines("list")
    assert status == 0
    for name in ("fedteddi", "fedprox", "dirichlet-labels", "fedteddi-macro", "delay_knowledge", "small-cnn", "digits"):
        assert name in output


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("round.tmacks_s=1", "'round.tmacks_s' ... did you mean 'round.tmax_s'"),
        ("selection.policy=fedtedi", "unknown policy 'fedtedi' ... did you mean 'fedteddi'"),
        ("radio.channel=marsian", "no file 'marsian' ... fedteddi-macro"),
        ("data.dataset=cifar10", "cifar-10-batches-py ... data"),
        ("data.dataset=nowhere.npz", "nowhere.npz"),
        ("data.dataset=mnist", "data/MNIST/raw/train-images-idx3-ubyte ... data.download = true"),
        ("data.samples_per_device=4000", "class ... 4000"),
        ("stop_at_s=0.1", "stop_at_s (0.1) ... tmax_s (0.8)"),
        ("radio.channel=noiseless.toml", "noiseless.toml ... noise_dbm_per_hz ... greater than or equal to -250"),
        ("availability.probability=0.5", "availability.probability ... option of model 'bernoulli', not of 'always'"),
        ("radio.channel=umi", "did you mean 'umi-street-canyon'"),
        ("data.dataset=channels_first.npz", "channels_first.npz ... channels first ... [n, H, W, C]"),
    ],
)
def test_bad_settings_are_one_line_that_names_the_key_and_the_remedy(config, tmp_path, setting, said):
    line = refused("run", "run.toml", "--set", setting)
    assert [word for word in said.split(" ... ") if word not in line] == []
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("settings", "ending", "rounds"),
    [
        (["learning.lr=1e6", "learning.weight_decay=1e6"], "not finite (lr 1e+06); lower learning.lr", 0),
        # The server's first step makes the model so large that its next training overflows.
        (
            ["algorithm.name=fedavgm", "algorithm.lr=1e6", "learning.weight_decay=1e3"],
            "lower learning.lr or algorithm.lr; the finished rounds are kept",
            1,
        ),
    ],
    ids=["at once", "later"],
)
def test_a_run_that_diverges_keeps_its_rounds_and_names_what_to_lower(config, settings, ending, rounds):
    settings = ["learning.training=real", "learning.pretrain=false", *settings]
    status, output = edgesim_lines("run", "run.toml", "--out", "bad", *(w for one in settings for w in ("--set", one)))
    # A slow machine tells of its progress in lines before.
    line = output.splitlines()[-1]
    assert status == 2
    assert re.search(r"round \d", line)
    assert line.rstrip().endswith(ending)
    assert len(read_table("bad", "rounds")) >= rounds
    assert edgesim_lines("show", "bad")[0] == 0


def test_figures_of_runs_that_differ_in_more_than_their_labels_say_come_with_a_line(config, tmp_path):
    def run(out, *settings):
        edgesim_lines("run", "run.toml", "--out", out, *(word for one in settings for word in ("--set", one)))

    run("random", "learning.lr=0.1", "selection.policy=random")
    run("best-channel", "learning.lr=0.2", "selection.policy=best-channel")
    run("other", "seed=2", "selection.policy=random")
    for name, policy, count in (("one", "random", 5), ("two", "best-channel", 6)):
        world = f"devices.count={count}", f"devices.radius_m={20 * count}", f"radio.bandwidth_hz={count}e6"
        run(f"mixed/{name}", f"selection.policy={policy}", f"rounds={count}", *world)
    worlds = "the runs are of different worlds: they also differ in rounds, devices, radius_m, bandwidth_hz, which"
    for folders, note in (
        (["random", "best-channel"], "note: the runs also differ in lr, which no label says"),
        (["mixed"], f"note: {worlds}"),
    ):
        status, output = edgesim_lines("plot", *folders)
        assert status == 0
        assert note in " ".join(output.split())
    assert "also differ" not in edgesim_lines("plot", "random", "other")[1]
    # Beside the runs, not in one of them.
    assert (tmp_path / "comparison/delay_cdf.png").exists() or (tmp_path / "runs/comparison/delay_cdf.png").exists()
    assert not (tmp_path / "random/plots").exists()


@pytest.mark.slow
def test_a_library_that_is_missing_is_one_line_of_every_command(tmp_path):
    (tmp_path / "simpy").mkdir()
    (tmp_path / "simpy/__init__.py").write_text("raise ImportError('simpy is broken')")
    done = subprocess.run(
        [sys.executable, "-m", "edgesim", "list"],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (1, "error: simpy is broken; edgesim doctor says what is missing\n")
