"""What selectors can ask and what they hear, on the golden round (see golden.py)."""

import numpy as np
import pytest
from golden import InOrder, leaves, play

ROWS = np.arange(3)


class Witness(InOrder):
    """Offers devices in a given order, and keeps what it sees, is answered and hears in every round."""

    def __init__(self, order, ask=lambda estimates: None):
        super().__init__(order)
        self.ask, self.views, self.reports, self.answers = ask, [], [], []

    def __call__(self, order):
        return self

    def choose(self, view):
        self.views.append(view)
        self.answers.append(self.ask(view.estimates))
        return super().choose(view)

    def hear(self, report):
        self.reports.append(report)


def ask(folder, order, question, *more, **knobs):
    """The answers to a question that is asked in each round."""
    witness = Witness(order, question)
    play(folder, order, *more, selector=witness, **knobs)
    return witness.answers


def test_the_estimates_is_what_the_scheduler_plans_with(tmp_path):
    def question(estimates):
        return (
            estimates.places(),
            estimates.ready_s(ROWS),
            estimates.due_s(ROWS),
            estimates.upload_s(ROWS, 1),
            estimates.upload_s(np.array([1]), 2),
            estimates.leaves_s(ROWS, 2.0),
            estimates.room_bits(ROWS, 2),
        )

    witness = Witness([0, 1, 2], question)
    play(tmp_path, [0, 1, 2], leaves(1, 0.8), selector=witness)
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
    # Five steps of 32 samples.
    assert (view.t_s, view.tmax_s, view.work_samples.tolist()) == (0.0, 1.0, [160] * 3)


def test_stays_are_counted_from_the_start_of_their_round(tmp_path):
    stays_s = ask(tmp_path, [0, 1, 2], lambda of: of.leaves_s(ROWS, 2.0).tolist(), leaves(1, 1.8), 2)
    assert stays_s == [[np.inf, 1.8, np.inf], [np.inf, pytest.approx(0.8), np.inf]]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_where_the_admission_counts_there_are_as_many_places(count, tmp_path):
    knobs = {"admission": "count", "count": count, "allocator": "equal_share"}
    assert ask(tmp_path, [0, 1, 2], lambda of: of.places(), **knobs) == [count]


@pytest.mark.parametrize("outage", [None, 0.2])
def test_how_long_uploads_take_is_told_for_the_gain_planned_on(tmp_path, outage):
    """Below -ln(0.8) of its mean Rayleigh power falls once in five."""
    fading = {"radio": {"fading": "rayleigh" if outage else "none"}}
    (told,) = ask(tmp_path, [0], lambda of: of.upload_s(ROWS, 1), sections=fading, outage=outage)
    snr_hz = 1e8 * (-np.log(0.8) if outage else 1.0)
    assert told == pytest.approx([1e6 / (5e5 * np.log2(1 + snr_hz / 5e5))] * 3)


def test_durations_run_to_the_arrival_of_the_update(tmp_path):
    witness = Witness([0, 1, 2])
    play(tmp_path, [0, 1, 2], selector=witness)
    (report,) = witness.reports
    assert report.checked_in.tolist() == [0, 1, 2]
    assert report.feedback.ids.tolist() == report.arrived.tolist() == [0, 1]
    assert report.feedback.duration_s == pytest.approx([1.0, 1.0])
    assert report.feedback.loss is report.feedback.accuracy is report.feedback.loss_rms is None


def test_a_latecomer_is_checked_in_and_its_feedback_comes_with_the_round_it_arrives_in(tmp_path):
    witness = Witness([2, 0, 1])
    play(tmp_path, [2, 0, 1], rounds=2, selector=witness, delay_knowledge="planned", late="keep")
    first, second = witness.reports
    assert [report.length_s for report in witness.reports] == [1.0, 1.0]
    assert len(first.feedback.ids) == 0
    assert second.checked_in.tolist() == [0, 1, 2]
    assert witness.views[1].ids.tolist() == [0, 1]
    assert second.arrived.tolist() == []
    assert second.feedback.ids.tolist() == [2]
    # Its upload ends at 1.000853545 s; its round began at 0.
    assert second.feedback.duration_s == pytest.approx([1.000853545])
