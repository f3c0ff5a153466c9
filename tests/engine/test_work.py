"""A task under way, taken up from a copy of its record, against the same task undisturbed."""

import math
from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from edgesim.engine.clock import Clock, EventKind, Instant
from edgesim.engine.shared_band import SharedBand
from edgesim.engine.uplink import ReservedBand
from edgesim.engine.work import RoundSignals, Task, Work
from edgesim.radio.grant import Grant
from edgesim.radio.link import ShannonLink

DEVICES, BAND_HZ, NOISE_W_PER_HZ = 6, 1e6, 1e-20
DECIDED_S, DEADLINE_S = 1.5, 4.0


class Cell:
    """Tasks on one band; whom the server hears of, when, and whom it takes."""

    def __init__(self, seed, interruption, sharing, t_s=0.0, tasks=None):
        rng = np.random.default_rng(seed)
        self.periods = np.cumsum(rng.exponential(0.6, (DEVICES, 20)), axis=1) - 0.2
        self.empty_s = np.where(rng.random(DEVICES) < 0.2, rng.uniform(0, 3, DEVICES), math.inf)
        self.decided_before = rng.random() < 0.5
        made = [self.task(device, rng) for device in range(DEVICES)]
        self.clock, self.heard, self.tasks = Clock(t_s), [], tasks or made
        link = ShannonLink(NOISE_W_PER_HZ)
        self.band = SharedBand(self.clock, BAND_HZ, link) if sharing == "reshared" else ReservedBand(self.clock, link)
        self.decision = self.clock.event()
        self.signals = RoundSignals(
            [self.band],
            self.decision,
            DEADLINE_S,
            1e-9,
            lambda task: self.hear("computed", task),
            lambda task: self.hear("arrived", task),
            lambda task: self.hear("dropped", task),
            self.back_s if interruption == "pause" else None,
            lambda task: self.empty_s[task.device],
        )
        self.works = [Work(self.clock, task, self.signals) for task in self.tasks]
        self.clock.process(self.server())

    def task(self, device, rng):
        download_s, backhaul_s, broadcast_s = rng.uniform(0, 0.5, 3) * (rng.random(3) < 0.6)
        compute_s, snr_hz, bits = rng.uniform(0.2, 1.0), 10 ** rng.uniform(6, 8), rng.uniform(2e5, 1e6)
        leaves_s = max(0.0, self.leaves_s(device, 0.0))
        task = Task(device, bits, download_s, 0, 0, broadcast_s, compute_s, leaves_s)
        if self.decided_before:
            task.taken = True
        task.grant, task.backhaul_s = Grant(BAND_HZ / DEVICES, snr_hz * NOISE_W_PER_HZ, bits), backhaul_s
        return task

    def leaves_s(self, device, t_s):
        """End of the first period (start, end, start, end, ...) that has not ended."""
        return float(next(end_s for end_s in self.periods[device, 1::2] if end_s > t_s))

    def back_s(self, task):
        now_s = self.clock.now
        back_s = max(now_s, float(next(start_s for start_s in self.periods[task.device, 2::2] if start_s >= now_s)))
        task.leaves_s = self.leaves_s(task.device, back_s)
        return back_s

    def hear(self, what, task):
        self.heard.append((what, self.clock.now, task.device))

    def server(self):
        if self.clock.now < DECIDED_S:
            yield Instant(self.clock, DECIDED_S, EventKind.DECISION)
            for task in self.tasks:
                task.taken = bool(task.taken) or task.device % 3 > 0
            self.decision.succeed()
        yield Instant(self.clock, DEADLINE_S, EventKind.DEADLINE)
        for work in self.works:
            work.break_off()

    def copies(self):
        """The records of the tasks as they are now."""
        for upload in self.band.active if isinstance(self.band, SharedBand) else ():
            self.band.write_down(upload)
        return [replace(task, spans=list(map(copy, task.spans)), upload=copy(task.upload)) for task in self.tasks]

    def rows(self):
        """Everything that came of it, as numbers and as words."""
        spans = [(task.device, span) for task in self.tasks for span in task.spans]
        words = [(device, span.activity, span.outcome) for device, span in spans]
        words += [(task.device, task.fate, task.phase) for task in self.tasks]
        numbers = [(span.t_start_s, span.t_end_s, span.bits, span.bandwidth_hz) for _, span in spans]
        return words, numbers


@pytest.mark.whole_family
@pytest.mark.parametrize("interruption", ["pause", "abort"])
@pytest.mark.parametrize("sharing", ["reserved", "reshared"])
def test_a_copy_of_a_task_goes_on_as_the_task_itself_from_any_phase(sharing, interruption):
    seen = set()
    for seed in range(25):
        for t_s in np.random.default_rng(seed).uniform(0.0, DEADLINE_S, 4).tolist():
            undisturbed = Cell(seed, interruption, sharing)
            undisturbed.clock.run(t_s)
            before = len(undisturbed.heard)
            resumed = Cell(seed, interruption, sharing, t_s, undisturbed.copies())
            seen |= {(task.phase, task.resumes) if task.phase == "away" else task.phase for task in resumed.tasks}
            undisturbed.clock.run()
            resumed.clock.run()
            (words, numbers), (words_again, numbers_again) = undisturbed.rows(), resumed.rows()
            assert words_again == words, (seed, t_s)
            heard = undisturbed.heard[before:]
            if sharing == "reserved":
                assert (numbers_again, resumed.heard) == (numbers, heard), (seed, t_s)
            else:
                # Uploads are added up in the order in which they are put on the air.
                assert np.array(numbers_again) == pytest.approx(np.array(numbers), rel=1e-9)
                assert [(what, device) for what, _, device in resumed.heard] == [(w, d) for w, _, d in heard]
    assert {"broadcast", "download", "compute", "wait", "upload", "backhaul", "ended"} <= seen
    if interruption == "pause":
        assert {("away", "download"), ("away", "compute"), ("away", "upload")} <= seen


@pytest.mark.parametrize("sharing", ["reserved", "reshared"])
def test_nothing_more_comes_of_tasks_that_are_broken_off_in_any_phase(sharing):
    seen = set()
    for seed in range(40):
        cell = Cell(seed, "pause", sharing)
        cell.clock.run(0.1 + seed % 8 * 0.2)
        seen |= {task.phase for task in cell.tasks}
        for work in cell.works:
            work.break_off("cancelled")
        rows, heard = cell.rows(), list(cell.heard)
        cell.clock.run()
        assert (cell.rows(), cell.heard) == (rows, heard), seed
    assert {"broadcast", "download", "compute", "wait", "upload", "backhaul", "away"} <= seen


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
