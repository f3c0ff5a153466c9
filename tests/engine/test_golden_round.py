"""One round, row by row: every table of the specification's golden round (see golden.py)."""

import pytest
from golden import UPLOAD_W, assert_rows, leaves, play

COUNTS = ["candidates", "selected", "arrived", "late", "dropped"]
FIRST, SECOND = (0, "compute", 0, 0.2, "done", 0, 0), (1, "compute", 0, 0.5, "done", 0, 0)
FIRST_SENDS = (0, "upload", 0.2, 1.0, "done", 1e6, 130_418.720)
SECOND_SENDS = (1, "upload", 0.5, 1.0, "done", 1e6, 227_748.247)
THIRD_IN_VAIN = (2, "compute", 0, 0.7, "unscheduled", 0, 0)
SECOND_IN_VAIN = (1, "compute", 0, 0.5, "unscheduled", 0, 0)
PLANNED = {"delay_knowledge": "planned"}


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("order", "leave", "knobs", "rows", "end_s", "counts", "bits_up"),
    [
        ([0, 1, 2], (), {}, [FIRST, FIRST_SENDS, SECOND, SECOND_SENDS, THIRD_IN_VAIN], 1.0, [3, 2, 2, 0, 0], 2e6),
        # The device that leaves mid-upload is dropped then, and the round waits for the deadline.
        ([0, 1, 2], (1, 0.6), {}, [FIRST, FIRST_SENDS, SECOND, (1, "upload", 0.5, 0.6, "dropped", 200_000, 227_748.247),
                                   THIRD_IN_VAIN], 1.0, [3, 2, 1, 0, 1], 1.2e6),
        # What is left over ends both uploads earlier.
        ([0, 1, 2], (), {"leftover": "equal_finish"},
         [FIRST, (0, "upload", 0.2, 0.861332627, "done", 1e6, 163_279.567),
          SECOND, (1, "upload", 0.5, 0.861332627, "done", 1e6, 336_720.433), THIRD_IN_VAIN],
         0.861332627, [3, 2, 2, 0, 0], 2e6),
        # Time is left from the last report on.
        ([0, 1, 2], (), {"delay_knowledge": "reported", "report_by_s": 1.0},
         [FIRST, (0, "upload", 0.7, 1.0, "done", 1e6, 422_279.536), SECOND_IN_VAIN, THIRD_IN_VAIN],
         1.0, [3, 1, 1, 0, 0], 1e6),
        ([0, 1, 2], (), PLANNED,
         [FIRST, (0, "upload", 0.2, 0.500853545, "done", 1e6, 420_815.506), SECOND_IN_VAIN,
          (2, "compute", 0, 0.500853545, "unscheduled", 0, 0)], 0.500853545, [3, 1, 1, 0, 0], 1e6),
        # Planned too tightly; the row of the late upload ends at the close.
        ([2, 0, 1], (), PLANNED,
         [(0, "compute", 0, 0.2, "unscheduled", 0, 0), SECOND_IN_VAIN, (2, "compute", 0, 0.7, "done", 0, 0),
          (2, "upload", 0.7, 1.0, "late", 997_162.921, 420_815.506)], 1.0, [3, 1, 0, 1, 0], 997_162.921),
        ([], (), {}, [(0, "compute", 0, 0.2, "unscheduled", 0, 0), SECOND_IN_VAIN, THIRD_IN_VAIN], 1.0,
         [3, 0, 0, 0, 0], 0.0),
        ([2, 0], (), {"computes": "selected"},
         [(2, "compute", 0, 0.7, "done", 0, 0), (2, "upload", 0.7, 1.0, "done", 1e6, 422_279.536)], 1.0,
         [3, 1, 1, 0, 0], 1e6),
    ],
    ids=["known", "leaves", "equal finish", "reported", "planned", "late", "nobody", "selected"],
)  # fmt: skip
def test_the_rows_of_a_round_are_those_of_the_specification(
    tmp_path, order, leave, knobs, rows, end_s, counts, bits_up
):
    played = play(tmp_path, order, leaves(*leave), **knobs)
    assert_rows(played.activities, rows)
    round_ = played.rounds.iloc[0]
    assert round_["t_end_s"] == pytest.approx(end_s, abs=1e-9)
    assert list(round_[COUNTS]) == counts
    assert round_["bits_up"] == pytest.approx(bits_up, abs=1e-3)
    acts = played.activities
    joules = (acts["t_end_s"] - acts["t_start_s"]) * acts["activity"].map({"compute": 2.0, "upload": UPLOAD_W})
    assert list(acts["energy_j"]) == pytest.approx(list(joules))
    assert round_["energy_j"] == pytest.approx(joules.sum())


def test_close_at_the_deadline_waits_even_when_everyone_arrived(tmp_path):
    round_ = play(tmp_path, [0, 1, 2], close="deadline", **PLANNED).rounds.iloc[0]
    assert (round_["t_end_s"], round_["arrived"]) == (1.0, 1)


def test_reports_that_come_too_late_are_no_candidates(tmp_path):
    # Device 2 reports at 0.7 s only; device 1 at the very instant, which counts.
    uploads = play(tmp_path, [2, 1, 0], delay_knowledge="reported", report_by_s=0.5).uploads
    assert list(uploads["device"]) == [0, 1]
    assert list(uploads["t_start_s"]) == pytest.approx([0.5, 0.5])


def test_a_silent_drop_out_keeps_the_server_waiting_for_reports_until_report_by_s(tmp_path):
    played = play(tmp_path, [1, 0], leaves(2, 0.3), delay_knowledge="reported", report_by_s=0.55)
    assert_rows(played.activities[-1:], [(2, "compute", 0.0, 0.3, "dropped", 0, 0)])
    assert set(played.uploads["t_start_s"]) == {0.55}


def test_a_download_comes_first_and_costs_time_and_energy(tmp_path):
    played = play(tmp_path, [0], download_s=0.1)
    first = played.activities.iloc[0]
    assert (first["activity"], first["t_end_s"], first["energy_j"]) == ("download", 0.1, pytest.approx(0.09))
    assert first["bits"] == 1e6
    assert played.rounds[["bits_down", "bits_up"]].to_numpy().tolist() == [[3e6, 1e6]]
    assert played.uploads["t_start_s"].tolist() == pytest.approx([0.3])
