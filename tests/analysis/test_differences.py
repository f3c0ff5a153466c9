import json
import shutil
from functools import cache

import numpy as np
import pandas as pd
import pytest
from edited_runs import edit_json
from rich.console import Console
from scipy import stats
from statsmodels.stats.multitest import multipletests

from edgesim.analysis.differences import differences, differences_table, summarise_differences
from edgesim.analysis.measures import step as step_of
from edgesim.analysis.pairing import Pairing
from edgesim.analysis.runs import RunFolder
from edgesim.plots.differences import against, draw_differences
from edgesim.tables.show_differences import print_differences

KNOWN = {"policy": "random", "tmax_s": 2.0, "delay_knowledge": "known"}
PLANNED = KNOWN | {"delay_knowledge": "planned", "plan_quantile": 0.9}


@pytest.fixture(scope="module")
def written(tmp_path_factory, study_writer):
    """Studies that are written once, each by its function."""
    return cache(lambda write: write(tmp_path_factory.mktemp("written") / "study", study_writer))


@pytest.fixture(scope="module")
def found(written):
    """Differences of a study by measure."""
    return {one.measure: one for one in differences(written(write_delay_study), "delay_knowledge", "known")}


def write_delay_study(folder, study_writer):
    # Rounds to 0.75, of 2 s each: known 1, 2, 3; planned 2, 4, and never within 3; one seed of planned has no partner.
    ways = [(KNOWN, ([0.8], [0.6, 0.8], [0.6, 0.6, 0.8])), (PLANNED, ([0.6, 0.8], [0.6] * 3 + [0.8], [0.6] * 3))]
    runs = [(knobs, seed, "finished", path) for knobs, paths in ways for seed, path in enumerate(paths)]
    runs += [(PLANNED, 9, "finished", [0.8]), (KNOWN, 8, "failed", [])]
    runs += [(PLANNED | {"tmax_s": 3.0}, 0, "finished", [0.8])]
    return study_writer(folder, runs)


def test_each_run_is_held_against_that_of_its_seed_which_shares_its_knobs(found):
    seconds = found["seconds_to_target"]
    assert [(run.knobs["plan_quantile"], run.seed) for run in seconds.runs] == [(0.9, 0), (0.9, 1), (0.9, 2)]
    assert seconds.sides.first.values.tolist() == pytest.approx([4.0, 8.0, np.nan], nan_ok=True)
    assert seconds.sides.second.values.tolist() == [2.0, 4.0, 6.0]
    assert (seconds.sides.tau, seconds.sides.steps, found["rounds_to_target"].sides.steps) == (
        6.0,
        (2.0, 2.0),
        (1.0, 1.0),
    )
    assert (found["joules_to_target"].sides.steps, found["final_accuracy"].sides.steps) == ((0.0, 0.0), (0.0, 0.0))
    assert seconds.sides.first.bounds.tolist() == pytest.approx([np.nan, np.nan, 6.0], nan_ok=True)
    assert found["scheduled"].sides.differences.tolist() == [0.0, 0.0, 0.0]


def rows_of(found) -> pd.DataFrame:
    return summarise_differences([*found]).set_index("measure")


def test_the_table_has_the_mean_with_its_t_interval_over_pairs(found):
    table = rows_of(found.values())
    row = table.loc["final_accuracy"]
    assert {name: row[name] for name in PLANNED} == PLANNED
    assert (row["pairs"], row["never"]) == (3, 0)
    # Means of the tests of one, two and three rounds against two, four and three: 0.8, 0.7, 2 / 3; 0.7, 0.65, 0.6.
    each = np.array([0.7 - 0.8, 0.65 - 0.7, 0.6 - 2 / 3])
    half = 4.30265273 * np.std(each, ddof=1) / np.sqrt(3)
    assert row["difference"] == pytest.approx(each.mean())
    assert (row["low"], row["high"]) == pytest.approx((each.mean() - half, each.mean() + half))


def test_where_a_run_never_reached_the_target_there_is_no_difference_but_a_ratio_of_restricted_times(found):
    row = rows_of(found.values()).loc["seconds_to_target"]
    # 4, 8 and more than 6 s against 2, 4 and 6: up to 6 s the third pair does not differ.
    ratios = np.log([4 / 2, 6 / 4, 6 / 6])
    assert (row["pairs"], row["never"], row["differing"], row["tau"]) == (3, 1, 2, 6)
    assert row[["difference", "low", "high"]].isna().all()
    assert (row["test"], row["ratio"]) == ("paired t of logarithms", pytest.approx(np.exp(ratios.mean())))
    # Tests come every 2 s, which the logarithms feel as 2 / (sqrt(12) t) each; their own spread is greater.
    assert row["p"] == pytest.approx(stats.ttest_1samp(ratios, 0).pvalue)


def accuracies(rounds: int) -> list[float]:
    return [0.6] * (rounds - 1) + [0.8]


ALGORITHMS = {"fedavg": 60.0, "mifa": 63.0, "moon": 60.0}
"""Accuracy in % of static runs, in all rounds."""
LOST = {"fedavg": [6, 8, 10], "mifa": [4.5, 5.5, 6.5], "moon": [6, 7, 11]}
"""Points that Markov participation costs, by seed, in all rounds."""
DYNAMIC = {"model": "markov", "join_probability": 0.2, "leave_probability": 0.2}


@pytest.fixture(scope="module")
def participation(written):
    """Differences from FedAvg of a study of dynamic participation."""
    return differences(written(write_participation), "algorithm", "fedavg")


def dynamic_study(folder, study_writer, psi_of):
    """Static and Markov runs of algorithms on three seeds; ``psi_of(name, setting, seed)`` are accuracies in %."""
    names = [(name, setting, seed) for name in ALGORITHMS for setting in ("static", "markov") for seed in range(3)]
    runs, configs = [], []
    for name, setting, seed in names:
        psi = psi_of(name, setting == "markov", seed)
        if psi is not None:
            knobs, shares = {"setting": setting, "algorithm": name}, [value / 100 for value in psi]
            runs.append((knobs, seed, "finished", shares))
            law = {"model": "always"} if setting == "static" else DYNAMIC
            configs.append({"availability": law, "algorithm": {"name": name}})
    return study_writer(folder, runs, target=None, configs=configs)


def write_participation(folder, study_writer):
    """Accuracies are the same in all six rounds but for ID's zigzag."""

    def psi_of(name, is_dynamic, seed):
        level = ALGORITHMS[name] - LOST[name][seed] * is_dynamic
        swing = (seed + 1) * (name == "mifa" and is_dynamic)
        return [level + swing * (-1) ** round for round in range(6)]

    return dynamic_study(folder, study_writer, psi_of)


def test_we_idp_and_id_are_compared_where_a_study_has_static_runs_beside_dynamic_ones(participation, found):
    values = {
        (*run.knobs.values(), run.seed, one.measure): value
        for one in participation
        for run, value in zip(one.runs, one.sides.differences.tolist(), strict=True)
    }
    mifa = {
        name: [values["markov", "mifa", seed, name] for seed in range(3)]
        for name in ("we_percent", "idp_points", "id_points")
    }
    # WE of six rounds that alternate by +- s ends with five: - s + s - s + s - s, here from + s on in round 1.
    assert mifa["we_percent"] == pytest.approx([3 + 6 - 4.5 - 1 / 5, 3 + 8 - 5.5 - 2 / 5, 3 + 10 - 6.5 - 3 / 5])
    assert mifa["idp_points"] == pytest.approx([-1.5, -2.5, -3.5])
    # The last three rounds, - s, + s, - s about their line, the mean - s / 3: distances 2/3, 4/3 and 2/3 of s.
    assert mifa["id_points"] == pytest.approx([8 / 9, 16 / 9, 24 / 9])
    assert values["static", "mifa", 0, "we_percent"] == pytest.approx(3)
    assert ("static", "mifa", 0, "idp_points") not in values
    assert not {"we_percent", "id_points"} & set(found)


def test_the_p_of_all_measures_are_corrected_together_but_for_those_in_which_no_pair_differs(participation):
    table = summarise_differences(participation)
    static, timing = table["setting"] == "static", table["measure"].isin(["scheduled", "arrived", "miss_rate"])
    # Static runs and all of MOON's keep their accuracy, so that none strays from it; MOON's static one is FedAvg's.
    moon, strays = table["algorithm"] == "moon", table["measure"] == "id_points"
    same = timing | static & (moon | strays) | moon & strays
    assert (table[same]["p"] == 1).all()
    made = table[~same]["p"].to_numpy()
    # WE of MIFA in both settings and of MOON under Markov; IDP of both and ID of MIFA under Markov.
    assert len(made) == 3 + 2 + 1
    assert np.sort(table[~same]["p_holm"]) == pytest.approx(np.sort(multipletests(made, method="holm")[1]))
    rows = table.set_index(["measure", "setting", "algorithm"])
    mifa = stats.ttest_1samp([-1.5, -2.5, -3.5], 0).pvalue
    assert rows.loc[("idp_points", "markov", "mifa"), "p"] == pytest.approx(mifa)
    assert rows.loc[("idp_points", "markov", "mifa"), "reading"] == "inconclusive"
    assert rows.loc[("we_percent", "static", "moon"), "reading"] == "equivalent"
    # 0, 1 and -1 points: within a tenth of FedAvg's accuracy, but not within a point.
    assert rows.loc[("we_percent", "markov", "moon"), "reading"] == "inconclusive"


def test_a_point_of_we_or_idp_is_level_but_of_id_a_tenth(tmp_path, study_writer):
    """MOON is 0.5 points off FedAvg in all three, up to 0.12: ID of FedAvg is 1.6, of which a tenth is 0.16."""
    moved = {"fedavg": [0, 0, 0], "moon": [0.38, 0.62, 0.5]}

    def psi_of(name, is_dynamic, seed):
        by = moved.get(name, [None] * 3)[seed]
        return None if by is None else [60 - by * is_dynamic + (1.8 + by) * is_dynamic * (-1) ** r for r in range(6)]

    folder = dynamic_study(tmp_path / "study", study_writer, psi_of)
    table = summarise_differences(differences(folder, "algorithm", "fedavg"))
    row = table[table["setting"] == "markov"].set_index("measure")[["difference", "reading"]]
    assert row.loc["idp_points"].tolist() == [pytest.approx(0.5), "equivalent"]
    assert row.loc["we_percent"].tolist() == [pytest.approx(-0.6), "equivalent"]
    assert row.loc["id_points"].tolist() == [pytest.approx(8 / 9 * 0.5), "inconclusive"]


def test_a_figure_names_the_other_value_where_there_is_only_one():
    def fading(**choice):
        return Pairing({"policy": "random"}, choice, {"fading": "none"}, (), ((), ()))

    assert against([fading(fading="rayleigh")] * 2, "fading", "none") == "rayleigh against none"
    assert against([fading(fading="rayleigh"), fading(fading="rice")], "fading", "none") == "against none"
    assert against([fading(fading="$x$")], "fading", "none") == r"\$x\$ against none"


def test_measures_in_which_no_pair_differs_are_named_below_the_table_and_have_no_panel(participation, capsys):
    panels = [axes.get_title() for axes in draw_differences(participation, "algorithm", "fedavg").axes]
    assert panels == ["(a) WE", "(b) IDP", "(c) ID"]
    table = summarise_differences(participation)
    print_differences(table, "fedavg", Console(width=200))
    printed = capsys.readouterr().out
    heading = next(line for line in printed.splitlines() if line.startswith("setting"))
    assert heading.split() == ["setting", "algorithm", "WE", "IDP", "ID"]
    assert "The same in all pairs: scheduled, arrived, missed." in printed
    assert "(accuracy and other shares: one point, 0.01)" in printed
    # Of runs that are the same throughout, nothing is left out.
    same = table.assign(difference=0.0, low=0.0, high=0.0, differing=0)
    print_differences(same, "fedavg", Console(width=200))
    assert "scheduled" in capsys.readouterr().out.splitlines()[1]


@pytest.mark.parametrize("reference", ["known", "reported"])
def test_a_table_of_differences_that_lies_there_is_that_of_its_runs(tmp_path, written, reference):
    """Also one of no pairs at all, of which no file is written."""
    study = shutil.copytree(written(write_delay_study), tmp_path / "study")
    fresh = summarise_differences(differences(study, "delay_knowledge", reference))
    written = differences_table(study, "delay_knowledge", reference, write=True)
    read = differences_table(study, "delay_knowledge", reference)
    for table in (written, read):
        pd.testing.assert_frame_equal(table, fresh, check_dtype=False)
    assert (study / "differences-delay_knowledge.csv").exists() == (reference == "known")
    # A run that failed since is no partner any more.
    first = study / json.loads((study / "plan.json").read_text())["runs"][0]["folder"] / "run.json"
    edit_json(first, status="failed")
    again = differences_table(study, "delay_knowledge", reference)
    assert again.empty if reference == "reported" else set(again["pairs"]) == {2}


def test_two_seeds_are_never_equivalent_and_three_that_are_a_round_apart_only_within_the_margin(tmp_path, study_writer):
    """12 rounds against 11 in each seed: within a tenth, 1.1, by an interval of no width; but rounds are rounded."""
    readings = []
    for seeds, rounds in ((2, (12, 11)), (3, (12, 11)), (5, (12, 11)), (2, (44, 44)), (3, (44, 44))):
        paths = {
            policy: [accuracies(needed)] * seeds for policy, needed in zip(("oort", "random"), rounds, strict=True)
        }
        folder = study_writer(tmp_path / f"{rounds[0]}-{seeds}", paths)
        table = summarise_differences(differences(folder, "policy", "random"))
        readings.append(table.set_index("measure").loc["rounds_to_target", "reading"])
    assert readings == ["inconclusive", "inconclusive", "more", "inconclusive", "equivalent"]


def test_choices_are_not_equivalent_where_a_run_never_reached_the_target(tmp_path, study_writer):
    paths = [[0.6] * 30, *[accuracies(20)] * 5]
    folder = study_writer(tmp_path / "study", {"oort": paths, "random": paths})
    table = summarise_differences(differences(folder, "policy", "random"))
    (row,) = table[table["measure"] == "rounds_to_target"].to_dict("records")
    assert (row["never"], row["ratio"], row["reading"]) == (1, 1.0, "inconclusive")


@pytest.mark.parametrize(("every", "step"), [(1, 1.0), (5, 5.0)])
def test_rounds_and_seconds_to_a_target_come_in_steps_of_the_tests(tmp_path, run_writer, every, step):
    """Tests of every fifth round of 2 s."""
    path = [0.6 if round % every == 0 else None for round in range(1, 31)]
    run = RunFolder(run_writer(tmp_path / "run", path), {}, 0)
    names = ("rounds_to_target", "seconds_to_target", "joules_to_target", "final_accuracy")
    assert [step_of(name, [run]) for name in names] == [step, 2 * step, 0.0, 0.0]
