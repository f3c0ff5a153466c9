"""What scenarios share: that they run, ``--quick``, errors in the words of their own options."""

import ast
import importlib
import math
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import pytest
import typer
from small_runs import TIMING
from typer.testing import CliRunner

import edgesim
import edgesim.scenario
from edgesim.base.errors import EdgesimError
from edgesim.config import RunConfig
from edgesim.config_file import parse
from edgesim.folder.records import read_run
from edgesim.mobility.models.direction import Direction
from edgesim.plots.style import save
from edgesim.scenario import Runs, start, work
from edgesim.scenario import scenario as framed
from edgesim.scenario.options import OPTIONS
from edgesim.simulation import composition as simulation
from edgesim.traces.models.table import TableModel

SCENARIOS = Path(__file__).parents[1] / "scenarios"
TEMPLATE = Path(edgesim.__file__).parent / "templates/scenario.py"

TYPED = "fedteddi.py"
"""The scenario that is started in a process of its own."""
OTHERWISE = {
    "amiri.py": ("--policies", "BC,BC-BN2", "--rounds", "4"),
    "delay_knowledge.py": ("--learn", "--policies", "fed-cbs", "--target", "0.6"),
    "feddance.py": ("--selectors", "random,feddance", "--trace", "sample-week,synthetic", "--skew", "rare"),
}
"""What is given beside ``--quick``: what makes less of the longest one, and what ``--quick`` alone does not try."""
QUICK = [(path.name, OTHERWISE.get(path.name, ())) for path in sorted(SCENARIOS.glob("*.py")) if path.name != TYPED]

LEARNT = {"accuracy_rounds", "accuracy_seconds", "final_accuracy", "training_loss", "fairness"}
FIGURES = dict.fromkeys(("async_vs_sync.py", "fading.py", "feddance.py", "selectors_on_radio.py"), LEARNT)
FIGURES |= {
    "adaptive_on_radio.py": LEARNT | {"heat_map-accuracy", "differences-policy", "differences-aggregation"},
    "afl.py": LEARNT | {"curves", "tradeoff", "throughput", "spread", "radar", "differences-method"},
    "privacy.py": LEARNT | {"noise", "differences-mechanism"},
    "availability_predictor.py": {"sensitivity", "over_time", "costs"},
    "codecs.py": LEARNT | {"cost_curves", "differences-codec"},
    "amiri.py": LEARNT,
    "compression.py": LEARNT | {"cost_curves", "winner_map", "differences-codec"},
    "fedpaq.py": LEARNT | {"loss_seconds", "differences-codec"},
    "cells.py": LEARNT | {"cell_map-one-cell", "cell_map-three-cells", "differences-aggregation"},
    "dpfl.py": LEARNT | {"participation_loss", "differences-algorithm", "difference_rounds-algorithm"},
    "fedteddi.py": LEARNT | {"differences-policy", "difference_rounds-policy", "difference_seconds-policy"},
    "fedteddi_cifar10.py": {"comparison_accuracy", "comparison_scheduled", "comparison_rounds_to_target"},
    "fedstg.py": LEARNT | {"figure_1", "differences-method"},
    "mobility.py": {"missed_deadlines", "differences-plan"},
    "handover.py": LEARNT | {"missed_deadlines", "differences-speed_mps", "differences-merge"},
    "learned_scheduler.py": LEARNT | {"learning_curve", "differences-policy"},
    "partitions.py": {"iid-s0", "fedteddi-s0", "dirichlet-alpha0.1-s0"},
    "radio_cost.py": LEARNT | {"cost_curves"},
    "tmax_bandwidth.py": {"heat_map-arrived", "heat_map-scheduled"},
    "trace_anatomy.py": {"trace_anatomy"},
    "ef_signsgd.py": set(),
}
"""Some of the figures that a scenario draws beside those of every study."""


def check_tables(tmp_path, script):
    tables = {path: pd.read_csv(path) for path in tmp_path.rglob("*.csv")}
    assert tables
    assert all(len(table) > 0 for table in tables.values())
    for path, table in tables.items():
        if path.name == "summary.csv":
            assert (table["seeds"] > 0).all()
            assert (table["arrived"] > 0).all()
    for run in tmp_path.rglob("run.json"):
        assert read_run(run.parent)["status"] == "finished"
    beside = tmp_path / "out/beside-the-paper.csv"
    with_paper = {"afl.py", "amiri.py", "feddance.py", "dpfl.py", "fedpaq.py", "fedstg.py", "kpfl_ablation.py"}
    assert beside.exists() == (script in with_paper)
    assert not beside.exists() or len(tables[beside]) == len(tables[tmp_path / "out/summary.csv"])


def test_a_scenario_runs_quickly_and_leaves_its_tables(tmp_path, scenario):
    """One that takes a second; all of them are slow."""
    done = scenario("tmax_bandwidth.py", "--quick", "--out", "out")
    assert done.exit_code == 0, done.output
    check_tables(tmp_path, "tmax_bandwidth.py")


def check_figures(folder, names):
    figures = [figure for figure in folder.rglob("*.png") if figure.stem in names]
    assert {figure.stem for figure in figures} == names
    assert all(figure.stat().st_size > 10_000 for figure in figures)
    assert all(figure.with_suffix(".svg").exists() for figure in figures)


@pytest.mark.slow
def test_a_scenario_as_typed_leaves_tables_and_figures(tmp_path):
    command = [sys.executable, str(SCENARIOS / TYPED), "--quick", "--policies", "random,fedteddi", "--out", "out"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    check_tables(tmp_path, TYPED)
    names = {figure.stem for figure in tmp_path.rglob("*.png")}
    assert names >= FIGURES[TYPED]
    check_figures(tmp_path, names)


@pytest.fixture(scope="module")
def saved():
    """Names of figures that some scenario of this process has saved."""
    return set()


# Users would see this warning, too.
@pytest.mark.filterwarnings("error::pandas.errors.PerformanceWarning")
@pytest.mark.slow
@pytest.mark.parametrize(("script", "arguments"), QUICK)
def test_every_scenario_leaves_tables_and_figures(tmp_path, drawing_scenario, monkeypatch, saved, script, arguments):
    """Each draws all its figures; of one that many scenarios draw only the first is laid out and saved, which takes
    half the time of a scenario.
    """
    drawn, before = set(), set(saved)

    def save_new(figure, stem, formats=("png", "svg")):
        drawn.add(stem.name)
        if stem.name in before:
            empty = [stem.with_name(f"{stem.name}.{kind}") for kind in formats]
            stem.parent.mkdir(parents=True, exist_ok=True)
            for file in empty:
                file.touch()
            return empty
        saved.add(stem.name)
        return save(figure, stem, formats)

    for place in ("edgesim.plots.album", "edgesim.plots.style", "edgesim.scenario.figures"):
        monkeypatch.setattr(f"{place}.save", save_new)
    done = drawing_scenario(script, "--quick", *arguments, "--out", "out")
    assert done.exit_code == 0, done.output
    check_tables(tmp_path, script)
    assert drawn >= FIGURES.get(script, {"gantt", "cell_map"})
    check_figures(tmp_path, drawn - before)
    if script == "radio_cost.py":
        check_recommendation(tmp_path / "out")
        assert "Which algorithm to take" in done.stdout


def check_recommendation(out):
    pairs, standings, told = (pd.read_csv(out / f"{name}.csv") for name in ("pairs", "standings", "recommendation"))
    places = [(band, cost) for band in (45e3, 720e3) for cost in ("seconds", "bits", "joules")]
    assert list(zip(told["bandwidth_hz"], told["cost"], strict=True)) == places
    # At each place three algorithms stand, and each is compared with the two others.
    assert (len(standings), len(pairs)) == (len(places) * 3, len(places) * 3)
    assert (pairs["pairs"] == 2).all()


LAWS = "--quick --participation static,programmed --algorithms fedavg --clients"


@pytest.mark.parametrize(
    ("script", "arguments", "said"),
    [
        (
            "dpfl.py",
            f"{LAWS} 2 --matrix nowhere.csv",
            "availability.file: no file 'nowhere.csv'; give a path (here availability.file is --matrix)",
        ),
        ("dpfl.py", f"{LAWS} 2 --matrix bad.csv", "bad.csv: line 3: column '2': expected 0 or 1 (got 7)"),
        ("dpfl.py", f"{LAWS} 2,3 --matrix good.csv", "good.csv: is a trace of 2 devices, but devices.count is 3"),
        ("dpfl.py", f"{LAWS} 2 --matrix good.csv --rounds 7", "good.csv: has columns for 6 rounds, but the run"),
        ("dpfl.py", f"{LAWS} 0 --matrix good.csv", "(here devices.count is --clients)"),
        ("kpfl_ablation.py", "--participation programmed", "--participation: 'programmed' is for dpfl.py alone"),
        ("kpfl_ablation.py", "--participation solar", "--participation: unknown 'solar'; known: static, random,"),
        ("kpfl_ablation.py", "--bases mifa", "--bases: unknown 'mifa'; known: fedavg, fedprox, scaffold, moon,"),
        ("kpfl_ablation.py", "--settings papers", "--settings: unknown 'papers'; known: default, paper"),
        ("kpfl_ablation.py", "--tune --settings paper", "--tune compares exponents beside default options"),
        ("dpfl.py", "--algorithms fedavgg", "--algorithms: unknown 'fedavgg'; known: fedavg, fedprox,"),
        ("dpfl.py", "--settings paper", "--settings is for --kpfl; add it or leave out --settings"),
        (
            "dpfl.py",
            "--set algorithm.name=fedavg --algorithms fedavg,scaffold",
            "set algorithm.name=fedavg: algorithm.name distinguishes algorithm fedavg, scaffold; leave one of",
        ),
        (
            "feddance_ablation.py",
            "--set selection.accuracy_window=4",
            "selection.accuracy_window distinguishes variant beta-3, beta-10; leave one of them out",
        ),
        ("feddance.py", "--skew odd", "--skew: unknown 'odd'; known: same, preprint, available, rare"),
        ("feddance.py", "--dataset speech", "not a data set; give --dataset FOLDER --setting speech"),
        ("feddance.py", "--dataset tiny-imagenet", "give --dataset FOLDER --setting tiny-imagenet"),
        ("feddance.py", "--selectors fedance", "did you mean 'feddance'"),
        ("feddance_ablation.py", "--windows 1", "accuracy_window"),
        ("availability_predictor.py", "--minutes 10", "do not fit into a log of 6"),
        ("availability_predictor.py", "--predictors oracle", "unknown 'oracle'; known: arima"),
        ("fedstg.py", "--mode log", "--mode: expected paper or code (got 'log')"),
        ("fedstg.py", "--methods fedstg,fedova", "--methods: unknown 'fedova'; known: fedstg, fedavg"),
        ("fedstg.py", "--pools own", "drift.pool: input should be 'shared' or 'iid_partition'"),
        (
            "fedteddi_cifar10.py",
            "--step jpeg",
            "--step: unknown 'jpeg'; known: settings, pictures, gathered, comparison, report",
        ),
        ("fedteddi_cifar10.py", "--step settings --dataset digits --settings tau7", "--settings: unknown 'tau7'"),
        ("fedteddi_cifar10.py", "--step settings --dataset c.npz", "c.npz: no such file"),
        (
            "fedteddi_cifar10.py",
            "--step settings --dataset grey.npz",
            "its pictures are 28x28 with 1 channels",
        ),
        ("fedteddi_cifar10.py", "--step report --tests tests.parquet", "tests.parquet: no such file"),
    ],
)
def test_what_a_scenario_is_given_wrong_is_told_in_a_line_before_any_run(tmp_path, scenario, script, arguments, said):
    (tmp_path / "good.csv").write_text("device,1,2,3,4,5,6\n0,1,1,1,1,1,1\n1,1,0,1,0,1,0\n")
    (tmp_path / "bad.csv").write_text("device,1,2,3,4,5,6\n0,1,1,1,1,1,1\n1,1,7,1,0,1,0\n")
    labels, grey = np.arange(10), np.zeros((10, 28, 28), dtype=np.uint8)
    arrays = {"train_images": grey, "train_labels": labels, "test_images": grey, "test_labels": labels}
    np.savez(tmp_path / "grey.npz", **arrays)
    done = scenario(script, *arguments.split(), "--out", "out")
    assert done.exit_code == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.fixture
def planned(scenario, monkeypatch):
    """The bases of a scenario, and the studies that it plans, none of which is run."""

    def plan(script, *arguments):
        bases, studies = [], []
        grid = edgesim.scenario.frame.grid

        def stop(study, *_, **__):
            studies.append(study)
            raise EdgesimError("planned")

        monkeypatch.setattr("edgesim.scenario.frame.grid", lambda base, *rest: bases.append(base) or grid(base, *rest))
        monkeypatch.setattr("edgesim.studies.running.run_study", stop)
        monkeypatch.setattr("edgesim.tuning.trial.grow", stop)
        said = scenario(script, *arguments)
        assert "planned" in said.output, said.output
        return bases, studies[0]

    return plan


@pytest.mark.parametrize(
    ("arguments", "seeds", "reference"),
    [
        ("", {0.8: 12, 1.0: 5, 1.2: 5}, "fedteddi"),
        ("--seeds 3", {0.8: 3, 1.0: 3, 1.2: 3}, "fedteddi"),
        ("--policies random,fed-cbs --tmax 1.0", {1.0: 12}, "random"),
        ("--quick", {0.8: 2}, "fedteddi"),
    ],
)
def test_the_demo_has_twelve_seeds_at_its_first_deadline_and_compares_with_fedteddi(
    planned, arguments, seeds, reference
):
    study = planned("fedteddi.py", *arguments.split())[1]
    runs = Counter((run.knobs["policy"], run.knobs["tmax_s"]) for run in study.runs)
    assert ({tmax_s: count for (_, tmax_s), count in runs.items()}, study.reference) == (seeds, reference)


def of_kpfl(runs):
    """Options of KPFL by base, law and server."""
    names = ("algorithm", "participation", "server")
    kpfl = [run for run in runs if run.config.algorithm.kpfl is not None]
    return {tuple(run.knobs[name] for name in names): run.config.algorithm.kpfl for run in kpfl}


@pytest.mark.parametrize("settings", ["default", "paper"])
def test_ablations_of_kpfl_have_its_papers_exponents_where_it_has_any(planned, settings):
    """Under Markov participation .16 and .06 around MOON; FedCL is not in the paper, nor is arrival."""
    given = "--ages", "--bases", "moon,fedcl", "--participation", "markov,arrival", "--settings", settings
    found = of_kpfl(planned("kpfl_ablation.py", "--quick", *given)[1].runs)
    exponents = {key: (of["age_active"], of["age_idle"]) for key, of in found.items()}
    assert exponents["moon", "markov", "kpfl-ages-paper"] == (0.16, 0.06)
    assert [key for key in found if key[2] == "kpfl-ages-paper"] == [("moon", "markov", "kpfl-ages-paper")]
    assert exponents["moon", "markov", "kpfl-ages-0"] == exponents["fedcl", "arrival", "kpfl-ages-0"] == (0, 0)
    assert exponents["moon", "markov", "kpfl"] == (0.16, 0.06 if settings == "paper" else 0.2)
    assert {of["settings"] for of in found.values()} == {settings}
    assert {of["T"] for key, of in found.items() if key[:2] == ("moon", "markov")} == {
        40 if settings == "paper" else 10
    }
    assert [key[2] for key, of in found.items() if of["keep"] == "first"] == ["kpfl-first"] * 4


def test_dpfl_runs_kpfl_by_its_papers_settings_on_request(planned):
    given = "--kpfl", "--settings", "paper", "--algorithms", "fedavg,mifa,fedcl", "--participation", "markov"
    found = of_kpfl(planned("dpfl.py", "--quick", *given)[1].runs)
    assert [(key[0], of["settings"], of["T"]) for key, of in found.items()] == [
        ("fedavg", "paper", 40),
        ("fedcl", "paper", 10),
    ]


def app(command) -> typer.Typer:
    made = typer.Typer()
    made.command()(command)
    return made


def test_quick_gives_other_defaults_and_an_option_beside_it_counts():
    said = []

    @framed("runs/mine", seeds=4, quick={"band_mhz": "5", "seeds": 1, "learn": True})
    def main(
        runs: Runs,
        band_mhz: Annotated[str, typer.Option()] = "5,10",
        rounds: Annotated[int, typer.Option(min=1)] = 60,
        learn: Annotated[bool, typer.Option("--learn")] = False,
    ) -> None:
        said.append((band_mhz, runs.seeds, rounds, learn, runs.quick, str(runs.out)))

    for arguments, expected in (
        ([], ("5,10", 4, 60, False, False, "runs/mine")),
        (["--quick"], ("5", 1, 60, True, True, "runs/mine-quick")),
        (["--seeds", "3", "--quick", "--rounds", "2", "--out", "o"], ("5", 3, 2, True, True, "o")),
    ):
        assert CliRunner().invoke(app(main), arguments).exit_code == 0
        assert said.pop() == expected
    told = CliRunner().invoke(app(main), ["--help"], env={"COLUMNS": "200"}).stdout
    assert "as by --band-mhz 5 --seeds 1 --learn --out runs/mine-quick." in told
    options = {"--quick", "--set", "--seeds", "--jobs", "--out", "--folder", "--fresh"}
    assert options <= set(re.findall(r"--[a-z-]+", told))


def said(message, *fields):
    """What a scenario with the parameters match, devices and band_mhz prints of an error that names fields."""

    @framed("runs/mine", quick={})
    def main(runs: Runs, match: str | None = None, devices: int = 1, band_mhz: float = 20.0) -> None:
        raise EdgesimError(message, *fields)

    done = CliRunner().invoke(app(main), [])
    assert done.exit_code == 2
    return done.stderr


def test_an_error_that_names_fields_says_which_options_set_them():
    assert said('row k for device k: devices.match = "position"', "devices.match") == (
        'error: row k for device k: devices.match = "position" (here devices.match is --match)\n'
    )
    too_few = said("too few hertz; lower devices.count", "radio.bandwidth_hz", "devices.count")
    assert too_few.endswith("devices.count (here devices.count is --devices, radio.bandwidth_hz is --band-mhz)\n")


def test_fields_without_an_option_and_errors_without_fields_stay_as_they_are():
    assert said("round.count = 9: more than there are", "round.count").endswith("than there are\n")
    assert said("--match: devices.match") == "error: --match: devices.match\n"


@pytest.mark.parametrize(
    ("values", "fields"),
    [
        ({"devices": {"count": 2}, "round": {"admission": "count", "count": 3}}, ("round.count", "devices.count")),
        ({"radio": {"bandwidth_hz": -1.0}}, ("radio.bandwidth_hz",)),
        ({"devices": {"links": {"file": ""}}, "radio": {"sharing": "own"}}, ("devices.links.file",)),
        (TIMING | {"selection": {"policy": "rndom"}}, ("selection.policy",)),
        (TIMING | {"round": {"payload_bits": 1e15}}, ("round.tmax_s",)),
        (TIMING | {"radio": {"bandwidth_hz": 9e3}}, ("radio.bandwidth_hz", "round.tmax_s")),
        ({"data": {"dataset": "digts"}, "learning": {"training": "none"}}, ("data.dataset",)),
        ({"learning": {"model": "mpl"}}, ("learning.model",)),
    ],
)
def test_what_is_refused_tells_the_fields_that_it_names(tmp_path, values, fields):
    with pytest.raises(EdgesimError) as refusal:
        simulation.run(parse(values, "config"), tmp_path)
    assert refusal.value.fields == fields
    assert all(field.rpartition(".")[2] in str(refusal.value) for field in fields)


def test_replay_names_its_own_option_where_the_files_are_of_other_phones(tmp_path, scenario):
    """The recordings call their devices differently; the remedy is told as it is typed."""
    (tmp_path / "availability.csv").write_text("device_id,start_s,end_s\n1,0,7200\n2,0,7200\n")
    (tmp_path / "speeds.csv").write_text("device,s_per_sample,key\n0,0.1,1\n1,0.1,3\n")
    arguments = ["--count", "1", "--hours", "1", "--seeds", "1", "--jobs", "1", "--out", "out"]
    done = scenario("replay.py", "availability.csv", "--profile", "speeds.csv", *arguments)
    assert done.exit_code == 1, done.output
    assert "has no device '2'" in done.stderr
    assert done.stderr.endswith('devices.match = "position" (here devices.match is --match)\n')


def test_every_option_told_is_one_that_some_scenario_has_and_sets_a_field_that_there_is():
    scripts = [ast.parse(path.read_text()) for path in SCENARIOS.glob("*.py")]
    mains = [node for script in scripts for node in script.body if isinstance(node, ast.FunctionDef)]
    options = {"folder"} | {argument.arg for main in mains if main.name == "main" for argument in main.args.args}
    config = RunConfig().model_dump() | {"mobility": Direction.model_fields}
    for field, name in OPTIONS:
        section, key = field.split(".")
        assert key in config[section] | TableModel.model_fields
        assert name in options


ALL = sorted(path.stem for path in SCENARIOS.glob("*.py"))
WITHOUT_RUNS = {"availability_predictor", "trace_anatomy", "ef_signsgd"}
"""Scenarios about recordings or functions alone."""


PUBLIC = {path.stem for path in Path(edgesim.scenario.__file__).parent.glob("*.py")} - {"__init__"}


def test_scenarios_use_the_one_frame_and_import_the_door_and_what_they_share_and_nothing_beside():
    """What is common goes to every study by `Runs`; no scenario reaches around it for running or reading runs."""
    for path in [*SCENARIOS.glob("*.py"), TEMPLATE]:
        tree, imported = ast.parse(path.read_text()), set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                imported |= {(name.name, "") for name in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported |= {(node.module, name.name) for name in node.names}
        for module, name in imported:
            if module.partition(".")[0] == "edgesim":
                assert module in ("edgesim", "edgesim.scenario"), f"{path.name}: imports {module}"
                assert not name or name in {*edgesim.scenario.__all__, *PUBLIC}, f"{path.name}: imports {name}"
        # What is used of these modules is what they offer, but for what `Runs` does.
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                module = node.value.id
                if module == "edgesim":
                    assert node.attr in {*edgesim.__all__} - {"study", "grid", "read_study"}, (
                        f"{path.name}: {node.attr}"
                    )
                elif ("edgesim.scenario", module) in imported:
                    offered = importlib.import_module(f"edgesim.scenario.{module}").__all__
                    assert node.attr in offered, f"{path.name}: {ast.unparse(node)}"


@pytest.mark.parametrize("name", [name for name in ALL if name not in WITHOUT_RUNS])
def test_what_is_set_reaches_the_runs_of_every_scenario_which_name_their_partition_and_pre_training(planned, name):
    """A value that no scenario has; so that a scenario stays what it is when a default changes. A law of drift deals
    the samples itself.
    """
    bases, study = planned(f"{name}.py", "--quick", "--seeds", "2", "--set", "evaluation.samples=123")
    assert {run.config.evaluation.samples for run in study.runs} == {123}
    assert len({run.seed for run in study.runs}) == 2
    assert bases or name == "tune_tmax"
    for base in bases:
        assert name == "partitions" or "partition" in base["data"] or "law" in base["drift"]
        assert "pretrain" in base["learning"]


def test_an_option_that_a_scenario_lacks_suggests_only_what_is_spelt_like_it(capsys, monkeypatch):
    def main(out: str = "x", policies: str = "random", *, hours: float = 1.0) -> None:
        """Nothing."""

    for typed, suggested in (("--rounds", False), ("--policy", True)):
        monkeypatch.setattr(sys, "argv", ["script.py", typed, "5"])
        with pytest.raises(SystemExit) as ended:
            start(main)
        error = capsys.readouterr().err
        assert ended.value.code == 2
        assert error.startswith(f"error: no such option: {typed}")
        assert error.count("\n") == 1
        assert "--out" not in error
        assert ("--policies" in error) == suggested


def test_labelled_runs_that_what_is_set_makes_the_same_are_refused(tmp_path):
    own = TIMING | {"round": {"payload_bits": 1e7, "tmax_s": 2.0}}
    runs = [
        run
        for name, one in (("short", TIMING), ("long", own))
        for run in edgesim.grid(one, {}, range(2), ["round.tmax_s=3.0"], labels={"deadline": name})
    ]
    with pytest.raises(EdgesimError) as refused:
        edgesim.study(runs, out=tmp_path / "out")
    assert str(refused.value) == (
        "set of round.tmax_s: deadline short and long would be the same run; leave one of them out"
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_what_was_worked_out_of_recordings_is_kept_until_something_changes(tmp_path, scenario, monkeypatch):
    typed = ("trace_anatomy.py", "--quick", "--devices", "20", "--out", "out")
    first = scenario(*typed)
    assert first.exit_code == 0, first.output
    table = pd.read_csv(tmp_path / "out/trace_anatomy.csv")

    def again(recording):
        raise EdgesimError(f"{recording} is read again")

    monkeypatch.setattr("edgesim.scenario.recordings.anatomy_of", again)
    assert scenario(*typed).output == first.output
    for other in (["--fresh"], ["--seeds", "2"], ["--set", "availability.online_share=0.5"], ["--no-published"]):
        assert "is read again" in scenario(*typed, *other).stderr
    (tmp_path / "out/trace_anatomy.png").unlink()
    assert "is read again" in scenario(*typed).stderr
    assert {*table.columns[1:]} == {"sample-week", "generated (20 devices)"}


@pytest.mark.slow
def test_generated_weeks_follow_what_is_set_and_their_seeds(tmp_path, scenario):
    typed = ("trace_anatomy.py", "--devices", "50", "--seeds", "2", "--jobs", "1", "--set")
    done = scenario(*typed, "availability.online_share=0.6", "--out", "out")
    assert done.exit_code == 0, done.output
    table = pd.read_csv(tmp_path / "out/trace_anatomy.csv", index_col=0)
    assert [*table.columns] == ["generated (50 devices)", "generated, seed 1"]
    online = table.loc["online, of all time"].str.rstrip("%").astype(float)
    assert ((online > 40) & (online < 80)).all()
    assert online.nunique() == 2
    for given, said in (
        ("rounds=3", "set rounds=3: no run is made here; expected a key of [availability]"),
        ("availability.model=markov", "set availability.model: expected 'renewal' here (got 'markov')"),
        ("availability.online_shar=0.6", "online_shar"),
    ):
        refused = scenario(*typed, given, "--out", "other")
        assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
        assert said in refused.stderr


def test_work_in_several_processes_is_answered_in_order():
    assert work.in_processes(math.factorial, [(5,), (3,), (4,)], 2) == [120, 6, 24]
