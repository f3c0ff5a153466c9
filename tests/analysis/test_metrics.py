import math

import pandas as pd
import pytest

from edgesim.analysis import metrics
from edgesim.base.errors import EdgesimError
from edgesim.folder.records import read_table


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


def test_the_first_evaluated_round_at_the_target_counts_and_not_a_later_better_one():
    tests = seen([0.6, None, 0.75, 0.7, 0.9])
    assert metrics.to_target(tests, 0.75, 0.5) == (3.0, 6.0, True)


def test_a_run_that_never_reaches_the_target_is_censored_at_its_last_test():
    tests = seen([0.6, 0.7, None])
    assert metrics.to_target(tests, 0.75, 0.5) == (2.0, 4.0, False)


def test_a_run_stays_from_the_test_after_which_none_is_below_the_target():
    tests = seen([0.6, 0.8, 0.74, None, 0.75, 0.9])
    assert metrics.to_target(tests, 0.75, 0.5)[1:] == (4.0, True)
    assert metrics.to_stay(tests, 0.75, 0.5) == (5.0, 10.0, True)
    always = seen([0.8, 0.9])
    assert metrics.to_stay(always, 0.75, 0.5) == metrics.to_target(always, 0.75, 0.5) == (1.0, 2.0, True)


def test_a_run_below_the_target_at_its_end_does_not_stay_though_it_reached_it():
    tests = seen([0.8, 0.9, 0.74])
    assert metrics.to_target(tests, 0.75, 0.5)[1:] == (2.0, True)
    assert metrics.to_stay(tests, 0.75, 0.5) == (3.0, 6.0, False)


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


@pytest.mark.parametrize("start", [0.75, 0.8])
def test_a_target_not_above_the_start_accuracy_is_refused_with_both_numbers(start):
    with pytest.raises(EdgesimError, match=rf"target 0\.75 .* start accuracy {start}") as error:
        metrics.to_target(seen([0.9]), 0.75, start)
    assert "\n" not in str(error.value)


def test_final_accuracy_is_the_mean_of_the_last_five_evaluations_only():
    assert metrics.final_accuracy(rounds_with([0.1, 0.2, None, 0.3, 0.4, None, 0.5, 0.6])) == pytest.approx(0.4)
    assert metrics.final_accuracy(rounds_with([0.2, 0.4])) == pytest.approx(0.3)
    assert math.isnan(metrics.final_accuracy(rounds_with([None, None])))


def test_saving_is_one_minus_the_ratio_of_the_rounds():
    assert metrics.saving(20, 33) == pytest.approx(13 / 33)


def test_counts_are_averaged_over_rounds_and_the_miss_rate_is_taken_over_all_scheduled():
    rounds = pd.DataFrame({"selected": [4, 0, 2], "arrived": [3, 0, 0], "late": [1, 0, 2]})
    assert metrics.mean_scheduled(rounds) == 2.0
    assert metrics.mean_arrived(rounds) == 1.0
    assert metrics.miss_rate(rounds) == 0.5
    assert math.isnan(metrics.miss_rate(rounds.assign(selected=0, late=0)))


def test_spectral_efficiency_of_the_golden_round_counts_arrived_bits_only():
    # One round of 1 s at 500 kHz: two uploads of 1 Mbit arrive, or one while the other drops at 200 kbit.
    rounds = pd.DataFrame({"round": [1], "t_start_s": [0.0], "t_end_s": [1.0]})
    uploads = pd.DataFrame(
        {
            "round": [1, 1, 1],
            "activity": ["compute", "upload", "upload"],
            "outcome": ["done", "done", "done"],
            "bits": [0.0, 1e6, 1e6],
        }
    )
    assert metrics.spectral_efficiency_bps_per_hz(rounds, uploads, 5e5) == 4.0
    dropped = uploads.assign(outcome=["done", "done", "dropped"], bits=[0.0, 1e6, 2e5])
    assert metrics.spectral_efficiency_bps_per_hz(rounds, dropped, 5e5) == 2.0
    # What arrived in a round that the run's end cut is not set against the time of the others.
    cut = uploads.assign(round=[1, 1, 2])
    assert metrics.spectral_efficiency_bps_per_hz(rounds, cut, 5e5) == 2.0


def test_start_accuracy_and_infeasible_share_come_from_their_own_metrics_rows():
    table = pd.DataFrame(
        {
            "round": [0, 0, 1, 1, 2],
            "name": [
                "class_accuracy",
                "test_accuracy",
                "test_accuracy",
                "infeasible_share",
                "infeasible_share",
            ],
            "value": [0.9, 0.4, 0.6, 0.1, 0.3],
        }
    )
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


def test_metrics_read_back_from_a_run_folder_match_the_rows_written(tmp_path, run_writer):
    folder = run_writer(tmp_path / "run", [None, 0.7, 0.8])
    rounds = read_table(folder, "rounds")
    assert metrics.to_target(metrics.tests(rounds, read_table(folder, "metrics")), 0.8, 0.5)[::2] == (3.0, True)
    assert metrics.simulated_s(rounds) == 6.0
    assert metrics.evaluations(rounds)["round"].tolist() == [2, 3]
