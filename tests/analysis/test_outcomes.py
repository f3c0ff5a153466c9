"""Measures of runs by name: what a summary has can be compared, and means the same."""

import itertools

import pandas as pd
import pytest
from edited_runs import write_plan

from edgesim.analysis.measures import NAMES, SOURCES, measure
from edgesim.analysis.outcomes import outcomes
from edgesim.analysis.participation import BY_CLASS
from edgesim.analysis.runs import RunFolder, read_study
from edgesim.analysis.summary import summarise
from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.simulation import composition as simulation

TARGET = 0.3


def _config(seed, model):
    return {
        "seed": seed,
        "rounds": 6,
        "devices": {"count": 6},
        "round": {"tmax_s": 2.0, "payload_bits": 1e6},
        "data": {"dataset": "digits", "samples_per_device": 40, "partition": "iid", "partition_options": {}},
        "learning": {"model": "mlp", "lr": 0.1, "pretrain": False},
        "privacy": {"mechanism": "central", "noise": 0.05},
        "availability": {"model": "always"} if model == "always" else {"model": "bernoulli", "probability": 0.7},
        "evaluation": {"measures": "all"},
    }


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Two trained runs, which between them have every measure; no test changes it."""
    folder = tmp_path_factory.mktemp("outcomes") / "study"
    folder.mkdir()
    plan = []
    for model, seed in itertools.product(("always", "bernoulli"), range(1)):
        simulation.run(parse(_config(seed, model), "a test"), folder / f"{model}{seed}")
        knobs = {"availability": model}
        plan.append({"folder": f"{model}{seed}", "knobs": knobs, "seed": seed, "status": "finished"})
    return write_plan(folder, "outcomes", plan, TARGET)


def test_every_measure_of_a_summary_can_be_compared_and_is_the_same(study):
    summary = summarise(study).set_index("availability")
    averaged = [name for name in summary if f"{name}_low" in summary]
    assert set(averaged) >= set(NAMES), set(NAMES) - set(averaged)
    assert f"{BY_CLASS}0" in averaged
    runs = read_study(study).finished
    found = outcomes(runs, averaged, TARGET)
    for model, name in itertools.product(("always", "bernoulli"), averaged):
        chosen = [found[run.folder] for run in runs if run.knobs["availability"] == model]
        values = [measures[name] for measures in chosen if name in measures]
        mean = sum(values) / len(values) if values else float("nan")
        assert mean == pytest.approx(summary.loc[model, name], rel=1e-12, nan_ok=True), name


def test_each_source_gives_the_measures_that_it_is_listed_with(study):
    run = read_study(study).finished[0]
    of_two_runs = {"idp_points"}
    further = ("_bound", "reached", "stayed", "id_first", "id_last")
    for names, source in SOURCES.items():
        found = {name for name in source(run, TARGET) if not name.endswith(further) and not name.startswith(BY_CLASS)}
        assert found <= set(names), found - set(names)
    assert set(measure(run, TARGET)) >= set(NAMES) - of_two_runs - {"rounds_to_stay", "seconds_to_stay"}


def test_what_a_summary_refuses_no_comparison_has_and_it_says_why(tmp_path, study_writer, run_writer):
    """Tests of several frames are not alike: there is no peak among them."""
    folder = run_writer(tmp_path / "frames", [0.5, 0.6, 0.7, 0.8])
    pd.read_parquet(folder / "rounds.parquet").assign(frame=[1, 1, 2, 2]).to_parquet(folder / "rounds.parquet")
    run = RunFolder(folder, {}, 0)
    for name in ("rounds_to_own_peak", "seconds_to_own_peak", "loss_roughness", "best_round", "id_points"):
        assert name not in measure(run, 0.75)
        with pytest.raises(EdgesimError, match=f"metric {name}: no run has it .*its .* are of 2 frames"):
            outcomes([run], [name], None)
    assert outcomes([run], ["best_accuracy"], None) == {folder: {"best_accuracy": 0.8}}
