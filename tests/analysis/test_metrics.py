import math

import pandas as pd
import pytest
from refusals import in_one_line

from edgesim.analysis import metrics


def rounds_with(accuracies: list[float | None], round_s: float = 2.0) -> pd.DataFrame:
    numbers = range(1, len(accuracies) + 1)
    return pd.DataFrame(
        {
            "round": numbers,
            "frame": 1,
            "t_start_s": [round_s * (number - 1) for number in numbers],
            "t_end_s": [round_s * number for number in numbers],
            "test_accuracy": pd.Series(accuracies, dtype="float64"),
        }
    )


NO_INSTANTS = pd.DataFrame({"round": [], "name": [], "key": [], "value": []})


def seen(accuracies: list[float | None]) -> pd.DataFrame:
    return metrics.tests(rounds_with(accuracies), NO_INSTANTS)


@pytest.mark.parametrize(
    ("accuracies", "reached", "stayed"),
    [
        ([0.6, None, 0.75, 0.7, 0.9], (3, 6, True), (5, 10, True)),
        ([0.6, 0.7, None], (2, 4, False), (2, 4, False)),
        ([0.6, 0.8, 0.74, None, 0.75, 0.9], (2, 4, True), (5, 10, True)),
        ([0.8, 0.9], (1, 2, True), (1, 2, True)),
        ([0.8, 0.9, 0.74], (1, 2, True), (3, 6, False)),
    ],
)
@pytest.mark.whole_family
def test_a_run_is_there_with_its_first_test_at_the_target_and_stays_from_the_last_one_that_was_below(
    accuracies, reached, stayed
):
    """Round, seconds, and whether it is; else where it was tested last."""
    tests = seen(accuracies)
    assert metrics.to_target(tests, 0.75, 0.5) == reached
    assert metrics.to_stay(tests, 0.75, 0.5) == stayed


def test_a_model_tested_at_instants_counts_at_them_and_not_at_its_rows_end():
    """A model in force at two instants has a row for each; the start model has none."""
    rounds = rounds_with([None, 0.8, None, 0.7, None, None, 0.9])
    instants = pd.DataFrame({"round": [0, 2, 4, 4, 7], "name": "tested_at_s", "key": "", "value": [1.0, 5, 10, 12, 15]})
    tests = metrics.tests(rounds, pd.concat([NO_INSTANTS, instants]))
    assert tests["round"].tolist() == [2, 4, 4, 7]
    assert tests["t_s"].tolist() == [5, 10, 12, 15]
    assert tests["accuracy"].tolist() == [0.8, 0.7, 0.7, 0.9]
    assert metrics.to_target(tests, 0.75, 0.5)[1:] == (5.0, True)
    assert metrics.to_stay(tests, 0.75, 0.5) == (7.0, 15.0, True)


def test_joules_to_the_target_are_those_spent_until_then():
    rounds = rounds_with([0.6, None, 0.75, 0.9]).assign(energy_j=[1.0, 2.0, 4.0, 8.0])
    tests = metrics.tests(rounds, NO_INSTANTS)
    assert metrics.joules_until(rounds, metrics.to_target(tests, 0.75, 0.5).round) == 7.0
    assert metrics.joules_until(rounds, metrics.to_target(tests, 0.95, 0.5).round) == 15.0
    # Of 33 rounds 20 save 13.
    assert metrics.saving(20, 33) == pytest.approx(13 / 33)


@pytest.mark.parametrize("start", [0.75, 0.8])
def test_a_target_not_above_the_start_accuracy_is_refused_with_both_numbers(start):
    with in_one_line(rf"target 0\.75 .* start accuracy {start}"):
        metrics.to_target(seen([0.9]), 0.75, start)


def test_final_accuracy_is_the_mean_of_the_last_five_evaluations_only():
    assert metrics.final_accuracy(rounds_with([0.1, 0.2, None, 0.3, 0.4, None, 0.5, 0.6])) == pytest.approx(0.4)
    assert metrics.final_accuracy(rounds_with([0.2, 0.4])) == pytest.approx(0.3)
    assert math.isnan(metrics.final_accuracy(rounds_with([None, None])))


def test_counts_are_averaged_over_rounds_and_the_miss_rate_is_taken_over_all_scheduled():
    rounds = pd.DataFrame({"selected": [4, 0, 2], "arrived": [3, 0, 0], "late": [1, 0, 2]})
    assert metrics.mean_scheduled(rounds) == 2.0
    assert metrics.mean_arrived(rounds) == 1.0
    assert metrics.miss_rate(rounds) == 0.5
    assert math.isnan(metrics.miss_rate(rounds.assign(selected=0, late=0)))


def test_spectral_efficiency_of_the_golden_round_counts_arrived_bits_only():
    # One round of 1 s at 500 kHz: two uploads of 1 Mbit arrive, or one while the other drops at 200 kbit.
    rounds = pd.DataFrame({"round": [1], "t_start_s": [0.0], "t_end_s": [1.0]})
    rows = [(1, "compute", "done", 0.0), (1, "upload", "done", 1e6), (1, "upload", "done", 1e6)]
    uploads = pd.DataFrame(rows, columns=["round", "activity", "outcome", "bits"])
    assert metrics.spectral_efficiency_bps_per_hz(rounds, uploads, 5e5) == 4.0
    dropped = uploads.assign(outcome=["done", "done", "dropped"], bits=[0.0, 1e6, 2e5])
    assert metrics.spectral_efficiency_bps_per_hz(rounds, dropped, 5e5) == 2.0
    # What arrived in a round that the run's end cut is not set against the time of the others.
    cut = uploads.assign(round=[1, 1, 2])
    assert metrics.spectral_efficiency_bps_per_hz(rounds, cut, 5e5) == 2.0


def test_start_accuracy_and_infeasible_share_come_from_their_own_metrics_rows():
    rows = [(0, "class_accuracy", 0.9), (0, "test_accuracy", 0.4), (1, "test_accuracy", 0.6)]
    rows += [(1, "infeasible_share", 0.1), (2, "infeasible_share", 0.3)]
    table = pd.DataFrame(rows, columns=["round", "name", "value"])
    assert metrics.start_accuracy(table) == 0.4
    assert metrics.infeasible_share(table) == pytest.approx(0.2)
    assert metrics.start_accuracy(table[table["round"] > 0]) is None


DEVICES = pd.DataFrame(
    {
        "device": [0, 1, 2] * 3,
        "frame": [0, 0, 0, 1, 1, 1, 2, 2, 2],
        # Device 0 gets class 1 in frame 1, device 1 gets class 2 in frame 2, device 2 only ever loses one.
        "class_counts": [
            *([5, 0, 0], [5, 5, 0], [5, 5, 0]),
            *([3, 2, 0], [5, 5, 0], [5, 0, 0]),
            *([2, 3, 0], [5, 3, 2], [5, 0, 0]),
        ],
    }
)


def test_a_new_class_is_one_held_now_and_not_in_the_frame_before():
    marked = metrics.new_class_devices(DEVICES)
    new = set(marked[marked["has_new_class"]][["device", "frame"]].itertuples(index=False, name=None))
    assert new == {(0, 1), (1, 2)}
    assert len(marked) == 6


def test_devices_of_a_run_without_classes_have_no_new_class_table():
    for counts in (None, []):
        devices = pd.DataFrame({"device": [0, 0], "frame": [0, 1], "class_counts": [counts, counts]})
        assert metrics.new_class_devices(devices).empty


def test_scheduled_clients_are_split_by_new_class_with_zero_rows_for_empty_rounds():
    rounds = pd.DataFrame({"round": [1, 2, 3], "frame": [1, 1, 2], "selected": [2, 0, 3]})
    activities = pd.DataFrame(
        [
            (1, 0, "compute", "done"),
            (1, 0, "upload", "done"),
            (1, 1, "compute", "late"),  # too slow to begin its upload: scheduled all the same
            (1, 2, "compute", "unscheduled"),
            (3, 0, "upload", "done"),
            (3, 1, "upload", "dropped"),
            (3, 2, "upload", "late"),
        ],
        columns=["round", "device", "activity", "outcome"],
    )
    split = metrics.scheduled_by_class(rounds, activities, DEVICES)
    assert split["with_new"].tolist() == [1, 0, 1]
    assert split["only_old"].tolist() == [1, 0, 2]


def test_those_who_left_while_computing_share_what_is_missing_to_the_number_selected():
    # Three were selected: one uploads, one finished computing and left while it waited for the band, and one
    # of the two who left while computing. Nobody can tell which, so each counts for one half.
    rounds = pd.DataFrame({"round": [1], "frame": [1], "selected": [3]})
    activities = pd.DataFrame(
        [
            (1, 0, "compute", "done"),
            (1, 0, "upload", "dropped"),
            (1, 1, "compute", "done"),
            (1, 2, "compute", "dropped"),
            (1, 3, "compute", "dropped"),
            (1, 4, "compute", "unscheduled"),
        ],
        columns=["round", "device", "activity", "outcome"],
    )
    shares = metrics.scheduled_devices(rounds, activities)
    assert dict(zip(shares["device"], shares["share"], strict=True)) == {0: 1.0, 1: 1.0, 2: 0.5, 3: 0.5}
    split = metrics.scheduled_by_class(rounds, activities, DEVICES)
    assert split[["with_new", "only_old"]].to_numpy().tolist() == [[1.0, 2.0]]
