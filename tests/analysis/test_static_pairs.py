import math

import pandas as pd
import pytest

from edgesim.analysis.runs import RunFolder
from edgesim.analysis.static_pairs import is_static, pair, pairs
from edgesim.analysis.summary import footnotes, summarise
from edgesim.base.errors import EdgesimError

PSI = [22, 31.5, 28, 40.5, 37, 46, 41.5, 49, 44, 51.5, 50, 52.5]
STATIC = [25, 36, 42.5, 47, 50, 52.5, 54, 55.5, 56, 57, 57.5, 58]
MARKOV = {"model": "markov", "join_probability": 0.2, "leave_probability": 0.2}


@pytest.fixture
def make(tmp_path, run_writer):
    """Writes a run with accuracies in % and an availability, and returns it."""

    def run(name, psi, availability=None, seed=0, facts=None, **config):
        sections = {"availability": availability or {"model": "always"}, "algorithm": {"name": "fedavg"}} | config
        shares = [value / 100 for value in psi]
        return RunFolder(run_writer(tmp_path / name, shares, seed=seed, config=sections, facts=facts), {}, seed)

    return run


def test_the_idp_of_two_run_folders_is_that_of_the_worked_table(make):
    """Settings that change no result and the file of the participation may differ."""
    run = make("markov", PSI, MARKOV, facts={"inputs": {"availability.file": "cd"}}, learning={"workers": 4})
    made = pair(run, make("static", STATIC, learning={"workers": 2}))
    assert made.idp_points == pytest.approx(8.125, abs=1e-12)
    assert is_static(made.static)
    assert not is_static(made.run)


@pytest.mark.parametrize(
    ("static", "named"),
    [
        ({"algorithm": {"name": "scaffold"}}, r"algorithm\.name \(scaffold instead of fedavg\)"),
        ({"algorithm": {"name": "fedavg", "mu": 0.1}}, r"algorithm\.mu \(0\.1 instead of absent\)"),
        ({"seed": 3}, r"seed \(3 instead of 0\)"),
        ({"devices": {"count": 5}}, r"devices\.count \(5 instead of absent\)"),
        ({"facts": {"inputs": {"edgesim": "1"}}}, r"edgesim \(1 instead of 0\)"),
        ({"facts": {"inputs": {"edgesim": "0", "data.dataset": "ab"}}}, r"the contents of data\.dataset"),
    ],
)
def test_a_pair_that_differs_in_anything_but_participation_is_refused_by_name_in_one_line(make, static, named):
    run = make("markov", PSI, MARKOV, facts={"inputs": {"edgesim": "0", "availability.file": "cd"}})
    other = make("static", STATIC, **({"facts": {"inputs": {"edgesim": "0"}}} | static))
    with pytest.raises(
        EdgesimError, match=rf"^[^\n]*markov: no IDP: the static run static differs in {named}; [^\n]*$"
    ):
        pair(run, other)


def test_runs_of_unequal_length_and_partners_that_are_not_static_are_refused(make):
    run = make("markov", PSI, MARKOV)
    with pytest.raises(EdgesimError, match=r"markov: no IDP: .*equally many rounds \(got 12 against 11\)$"):
        pair(run, make("static", STATIC[:-1]))
    with pytest.raises(EdgesimError, match="no IDP: other is no static run"):
        pair(run, make("other", STATIC, {"model": "bernoulli", "probability": 0.5}))


def test_each_run_is_paired_with_the_static_run_of_its_seed_and_settings(make):
    runs = [make(f"static{seed}", STATIC, seed=seed) for seed in (0, 1)]
    runs.append(make("static-scaffold", PSI, seed=0, algorithm={"name": "scaffold"}))
    runs += [make(f"markov{seed}", PSI, MARKOV, seed=seed) for seed in (1, 0, 2)]
    runs.append(make("markov-mifa", PSI, MARKOV, algorithm={"name": "mifa"}))
    found, refused = pairs(runs)
    assert [(one.run.folder.name, one.static.folder.name) for one in found] == [
        ("markov1", "static1"),
        ("markov0", "static0"),
    ]
    assert [one.run.folder.name for one in refused] == ["markov2", "markov-mifa"]
    assert "differs in seed (0 instead of 2)" in refused[0].reason
    assert "the static run static0 differs in algorithm.name (fedavg instead of mifa)" in refused[1].reason


@pytest.fixture
def study(tmp_path, study_writer):
    """FedAvg static and under Markov participation on three seeds, which the loss of accuracy tells apart."""
    always, markov = ({"algorithm": "fedavg", "availability": model} for model in ("always", "markov"))
    runs = [(always, seed, "finished", [value / 100 for value in STATIC]) for seed in range(3)]
    runs += [(markov, seed, "finished", [(value - seed) / 100 for value in PSI]) for seed in range(3)]
    configs = [{"availability": {"model": "always"}}] * 3 + [{"availability": MARKOV}] * 3
    return study_writer(tmp_path / "study", runs, target=None, configs=configs)


def row(summary: pd.DataFrame, availability: str) -> pd.Series:
    return summary[summary["availability"] == availability].iloc[0]


def test_the_summary_has_each_measure_per_seed_then_its_mean_and_interval(study):
    summary = summarise(study)
    markov, static = row(summary, "markov"), row(summary, "always")
    half = 4.302652730 / math.sqrt(3)  # t(0.975, 2 degrees of freedom), standard deviation 1
    assert markov[["idp_points", "idp_points_low", "idp_points_high"]].tolist() == pytest.approx(
        [9.125, 9.125 - half, 9.125 + half]
    )
    assert markov[["we_percent", "we_percent_low"]].tolist() == pytest.approx([48.4, 48.4 - half])
    assert markov["we_variance"] == pytest.approx(8.74)
    assert markov["id_points"] == pytest.approx(2.0682539683, abs=5e-11)
    assert markov[["id_degree", "id_rounds"]].tolist() == [1, "7-12"]
    assert markov["best_accuracy"] == pytest.approx(0.515)
    assert static["id_points"] == pytest.approx(2 / 9)
    assert math.isnan(static["idp_points"])
    assert "forgetting_points" not in summary


def test_the_notes_say_what_the_measures_are_and_which_runs_lack_them(study, tmp_path, study_writer):
    told = " ".join(footnotes(summarise(study), study))
    assert "IDP: accuracy of the static run of the same seed minus the run's" in told
    assert "No IDP" not in told

    runs = [
        ({"availability": "always"}, 0, "finished", [0.5] * 6),
        ({"availability": "markov"}, 0, "finished", [0.5] * 6),
    ]
    configs = [{"availability": {"model": "always"}, "data": {"partition": "iid"}}, {"availability": MARKOV}]
    other = study_writer(tmp_path / "other", runs, target=None, configs=configs)
    summary = summarise(other)
    assert "idp_points" not in summary
    assert (
        "No IDP of run1: the static run run0 differs in data.partition (iid instead of absent); a pair may differ in "
        "[availability] alone." in footnotes(summary, other)
    )
