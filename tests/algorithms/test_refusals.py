"""What algorithms refuse, each in one line and before anything is written; by key, value and the words that occur."""

import re

import pytest
from contract import COUNT
from refusals import in_one_line
from torch import nn

from edgesim.config_file import parse
from edgesim.simulation import composition as simulation

WORLD = {
    "rounds": 1,
    "devices": {"count": 10},
    "data": {"partition": "iid", "samples_per_device": 12, "public": "carved"},
    "learning": {"pretrain": False, "steps": 1},
}
EDGES = {"topology": {"file": "three-cells", "aggregation": "hierarchical", "cloud_every": 2}}
BUFFERED, ASYNCHRONOUS = ({"round": {**COUNT, "protocol": name}} for name in ("buffered", "asynchronous"))
LATE = {"round": {"late": "keep"}}
FIRST, CENTRAL = {"keep": "first"}, {"mechanism": "central", "noise": 1.0}


def without_linear(image_shape, class_count):
    return nn.Sequential(nn.Conv2d(image_shape[0], class_count, image_shape[1]), nn.Flatten())


def with_unused_linear(image_shape, class_count):
    net = without_linear(image_shape, class_count)
    net.unused = nn.Linear(3, 3)
    net.forward = lambda images: net[1](net[0](images))
    return net


def options(protocol, **values):
    return {"round": {**COUNT, "protocol": protocol, "protocol_options": values}}


NAMES = [
    ({"name": "fedpox"}, "algorithm.name: unknown algorithm 'fedpox', did you mean 'fedprox'"),
    ({"server": "sava"}, "algorithm.server: unknown server 'sava', did you mean 'safa'"),
    # No server half is near: that of 'moon' cannot be combined.
    ({"server": "moonn"}, "algorithm.server: unknown server 'moonn'; known: own, "),
    ({"name": "fedprox", "mou": 1.0}, "unknown key 'algorithm.mou', did you mean 'algorithm.mu'"),
    ({"name": "fedprox", "mu": -1.0}, "algorithm 'fedprox': algorithm.mu: input should be greater than or equal"),
    ({"name": "fedprox", "server": "safa", "lag_tolerance": -1}, "'fedprox with server safa': algorithm.lag_tolerance"),
    ({"name": "fedprox", "server": "mifa", "weights": "samples"}, "not of 'fedprox with server mifa'"),
    ({"weights": "size"}, "weights: input should be 'samples' or 'equal'"),
    ({"name": "safa", "lag_tolerance": -1}, "lag_tolerance: input should be greater than or equal to 0"),
    ({"name": "afl", "sensitivity": -1.0}, "algorithm.sensitivity: input should be greater than or equal to 0"),
    ({"name": "afl", "delta_norm": "mean"}, "algorithm.delta_norm: input should be 'none' or 'median'"),
    ({"name": "cfed", "weights": "samples"}, "algorithm.weights: is an option of algorithm "),
    ({"name": "cfed", "learners": 0}, "algorithm 'cfed': algorithm.learners: input should be greater than 0"),
    ({"name": "fedmd", "average_weights": True, "own_epochs": 3}, "with algorithm.average_weights = true does"),
    ({"name": "fedstg", "speeds": []}, "algorithm.speeds: list should have at least 1 item"),
    ({"name": "fedstg", "speeds": [1.0, 0.0]}, "algorithm.speeds[1]: input should be greater than 0"),
    ({"name": "fedstg", "speeds": [2.0]}, "algorithm.speeds[0]: input should be less than or equal to 1"),
    ({"name": "fedstg", "rarity": 2}, "algorithm.rarity: input should be a valid boolean"),
    ({"name": "fedavgm", "beta": 1.0}, "algorithm.beta: input should be less than 1"),
    ({"name": "fedadam", "lr": 0.0}, "algorithm.lr: input should be greater than 0"),
    ({"name": "fedadam", "b1": 1.0}, "algorithm.b1: input should be less than 1"),
    ({"name": "fedyogi", "b2": 1.1}, "algorithm.b2: input should be less than or equal to 1"),
    ({"name": "fedyogi", "tau": 0.0}, "algorithm.tau: input should be greater than 0"),
    ({"name": "moon", "mu": -1.0}, "mu: input should be greater than or equal to 0"),
    ({"name": "moon", "T": 0.0}, "T: input should be greater than 0"),
    ({"name": "scaffold", "option": "III"}, "option: input should be 'I' or 'II'"),
    ({"name": "scaffold", "option": "I", "derive_control": True}, "derive_control = true needs option = "),
    ({"name": "scaffold", "step_count": "literal"}, "algorithm.step_count = 'literal' with"),
    ({"name": "mifa", "kpfl": {}}, "algorithm.kpfl does not go with algorithm.name = 'mifa'"),
    ({"name": "fedprox", "server": "safa", "kpfl": {}}, "kpfl does not go with algorithm.server = 'safa'"),
    ({"name": "fedmd", "kpfl": {}}, "algorithm.average_weights = false does not go with algorithm.kpfl: no models"),
    ({"name": "cfed", "server_passes": 1, "kpfl": {}}, "algorithm.server_passes = 1 does not go with algorithm.kpfl"),
    (
        {"name": "fedproto", "average_weights": True, "stale_prototypes": True, "kpfl": {}},
        "algorithm.kpfl does not go with algorithm.stale_prototypes = true",
    ),
    ({"weights": "equal", "kpfl": {}}, "algorithm.kpfl does not go with algorithm.weights = 'equal'"),
    ({"kpfl": {"validation_accept": True}}, "algorithm.kpfl.validation_accept = true needs data"),
    ({"kpfl": FIRST | {"server_s_per_step": 0.1}}, "with algorithm.kpfl.keep = 'first' needs algorithm.kpfl"),
    ({"kpfl": FIRST | {"validation_accept": True}}, "with algorithm.kpfl.keep = 'first' needs algorithm.kpfl"),
    ({"kpfl": {"ce": -1.0}}, "KPFL: algorithm.kpfl.ce: input should be greater than or equal to 0"),
    ({"kpfl": {"kep": "first"}}, "KPFL: unknown key 'algorithm.kpfl.kep', did you mean 'algorithm.kpfl.keep'"),
    ({"kpfl": 3}, "algorithm.kpfl: input should be a valid dict"),
]
"""Keys of ``[algorithm]`` alone."""

SECTIONS = [
    ("fedavg", options("buffered", mixing=0.5), "mixing: is an option of protocol 'asynchronous', not of 'buffered'"),
    ("fedavg", {"round": {"protocol_options": {"buffer": 3}}}, "is an option of protocol 'buffered', not of 'synchr"),
    ("fedavg", {"round": {"protocol_options": {"k": 3}}}, "protocol 'synchronous' takes no options, remove 'k'"),
    ("fedavg", options("buffered", buffer=0), "buffer: input should be greater than or equal to 1"),
    ("fedavg", options("asynchronous", mixing=2.0), "mixing: input should be less than or equal to 1"),
    (
        "cfed",
        {"data": {"public_per_class": 1}},
        "the 10 public images among 10 devices and the server; give at least ",
    ),
    ("fedcl", {"data": {"public_per_class": 1}}, "'fedcl' needs two labelled images of each class, 20 of 10 classes"),
    ("fedmd", LATE, "algorithm.public_subset = 'round' needs"),
    ("fedmd", BUFFERED, "algorithm.public_subset = 'round' needs"),
    ("scaffold", {"learning": {"persist_momentum": True}}, "algorithm.option = 'II' needs learning.persist_momentum"),
    ("scaffold", {"learning": {"optimiser": "adam"}}, "algorithm.option = 'II' needs learning.optimiser"),
    ("mifa", options("buffered", server_lr=0.5), "'mifa' does not go with round.protocol_options."),
    ("mifa", LATE | {"staleness": {"weight": "polynomial"}}, "staleness."),
    ("mifa", BUFFERED | {"staleness": {"weight": "hinge"}}, "staleness."),
    ("mifa", BUFFERED | {"staleness": {"weight": "polynomial", "a": 2.0}}, "staleness."),
    ("moon", {"learning": {"model": "test_refusals.without_linear"}}, "algorithm.name: 'moon' needs features, "),
    ("moon", {"learning": {"model": "test_refusals.with_unused_linear"}}, "algorithm.name: 'moon' needs features, "),
    ("scaffold", {"privacy": CENTRAL}, "privacy.mechanism = 'central' does not go with algorithm.name = 'scaffold'"),
    ("fedproto", {"privacy": CENTRAL}, "privacy.mechanism = 'central' does not go with algorithm.name = 'fedproto'"),
    ("mifa", {"privacy": CENTRAL}, "privacy.mechanism = 'central' does not go with algorithm.name = 'mifa'"),
    ("fedavg", {"privacy": CENTRAL} | ASYNCHRONOUS, "'central' needs round.protocol = 'synchronous' or "),
    ("fedavg", {"privacy": CENTRAL} | EDGES, "privacy.mechanism = 'central' needs topology.aggregation = 'flat', not"),
    ("kpfl", ASYNCHRONOUS, "algorithm.kpfl needs round.protocol"),
    ("kpfl", EDGES, "hierarchical' does not go with algorithm.kpfl"),
    ("kpfl", {"privacy": CENTRAL}, "'central' does not go with algorithm.kpfl"),
    ("kpfl", LATE | {"staleness": {"weight": "polynomial"}}, "needs staleness.weight = 'constant'"),
    ("kpfl", {"learning": {"model": "test_refusals.without_linear"}}, "algorithm.kpfl.keep: 'improved' needs features"),
    ("kpfl", {"data": {"dataset": "breast-cancer"}}, "algorithm.kpfl.keep = 'improved': the server makes"),
]
"""An algorithm, or KPFL around FedAvg, with keys of other sections."""

PRIVACY = [
    ({"mechanism": "local"}, "privacy.mechanism = 'local' needs privacy.noise"),
    ({"noise": 1.0}, "privacy.noise = 1 needs privacy.mechanism = 'local' or 'central'"),
    ({"clip": 1.0}, "privacy.clip = 1 needs privacy.mechanism = 'clip' or 'local' or 'central'"),
    ({"delta": 1e-5}, "privacy.delta = 1e-05 needs privacy.mechanism = 'local' or 'central'"),
    ({"mechanism": "local", "noise": 0.0}, "privacy.noise: input should be greater than 0"),
    ({"mechanism": "local", "noise": 1.0, "clip": 0.0}, "privacy.clip: input should be greater than 0"),
    ({"mechanism": "local", "noise": 1.0, "delta": 0.0}, "privacy.delta: input should be greater than 0"),
    ({"mechanism": "local", "noise": 1.0, "delta": 1.0}, "privacy.delta: input should be less than 1"),
    ({"mechanism": "both"}, "privacy.mechanism: input should be 'none', 'clip', 'local' or 'central'"),
    ({"mechanism": "clip", "noise": 0.5}, "privacy.noise = 0.5 needs privacy.mechanism = 'local' or 'central'"),
]

CASES = [({"algorithm": values}, said) for values, said in NAMES]
CASES += [({"privacy": values}, said) for values, said in PRIVACY]
CASES += [
    ({"algorithm": {"kpfl": {}} if name == "kpfl" else {"name": name}} | sections, said)
    for name, sections, said in SECTIONS
]
# Too few public images are refused where nothing is trained, too.
CASES += [(values | {"learning": {"training": "none"}}, said) for values, said in CASES if "public" in str(values)]


@pytest.mark.parametrize(("sections", "said"), CASES, ids=str)
def test_it_is_refused_in_one_line_before_anything_is_written(sections, said, tmp_path):
    values = {name: WORLD.get(name, {}) | section for name, section in sections.items()}
    with in_one_line(re.escape(said)):
        simulation.run(parse(WORLD | values, "run.toml"), tmp_path / "run")
    assert not (tmp_path / "run").exists()
