"""FedBuff and FedAsync on simulated time: the specification's worked sequence, and one of three devices by hand."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from golden import serve
from whole_runs import TIMED, play, stays
from whole_runs import phones as own_phones

from edgesim.analysis.waste import kinds
from edgesim.base.errors import Diverged
from edgesim.config_file import parse
from edgesim.engine.make_world import make_world
from edgesim.engine.protocols import make_protocol
from edgesim.learning.algorithms import ALGORITHMS
from edgesim.learning.algorithms.fedavg import FedAvg
from edgesim.learning.back_ends.loop import LoopBackEnd
from edgesim.learning.federation import make_federation
from edgesim.learning.jobs import JobResult
from edgesim.learning.learner import TorchLearner
from edgesim.selection import make_selector
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams

CONSTANT = {"weight": "constant"}


class PlusOne:
    """Every job returns its start value plus 1, but those of a device that fails."""

    name = "plus-one"

    def __init__(self, fails=None):
        self.fails = fails
        self.batches = []
        """Devices of the jobs that ran together."""
        self.told = []
        """The round of each job, and the merges that it was told of."""

    def run(self, promises):
        jobs = [promise for promise in promises if promise.result is None and promise.device != self.fails]
        for promise in jobs:
            promise.result = JobResult(torch.ones_like(promise.job.start), 0.0, 0.0, 1.0, 0.0)
            self.told.append((promise.round, float(promise.job.given.get("merges", 0.0))))
        if jobs:
            self.batches.append([promise.device for promise in jobs])
        if any(promise.device == self.fails for promise in promises):
            raise Diverged(f"device {self.fails} diverged")
        return len(jobs)

    def close(self):
        pass


def serve_ones(folder, delays_s, models, round_, staleness=None, back_end=None, algorithm="fedavg"):
    """Instants and values of the global model after each merge, and the run; uploads of one bit take a second."""
    values = own_phones(folder / "phones", *((delay_s / 8, 1.0) for delay_s in delays_s)) | {
        "rounds": models,
        "round": {"admission": "count", "payload_bits": 1.0, **round_},
        "staleness": staleness or {},
        "algorithm": {"name": algorithm},
        "data": {"partition": "iid", "samples_per_device": 10},
        "learning": {"pretrain": False, "steps": 1, "batch_size": 8},
        "evaluation": {"samples": 10},
    }
    config, streams, found = simulation.complete(parse(values, "worked")), Streams(0), []
    rule = make_protocol(config.round).rule
    learner = TorchLearner(config, make_federation(config, streams), streams, 1, dict, rule)
    learner.back_end = back_end or PlusOne()
    learner.global_weights = torch.zeros_like(learner.global_weights)
    selector = make_selector("random", {}, len(delays_s), 10)

    def note(server):
        found.append((server.parts.clock.now, float(learner.global_weights[0])))

    return found, serve(folder, config, models, make_world(config, streams), selector, learner, 1.0, note)


BUFFER = {"protocol": "buffered", "protocol_options": {"buffer": 2}}
MIXED = {"protocol": "asynchronous", "protocol_options": {"mixing": 0.5}}


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("delays_s", "round_", "staleness", "expected", "devices", "stale"),
    [
        # asynchronous.md: A takes 2 s and B 3 s, alpha = 0.5.
        ([1.0, 2.0], MIXED, CONSTANT, [(2, 0.5), (3, 0.75), (4, 1.125), (6, 1.625), (6, 1.6875)],
         [0, 1, 0, 0, 1], [0, 1, 1, 0, 2]),
        # asynchronous.md: K = 2, M = 2; A's update of t = 4 has staleness 1, B's of 6 goes into the third buffer.
        ([1.0, 2.0], BUFFER, {}, [(3, 1.0), (6, 1.853553), (8, 2.707107)], [0, 1, 0, 0, 1, 0], [0, 0, 1, 0, 1, 0]),
        # A takes 1.5, B 2.5 and C 4 s; K = 2, all at work, constant weights: each merge adds the mean of its deltas, 1.
        # Ends: A 1.5, B 2.5 | A 3, C 4 | A 4.5, B 5 | A 6, then A and B at 7.5 and C at 8: A 7.5 (first of the tie).
        # A of 3 began at 1.5 from model 0, C of 4 at 0; A of 4.5 at 3 from 1, B of 5 at 2.5 from 1; A of 6 at 4.5.
        ([0.5, 1.5, 3.0], BUFFER, CONSTANT, [(2.5, 1.0), (4.0, 2.0), (5.0, 3.0), (7.5, 4.0)],
         [0, 1, 0, 2, 0, 1, 0, 0], [0, 0, 1, 1, 1, 1, 1, 0]),
    ],
    ids=["fedasync", "fedbuff", "three devices"],
)  # fmt: skip
def test_the_worked_sequences_are_run_ties_included(tmp_path, delays_s, round_, staleness, expected, devices, stale):
    found, played = serve_ones(tmp_path, delays_s, len(expected), round_ | {"count": len(delays_s)}, staleness)
    assert np.array(found) == pytest.approx(np.array(expected), abs=1e-6)
    assert played.updates["device"].tolist() == devices
    assert played.updates["staleness"].tolist() == stale
    assert played.rounds["t_start_s"].tolist() == [0.0, *(t_s for t_s, _ in expected[:-1])]


@dataclass
class Merges:
    count: int = 0


class CountingServer(FedAvg.Server):
    """Each job is told how many merges the ledger counts."""

    def ledger(self, round, last):
        return last or Merges()

    def note(self, ledger, arrived):
        ledger.count += 1
        return super().note(ledger, arrived)

    def given(self, state, device, ledger):
        return super().given(state, device, ledger) | {"merges": torch.tensor(float(ledger.count))}


class Counting(FedAvg):
    Server = CountingServer


def test_a_job_starts_from_the_ledger_of_its_begin_however_many_merges_come_before_it_runs(tmp_path, monkeypatch):
    monkeypatch.setitem(ALGORITHMS, "counting", Counting)
    ones = PlusOne()
    of = {"back_end": ones, "algorithm": "counting"}
    _, played = serve_ones(tmp_path, [1.0, 1.5, 5.0], 6, BUFFER | {"count": 3}, **of)
    assert played.updates["staleness"].max() > 1
    assert len(ones.told) == len(played.updates)
    assert all(merges == round - 1 for round, merges in ones.told)


def test_under_fedasync_jobs_of_updates_on_their_way_run_along(tmp_path):
    """Sending: A from 1 to 2, C from 1.5 to 2.5, B from 2.25 to 3.25, A again from 3 to 4."""
    ones = PlusOne()
    found, played = serve_ones(tmp_path, [1.0, 2.25, 1.5], 4, MIXED | {"count": 3}, CONSTANT, ones)
    assert [t_s for t_s, _ in found] == [2, 2.5, 3.25, 4]
    assert played.updates["device"].tolist() == [0, 2, 1, 0]
    assert ones.batches == [[0, 2], [1, 0]]
    assert [value for _, value in found] == pytest.approx([0.5, 0.75, 0.875, 1.1875])


def test_a_job_that_fails_along_is_told_when_its_own_update_arrives(tmp_path):
    """A and C arrive at 2, while B begins to send; B arrives at 3, while A sends again."""
    ones = PlusOne(fails=1)
    with pytest.raises(Diverged, match="device 1"):
        serve_ones(tmp_path, [1.0, 2.0, 1.0], 9, MIXED | {"count": 3}, CONSTANT, ones)
    assert ones.batches == [[0, 2], [0, 2]]


def test_updates_beyond_the_limit_are_not_merged(tmp_path):
    round_ = {"protocol": "asynchronous", "count": 2}
    _, played = serve_ones(tmp_path, [0.5, 9.0], 12, round_, CONSTANT | {"limit": 3})
    assert set(played.updates["device"]) == {0}
    assert "done" in set(played.uploads.query("device == 1")["outcome"])


def phones(folder, there, s_per_sample, **sections):
    """Phones without training that are there in periods, train on 10 samples and send 3 Mbit at 1 Mbit/s."""
    world = own_phones(folder, *((seconds, 1e6) for seconds in s_per_sample)), stays(folder, *there)
    own = {
        "round": {"admission": "count", "count": len(s_per_sample), "payload_bits": 3e6, "tmax_s": 20.0},
        "learning": {"steps": 1, "batch_size": 10},
    }
    return play(folder / "run", TIMED, *world, own, sections)


@pytest.mark.parametrize(
    "round_", [{"protocol": "asynchronous"}, {"protocol": "buffered", "protocol_options": {"buffer": 1}}]
)
@pytest.mark.parametrize(
    ("interruption", "expected", "tasks", "found_kinds"),
    [
        ("pause", [("compute", 0, 1, "paused"), ("compute", 2, 3, "done"), ("upload", 3, 4, "paused"),
                   ("upload", 6, 8, "done")], [1, 1, 1, 1], ["useful"] * 4),
        # The second task has computed when the device leaves and is lost with nothing sent, the third comes through.
        ("abort", [("compute", 0, 1, "dropped"), ("compute", 2, 4, "done"), ("compute", 6, 8, "done"),
                   ("upload", 8, 11, "done")], [1, 2, 3, 3], ["dropped", "dropped", "useful", "useful"]),
    ],
)  # fmt: skip
@pytest.mark.whole_family
def test_without_rounds_work_pauses_while_its_device_is_away_or_is_lost(
    tmp_path, round_, interruption, expected, tasks, found_kinds
):
    """By hand: one device is there in [0, 1), [2, 4) and [6, 50), computes for 2 s and sends for 3 s."""
    there = [(0, 0, 1), (0, 2, 4), (0, 6, 50)]
    played = phones(tmp_path, there, [0.2], rounds=1, round=round_, availability={"interruption": interruption})
    acts = played.activities
    found = acts[["activity", "t_start_s", "t_end_s", "outcome"]].to_numpy().tolist()
    assert [(name, round(start_s, 9), round(end_s, 9), fate) for name, start_s, end_s, fate in found] == expected
    assert played.rounds["t_end_s"].tolist() == pytest.approx([expected[-1][2]])
    dropped = 2 * (interruption == "abort")
    assert played.rounds[["arrived", "dropped"]].to_numpy().tolist() == [[1, dropped]]
    assert played.uploads["bits"].sum() == pytest.approx(3e6)
    # Tasks of one device in one round are told apart.
    assert acts["task"].tolist() == tasks
    assert played.updates["task"].tolist() == tasks[-1:]
    assert kinds(acts, played.updates).tolist() == found_kinds
    assert played.metric("wasted_s", "key").to_dict() == ({"dropped": pytest.approx(3.0)} if dropped else {})


@pytest.mark.parametrize(
    "round_", [{"protocol": "buffered", "protocol_options": {"buffer": 3}}, {"protocol": "asynchronous"}]
)
def test_jobs_trained_without_rounds_are_those_that_were_trained(tmp_path, monkeypatch, round_):
    """Best-norm trains everybody whom it looks at, FedAsync those on their way too."""
    trained, train = [], LoopBackEnd.train
    monkeypatch.setattr(LoopBackEnd, "train", lambda self, job: trained.append(job) or train(self, job))
    played = play(
        tmp_path,
        rounds=12,
        devices={"count": 8},
        round={"admission": "count", "count": 3, "payload_bits": 3e6, **round_},
        data={"partition": "iid", "samples_per_device": 10},
        learning={"pretrain": False, "back_end": "loop", "steps": 1},
        evaluation={"samples": 10},
        selection={"policy": "best-norm"},
    )
    assert played.rounds["jobs_trained"].sum() == len(trained) > len(played.updates)


def test_an_algorithm_hears_of_the_model_that_is_made_though_no_device_has_begun_for_it(tmp_path, monkeypatch):
    """By hand: device 0 arrives at 4 s and leaves, device 1 at 10 s; nobody begins between the two models."""
    heard = []

    class Notes(FedAvg.Server):
        def note(self, ledger, arrived):
            heard.append((arrived.round, arrived.ids.tolist(), arrived.round_lr, arrived.lr.tolist()))
            return super().note(ledger, arrived)

    monkeypatch.setitem(ALGORITHMS, "notes", type("Notes", (FedAvg,), {"Server": Notes}))
    sections = {"round": {"protocol": "asynchronous"}, "algorithm": {"name": "notes"}}
    sections["learning"] = {"lr": 0.8, "lr_decay": 0.5}
    played = phones(tmp_path, [(0, 0, 4), (1, 0, 50)], [0.1, 0.7], rounds=3, **sections)
    assert played.rounds["t_end_s"].tolist() == pytest.approx([4, 10, 20])
    assert heard == [(1, [0], 0.8, [0.8]), (2, [1], 0.4, [0.8]), (3, [1], 0.2, [0.2])]
