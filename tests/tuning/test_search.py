"""The search for the best cell, with trials that a formula answers: what it finds, repeats, shares and closes."""

import math
from contextlib import contextmanager

import optuna
import pytest

from edgesim.base.errors import EdgesimError, NoRunFinished
from edgesim.tuning import journal as journals
from edgesim.tuning.journal import FOLDER, opened
from edgesim.tuning.knobs import Knob
from edgesim.tuning.objectives import OBJECTIVES, Seen
from edgesim.tuning.search import pruner, search
from edgesim.tuning.trial import Cell, Outcome

TMAX, BAND = "round.tmax_s", "radio.bandwidth_hz"
KNOBS = [Knob(TMAX, low=0.1, high=2.0), Knob(BAND, (5e6, 10e6, 20e6, 40e6, 80e6))]
FEW = [
    Knob(TMAX, (0.5, 1.0)),
    Knob("selection.policy", ("random", "oort")),
    Knob("round.count", low=1, high=2, whole=True),
]


def seconds(values):
    """A valley: 10 s at 0.5 s and 20 MHz, more around it on logarithmic scales."""
    return 10 + 6 * math.log(values[TMAX] / 0.5) ** 2 + 2 * math.log(values[BAND] / 20e6) ** 2


@pytest.fixture
def formula(tmp_path):
    """Searches in a folder with trials that a formula answers; gives what was told, in order."""

    def tune(
        trials,
        of=lambda values: (seconds(values),),
        knobs=KNOBS,
        names=("simulated-s",),
        seed=0,
        folder=None,
        at_once=1,
    ):
        out = folder or tmp_path / "out"
        out.mkdir(exist_ok=True)
        objectives = [OBJECTIVES[name] for name in names]

        def evaluate(cells, prune):
            found = {cell.number: of(cell.values) for cell in cells}
            return {
                number: value if isinstance(value, Outcome) else Outcome("complete", Seen(value, -math.inf))
                for number, value in found.items()
            }

        with opened(out, {"seed": seed}, knobs, objectives, seed) as journal:
            search(journal, lambda values: [], evaluate, trials, at_once, None, lambda *_: None, lambda _: None)
            return journal.trials()

    return tune


@contextmanager
def journal_of(out, knobs=KNOBS, names=("simulated-s",)):
    out.mkdir(exist_ok=True)
    with opened(out, {}, knobs, [OBJECTIVES[name] for name in names], 0) as journal:
        yield journal


@pytest.fixture
def at_random(monkeypatch):
    """Draws instead of proposals, which take long: for what hangs on none."""
    monkeypatch.setattr(journals, "_sampler", lambda seed, number, _: optuna.samplers.RandomSampler(seed=number))


@pytest.mark.slow
def test_the_least_of_a_valley_is_found_within_five_percent_in_a_third_of_a_grid_of_eight_by_five(formula):
    told = formula(13)
    assert len(told) == 13
    assert min(one.seen.values[0] for one in told) <= 1.05 * 10


@pytest.mark.slow
def test_trials_that_do_not_reach_the_target_are_left_behind_though_their_bounds_are_low(formula):
    def of(values):
        short = 0.3 - values[TMAX] / 2
        return Outcome("complete", Seen((5.0 if short > 0 else 10 * values[TMAX],), short))

    told = formula(16, of, names=("seconds-to-target",))
    good = [one for one in told if one.counts]
    assert min(one.seen.values[0] for one in good) <= 7.0
    assert all(one.values[TMAX] >= 0.6 for one in good)
    # More often than the third of the logarithmic range in which it is reached.
    assert len(good) > 8


def test_the_same_seed_asks_the_same_trials_also_behind_a_stop_and_another_one_others(formula, tmp_path, at_random):
    whole = [one.values for one in formula(6)]
    other = [one.values for one in formula(6, folder=tmp_path / "again")]
    formula(2, folder=tmp_path / "stopped")
    stopped = [one.values for one in formula(6, folder=tmp_path / "stopped")]
    assert whole == other == stopped
    assert len({str(values) for values in whole}) == 6


def test_the_optimiser_draws_from_a_stream_of_the_seed(formula, tmp_path):
    first, again, other = ([one.values for one in formula(7, seed=seed, folder=tmp_path / name)]
                           for seed, name in ((0, "a"), (0, "b"), (1, "c")))  # fmt: skip
    assert first == again
    assert first[0] != other[0]


def test_no_cell_of_a_finite_space_is_asked_twice_and_the_search_ends_when_all_are_tried(formula, at_random):
    told = formula(60, lambda values: (values[TMAX] + values["round.count"],), FEW, at_once=3)
    assert len(told) == len({str(sorted(one.values.items())) for one in told}) == 8
    assert {one.status for one in told} == {"complete"}
    # Another start has nothing left to ask.
    assert len(formula(60, lambda values: (0.0,), FEW)) == 8


def test_a_list_of_numbers_is_searched_by_place_and_a_range_to_four_digits(formula, at_random):
    for one in formula(5):
        assert one.values[BAND] in KNOBS[1].choices
        assert one.values[TMAX] == float(f"{one.values[TMAX]:.4g}")
        assert 0.1 <= one.values[TMAX] <= 2.0


def test_a_failed_trial_is_told_with_its_reason_and_if_all_fail_the_search_ends(formula, at_random):
    fail = Outcome("failed", reason="x-s0: broken")
    told = formula(4, lambda values: fail if values[BAND] < 20e6 else (1.0,))
    assert {one.status for one in told} == {"complete", "failed"}
    assert {one.reason for one in told if one.status == "failed"} == {"x-s0: broken"}


def test_where_the_first_ten_trials_fail_nothing_more_is_tried(formula, at_random):
    tried = []

    def of(values):
        tried.append(values)
        return Outcome("failed", reason="x-s0: broken")

    with pytest.raises(NoRunFinished, match="all of 10 trials failed; the first one: x-s0: broken"):
        formula(60, of)
    assert len(tried) == 10


def test_a_trial_of_a_process_that_is_gone_is_closed_and_its_cell_asked_again_first(tmp_path, at_random):
    with journal_of(tmp_path / "out") as gone:
        number, values = gone.ask(5)
        # As SIGKILL leaves it: at work, by a process whose lease nobody holds.
        gone.mine[number].set_user_attr("worker", "worker-of-nobody")
        gone.mine.clear()
        assert [one.status for one in gone.trials()] == ["running"]
        with journal_of(tmp_path / "out") as other:
            again, same = other.ask(5)
            assert (same, again != number) == (values, True)
            other.tell(again, Outcome("complete", Seen((1.0,), -math.inf)))
            assert [(one.of_optuna, one.status) for one in other.trials()] == [(again, "complete")]
            assert other.ask(5)[1] != values


def test_two_processes_share_the_trials_and_one_that_ends_hands_its_own_back(tmp_path, at_random):
    with journal_of(tmp_path / "out") as one:
        first = one.ask(3)[1]
        with journal_of(tmp_path / "out") as two:
            second = two.ask(3)[1]
            assert first != second
            assert (one.elsewhere(), two.elsewhere()) == (1, 1)
        assert one.elsewhere() == 0
        assert one.ask(3)[1] == second
    assert not list((tmp_path / "out" / FOLDER).glob("worker-*"))


def test_a_trial_is_given_up_only_where_so_many_others_are_better_whatever_follows(tmp_path, at_random):
    with journal_of(tmp_path / "out", names=("seconds-to-target",)) as journal:
        rule = pruner(journal, journal.objectives, 2)
        for value, short in ((10.0, -0.1), (12.0, 0.0), (3.0, 0.2)):
            number, _ = journal.ask(9)
            journal.tell(number, Outcome("complete", Seen((value,), short)))
        cell = Cell(7, {}, ())
        # The third never reached the target, so that its 3 s beat nobody.
        assert [bool(rule(cell, 0, Seen((bound,), 0.3))) for bound in (9.0, 11.0, 12.0, 12.5)] == [False] * 3 + [True]
        assert "2 other trials are better" in rule(cell, 0, Seen((12.5,), 0.3))


def test_of_two_objectives_a_trial_is_given_up_where_one_other_is_better_in_both(tmp_path, at_random):
    with journal_of(tmp_path / "out", names=("seconds-to-target", "joules-to-target")) as journal:
        rule = pruner(journal, journal.objectives, 3)
        number, _ = journal.ask(9)
        journal.tell(number, Outcome("complete", Seen((10.0, 100.0), 0.0)))
        asked = [(9.0, 200.0), (11.0, 90.0), (10.0, 100.0), (10.0, 101.0)]
        assert [bool(rule(Cell(1, {}, ()), 0, Seen(values, 0.1))) for values in asked] == [False, False, False, True]
    assert pruner(journal, [OBJECTIVES["seconds-to-target"], OBJECTIVES["final-accuracy"]], 3) is None


def test_an_accuracy_is_judged_by_the_median_of_other_trials_behind_the_same_rung(tmp_path, at_random):
    with journal_of(tmp_path / "out", names=("final-accuracy",)) as journal:
        rule = pruner(journal, journal.objectives, 3)
        for place in range(6):
            number, values = journal.ask(9)
            given_up = rule(Cell(number, values, ()), 0, Seen((0.5 + place / 100,), -math.inf))
            assert not given_up
            journal.tell(number, Outcome("complete", Seen((0.8,), -math.inf)))
        for value, is_given_up in ((0.50, True), (0.54, False)):
            number, values = journal.ask(9)
            assert bool(rule(Cell(number, values, ()), 0, Seen((value,), -math.inf))) == is_given_up


def test_the_knob_that_matters_is_the_important_one(tmp_path, at_random):
    with journal_of(tmp_path / "out") as journal:
        for _ in range(30):
            number, values = journal.ask(30)
            journal.tell(number, Outcome("complete", Seen((math.log(values[TMAX]) ** 2,), -math.inf)))
        shares = journal.importances()["simulated_s"]
    assert shares[TMAX] > 0.8
    assert sum(shares.values()) == pytest.approx(1)


def test_a_journal_of_something_else_or_in_pieces_is_refused(tmp_path, formula, at_random):
    formula(1, seed=0)
    with pytest.raises(EdgesimError, match=r"out: holds a tuning of something else \(seed differs\)"):
        formula(1, seed=1)
    path = tmp_path / "out" / FOLDER / "journal.log"
    path.write_text("{\n" + path.read_text())
    with pytest.raises(EdgesimError, match=r"journal.log: cannot be read .*; remove it: finished runs count again"):
        formula(1, seed=0)
