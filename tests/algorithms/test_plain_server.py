"""Whole runs beside a server written in plain float64: with batch norm, stale updates, two of one device at once."""

from collections import Counter

import pytest
from contract import allows
from plain_server import PlainServer, close
from torch import nn

from edgesim.config_file import parse
from edgesim.learning.algorithms import ALGORITHMS
from edgesim.learning.learner import TorchLearner
from edgesim.learning.training_round import TorchRound
from edgesim.simulation import composition as simulation

SLOTS = "111111 000000 101101 010000 000000 111111 000000 000010 000000 110111 011110 000000 111011 100000 111111"
"""Who is there in which slot. A slot without anybody passes, and late uploads of the round before may end in it."""
PLANNED = {"tmax_s": 0.5, "delay_knowledge": "planned"}
WITHOUT_ROUNDS = {"tmax_s": 0.5, "admission": "count", "count": 4}
SETTINGS = {
    "rounds": PLANNED | {"plan_quantile": 0.5},
    "late": PLANNED | {"plan_quantile": 0.3, "late": "keep"},
    "buffered": WITHOUT_ROUNDS | {"protocol": "buffered", "protocol_options": {"buffer": 3}},
    "asynchronous": WITHOUT_ROUNDS | {"protocol": "asynchronous"},
}
OPTIONS = {
    "feddf": {"steps": 3, "lr": 0.01},
    "fedgen": {"steps": 2},
    "fedmd": {"public_subset": "fixed", "public_share": 0.2, "public_epochs": 0, "own_epochs": 0},
    "cfed": {"task_rounds": 2},
}
SERVER_LR = {"mifa": 1.0}
"""Of buffers; 1.5 for all others."""
BY_AGE = set(ALGORITHMS) - {"mifa", "fedproto", "fedmd"}
"""Algorithms whose updates may count by their age."""


def net(image_shape, class_count):
    """With running means and variances.

    Before these a bias would have a gradient of rounding alone, which Adam blows up.
    """
    first = nn.Linear(64, 8, bias=False)
    return nn.Sequential(nn.Flatten(), first, nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, class_count))


CASES = [(name, setting) for name in ALGORITHMS for setting in SETTINGS if allows((name, "own"), setting)]
QUICK = {("fedavg", setting) for setting in SETTINGS}
QUICK |= {(name, "late") for name in ("scaffold", "mifa", "moon", "fedproto", "fedmd")}


@pytest.fixture
def config(tmp_path):
    def make(name, setting):
        slots = SLOTS.split() * 2
        lines = [",".join(["device", *(str(slot + 1) for slot in range(len(slots)))])]
        lines += [",".join([str(device), *(slot[device] for slot in slots)]) for device in range(6)]
        (tmp_path / "there.csv").write_text("\n".join(lines))
        table = {"model": "table", "file": str(tmp_path / "there.csv"), "if_empty": "wait", "interruption": "ignore"}
        in_rounds, lasting, round_ = setting in ("rounds", "late"), name != "scaffold", dict(SETTINGS[setting])
        if setting == "buffered":
            round_["protocol_options"] = round_["protocol_options"] | {"server_lr": SERVER_LR.get(name, 1.5)}
        values = {
            "seed": 3,
            "rounds": 18,
            "devices": {"count": 6, "mu_samples_per_s": 200.0},
            "availability": table | {"slots": "rounds"} if in_rounds else {},
            "radio": {"bandwidth_hz": 2e6},
            "round": round_,
            "data": {"partition": "quantity", "samples_per_device": 16, "public": "carved", "public_per_class": 3},
            "learning": {
                "pretrain": False,
                "steps": 2,
                "batch_size": 8,
                "lr_decay": 0.9,
                "model": "test_plain_server.net",
                "precision": "float64",
                "momentum": 0.5 * lasting,
                "persist_momentum": lasting,
                "back_end": "loop",
            },
            "algorithm": {"name": name, **OPTIONS.get(name, {})},
            "evaluation": {"samples": 20, "every": 100},
        }
        if name in BY_AGE and setting in ("late", "asynchronous"):
            values["staleness"] = {"weight": "polynomial", "a": 0.5}
        return simulation.complete(parse(values, "test"))

    return make


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("name", "setting"),
    [pytest.param(*case, id=" ".join(case), marks=() if case in QUICK else pytest.mark.slow) for case in CASES],
)
def test_models_and_what_devices_keep_are_those_of_a_plain_server(name, setting, config, tmp_path, monkeypatch):
    start, merge, plain, met = TorchRound.start, TorchLearner.merge, [], Counter()
    completed = config(name, setting)

    def spied_start(self, ids):
        if not plain:
            plain.append(PlainServer(self._learner, completed, self._learner.model.trainable))
        promises = start(self, ids)
        for promise in promises:
            plain[0].begins(promise)
        return promises

    def spied_merge(self, arrived, began, *more):
        used = [one.promise for one in arrived]
        self.results(used)
        ages = [plain[0].version - plain[0].started[id(one)] for one in used]
        if name != "safa":
            assert [one.staleness for one in arrived] == ages
        plain[0].merges(used, began.tolist(), self.accounts.rule.in_order_of_arrival)
        merged = merge(self, arrived, began, *more)
        close(self.global_weights, plain[0].model, f"model {self._round}")
        met["none" if not used else "one" if len(used) == 1 else "several"] += 1
        met["twice"] += len({one.device for one in used}) < len(used)
        met["stale"] += max(ages, default=0) > 0
        fresh = [one for one, age in zip(used, ages, strict=True) if age == 0]
        met["late but not stale"] += any(one.round < self._round for one in fresh)
        return merged

    monkeypatch.setattr(TorchRound, "start", spied_start)
    monkeypatch.setattr(TorchLearner, "merge", spied_merge)
    result = simulation.run(completed, tmp_path / "run")
    assert result.status == "finished", result.reason
    met = {what for what, count in met.items() if count}
    expected = {
        "rounds": {"none", "one", "several"},
        "late": {"none", "one", "several", "twice", "stale", "late but not stale"},
        "buffered": {"several", "twice", "stale"},
        "asynchronous": {"one", "stale"},
    }
    assert expected[setting] <= met, met
