"""The course of a task as a table: what an entry of it, and a row of the table of activities, bring about."""

import math

import numpy as np
import pytest

from edgesim.activities import ACTIVITIES, COMPUTE, DOWNLOAD, UPLOAD, Activity
from edgesim.engine.clock import Clock, EventKind
from edgesim.engine.phases import AFTER, COURSE, PHASES, WAIT, Phase
from edgesim.engine.uplink import ReservedBand
from edgesim.engine.work import RoundSignals, Task, Work
from edgesim.radio.grant import Grant
from edgesim.radio.link import ShannonLink

ENCODE = "encode"


@pytest.fixture
def encoding(monkeypatch):
    """A phase of 0.25 s between the decision and the upload, of devices that were taken."""
    phase = Phase(ENCODE, "at an instant", lambda task: 0.25 if task.grant.bits else 0.0, breaks=True)
    monkeypatch.setitem(ACTIVITIES, ENCODE, Activity(lambda of: np.full(1, 3.0), False, "#000000", "#ffffff"))
    monkeypatch.setitem(PHASES, ENCODE, phase)
    monkeypatch.setitem(AFTER, ENCODE, AFTER[WAIT])
    for name in (WAIT, COMPUTE):
        monkeypatch.setitem(
            AFTER, name, tuple(x for of in AFTER[name] for x in ((phase, of) if of.name == UPLOAD else (of,)))
        )


def play(task, back_s=None):
    """Spans of a task that is decided on at 1 s, and what the server hears of it."""
    clock, heard = Clock(), []
    band = ReservedBand(clock, ShannonLink(1e-20))
    decision = clock.event()
    hear = [lambda _, what=what: heard.append((what, clock.now)) for what in ("computed", "arrived", "dropped")]
    work = Work(clock, task, RoundSignals([band], decision, math.inf, 1e-9, *hear, back_s, None))

    def decide(_):
        task.taken = task.grant.bits > 0
        decision.succeed()

    clock.call_at(1.0, EventKind.DECISION, decide)
    clock.run()
    assert work.due == (math.inf, 1e-9)
    return [(span.activity, span.t_start_s, span.t_end_s, span.outcome, span.bits) for span in task.spans], heard


def task(bits, leaves_s=math.inf):
    """A task that receives for 0.1 s and computes for 0.4 s; its upload has 1 Hz at p / n = 1 Hz: 1 bit a second."""
    made = Task(0, 80.0, 0.1, 0, 0, 0.0, 0.4, leaves_s)
    made.grant = Grant(1.0, 1e-20, bits)
    return made


def test_a_task_passes_through_the_phases_of_its_course_in_their_order():
    spans, heard = play(task(2.0))
    assert spans == [
        (DOWNLOAD, 0.0, 0.1, "done", 80.0),
        (COMPUTE, 0.1, 0.5, "done", 0.0),
        (UPLOAD, 1.0, 3.0, "done", 2.0),
    ]
    assert heard == [("computed", 0.5), ("arrived", 3.0)]
    assert list(ACTIVITIES) == [phase.name for phase in COURSE if phase.name in ACTIVITIES]


def test_the_row_of_work_that_the_server_does_not_take_is_unscheduled_at_the_decision():
    spans, heard = play(task(0.0))
    assert [(activity, outcome) for activity, *_, outcome, _ in spans] == [(DOWNLOAD, "done"), (COMPUTE, "unscheduled")]
    assert heard == [("computed", 0.5)]


@pytest.mark.usefixtures("encoding")
def test_one_more_entry_of_the_course_is_played_between_its_neighbours():
    spans, heard = play(task(2.0))
    assert spans[2:] == [(ENCODE, 1.0, 1.25, "done", 0.0), (UPLOAD, 1.25, 3.25, "done", 2.0)]
    assert heard == [("computed", 0.5), ("arrived", 3.25)]
    # Nobody encodes what is not sent.
    assert [row[0] for row in play(task(0.0))[0]] == [DOWNLOAD, COMPUTE]


@pytest.mark.usefixtures("encoding")
def test_a_leave_interrupts_the_new_phase_as_its_entry_says_and_what_is_left_of_it_follows_the_return():
    def back_s(of):
        of.leaves_s = math.inf
        return 5.0

    spans, _ = play(task(2.0, leaves_s=1.125), back_s)
    assert spans[2:] == [
        (ENCODE, 1.0, 1.125, "paused", 0.0),
        (ENCODE, 5.0, 5.125, "done", 0.0),
        (UPLOAD, 5.125, 7.125, "done", 2.0),
    ]
    spans, heard = play(task(2.0, leaves_s=1.125))
    assert spans[2:] == [(ENCODE, 1.0, 1.125, "dropped", 0.0)]
    assert heard == [("computed", 0.5), ("dropped", 1.125)]
