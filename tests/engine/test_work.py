"""A task alone: who leaves when, what was carried until then, and a task that is told of a change."""

import math

from edgesim.engine.clock import Clock, EventKind
from edgesim.engine.work import RoundSignals, Task, Work


def test_work_that_is_told_of_a_change_goes_on_as_before_until_the_instant_s_own_event_and_before_all_others():
    clock, heard, seen = Clock(), [], []
    signals = RoundSignals(
        [], clock.event(), math.inf, 1e-9, lambda task: heard.append(clock.now), None, None, lambda _: math.inf, None
    )
    task = Task(0, 1e6, 0.0, 0, 0, 0.0, 2.0, math.inf)
    work = Work(clock, task, signals)

    def tell(here):
        def now(_):
            clock.call_at(clock.now, EventKind.WAKE, lambda _: seen.append(("later at the instant", task.phase)))
            work.meet(here)
            seen.append(("told", task.phase))

        return now

    clock.call_at(0.5, EventKind.WAKE, tell(False), 1)
    clock.call_at(1.5, EventKind.WAKE, tell(True), 1)
    # Told what it knows already, it changes nothing.
    clock.call_at(2.0, EventKind.WAKE, tell(True), 1)
    clock.run()
    assert seen == [
        ("told", "compute"), ("later at the instant", "away"),
        ("told", "away"), ("later at the instant", "compute"),
        ("told", "compute"), ("later at the instant", "compute"),
    ]  # fmt: skip
    assert heard == [3.0]
    assert [(span.activity, span.t_start_s, span.t_end_s) for span in task.spans] == [
        ("compute", 0.0, 0.5),
        ("compute", 1.5, 3.0),
    ]


def alone(leaves_s, **lengths_s):
    """The spans and the ends of a task of 1,000 bits that computes, sends nothing, and leaves at an instant."""
    clock, heard = Clock(), []
    signals = RoundSignals(
        [], clock.event(), math.inf, 1e-9, lambda _: heard.append("computed"), None,
        lambda _: heard.append("dropped"), None, None,
    )  # fmt: skip
    lengths_s = {"download_s": 0.0, "broadcast_s": 0.0, "compute_s": 1.0} | lengths_s
    task = Task(0, 1000.0, station=0, server=0, leaves_s=leaves_s, **lengths_s)
    Work(clock, task, signals)
    clock.run()
    return heard, [(span.activity, span.t_end_s, span.outcome, span.bits) for span in task.spans]


def test_who_leaves_as_a_phase_ends_has_ended_it_and_half_a_nanosecond_is_no_earlier():
    for leaves_s in (1.0, 1.0 - 0.5e-9):
        assert alone(leaves_s) == (["computed"], [("compute", 1.0, "done", 0.0)])
    assert alone(1.0 - 2e-9)[0] == ["dropped"]


def test_a_download_that_is_cut_has_carried_its_part_of_the_bits():
    assert alone(0.5, download_s=2.0) == (["dropped"], [("download", 0.5, "dropped", 250.0)])
