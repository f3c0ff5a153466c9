"""Oracles: the worked table of 3.5 and T1, T2 of dpfl-kpfl.md, and exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgesim.analysis.convergence import convergence_measures
from edgesim.analysis.participation import (
    class_course,
    course,
    course_measures,
    forgetting,
    forgetting_names,
    impact,
    instability,
    instability_window,
    windowed,
)
from edgesim.analysis.runs import RunFolder
from edgesim.base.errors import EdgesimError

PSI = [22, 31.5, 28, 40.5, 37, 46, 41.5, 49, 44, 51.5, 50, 52.5]
STATIC = [25, 36, 42.5, 47, 50, 52.5, 54, 55.5, 56, 57, 57.5, 58]
WE = [22, 26.75, 81.5 / 3, 30.5, 31.8, 36.6, 38.6, 42.8, 43.5, 46.4, 47.2, 49.4]
WE_STATIC = [25, 30.5, 34.5, 37.625, 40.1, 45.6, 49.2, 51.8, 53.6, 55, 56, 56.8]
LOST = [3, 7.5, 22, 28.5, 41.5, 48, 60.5, 67, 79, 84.5, 92, 97.5]

percents = st.floats(0, 100).map(lambda value: round(value, 3))
courses = st.lists(percents, min_size=5, max_size=40)


def exact_instability(psi, after: int, last: int, degree: int) -> float:
    """Mean absolute residual of the least-squares polynomial, by the normal equations in exact fractions."""
    x = [Fraction(i) for i in range(after + 1, last + 1)]
    y = [Fraction(psi[i - 1]) for i in range(after + 1, last + 1)]
    size = degree + 1
    rows = [[sum(v ** (i + j) for v in x) for j in range(size)] for i in range(size)]
    rows = [[*row, sum(v**i * w for v, w in zip(x, y, strict=True))] for i, row in enumerate(rows)]
    for i in range(size):
        rows[i] = [value / rows[i][i] for value in rows[i]]
        for j in range(size):
            if j != i:
                rows[j] = [a - rows[j][i] * b for a, b in zip(rows[j], rows[i], strict=True)]
    fit = [sum(rows[i][-1] * v**i for i in range(size)) for v in x]
    return float(sum(abs(a - b) for a, b in zip(fit, y, strict=True)) / len(x))


def test_we_and_its_variance_of_the_worked_table_and_oracle_t1():
    np.testing.assert_allclose(windowed(PSI).mean, WE, rtol=0, atol=1e-12)
    np.testing.assert_allclose(windowed(STATIC).mean, WE_STATIC, rtol=0, atol=1e-12)
    assert windowed(PSI).variance[[0, -1]] == pytest.approx([0, 8.74], abs=1e-12)
    psi, static = [10, 20, 30, 40, 45, 50, 52, 54, 55, 56], [12, 25, 37, 48, 55, 60, 62, 63, 64, 64]
    assert windowed(psi).mean[[0, 4, 9]] == pytest.approx([10, 29, 53.4], abs=1e-12)
    assert impact(static, psi) == pytest.approx(7.8, abs=1e-12)


def test_idp_of_every_prefix_of_the_worked_table():
    for rounds, total in enumerate(LOST, start=1):
        assert impact(STATIC[:rounds], PSI[:rounds]) == pytest.approx(total / rounds, abs=1e-12)
    assert impact(STATIC, PSI) == pytest.approx(8.125, abs=1e-12)


@pytest.mark.parametrize(
    ("psi", "options", "expected"),
    [
        (PSI, {}, 2.0682539683),
        (PSI, {"degree": 2}, 1.9809523810),
        (PSI, {"window": (0, 12)}, 3.1882284382),
        (STATIC, {}, 2 / 9),
        ([50, 52, 49, 54, 51, 55], {"window": (0, 6)}, 1.479365),
    ],
)
def test_id_of_the_worked_table_and_of_oracle_t2(psi, options, expected):
    assert instability(psi, **options) == pytest.approx(expected, abs=5e-7 if expected == 1.479365 else 5e-11)


def test_the_window_of_id_is_rounds_51_to_100_or_the_second_half_of_shorter_runs():
    windows = {12: (6, 12), 5: (2, 5), 60: (30, 60), 99: (49, 99), 100: (50, 100), 300: (50, 100)}
    assert {rounds: instability_window(rounds) for rounds in windows} == windows


def test_white_noise_of_one_point_has_an_id_of_0_782_over_50_rounds():
    noise = np.random.default_rng(1).standard_normal((4000, 100))
    assert np.mean([instability(row) for row in noise]) == pytest.approx(0.782, abs=0.004)


@given(courses, st.integers(1, 3))
def test_id_is_the_residual_of_the_exact_least_squares_polynomial(psi, degree):
    after = (len(psi) - degree - 2) // 2
    expected = exact_instability(psi, after, len(psi), degree)
    assert instability(psi, (after, len(psi)), degree) == pytest.approx(expected, abs=1e-9)


def test_forgetting_is_the_best_of_the_rounds_before_the_last_minus_the_last():
    by_class = [[10, 90, 40], [80, 60, 40], [50, 70, 45]]
    assert forgetting(by_class).tolist() == [30, 20, -5]


def test_series_that_are_too_short_or_unequal_are_refused():
    for psi, options in (([1, 2, 3, 4], {}), (PSI, {"degree": 5}), (PSI, {"window": (6, 13)})):
        with pytest.raises(EdgesimError, match=r"^ID of degree \d needs a window of at least \d of the \d+ rounds"):
            instability(psi, **options)
    with pytest.raises(EdgesimError, match=r"^IDP needs runs of equally many rounds \(got 3 against 2\)$"):
        impact([1, 2], [1, 2, 3])
    with pytest.raises(EdgesimError, match="forgetting needs at least 2 rounds"):
        forgetting([[1, 2]])


def shares(psi):
    return [value / 100 for value in psi]


def test_the_measures_of_a_run_folder_are_those_of_the_worked_table(tmp_path, run_writer):
    classes = [{0: 0.5, 1: 1.0}] * 11 + [{0: 0.25, 1: 0.75}]
    run = RunFolder(run_writer(tmp_path / "run", shares(PSI), classes=classes), {}, 0)
    np.testing.assert_allclose(course(run), PSI, atol=1e-12)
    assert class_course(run).iloc[-1].to_dict() == {"0": 25, "1": 75}
    assert course_measures(run) == pytest.approx(
        {
            "best_accuracy": 0.525,
            "we_percent": 49.4,
            "we_variance": 8.74,
            "id_points": 2.0682539683,
            "id_first": 7,
            "id_last": 12,
            "forgetting_points": 25,
            "forgetting_class_0": 25,
            "forgetting_class_1": 25,
        },
        abs=5e-11,
    )


def test_bests_of_own_models_are_of_the_rounds_since_the_last_newcomer_and_windows_of_all(tmp_path, run_writer):
    """Two devices, three from round 3 on: their mean falls though no model got worse."""
    psi = [0.7, 0.8, 0.4, 0.6, 0.5]
    classes = [{0: psi[round], 1: (0.9, 0.9, 0.3, 0.2, 0.1)[round]} for round in range(5)]
    plain, own, grown = (
        RunFolder(run_writer(tmp_path / str(number), psi, classes=classes, models=models), {}, 0)
        for number, models in enumerate([(), (2, 2, 3, 3, 3), (2, 2, 3, 3, 4)])
    )
    found = [course_measures(run) for run in (plain, own, grown)]
    assert [values["best_accuracy"] for values in found] == [0.8, 0.6, 0.5]
    assert found[0]["forgetting_points"] == pytest.approx((30 + 80) / 2)
    assert found[1]["forgetting_points"] == pytest.approx((10 + 20) / 2)
    assert "forgetting_points" not in found[2]
    assert found[0]["we_percent"] == found[1]["we_percent"] == found[2]["we_percent"] == pytest.approx(60)
    peaks = [convergence_measures(run) for run in (plain, own, grown)]
    assert [values["best_round"] for values in peaks] == [2, 4, 5]
    assert [values["rounds_to_own_peak"] for values in peaks] == [2, 4, 5]


def test_forgetting_by_class_is_told_in_the_order_of_the_classes():
    """As texts, 10 would come before 2."""
    names = [f"forgetting_class_{label}" for label in (10, 2, 0)] + ["forgetting_points", "forgetting_class_0_low"]
    assert list(forgetting_names(names).values()) == ["0", "2", "10"]


def test_a_run_with_an_untested_round_has_its_best_accuracy_alone(tmp_path, run_writer):
    run = RunFolder(run_writer(tmp_path / "run", [0.5, None, 0.7, 0.6]), {}, 0)
    assert course_measures(run) == {"best_accuracy": 0.7}
    with pytest.raises(EdgesimError, match=r"^[^\n]*run: .* undefined: 3 of 4 rounds have a test, .*evaluation.every"):
        course(run)
    assert course_measures(RunFolder(run_writer(tmp_path / "timing", [None, None]), {}, 0)) == {}
    short = RunFolder(run_writer(tmp_path / "short", [0.5, 0.6, 0.7, 0.6]), {}, 0)
    assert set(course_measures(short)) == {"best_accuracy", "we_percent", "we_variance"}


def test_a_class_without_a_test_in_some_round_is_refused(tmp_path, run_writer):
    run = RunFolder(run_writer(tmp_path / "run", [0.5, 0.6], classes=[{0: 0.5, 1: 0.5}, {0: 0.5}]), {}, 0)
    with pytest.raises(EdgesimError, match="expected class_accuracy of every class in each of 2 rounds"):
        class_course(run)
