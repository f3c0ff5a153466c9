"""Every algorithm of the registry, alone and with each server half that it may be combined with, and how to play it.

An algorithm that is added is tested by its line in the registry.
"""

import itertools
import json
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from edgesim.config_file import parse
from edgesim.engine.protocols import make_protocol
from edgesim.learning.algorithms import ALGORITHMS
from edgesim.learning.algorithms.server_half import merges_models
from edgesim.learning.drift.frames import Framed
from edgesim.learning.federation import make_federation
from edgesim.learning.jobs import Arrived
from edgesim.learning.learner import TorchLearner
from edgesim.simulation import composition as simulation
from edgesim.simulation.needs import FEATURES
from edgesim.streams import Streams

COMBINED = [
    (local, server)
    for local, server in itertools.permutations(ALGORITHMS, 2)
    if "local" in ALGORITHMS[local].halves and "server" in ALGORITHMS[server].halves
]
"""All halves that go together."""


def partners():
    """Each server half with one of the local halves that it goes with, with these in turn, but for FedAvg's."""
    for number, server in enumerate(dict.fromkeys(server for _, server in COMBINED)):
        locals_ = [local for local, other in COMBINED if other == server and local != "fedavg"]
        yield locals_[number % len(locals_)], server


PAIRS = [(name, "own") for name in ALGORITHMS] + [*partners()]
"""Every algorithm alone, and every half that can be combined in at least one pair."""
COUNT = {"admission": "count", "count": 4}
SETTINGS = {
    "rounds": {},
    "late": {"round": {"late": "keep", "delay_knowledge": "planned", "plan_quantile": 0.3}},
    "buffered": {"round": {**COUNT, "protocol": "buffered", "protocol_options": {"buffer": 2}}},
    "asynchronous": {"round": {**COUNT, "protocol": "asynchronous"}},
    "edges": {"topology": {"file": "three-cells", "aggregation": "hierarchical", "cloud_every": 2}},
}
"""Ways to merge updates; each algorithm allows some of them."""

VARIANTS = [
    ("scaffold", {"option": "I"}),
    ("scaffold", {"derive_control": True}),
    ("feddyn", {"adaptive": False, "alpha": 0.1}),
    ("mifa", {"wait": True}),
    ("fedproto", {"average_weights": True}),
    ("fedmd", {"average_weights": True}),
    ("fedmd", {"public_subset": "round"}),
    ("cfed", {"server_passes": 2, "learners": 0.3}),
]
"""Options of algorithms that change what is trained or merged."""
KPFL = {"generator_steps": 2, "distil_steps": 1, "batch": 16}
OWN_MODELS = ("fedproto", "fedmd")
WITH_KPFL = [
    (name, {"kpfl": KPFL} | ({"average_weights": True} if name in OWN_MODELS else {}))
    for name, kind in ALGORITHMS.items()
    if merges_models(kind.Server.merges)
]
"""KPFL around each algorithm that it may be around."""
QUICK_KPFL = {"fedavg", "scaffold"}
"""Of these, those that quick tests play."""


def halves(pair):
    """The algorithms of the local and of the server half."""
    return [ALGORITHMS[half] for half in pair if half != "own"]


def server_of(pair):
    """The algorithm whose server merges."""
    return pair[0] if pair[1] == "own" else pair[1]


def fits(kind, key, value):
    """Whether what an algorithm needs of a key allows a value."""
    allowed = [FEATURES[name].needs.get(key, value) for name in kind.needs]
    return all(value == one or (isinstance(one, tuple) and value in one) for one in allowed)


def allows(pair, setting):
    if setting == "late":
        return all(fits(half, "round.late", "keep") for half in halves(pair))
    if setting == "edges":
        return ALGORITHMS[server_of(pair)].Server.merges == "models"
    protocol = "synchronous" if setting == "rounds" else setting
    return all(fits(half, "round.protocol", protocol) for half in halves(pair))


def each(pairs):
    """Parametrizes a test by pairs, in rounds."""
    return pytest.mark.parametrize("pair", [pytest.param(pair, id="+".join(pair)) for pair in pairs])


each_pair = each(PAIRS)


def marked_variants(*more):
    """Parameters of tests that play algorithms with other options: name, ``more`` and the options."""
    named = [(name, options, f"{name}, {options}", True) for name, options in VARIANTS]
    named += [(name, options, f"{name} in kpfl", name in QUICK_KPFL) for name, options in WITH_KPFL]
    return [
        pytest.param((name, "own"), *more, options, id=told, marks=() if quick else pytest.mark.slow)
        for name, options, told, quick in named
    ]


CASES = [pytest.param(pair, {}, id="+".join(pair)) for pair in PAIRS] + marked_variants()


SHORT = {
    "feddf": {"steps": 5},
    "fedgen": {"steps": 5},
    # Of 96 samples: no batch of one, which batch norm cannot do with.
    "fedmd": {"public_subset": "fixed", "public_share": 0.125, "public_epochs": 1, "own_epochs": 0},
    "cfed": {"task_rounds": 2},
}
"""Options of algorithms that train long, have teachers late, or allow some ways to merge only with them."""


def make_config(pair, setting="rounds", options=(), availability=(), download_s=0.02, **learning):
    """Eight devices of different sizes that come and go, and train on little."""
    own = SETTINGS[setting]
    return simulation.complete(
        parse(
            {
                "seed": 7,
                "rounds": 6,
                "devices": {"count": 8, "mu_samples_per_s": 400.0},
                "availability": dict(availability)
                or {"model": "bernoulli", "probability": 0.4 if setting == "rounds" else 0.6},
                "radio": {"bandwidth_hz": 2e6},
                **own,
                "round": {"tmax_s": 0.5, "download_s": download_s, **own.get("round", {})},
                "data": {"partition": "quantity", "samples_per_device": 12, "public": "carved", "public_per_class": 2},
                "learning": {"pretrain": False, "steps": 3, "batch_size": 8, "back_end": "loop", **learning},
                "algorithm": dict(zip(("name", "server"), pair, strict=True)) | SHORT.get(pair[0], {}) | dict(options),
                "evaluation": {"samples": 20, "every": 100},
            },
            "contract",
        )
    )


def two_frames(config, streams):
    """The federation of a config whose devices hold the same data in a second frame."""
    federation = make_federation(config, streams)
    return replace(federation, drift=Framed([*federation.frames, federation.frames[-1]]))


def with_dropout_and_batch_norm(image_shape, class_count):
    """What a stack has to do by itself: a mask of each job's own, and buffers."""
    inputs = int(np.prod(image_shape))
    layers = nn.Linear(inputs, 12), nn.BatchNorm1d(12), nn.Tanh(), nn.Dropout(0.3), nn.Linear(12, class_count)
    return nn.Sequential(nn.Flatten(), *layers)


LASTING = {"clip_norm": 0.5, "persist_momentum": True}
"""Knobs of local training by which devices keep more, and bring other updates."""


def with_lasting(pair, options):
    """The options, so changed that they go with `LASTING`."""
    return {"option": "I"} if "scaffold" in pair else options


NOTHING = 1234.5
PLAY = [
    ([0, 1, 2, 3, 4, 5], [4, 0, 2], [5]),
    ([1, 3, 4, 6], [3, 1, 6], []),
    ([0, 2, 5, 7], [7, 0], [2]),
    ([0, 2, 3, 5, 6], [6, 0, 3, 5, 2], []),
]
"""Rounds: devices that begin, that arrive and are picked, and that arrive and are not picked."""


def new_learner(config, federate=make_federation):
    streams = Streams(config.seed)
    return TorchLearner(config, federate(config, streams), streams, rule=make_protocol(config.round).rule)


def work(learner, number, ids, merged=None, frame=1, skips=False):
    """A round of devices, of which all arrive or those that are ``merged``; the promises of all, by device.

    A round that ``skips`` makes no model.
    """
    promises = {promise.device: promise for promise in learner.open_round(number, frame).start(np.array(ids))}
    for promise in promises.values():
        promise.due = True
    arrived = [Arrived(promises[device]) for device in (ids if merged is None else merged)]
    if skips:
        assert len(learner.skip(arrived).ids) == 0
    else:
        learner.merge(arrived, np.array(ids))
    return promises


def many_devices(config, count=115, **more):
    """The config with so many devices of little data: the mlp's 2,410 numbers, 115 times, are 1.057 MiB."""
    data = config.data.model_copy(update={"samples_per_device": 11, "public_per_class": 12})
    devices = config.devices.model_copy(update={"count": count})
    return config.model_copy(update={"devices": devices, "rounds": 1, "data": data} | more)


def undisturbed(learner, number, promises):
    return learner, promises


def play(learner, between=undisturbed, at_end=lambda learner, number: {}, frames=(1, 1, 1, 1)):
    """Tensors after the rounds of `PLAY`, by name: models, updates, what devices sent and what they keep.

    ``between`` is called with the learner, the round and the promises by device when the devices of the round are at
    work; it answers with the learner and the promises to go on with. ``at_end`` is called with the learner after each
    round and adds what it answers with.
    """
    found = {"start": learner.global_weights.clone()}
    try:
        for number, (began, picked, unpicked) in enumerate(PLAY, start=1):
            opened = learner.open_round(number, frames[number - 1])
            promises = {promise.device: promise for promise in opened.start(np.array(began))}
            learner, promises = between(learner, number, promises)
            for promise in promises.values():
                promise.due = True
            arrived = [Arrived(promises[device]) for device in picked]
            arrived += [Arrived(promises[device], picked=False) for device in unpicked]
            used = [one.promise for one in learner.accounts.used(arrived)]
            # Copies: a merge may change updates.
            for promise, result in zip(used, learner.results(used), strict=True):
                found[f"update {number} {promise.device}"] = result.update.clone()
                found |= {f"up {number} {promise.device} {name}": tensor for name, tensor in result.up.items()}
            learner.merge(arrived, np.array(began))
            found[f"model {number}"] = learner.global_weights.clone()
            found |= at_end(learner, number)
        found |= {f"kept {device} {name}": t for device, kept in learner.kept.items() for name, t in kept.items()}
        found |= {f"velocity {device}": velocity for device, velocity in learner.velocities.items()}
    finally:
        learner.close()
    # NaN, which stands for what is not sent, would equal nothing.
    return {name: tensor.nan_to_num(nan=NOTHING) for name, tensor in found.items()}


@dataclass
class Remembered:
    """What is remembered of devices at one moment."""

    held: dict[int, torch.Tensor]
    """Each tensor once, by its address."""
    tables: tuple[int, int]
    """Vectors of each device that the algorithm says it remembers: with buffers, and without."""
    facts: dict[str, Any]
    """What the learner says of itself."""


def remembered(learner):
    """Of devices that were merged, by the server and by themselves."""
    states = [entries for entries in vars(learner.states[0]).values() if isinstance(entries, dict)]
    kept = [{(device, name): of[name] for device, of in learner.kept.items() for name in of}]
    tables = [entries for entries in states if not entries or isinstance(next(iter(entries)), int)] + kept
    entries = [entry for entries in tables for entry in entries.values()]
    held = {entry.data_ptr(): entry for entry in (getattr(entry, "model", entry) for entry in entries)}
    return Remembered(held, said_to_be_stored(learner.accounts), learner.facts())


def said_to_be_stored(halves):
    """Vectors with buffers and without that both halves say they store for each device."""
    kept = halves.local.first_kept(torch.zeros(halves.local.sizes.parameters))
    named = [*halves.server.stored, *("model" for _ in kept)]
    return named.count("model"), named.count("trainable")


USUAL = {"back_end": "loop", "model": "mlp"}


def played(pair, options=(), **learning):
    """What `play` finds of a run, which several tests ask for; no test may change it."""
    return _played(pair, json.dumps(dict(options)), **(USUAL | learning))[0]


def remembered_in_round_3(pair, **learning):
    """What is remembered in such a run while the devices of its third round are at work."""
    return _played(pair, "{}", **(USUAL | learning))[1]


@cache
def _played(pair, options, back_end, **learning):
    learner = new_learner(make_config(pair, options=json.loads(options), back_end=back_end, **learning))
    assert learner.back_end.name == back_end
    seen = []

    def look(learner, number, promises):
        seen.append(remembered(learner))
        return learner, promises

    return play(learner, look), seen[2]
