"""Two knobs crossed: their comparisons in one family, and which of them matters more."""

import io

import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from edgesim.analysis.crossed import cross
from edgesim.analysis.runs import read_study
from edgesim.tables.show_crossed import answer, print_crossed

POLICIES, SERVERS, SEEDS = ("random", "afl", "oort"), ("own", "mifa"), 6


def accuracies(of_policy, of_server) -> np.ndarray:
    """Accuracies [policy, server, seed]: effects of both, and noise of a point."""
    noise = np.random.default_rng(7).normal(0, 0.01, (3, 2, SEEDS))
    return 0.6 + np.array(of_policy)[:, None, None] + np.array(of_server)[None, :, None] + noise


KNOBS = ("policy", "random"), ("server", "own")


def written(folder, study_writer, values, runs_of=lambda policy: SEEDS):
    runs = [
        ({"policy": policy, "server": server}, seed, "finished", [values[i, j, seed]] * 2)
        for i, policy in enumerate(POLICIES)
        for j, server in enumerate(SERVERS)
        for seed in range(runs_of(policy))
    ]
    return read_study(study_writer(folder, runs, target=None))


@pytest.fixture(scope="module")
def values():
    """Policies matter more than servers."""
    return accuracies((0.0, 0.012, 0.1), (0.0, 0.02))


@pytest.fixture(scope="module")
def study(tmp_path_factory, study_writer, values):
    return written(tmp_path_factory.mktemp("crossed") / "study", study_writer, values)


@pytest.fixture(scope="module")
def found(study):
    return cross(study, *KNOBS, "final_accuracy")


def test_comparisons_of_both_knobs_are_corrected_together(found, values):
    table = found.differences
    assert table["compared"].tolist() == ["policy"] * 4 + ["server"] * 3
    assert table["against"].tolist() == ["random"] * 4 + ["own"] * 3
    by_hand = [stats.ttest_rel(values[i, j], values[0, j]).pvalue for i in (1, 2) for j in (0, 1)]
    by_hand += [stats.ttest_rel(values[i, 1], values[i, 0]).pvalue for i in range(3)]
    assert table["p"].tolist() == pytest.approx(by_hand)
    assert table["p_holm"].min() == pytest.approx(7 * min(by_hand))


def test_the_knob_whose_values_differ_more_in_each_seed_matters_more(study, found, values, tmp_path, study_writer):
    policies, servers = values.mean(axis=1).std(axis=0, ddof=1), values.mean(axis=0).std(axis=0, ddof=1)
    assert found.spreads["policy"].tolist() == pytest.approx(policies.tolist())
    assert found.spreads["server"].tolist() == pytest.approx(servers.tolist())
    assert found.answer["difference"] == pytest.approx((policies - servers).mean())
    assert found.answer["p"] == pytest.approx(stats.ttest_rel(policies, servers).pvalue)
    assert ": policy matters more (difference 0." in answer(found)
    swapped = cross(study, *KNOBS[::-1], "final_accuracy")
    assert ": policy matters more (difference -0." in answer(swapped)
    neither = written(tmp_path / "neither", study_writer, accuracies((0.0, 0.0, 0.0), (0.0, 0.0)))
    assert "neither is shown to matter more" in answer(cross(neither, *KNOBS, "final_accuracy"))


def test_a_seed_without_all_combinations_has_no_spread(values, tmp_path, study_writer):
    lacking = written(tmp_path / "study", study_writer, values, lambda policy: SEEDS - (policy == "oort"))
    found = cross(lacking, *KNOBS, "final_accuracy")
    assert found.spreads["seed"].tolist() == list(range(SEEDS - 1))


def test_the_tables_say_what_was_found(found):
    console = Console(file=io.StringIO(), width=160)
    print_crossed(found, console)
    said = console.file.getvalue()
    (oort,) = [line for line in said.splitlines() if line.split()[:4] == ["policy", "oort", "own", "random"]]
    assert oort.split()[-1] == "higher"
    assert "policy x server" in said
