"""What devices keep from one job to the next, by an algorithm of the tests' own."""

import numpy as np
import pytest
import torch

from edgesim.config_file import parse
from edgesim.folder.records import read_run, read_table
from edgesim.learning.algorithms import ALGORITHMS
from edgesim.learning.algorithms.fedavg import FedAvg
from edgesim.learning.algorithms.records import Sent
from edgesim.learning.jobs import Arrived
from edgesim.learning.learner import TorchLearner
from edgesim.simulation import composition as simulation


class Counting(FedAvg.Local):
    """Every device counts its jobs, and keeps its last update and the head of it."""

    def sent(self, trained):
        before = trained.given.get("jobs", torch.zeros(1))
        return Sent(
            up={"jobs": before + 1}, keeps={"jobs": before + 1, "head": trained.update[:3], "all": trained.update}
        )


class Counts(FedAvg):
    Local = Counting


@pytest.fixture(autouse=True)
def _own_algorithm(monkeypatch):
    monkeypatch.setitem(ALGORITHMS, "counts", Counts)


@pytest.fixture(params=["loop", "stacked"])
def learner(request, make_learner):
    return make_learner(learning={"pretrain": False, "back_end": request.param}, algorithm={"name": "counts"})


def kept(learner):
    return {device: float(tensors["jobs"]) for device, tensors in learner.kept.items()}


def test_what_a_device_keeps_comes_back_at_its_next_job_and_is_touched_by_no_other_round(learner, begin):
    first = begin(learner.open_round(1, 1), [0, 1, 2])
    assert all(set(promise.job.given) == {"start"} for promise in first.values())
    learner.merge([Arrived(first[device]) for device in (2, 0, 1)], np.array([0, 1, 2]))
    assert kept(learner) == {0: 1, 1: 1, 2: 1}
    of_first = dict(learner.kept[1])
    assert torch.equal(of_first["head"], first[1].result.update[:3])
    # Device 1 is away in round 2.
    second = begin(learner.open_round(2, 1), [0, 2, 3])
    assert second[0].job.given["jobs"] is learner.kept[0]["jobs"]
    assert "jobs" not in second[3].job.given
    learner.merge([Arrived(second[device]) for device in (0, 2, 3)], np.array([0, 2, 3]))
    assert kept(learner) == {0: 2, 1: 1, 2: 2, 3: 1}
    third = begin(learner.open_round(3, 1), [1])
    assert all(third[1].job.given[name] is tensor for name, tensor in of_first.items())
    assert float(second[0].result.up["jobs"]) == 2


def test_what_a_device_keeps_is_not_in_the_memory_of_its_update_which_a_server_may_change(learner, begin):
    first = begin(learner.open_round(1, 1), [0, 1])
    learner.merge([Arrived(first[device]) for device in (0, 1)], np.array([0, 1]))
    before = {name: tensor.clone() for name, tensor in learner.kept[1].items()}
    first[1].result.update.zero_()
    assert before["all"].norm() > 0
    for name, tensor in before.items():
        assert torch.equal(learner.kept[1][name], tensor), name
        assert learner.kept[1][name].untyped_storage().nbytes() == tensor.nbytes, name


def test_work_that_is_not_merged_leaves_what_a_device_kept_as_it_was(learner, begin):
    first = begin(learner.open_round(1, 1), [0, 1, 2])
    learner.merge([Arrived(first[device]) for device in (0, 1, 2)], np.array([0, 1, 2]))
    of_first = {device: dict(tensors) for device, tensors in learner.kept.items()}
    # In round 2 device 0 is late, device 1 arrives and is not picked, and a policy looks at the update of device 2.
    second = begin(learner.open_round(2, 1), [0, 1, 2])
    learner.results([second[0], second[2]])
    learner.merge([Arrived(second[1], picked=False)], np.array([0, 1, 2]))
    assert float(second[0].result.keeps["jobs"]) == 2
    assert all(learner.kept[device][name] is tensor for device in of_first for name, tensor in of_first[device].items())
    # It counts once it is merged, though the device began it before.
    third = begin(learner.open_round(3, 1), [1])
    learner.merge([Arrived(second[0], staleness=1), Arrived(third[1])], np.array([1]))
    assert kept(learner) == {0: 2, 1: 2, 2: 1}


def test_momentum_that_lasts_goes_on_with_the_next_job_once_its_update_is_merged(make_learner, begin):
    """Device 1 is away in round 2, in which the work of device 0 is late; device 2 has its own."""
    learning = {"pretrain": False, "momentum": 0.9, "persist_momentum": True, "back_end": "loop"}
    learner = make_learner(learning=learning)
    first = begin(learner.open_round(1, 1), [0, 1, 2])
    assert all(promise.job.velocity is None for promise in first.values())
    learner.merge([Arrived(first[device]) for device in (2, 0, 1)], np.array([0, 1, 2]))
    of_first = {device: promise.result.velocity for device, promise in first.items()}
    second = begin(learner.open_round(2, 1), [0, 2])
    assert all(second[device].job.velocity is of_first[device] for device in second)
    learner.results(list(second.values()))
    learner.merge([Arrived(second[2])], np.array([0, 2]))
    third = begin(learner.open_round(3, 1), [0, 1, 2, 3])
    assert third[3].job.velocity is None
    assert third[2].job.velocity is second[2].result.velocity
    assert all(third[device].job.velocity is of_first[device] for device in (0, 1))
    numbers = learner.model.trainable
    facts = learner.facts()
    assert (facts["bytes_per_merged_device"], facts["bytes_of_device_state"]) == (4 * numbers, 3 * 4 * numbers)


def test_run_json_names_what_is_remembered_of_the_devices_that_were_merged_and_nothing_of_the_others(tmp_path):
    values = {
        "rounds": 3,
        "devices": {"count": 12},
        "round": {"admission": "count", "count": 2},
        "data": {"partition": "iid", "samples_per_device": 10},
        "learning": {"pretrain": False, "persist_momentum": True},
        "algorithm": {"name": "moon"},
    }
    simulation.run(parse(values, "test"), tmp_path)
    merged = read_table(tmp_path, "updates")["device"].nunique()
    facts = read_run(tmp_path)
    assert facts["bytes_per_merged_device"] == 2 * 4 * 2410
    assert facts["bytes_of_device_state"] == merged * 2 * 4 * 2410
    assert 2 < merged < 12


@pytest.mark.parametrize(
    "round_",
    [
        {"delay_knowledge": "planned", "plan_quantile": 0.4},
        {"delay_knowledge": "planned", "plan_quantile": 0.4, "late": "keep"},
        {"protocol": "buffered", "protocol_options": {"buffer": 3}, "admission": "count", "count": 5},
        {"protocol": "asynchronous", "admission": "count", "count": 5},
    ],
    ids=["drop", "keep", "buffered", "asynchronous"],
)
def test_over_a_whole_run_each_device_has_kept_what_was_merged_of_it(round_, tmp_path, monkeypatch):
    """Without rounds a device may begin anew before its update is merged: what it kept is then that of the one before.

    So its count is at most that of its merged updates, and above that of the rounds before.
    """
    found = {}
    save = TorchLearner.save
    monkeypatch.setattr(TorchLearner, "save", lambda self, folder: found.update(kept(self)) or save(self, folder))
    values = {
        "rounds": 24,
        "devices": {"count": 8, "mu_samples_per_s": 400.0},
        "radio": {"bandwidth_hz": 4e6},
        "round": {"tmax_s": 0.4, **round_},
        "data": {"partition": "iid", "samples_per_device": 10},
        "learning": {"pretrain": False, "steps": 2, "batch_size": 4, "back_end": "loop"},
        "algorithm": {"name": "counts"},
        "evaluation": {"samples": 10, "every": 100},
    }
    simulation.run(parse(values, "test"), tmp_path)
    merged = read_table(tmp_path, "updates").groupby("device").size().to_dict()
    begun = read_table(tmp_path, "activities").drop_duplicates(["device", "task"]).groupby("device").size()
    assert (begun > begun.index.map(lambda device: merged.get(device, 0))).any()
    if "protocol" in round_:
        assert found.keys() == merged.keys()
        assert all(1 <= found[device] <= merged[device] for device in found)
        assert max(found.values()) > 2
    else:
        assert found == merged
