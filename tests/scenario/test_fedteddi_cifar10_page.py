"""Tables of docs/papers/fedteddi.md on CIFAR-10 at the paper's size: each cell is that of the committed tests."""

import csv
import math

import numpy as np
import scipy
from quoted import DOCS, not_said, table

from edgesim.analysis.kept_tests import kept_runs, read_tests
from edgesim.analysis.power import seeds_needed
from edgesim.analysis.savings import savings

PAGE, RESULTS = "papers/fedteddi.md", "Results"
ROUNDS, ACCURACY, SAVED, RANDOM, FEDTEDDI, CENTRAL, FINISHED = range(7)
"""Places of the section's tables."""
TESTS = read_tests(DOCS / "papers/fedteddi-cifar10.parquet")
POLICIES = 8
PAPER = {"random": 0.584, "fedcgd": 0.111, "pure-drift": 0.385}
"""FedTeddi's savings in the paper, section V-B and abstract."""
SETTINGS = ("tau5", "tau5-kept", "tau10", "tau24", "tau10-kept", "tau24-kept", "tau5-lr0.03", "tau5-lr0.09")


def cells(place):
    return table(RESULTS, 1, place, PAGE)


def of_policies():
    """The comparison's runs, by policy in the order of their seeds."""
    found = {}
    for run in sorted(kept_runs(TESTS, "comparison"), key=lambda run: run.seed):
        found.setdefault(run.knobs["policy"], []).append(run.rows)
    return found


def first(rows, mark):
    there = rows[(rows["round"] > 0) & (rows["accuracy"] >= mark)]["round"]
    return f"{there.iloc[0]:.0f}" if len(there) else "never"


def five_in_a_row(rows, mark):
    """First of five tests in a row that are at the mark."""
    there = (rows["accuracy"] >= mark)[::-1].rolling(5).sum()[::-1] == 5
    return f"{rows['round'][there].iloc[0]:.0f}" if there.any() else "never"


def accuracies(rows, last_round=300):
    return rows[(rows["round"] > 0) & (rows["round"] <= last_round)]["accuracy"]


def best(rows):
    return f"{accuracies(rows).max():.3f}"


def last_five(rows, last_round=300):
    return f"{accuracies(rows, last_round)[-5:].mean():.3f}"


def common(rows):
    """Mean of the last five tests that all runs of the comparison have."""
    return accuracies(rows[rows["round"].between(170, 190)]).mean()


def clients(rows):
    return f"{rows['clients'].mean():.1f}"


def newcomers(rows):
    """Devices with a new class that are scheduled per round, over rounds that all runs have."""
    return f"{rows[rows['round'] <= 150]['newcomers'].mean():.1f}"


def kilojoules(rows):
    return f"{rows['energy_j'].max() / 1e3:#.3g}"


def each(runs, measures):
    """One cell per measure, with that of each run in it."""
    return [", ".join(measure(rows) for rows in runs) for measure in measures]


def test_rounds_of_the_eight_policies():
    runs = of_policies()
    of_columns = [
        lambda rows: first(rows, 0.57), lambda rows: first(rows, 0.62), lambda rows: first(rows, 0.67),
        lambda rows: five_in_a_row(rows, 0.67), lambda rows: f"{rows['round'].max():.0f}",
    ]  # fmt: skip
    shown = cells(ROUNDS)
    assert len(shown) == len(runs) == POLICIES
    for policy, *numbers in shown:
        assert numbers == each(runs[policy], of_columns), policy


def test_accuracy_and_spending_of_the_eight_policies():
    runs = of_policies()
    of_columns = [best, lambda rows: f"{common(rows):.3f}", last_five, clients, newcomers, kilojoules]
    shown = cells(ACCURACY)
    assert len(shown) == POLICIES
    assert min(rows["round"].max() for of in runs.values() for rows in of) == 190
    for policy, *numbers in shown:
        assert numbers == each(runs[policy], of_columns), policy


def saved(row):
    """A mean saving with its 95 % t interval, or the ends between which it must lie, and the corrected p."""
    least, most, low, high = (f"{100 * row[end]:.0f}" for end in ("saving", "saving_most", "low", "high"))
    p = f"{row['p_holm']:.2g}"
    if row["saving_most"] == 1:
        return f"{least} % or more", p
    return (f"{least} % [{low}, {high}]" if least == most else f"{least} to {most} %"), p


def test_what_fedteddi_saves():
    runs = kept_runs(TESTS, "comparison")
    of = [savings(runs, "fedteddi", mark).set_index("policy") for mark in (0.62, 0.67)]
    shown = cells(SAVED)
    assert len(shown) == POLICIES - 1
    for policy, *numbers, _ in shown:
        assert numbers == [cell for table in of for cell in saved(table.loc[policy])], policy


def means(measure):
    """Of each policy the mean of a measure over its runs, the largest first."""
    of = {policy: np.mean([measure(rows) for rows in runs]) for policy, runs in of_policies().items()}
    return dict(sorted(of.items(), key=lambda item: -item[1]))


def test_what_two_seeds_say_of_savings():
    near, at = (savings(kept_runs(TESTS, "comparison"), "fedteddi", mark).set_index("policy") for mark in (0.62, 0.67))
    stays = savings(kept_runs(TESTS, "comparison"), "fedteddi", 0.67, "rounds_to_stay")
    assert {*near["reading"], *at["reading"], *stays["reading"]} == {"inconclusive"}
    assert set(near["pairs"]) == {2}
    rounds = {policy: np.array([float(first(rows, 0.62)) for rows in runs]) for policy, runs in of_policies().items()}
    more = {policy: of - rounds["fedteddi"] for policy, of in rounds.items() if policy != "fedteddi"}
    shows = {
        policy: seeds_needed(paper * rounds[policy].mean(), more[policy].std(ddof=1), 0.05 / 7)
        for policy, paper in PAPER.items()
    }
    p = {policy: scipy.stats.ttest_1samp(of, 0).pvalue for policy, of in more.items()}
    spread = [scipy.stats.chi2.ppf(share, 1) ** -0.5 for share in (0.975, 0.025)]
    needed = at["seeds_needed"]
    least = [100 * (1 - float(first(rows, 0.67)) / 300) for rows in of_policies()["fedteddi"]]
    assert not not_said(
        RESULTS,
        [
            f"so that at least {least[0]:.0f} and {least[1]:.0f} % are saved",
            f"the least p is {near['p_holm'].min():.2g} to 62 % and {at['p_holm'].min():.2g} to 67 %",
            f"({p['power-of-choice']:.2f} and {p['fedcgd']:.2f} before correction)",
            f"{needed['fed-cbs']:.0f} seeds (Fed-CBS), {needed['best-norm']:.0f} (Best Norm) or "
            f"{needed['pure-drift']:.0f} (Pure Drift)",
            f"{shows['random']:.0f} (Random), {shows['fedcgd']:.0f} (FedCGD) or {shows['pure-drift']:.0f} (Pure Drift)",
            f"the true one is {spread[0]:.2f} to {spread[1]:.0f} times as large",
            f"hold every saving from {100 * near.loc['random', 'low']:.0f} % to the possible 100 %",
        ],
        PAGE,
    )


def test_which_policies_are_more_accurate_than_fedteddi():
    assert list(means(common))[:4] == ["best-norm", "fed-cbs", "pure-drift", "fedteddi"]
    bests = means(lambda rows: accuracies(rows).max())
    assert list(bests)[2:6] == ["fed-cbs", "power-of-choice", "fedteddi", "random"]
    assert bests["fed-cbs"] - bests["fedteddi"] < 0.002
    own = of_policies()
    for seed in range(2):
        at_mark = {policy: int(of) for policy, runs in own.items() if (of := first(runs[seed], 0.67)) != "never"}
        assert max(at_mark["best-norm"], at_mark["fed-cbs"]) < at_mark["fedteddi"]
        assert not at_mark.keys() & {"random", "best-channel", "fedcgd"}
    highest = max(accuracies(rows).max() for rows in of_policies()["best-norm"])
    assert highest == TESTS[TESTS["study"] == "comparison"]["accuracy"].max()
    said = [
        f"Its best tests are {100 * bests['fedteddi']:.1f} % in the mean of both seeds, in fifth place, within 0.2 "
        f"points of Fed-CBS and Power-of-Choice, and Random's {100 * bests['random']:.1f} %, in sixth",
        f"The best test of all is {100 * highest:.1f} % (Best Norm)",
    ]
    assert not not_said(RESULTS, said, PAGE)


def test_what_step_1_says():
    random = in_settings("random")
    marks = [math.floor(100 * accuracies(rows).max()) for rows in of_policies()["random"]]
    kept = (random["tau24"]["accuracy"] - random["tau24-kept"]["accuracy"]).abs().max()
    gathered = accuracies(kept_runs(TESTS, "gathered")[0].rows)[-5:].mean()
    above = [100 * (gathered - accuracies(random[name])[-5:].mean()) for name in ("tau5", "tau5-lr0.03")]
    at_mark = (accuracies(random["tau5"]) >= 0.67).sum()
    assert not not_said(
        RESULTS,
        [
            f"Random has 67 % in {at_mark} of its 60 tests in setting 1",
            f"it would have been {marks[0]} and {marks[1]} %",
            f"no test differs by more than {100 * kept:.1f} points",
            f"it ends at {100 * gathered:.0f} %, {above[0]:.1f} points above Random in setting 1 and {above[1]:.1f}",
        ],
        PAGE,
    )


def test_numbers_of_the_table_beside_the_paper():
    runs = kept_runs(TESTS, "comparison")
    near, at = (savings(runs, "fedteddi", mark).set_index("policy") for mark in (0.62, 0.67))
    expected = {
        f"{policy}, to 67 %": (f"{100 * at.loc[policy, 'saving']:.0f}", f"{at.loc[policy, 'p_holm']:.2g}")
        for policy in PAPER
    }
    added = [f"to 62 %, which was added later, {100 * near.loc[policy, 'saving']:.0f} % |" for policy in PAPER]
    assert not not_said("Beside the paper", added, PAGE)
    bests = means(lambda rows: accuracies(rows).max())
    expected |= {f"{policy}, best test": (f"{100 * bests[policy]:.1f}", "") for policy in ("random", "fedteddi")}
    with (DOCS / "papers/results.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["study"] == "fedteddi-cifar10"]
    assert {row["setting"]: (row["value"], row["p"]) for row in rows} == expected
    assert {(row["half"], row["seeds"]) for row in rows} == {("", "2")}


def in_settings(policy):
    return {run.knobs["setting"]: run.rows for run in kept_runs(TESTS, "settings") if run.knobs["policy"] == policy}


def test_random_in_the_settings():
    runs, shown = in_settings("random"), cells(RANDOM)
    assert len(shown) == len(SETTINGS)
    for name, (_, *numbers) in zip(SETTINGS, shown, strict=True):
        assert numbers == each([runs[name]], [best, last_five, clients, kilojoules]), name


def test_fedteddi_beside_random_in_the_settings():
    runs, shown = in_settings("fedteddi"), cells(FEDTEDDI)
    random = in_settings("random")
    ahead = [accuracies(runs[name])[-5:].mean() - accuracies(random[name], 150)[-5:].mean() for name in runs]
    said = f"it is {100 * min(ahead):.1f} to {100 * max(ahead):.1f} points above Random there"
    assert not not_said(RESULTS, [said], PAGE)
    assert [int(label[0]) - 1 for label, *_ in shown] == sorted(SETTINGS.index(name) for name in runs)
    for label, *numbers in shown:
        name = SETTINGS[int(label[0]) - 1]
        own, other = runs[name], random[name]
        compared = [first(own, 0.6), first(other, 0.6), last_five(own), last_five(other, 150)]
        assert numbers == [*compared, best(own), clients(own), kilojoules(own)], label


def test_central_training():
    runs = {}
    for study in ("pictures", "gathered"):
        for run in kept_runs(TESTS, study):
            runs[run.knobs.get("data"), run.knobs["pictures"]] = run.rows
    order = [
        ("cifar10", "given"), ("cifar10", "compressed"), (None, "gathered"),
        ("fashion-mnist", "given"), ("fashion-mnist", "compressed"),
    ]  # fmt: skip
    assert set(order) == set(runs)
    for key, (_, _, epochs, *numbers) in zip(order, cells(CENTRAL), strict=True):
        assert [epochs, *numbers] == [f"{runs[key]['round'].max():.0f}", *each([runs[key]], [best, last_five])], key


def test_central_training_and_start_models_in_words():
    runs = {run.knobs.get("data", "held") + run.knobs["pictures"]: run.tests for run in kept_runs(TESTS, "pictures")}
    loss = {
        name: 100 * (runs[f"{name}given"]["accuracy"] - runs[f"{name}compressed"]["accuracy"])
        for name in ("cifar10", "fashion-mnist")
    }
    both = [*loss["cifar10"], *loss["fashion-mnist"]]
    seven = next(iter(runs["cifar10given"].query("accuracy >= 0.75")["round"]))
    random = [accuracies(rows)[-5:].mean() for rows in in_settings("random").values()]
    starts = TESTS[(TESTS["round"] == 0) & TESTS["study"].isin(["settings", "comparison"])]
    of_old = starts["accuracy"] / 0.6
    far = starts["setting"] == "tau5-lr0.09"
    assert seven == 7
    assert not not_said(
        RESULTS,
        [
            f"(single epochs: between {min(both):.1f} and {max(both):.1f};",
            f"are {loss['fashion-mnist'][-5:].mean():.1f} points lower on Fashion-MNIST",
            f"second compression, {loss['cifar10'][-5:].mean():.1f} on the copies",
            f"settings end within {100 * (max(random) - min(random)):.1f} points of each other",
        ],
        PAGE,
    )
    said = (
        f"which bring {100 * of_old[~far].min():.1f} to {100 * of_old[~far].max():.1f} % of the old classes "
        f"({100 * of_old[far].max():.1f} % in setting 8 below)"
    )
    assert not not_said("On CIFAR-10, at the paper's size", [said], PAGE)


def test_runs_finished():
    assert set(TESTS["status"]) == {"finished"}
    count = {study: len(kept_runs(TESTS, study)) for study in ("pictures", "gathered", "comparison")}
    random, fedteddi = len(in_settings("random")), len(in_settings("fedteddi"))
    seeds = len(TESTS.query("study == 'comparison'")["seed"].unique())
    assert count["comparison"] == seeds * POLICIES
    assert [row[1] for row in cells(FINISHED)] == [
        f"Random's {random} of 8, FedTeddi's {fedteddi} of 6",
        f"{count['pictures']} of 4, {count['gathered']} of 1",
        f"{count['comparison']} of 40 ({seeds} of 5 seeds)",
    ]
