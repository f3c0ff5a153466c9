"""What selectors can ask and what they hear, on the golden round (see test_golden_round.py)."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from edgesim.config_file import parse

_spec = importlib.util.spec_from_file_location("golden", Path(__file__).with_name("test_golden_round.py"))
golden = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(golden)

ROWS = np.arange(3)


class Witness(golden.InOrder):
    """Keeps what it sees and hears in every round."""

    views, reports, answers = [], [], []
    ask = staticmethod(lambda estimates: None)

    def choose(self, view):
        self.views.append(view)
        self.answers.append(self.ask(view.estimates))
        return super().choose(view)

    def hear(self, report):
        self.reports.append(report)


@pytest.fixture
def witness(monkeypatch):
    class Mine(Witness):
        views, reports, answers = [], [], []

    monkeypatch.setattr(golden, "InOrder", Mine)
    return Mine


def test_the_estimates_is_what_the_scheduler_plans_with(tmp_path, witness):
    def ask(estimates):
        return (
            estimates.places(),
            estimates.ready_s(ROWS),
            estimates.due_s(ROWS),
            estimates.upload_s(ROWS, 1),
            estimates.upload_s(np.array([1]), 2),
            estimates.leaves_s(ROWS, 2.0),
            estimates.room_bits(ROWS, 2),
        )

    witness.ask = staticmethod(ask)
    golden.play(tmp_path, [0, 1, 2], golden.Leaves(1, 0.8))
    (places, ready_s, due_s, alone_s, halved_s, leaves_s, room_bits) = witness.answers[0]
    # Least bandwidths 130, 228 and 421 kHz: two fit into 500 kHz.
    assert places == 2
    assert ready_s.tolist() == [0.2, 0.5, 0.7]
    assert due_s.tolist() == [1.0] * 3
    assert alone_s == pytest.approx([1e6 / (5e5 * np.log2(1 + 1e8 / 5e5))] * 3)
    assert halved_s == pytest.approx([1e6 / (2.5e5 * np.log2(1 + 1e8 / 2.5e5))])
    assert room_bits == pytest.approx(2.5e5 * np.log2(1 + 1e8 / 2.5e5) * np.array([0.8, 0.5, 0.3]))
    assert leaves_s.tolist() == [np.inf, 0.8, np.inf]
    view = witness.views[0]
    assert (view.t_s, view.tmax_s) == (0.0, 1.0)
    # Five steps of 32.
    assert view.work_samples.tolist() == [160] * 3


def test_stays_are_counted_from_the_start_of_their_round(tmp_path, witness):
    witness.ask = staticmethod(lambda estimates: estimates.leaves_s(ROWS, 2.0).tolist())
    golden.play_rounds(tmp_path, 2, [0, 1, 2], golden.Leaves(1, 1.8))
    assert witness.answers == [[np.inf, 1.8, np.inf], [np.inf, pytest.approx(0.8), np.inf]]


@pytest.mark.parametrize(("count", "places"), [(1, 1), (2, 2), (3, 3)])
def test_where_the_admission_counts_there_are_as_many_places(count, places, tmp_path, witness, monkeypatch):
    witness.ask = staticmethod(lambda estimates: estimates.places())
    knobs = {"admission": "count", "count": count, "allocator": "equal_share"}
    monkeypatch.setattr(
        golden, "parse", lambda values, where: parse(values | {"round": values["round"] | knobs}, where)
    )
    golden.play(tmp_path, [0, 1, 2])
    assert witness.answers == [places]


def test_durations_run_to_the_arrival_of_the_update(tmp_path, witness):
    golden.play(tmp_path, [0, 1, 2])
    (report,) = witness.reports
    assert report.checked_in.tolist() == [0, 1, 2]
    assert report.feedback.ids.tolist() == report.arrived.tolist() == [0, 1]
    assert report.feedback.duration_s == pytest.approx([1.0, 1.0])
    assert report.feedback.loss is report.feedback.accuracy is report.feedback.loss_rms is None


def test_a_latecomer_is_checked_in_and_its_feedback_comes_with_the_round_it_arrives_in(tmp_path, witness):
    golden.play_rounds(tmp_path, 2, [2, 0, 1], delay_knowledge="planned", late="keep")
    first, second = witness.reports
    assert [report.length_s for report in witness.reports] == [1.0, 1.0]
    assert len(first.feedback.ids) == 0
    assert second.checked_in.tolist() == [0, 1, 2]
    assert witness.views[1].ids.tolist() == [0, 1]
    assert second.arrived.tolist() == []
    assert second.feedback.ids.tolist() == [2]
    # Its upload ends at 1.000853545 s; its round began at 0.
    assert second.feedback.duration_s == pytest.approx([1.000853545])
