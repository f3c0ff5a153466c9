"""What `docs/algorithms.md` shows is what works: its skeleton, and its median, as files of a user's."""

import importlib
import sys

import numpy as np
import pytest
from quadratics import Play, Quadratic
from quoted import DOCS, examples
from refusals import in_one_line

import edgesim

COUNT = {"admission": "count", "count": 3}
WORLD = {
    "rounds": 3,
    "devices": {"count": 4},
    "radio": {"channel": "free-space"},
    "round": COUNT,
    "data": {"partition": "iid", "samples_per_device": 20},
    "learning": {"pretrain": False, "steps": 2, "back_end": "loop"},
    "evaluation": {"samples": 50},
}
BUFFERED = {"round": COUNT | {"protocol": "buffered", "protocol_options": {"buffer": 3}}}


@pytest.fixture(autouse=True)
def shown(tmp_path, monkeypatch):
    """The modules of the page in the user's folder, imported by their dotted paths alone."""
    modules = dict(zip(("skeleton", "median"), examples(DOCS / "algorithms.md", "python"), strict=True))
    for name, text in modules.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield importlib.import_module
    for name in modules:
        sys.modules.pop(name, None)


def test_the_skeleton_does_what_its_docstrings_say_and_runs(shown, tmp_path):
    """Two steps of 0.1 on (w - 1)^2 / 2, held to their start by mu = 1, go (1 - 0.8^2) / 2 = 0.18 of the way."""
    play = Play(shown("skeleton").Mine, [Quadratic(1.0)], {"mu": 1.0})
    assert play.round(0) == pytest.approx(0.09, abs=1e-12)
    change = 0.18 * (1 - 0.09)
    assert play.round(0) == pytest.approx(0.09 + (change + 0.18) / 2, abs=1e-12)
    for name, protocol in (("rounds", {}), ("buffered", BUFFERED)):
        run = edgesim.run(WORLD | protocol | {"algorithm": {"name": "skeleton.Mine", "mu": 0.5}}, tmp_path / name)
        assert len(run.rounds) == 3


def test_one_wild_device_does_not_move_the_median(shown):
    """A step of 0.1 on (w - b)^2 / 2 from 0 goes 0.1 b: 0.1, 0.2 and 1000, and 0.15 between the lower two.

    Each coordinate has a median of its own, and buffers a mean.
    """
    median, wild = shown("median").Median, [Quadratic(1.0), Quadratic(2.0), Quadratic(1e4)]
    assert Play(median, wild, steps=1).round(0, 1, 2) == pytest.approx(0.2, abs=1e-12)
    assert Play(median, wild, steps=1).round(0, 1) == pytest.approx(0.15, abs=1e-12)
    best = ((1.0, -3.0), 6.0), ((5.0, 2.0), 0.0), ((2.0, 1.0), 3.0)
    play = Play(median, [Quadratic(of, moments=(end,)) for of, end in best], start=(0.0, 0.0, 9.0), steps=1)
    play.round(0, 1, 2)
    assert play.state.weights.tolist() == pytest.approx([0.2, 0.1, 3.0], abs=1e-12)


@pytest.mark.parametrize(("protocol", "training"), [({}, "real"), (BUFFERED, "none")], ids=["real", "none"])
def test_the_median_stands_in_a_study_beside_fedavg(tmp_path, protocol, training, studies_here):
    learning = WORLD["learning"] if training == "real" else {"training": "none"}
    names = ["fedavg", "median.Median"]
    world = WORLD | protocol | {"learning": learning}
    study = edgesim.study(world, {"algorithm.name": names}, seeds=1, out=tmp_path / "study", jobs=1, check=True)
    assert study.unfinished == {}
    fedavg, median = ({run.knobs["algorithm"]: run for run in study.runs.values()}[name] for name in names)
    if training == "none":
        assert fedavg.rounds["t_end_s"].tolist() == median.rounds["t_end_s"].tolist()
        return
    weights = median.updates.groupby("round")["weight"]
    assert np.allclose(median.updates["weight"], 1 / weights.transform("size"))
    losses = [run.rounds["test_loss"].iloc[-1] for run in (fedavg, median)]
    assert np.isfinite(losses).all()
    assert losses[0] != losses[1]


EDGES = {"topology": {"file": "three-cells", "aggregation": "hierarchical", "cloud_every": 2}}
NEEDED = "needs round.protocol = 'synchronous' or 'buffered'"


@pytest.mark.parametrize(
    ("algorithm", "sections", "said"),
    [
        ({"name": "skeleton.Mine"}, {"round": COUNT | {"protocol": "asynchronous"}}, NEEDED),
        ({"name": "median.Median"}, {"round": COUNT | {"protocol": "asynchronous"}}, NEEDED),
        ({"name": "median.Median"}, EDGES, "edge servers merge weighted means alone"),
        ({"name": "median.Median", "kpfl": {}}, {}, "does not go with"),
    ],
    ids=str,
)
def test_they_are_refused_where_their_needs_are_not_met(algorithm, sections, said, tmp_path):
    with in_one_line(said):
        edgesim.run(WORLD | sections | {"algorithm": algorithm}, tmp_path / "run")


def test_the_median_goes_with_another_algorithms_local_half(tmp_path):
    own = {"name": "fedprox", "server": "median.Median", "mu": 0.5}
    assert np.isfinite(edgesim.run(WORLD | {"algorithm": own}, tmp_path / "run").rounds["test_loss"]).any()
