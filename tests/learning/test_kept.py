"""What devices keep from one job to the next, by an algorithm of the tests' own."""

import numpy as np
import pytest
import torch
from begun import begun
from whole_runs import play

from edgesim.learning.algorithms import ALGORITHMS
from edgesim.learning.algorithms.fedavg import FedAvg
from edgesim.learning.algorithms.records import Sent
from edgesim.learning.jobs import Arrived
from edgesim.learning.learner import TorchLearner


class Counting(FedAvg.Local):
    """Every device counts its jobs."""

    def sent(self, trained):
        before = trained.given.get("jobs", torch.zeros(1))
        return Sent(up={"jobs": before + 1}, keeps={"jobs": before + 1})


class Counts(FedAvg):
    Local = Counting


@pytest.fixture(autouse=True)
def _own_algorithm(monkeypatch):
    monkeypatch.setitem(ALGORITHMS, "counts", Counts)


def kept(learner):
    return {device: float(tensors["jobs"]) for device, tensors in learner.kept.items()}


def test_work_that_is_not_merged_leaves_what_a_device_kept_as_it_was(make_learner):
    learner = make_learner(learning={"pretrain": False, "back_end": "loop"}, algorithm={"name": "counts"})
    first = begun(learner.open_round(1, 1), [0, 1, 2])
    learner.merge([Arrived(first[device]) for device in (0, 1, 2)], np.array([0, 1, 2]))
    of_first = {device: dict(tensors) for device, tensors in learner.kept.items()}
    # In round 2 device 0 is late, device 1 arrives and is not picked, and a policy looks at the update of device 2.
    second = begun(learner.open_round(2, 1), [0, 1, 2])
    learner.results([second[0], second[2]])
    learner.merge([Arrived(second[1], picked=False)], np.array([0, 1, 2]))
    assert float(second[0].result.keeps["jobs"]) == 2
    assert all(learner.kept[device][name] is tensor for device in of_first for name, tensor in of_first[device].items())
    # It counts once it is merged, though the device began it before.
    third = begun(learner.open_round(3, 1), [1])
    learner.merge([Arrived(second[0], staleness=1), Arrived(third[1])], np.array([1]))
    assert kept(learner) == {0: 2, 1: 2, 2: 1}


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
    played = play(tmp_path, values)
    merged = played.updates.groupby("device").size().to_dict()
    begun = played.activities.drop_duplicates(["device", "task"]).groupby("device").size()
    assert (begun > begun.index.map(lambda device: merged.get(device, 0))).any()
    if "protocol" in round_:
        assert found.keys() == merged.keys()
        assert all(1 <= found[device] <= merged[device] for device in found)
        assert max(found.values()) > 2
    else:
        assert found == merged
