"""FedBuff and FedAsync on simulated time: the specification's worked sequence, and one of three devices by hand."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from edgesim.analysis.waste import kinds
from edgesim.base.errors import Diverged
from edgesim.config_file import parse
from edgesim.devices.topology import make_backhaul
from edgesim.engine.make_world import make_world
from edgesim.engine.process import RoundNumber
from edgesim.engine.protocols import make_protocol
from edgesim.engine.run_parts import RunParts
from edgesim.engine.server import RunEnd, Server
from edgesim.engine.world import World
from edgesim.folder import records
from edgesim.learning.algorithms import ALGORITHMS
from edgesim.learning.algorithms.fedavg import FedAvg
from edgesim.learning.back_ends.loop import LoopBackEnd
from edgesim.learning.federation import make_federation
from edgesim.learning.jobs import JobResult
from edgesim.learning.learner import TorchLearner
from edgesim.selection import make_selector
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams


@dataclass(frozen=True)
class OneBitPerSecond(World):
    """Uploads of one bit take one second on 1 Hz at p / n = 1 Hz; compute delays are given."""

    delays_s: tuple[float, ...] = ()

    def rx_power_w(self, ids, gain):
        return np.full(len(ids), self.environment.noise_w_per_hz)

    def drawn_rx_power_w(self, ids, draws, gain):
        return self.rx_power_w(ids, None)

    def compute_s(self, ids, draws, samples):
        return np.array(self.delays_s)[ids]


class PlusOne:
    """Every job returns its start value plus 1."""

    name = "plus-one"

    def __init__(self):
        self.batches = []
        """Devices of the jobs that ran together."""

    def run(self, promises):
        jobs = [promise for promise in promises if promise.result is None]
        for promise in jobs:
            promise.result = JobResult(torch.ones_like(promise.job.start), 0.0, 0.0, 1.0, 0.0)
        if jobs:
            self.batches.append([promise.device for promise in jobs])
        return len(jobs)

    def close(self):
        pass


def play(folder, delays_s, models, round_, staleness=None, back_end=None, algorithm="fedavg"):
    """Values of the global model after each merge, and the run folder's ``rounds`` and ``updates``."""
    config = simulation.complete(
        parse(
            {
                "rounds": models,
                "devices": {"count": len(delays_s)},
                "radio": {"bandwidth_hz": float(round_["count"])},
                "round": {"admission": "count", "payload_bits": 1.0, **round_},
                "staleness": staleness or {},
                "algorithm": {"name": algorithm},
                "data": {"partition": "iid", "samples_per_device": 10},
                "learning": {"pretrain": False},
                "evaluation": {"samples": 10},
            },
            "worked",
        )
    )
    streams = Streams(0)
    federation = make_federation(config, streams)
    real = make_world(config, streams)
    world = OneBitPerSecond(
        config, streams, real.population, real.places, real.environment, real.availability, delays_s=tuple(delays_s)
    )
    protocol = make_protocol(config.round)
    learner = TorchLearner(config, federation, streams, 1, dict, protocol.rule)
    learner.back_end = back_end or PlusOne()
    learner.global_weights = torch.zeros_like(learner.global_weights)
    writer = records.RunWriter(folder, simulation.as_toml(config), {})
    values = []
    parts = RunParts(
        world,
        make_selector("random", {}, len(delays_s), 10),
        learner,
        writer,
        make_backhaul(world.topology, 1.0, hierarchical=False),
    )
    server = Server(parts, protocol.begin(parts))
    numbers = [RoundNumber(k, 1, k, models, k == models) for k in range(1, models + 1)]
    server.begin(iter(numbers))
    while not isinstance(server.advance(), RunEnd):
        values.append((parts.clock.now, float(learner.global_weights[0])))
    writer.close("finished")
    return values, records.read_table(folder, "rounds"), records.read_table(folder, "updates")


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


class Watching(PlusOne):
    """Notes the round of each job and the merges that it was told of."""

    def __init__(self):
        super().__init__()
        self.told = []

    def run(self, promises):
        self.told += [(one.round, float(one.job.given["merges"])) for one in promises if one.result is None]
        return super().run(promises)


def test_a_job_starts_from_the_ledger_of_its_begin_however_many_merges_come_before_it_runs(tmp_path, monkeypatch):
    monkeypatch.setitem(ALGORITHMS, "counting", Counting)
    back_end = Watching()
    round_ = {"protocol": "buffered", "count": 3, "protocol_options": {"buffer": 2}}
    _, _, updates = play(tmp_path, [1.0, 1.5, 5.0], 6, round_, back_end=back_end, algorithm="counting")
    assert updates["staleness"].max() > 1
    assert len(back_end.told) == len(updates)
    assert all(merges == round - 1 for round, merges in back_end.told)


def test_fedasync_runs_the_worked_sequence_ties_included(tmp_path):
    """asynchronous.md: A takes 2 s and B 3 s, alpha = 0.5."""
    values, _, updates = play(
        tmp_path,
        [1.0, 2.0],
        5,
        {"protocol": "asynchronous", "count": 2, "protocol_options": {"mixing": 0.5}},
        {"weight": "constant"},
    )
    assert [t for t, _ in values] == [2, 3, 4, 6, 6]
    assert [value for _, value in values] == pytest.approx([0.5, 0.75, 1.125, 1.625, 1.6875])
    assert updates["device"].tolist() == [0, 1, 0, 0, 1]
    assert updates["staleness"].tolist() == [0, 1, 1, 0, 2]


def test_under_fedasync_jobs_of_updates_on_their_way_run_along(tmp_path):
    """Sending: A from 1 to 2, C from 1.5 to 2.5, B from 2.25 to 3.25, A again from 3 to 4."""
    back_end = PlusOne()
    values, _, updates = play(
        tmp_path,
        [1.0, 2.25, 1.5],
        4,
        {"protocol": "asynchronous", "count": 3, "protocol_options": {"mixing": 0.5}},
        {"weight": "constant"},
        back_end,
    )
    assert [t for t, _ in values] == [2, 2.5, 3.25, 4]
    assert updates["device"].tolist() == [0, 2, 1, 0]
    assert back_end.batches == [[0, 2], [1, 0]]
    assert [value for _, value in values] == pytest.approx([0.5, 0.75, 0.875, 1.1875])


class OneFails(PlusOne):
    """The jobs of device 1 never succeed."""

    def run(self, promises):
        fine = [promise for promise in promises if promise.device != 1]
        super().run(fine)
        if len(fine) < len(promises):
            raise Diverged("device 1 diverged")
        return len(fine)


def test_a_job_that_fails_along_is_told_when_its_own_update_arrives(tmp_path):
    """A and C arrive at 2, while B begins to send; B arrives at 3, while A sends again."""
    back_end = OneFails()
    with pytest.raises(Diverged, match="device 1"):
        play(
            tmp_path,
            [1.0, 2.0, 1.0],
            9,
            {"protocol": "asynchronous", "count": 3, "protocol_options": {"mixing": 0.5}},
            {"weight": "constant"},
            back_end,
        )
    assert back_end.batches == [[0, 2], [0, 2]]


def test_fedbuff_runs_the_worked_sequence_ties_included(tmp_path):
    """asynchronous.md: K = 2, M = 2; A's update of t = 4 has staleness 1, B's of t = 6 goes into the third buffer."""
    values, _, updates = play(
        tmp_path, [1.0, 2.0], 3, {"protocol": "buffered", "count": 2, "protocol_options": {"buffer": 2}}
    )
    assert [t for t, _ in values] == [3, 6, 8]
    assert [value for _, value in values[:2]] == pytest.approx([1.0, 1.853553], abs=1e-6)
    assert updates["device"].tolist() == [0, 1, 0, 0, 1, 0]
    assert updates["staleness"].tolist() == [0, 0, 1, 0, 1, 0]


def test_three_devices_by_hand(tmp_path):
    """A takes 1.5, B 2.5 and C 4 s; K = 2, all at work, constant weights: each merge adds the mean of its deltas, 1.

    Ends: A 1.5, B 2.5 | A 3, C 4 | A 4.5, B 5 | A 6, then A and B at 7.5 and C at 8: A 7.5 (the first of the tie).
    """
    values, rounds, updates = play(
        tmp_path,
        [0.5, 1.5, 3.0],
        4,
        {"protocol": "buffered", "count": 3, "protocol_options": {"buffer": 2}},
        {"weight": "constant"},
    )
    assert values == [(2.5, 1.0), (4.0, 2.0), (5.0, 3.0), (7.5, 4.0)]
    assert updates["device"].tolist() == [0, 1, 0, 2, 0, 1, 0, 0]
    # A of 3 began at 1.5 from model 0, C of 4 at 0; A of 4.5 at 3 from 1, B of 5 at 2.5 from 1; A of 6 at 4.5 from 2.
    assert updates["staleness"].tolist() == [0, 0, 1, 1, 1, 1, 1, 0]
    assert rounds["t_start_s"].tolist() == [0, 2.5, 4.0, 5.0]


def test_updates_beyond_the_limit_are_not_merged(tmp_path):
    _, _, updates = play(
        tmp_path, [0.5, 9.0], 12, {"protocol": "asynchronous", "count": 2}, {"weight": "constant", "limit": 3}
    )
    assert set(updates["device"]) == {0}
    acts = records.read_table(tmp_path, "activities")
    assert ((acts["device"] == 1) & (acts["activity"] == "upload") & (acts["outcome"] == "done")).any()


@pytest.mark.parametrize(
    "round_", [{"protocol": "asynchronous"}, {"protocol": "buffered", "protocol_options": {"buffer": 1}}]
)
@pytest.mark.parametrize(
    ("interruption", "expected", "dropped"),
    [
        (
            "pause",
            [
                ("compute", 0, 1, "paused"),
                ("compute", 2, 3, "done"),
                ("upload", 3, 4, "paused"),
                ("upload", 6, 8, "done"),
            ],
            0,
        ),
        # The second task has computed when the device leaves and is lost with nothing sent, the third comes through.
        (
            "abort",
            [
                ("compute", 0, 1, "dropped"),
                ("compute", 2, 4, "done"),
                ("compute", 6, 8, "done"),
                ("upload", 8, 11, "done"),
            ],
            2,
        ),
    ],
)
def test_without_rounds_work_pauses_while_its_device_is_away_or_is_lost(
    tmp_path, round_, interruption, expected, dropped
):
    """By hand: one device is there in [0, 1), [2, 4) and [6, 50), computes for 2 s and sends for 3 s."""
    (tmp_path / "there.csv").write_text("device,start_s,end_s\n0,0,1\n0,2,4\n0,6,50\n")
    (tmp_path / "phone.csv").write_text("device,s_per_sample,link_bps\n0,0.2,1e6\n")
    values = {
        "rounds": 1,
        "devices": {"count": 1, "profile": str(tmp_path / "phone.csv")},
        "radio": {"sharing": "own"},
        "availability": {"model": "table", "file": str(tmp_path / "there.csv"), "interruption": interruption},
        "round": {"admission": "count", "count": 1, "payload_bits": 3e6, "tmax_s": 20.0, **round_},
        "data": {"dataset": "none", "partition": "fedteddi"},
        "learning": {"training": "none", "steps": 1, "batch_size": 10, "pretrain": True},
    }
    simulation.run(parse(values, "test"), tmp_path / "run")
    acts, rounds = (records.read_table(tmp_path / "run", name) for name in ("activities", "rounds"))
    found = acts[["activity", "t_start_s", "t_end_s", "outcome"]].sort_values("t_start_s").to_numpy().tolist()
    assert [(name, round(start_s, 9), round(end_s, 9), fate) for name, start_s, end_s, fate in found] == expected
    assert rounds["t_end_s"].tolist() == pytest.approx([expected[-1][2]])
    assert rounds[["arrived", "dropped"]].to_numpy().tolist() == [[1, dropped]]
    assert acts.query("activity == 'upload'")["bits"].sum() == pytest.approx(3e6)


def test_two_tasks_of_one_device_in_one_buffer_are_told_apart(tmp_path):
    """By hand, as above: the first two tasks are lost, the third makes the model; all are rows of round 1."""
    (tmp_path / "there.csv").write_text("device,start_s,end_s\n0,0,1\n0,2,4\n0,6,50\n")
    (tmp_path / "phone.csv").write_text("device,s_per_sample,link_bps\n0,0.2,1e6\n")
    values = {
        "rounds": 1,
        "devices": {"count": 1, "profile": str(tmp_path / "phone.csv")},
        "radio": {"sharing": "own"},
        "availability": {"model": "table", "file": str(tmp_path / "there.csv"), "interruption": "abort"},
        "round": {
            "protocol": "buffered",
            "protocol_options": {"buffer": 1},
            "admission": "count",
            "count": 1,
            "payload_bits": 3e6,
        }
        | {"tmax_s": 20.0},
        "data": {"dataset": "none", "partition": "fedteddi"},
        "learning": {"training": "none", "steps": 1, "batch_size": 10, "pretrain": True},
    }
    simulation.run(parse(values, "test"), tmp_path / "run")
    acts, updates, metrics = (
        records.read_table(tmp_path / "run", name) for name in ("activities", "updates", "metrics")
    )
    assert acts["task"].tolist() == [1, 2, 3, 3]
    assert updates["task"].tolist() == [3]
    assert kinds(acts, updates).tolist() == ["dropped", "dropped", "useful", "useful"]
    told = metrics.query("name == 'wasted_s'")
    assert told[["key", "value"]].to_numpy().tolist() == [["dropped", pytest.approx(3.0)]]


@pytest.mark.parametrize(
    "round_", [{"protocol": "buffered", "protocol_options": {"buffer": 3}}, {"protocol": "asynchronous"}]
)
def test_jobs_trained_without_rounds_are_those_that_were_trained(tmp_path, monkeypatch, round_):
    """Best-norm trains everybody whom it looks at, FedAsync those on their way too."""
    trained = []
    train = LoopBackEnd.train
    monkeypatch.setattr(LoopBackEnd, "train", lambda self, job: trained.append(job) or train(self, job))
    values = {
        "rounds": 12,
        "devices": {"count": 8},
        "round": {"admission": "count", "count": 3, "payload_bits": 3e6, **round_},
        "data": {"partition": "iid", "samples_per_device": 10},
        "learning": {"pretrain": False, "back_end": "loop", "steps": 1},
        "evaluation": {"samples": 10},
        "selection": {"policy": "best-norm"},
    }
    simulation.run(parse(values, "test"), tmp_path)
    rounds, updates = (records.read_table(tmp_path, name) for name in ("rounds", "updates"))
    assert rounds["jobs_trained"].sum() == len(trained) > len(updates)


def test_an_algorithm_hears_of_the_model_that_is_made_though_no_device_has_begun_for_it(tmp_path, monkeypatch):
    """By hand: device 0 arrives at 4 s and leaves, device 1 at 10 s; nobody begins between the two models."""
    heard = []

    class Notes(FedAvg.Server):
        def note(self, ledger, arrived):
            heard.append((arrived.round, arrived.ids.tolist(), arrived.round_lr, arrived.lr.tolist()))
            return super().note(ledger, arrived)

    monkeypatch.setitem(ALGORITHMS, "notes", type("Notes", (FedAvg,), {"Server": Notes}))
    (tmp_path / "there.csv").write_text("device,start_s,end_s\n0,0,4\n1,0,50\n")
    (tmp_path / "phones.csv").write_text("device,s_per_sample,link_bps\n0,0.1,1e6\n1,0.7,1e6\n")
    values = {
        "rounds": 3,
        "devices": {"count": 2, "profile": str(tmp_path / "phones.csv")},
        "radio": {"sharing": "own"},
        "availability": {"model": "table", "file": str(tmp_path / "there.csv")},
        "round": {"protocol": "asynchronous", "admission": "count", "count": 2, "payload_bits": 3e6, "tmax_s": 20.0},
        "data": {"dataset": "none", "partition": "fedteddi"},
        "learning": {"training": "none", "steps": 1, "batch_size": 10, "lr": 0.8, "lr_decay": 0.5, "pretrain": True},
        "algorithm": {"name": "notes"},
    }
    simulation.run(parse(values, "test"), tmp_path / "run")
    assert records.read_table(tmp_path / "run", "rounds")["t_end_s"].tolist() == pytest.approx([4, 10, 20])
    assert heard == [(1, [0], 0.8, [0.8]), (2, [1], 0.4, [0.8]), (3, [1], 0.2, [0.2])]
