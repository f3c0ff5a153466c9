"""An algorithm of a user's own, written from the handbook alone: a server that takes the coordinate-wise median."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from quadratics import Play, Quadratic

import edgesim
from edgesim.base.errors import EdgesimError

PAGE = (Path(__file__).parents[2] / "docs/algorithms.md").read_text()
WORLD = {
    "rounds": 3,
    "devices": {"count": 4},
    "radio": {"channel": "free-space"},
    "round": {"admission": "count", "count": 3},
    "data": {"partition": "iid", "samples_per_device": 20},
    "learning": {"pretrain": False, "steps": 2, "back_end": "loop"},
    "evaluation": {"samples": 50},
}
PROTOCOLS = {
    "synchronous": {},
    "buffered": {"protocol": "buffered", "protocol_options": {"buffer": 3}},
    "asynchronous": {"protocol": "asynchronous"},
}


@pytest.fixture(autouse=True)
def median(tmp_path, monkeypatch):
    """The handbook's file in the user's folder, imported by its dotted path alone."""
    _, text = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "median.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    monkeypatch.delitem(importlib.sys.modules, "median", raising=False)
    yield importlib.import_module("median").Median
    importlib.sys.modules.pop("median", None)


def test_one_wild_device_does_not_move_the_model(median):
    """A step of 0.1 on (w - b)^2 / 2 from 0 goes 0.1 b: 0.1, 0.2 and 1000, and 0.15 between the lower two."""
    devices = [Quadratic(1.0), Quadratic(2.0), Quadratic(1e4)]
    assert Play(median, devices, steps=1).round(0, 1, 2) == pytest.approx(0.2, abs=1e-12)
    assert Play(median, devices, steps=1).round(0, 1) == pytest.approx(0.15, abs=1e-12)


def test_each_coordinate_has_a_median_of_its_own_and_buffers_a_mean(median):
    devices = [
        Quadratic((1.0, -3.0), moments=(6.0,)),
        Quadratic((5.0, 2.0), moments=(0.0,)),
        Quadratic((2.0, 1.0), moments=(3.0,)),
    ]
    play = Play(median, devices, start=(0.0, 0.0, 9.0), steps=1)
    play.round(0, 1, 2)
    assert play.state.weights.tolist() == pytest.approx([0.2, 0.1, 3.0], abs=1e-12)


@pytest.mark.parametrize("training", ["real", "none"])
@pytest.mark.parametrize("protocol", ["synchronous", "buffered"])
def test_it_stands_in_a_study_beside_fedavg(tmp_path, protocol, training, studies_here):
    learning = WORLD["learning"] | {"training": training} if training == "real" else {"training": "none"}
    world = WORLD | {"round": WORLD["round"] | PROTOCOLS[protocol], "learning": learning}
    names = ["fedavg", "median.Median"]
    study = edgesim.study(world, {"algorithm.name": names}, seeds=1, out=tmp_path / "study", jobs=1, check=True)
    assert study.unfinished == {}
    runs = {run.knobs["algorithm"]: run for run in study.runs.values()}
    weights = {name: runs[name].updates["weight"].to_numpy() for name in names}
    assert all(len(of) for of in weights.values())
    if protocol == "synchronous":
        assert np.allclose(
            weights["median.Median"], 1 / runs["median.Median"].updates.groupby("round")["weight"].transform("size")
        )
    if training == "real":
        losses = [runs[name].rounds["test_loss"].iloc[-1] for name in names]
        assert np.isfinite(losses).all()
        assert losses[0] != losses[1]
    else:
        assert runs["fedavg"].rounds["t_end_s"].tolist() == runs["median.Median"].rounds["t_end_s"].tolist()


def test_it_is_refused_where_its_needs_are_not_met(tmp_path):
    def refused(**sections):
        with pytest.raises(EdgesimError) as refusal:
            edgesim.run(WORLD | sections, tmp_path / "run")
        assert "\n" not in str(refusal.value)
        return str(refusal.value)

    own = {"name": "median.Median"}
    told = refused(algorithm=own, round=WORLD["round"] | PROTOCOLS["asynchronous"])
    assert told.startswith("algorithm.name = 'median.Median' needs round.protocol = 'synchronous' or 'buffered'")
    told = refused(algorithm=own, topology={"file": "three-cells", "aggregation": "hierarchical", "cloud_every": 2})
    assert "edge servers merge weighted means alone" in told
    assert "does not go with" in refused(algorithm=own | {"kpfl": {}})


def test_it_goes_with_another_algorithms_local_half(tmp_path):
    run = edgesim.run(
        WORLD | {"algorithm": {"name": "fedprox", "server": "median.Median", "mu": 0.5}}, tmp_path / "run"
    )
    assert torch.isfinite(torch.tensor(run.rounds["test_loss"].to_numpy())).any()
