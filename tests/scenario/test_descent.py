"""Descent by signs: three steps by hand, and what the counterexamples of the error feedback paper say of many."""

import runpy
from pathlib import Path

import pytest

from edgesim.scenario.descent import WAYS, descend

SCENARIO = runpy.run_path(str(Path(__file__).parents[2] / "scenarios/ef_signsgd.py"))
rises, end = SCENARIO["rises"], SCENARIO["end"]


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        ("sgd", [(-3.0, 1.0), (-3.5, 0.75), (-3.5, 1.25)]),
        ("signsgd", [(-1.0, 1.0), (-1.5, 0.5), (-2.0, 1.0)]),
        # Sent are (2, -2); of (1.5, 1.25) the mean 1.375; of (0.125, -0.625) the mean 0.375.
        ("feedback", [(-2.0, 2.0), (-3.375, 0.625), (-3.75, 1.0)]),
    ],
)
def test_three_steps_by_hand(way, expected):
    """Gradients (3, -1), (1, 0.5), (0, -1) with rates 1, 0.5, 0.5; the sign of 0 is +."""
    gradients, rates = [(3.0, -1.0), (1.0, 0.5), (0.0, -1.0)], [1.0, 0.5, 0.5]
    points = descend(way, (0.0, 0.0), 3, lambda number, _: gradients[number - 1], lambda number: rates[number - 1])
    for point, numbers in zip(points, expected, strict=True):
        assert point.tolist() == pytest.approx(numbers, abs=1e-6)


def test_gradients_are_taken_at_the_point_before_the_step():
    seen = []
    points = descend(
        "sgd", (1.0,), 3, lambda number, point: seen.append((number, float(point))) or (point,), lambda _: 0.5
    )
    assert seen == [(1, 1.0), (2, 0.5), (3, 0.25)]
    assert points[-1].item() == 0.125


@pytest.mark.parametrize(("way", "rise"), [("sgd", -1 / 16), ("signsgd", 1 / 8), ("feedback", -1 / 16)])
def test_signs_climb_where_a_residual_falls_as_gradients_do(way, rise):
    """Section 3, counterexample 1: change of f in each step, in rates; within three standard errors of the mean."""
    changes = rises(way, 2_000, 2)
    error = changes.std(ddof=1) / len(changes) ** 0.5
    assert abs(changes.mean() - rise) < 3 * error
    assert 3 * error < abs(rise)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "value", "within", "along"), [("signsgd", 0.5007, 5e-5, 2.0), ("feedback", 1.6e-4, 5e-6, 0.0)]
)
def test_signs_never_leave_a_line_that_a_residual_leaves(way, value, within, along):
    """Section 3, counterexample 2: f and x1 + x2 after 20,000 steps."""
    found, place = end(way, 20_000)
    assert found == pytest.approx(value, abs=within)
    assert place == pytest.approx(along, abs=1e-3)


def test_all_but_signs_alone_come_down_in_two_thousand_steps():
    ends = {way: end(way, 2_000)[0] for way in WAYS}
    assert ends["signsgd"] > 0.5
    assert max(ends["sgd"], ends["feedback"]) < 0.003
