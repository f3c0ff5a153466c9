"""Whatever a run is made of, stopped in the middle and resumed it has the bytes of an undisturbed run.

Held against the registries of policies, of protocols and of laws: a new one that forgets something fails here by its
line there. That all algorithms go on from what a learner saves is held by their own contract.
"""

import itertools
from pathlib import Path
from typing import Any

import pytest
from contract import KPFL, SETTINGS, make_config
from small_runs import DRIFTS
from stopped_runs import assert_stops_change_nothing
from whole_runs import TIMED, merged, slow_but

from edgesim import joining
from edgesim.config import RunConfig
from edgesim.config_file import parse
from edgesim.engine.protocols import PROTOCOLS
from edgesim.learning.drift import LAWS
from edgesim.selection import SELECTORS

HUNDRED = str(Path(__file__).parents[1] / "compared" / "hundred-classes.npz")
KEEPING = [
    *((("fedavg", "own"), setting, {}) for setting in SETTINGS),
    (("scaffold", "own"), "late", {}),
    (("safa", "own"), "rounds", {}),
    (("fedmd", "own"), "buffered", {"average_weights": True}),
    (("cfed", "own"), "rounds", {}),
    (("moon", "own"), "edges", {}),
    (("fedavg", "own"), "late", {"kpfl": KPFL}),
]
"""Algorithms that keep something on devices, at the server or of public images, and all ways to merge.

That each algorithm goes on from what a learner saves is held by its contract in ``tests/algorithms``.
"""


@pytest.mark.parametrize(("pair", "setting", "options"), slow_but([KEEPING[1], KEEPING[6]], KEEPING))
def test_an_algorithm_is_resumed(pair, setting, options, tmp_path):
    """With updates of stopped rounds on their way, and with servers of their own behind stations.

    The cloud averages after the second and the fourth round.
    """
    config = make_config(pair, setting, options, keep_best=False)
    assert_stops_change_nothing(measured(config), tmp_path, (2, 5))


def measured(config: RunConfig) -> RunConfig:
    """A config whose model is tested now and then, with all measures."""
    evaluation = config.evaluation.model_copy(update={"every": 2, "measures": "all"})
    return config.model_copy(update={"evaluation": evaluation})


@pytest.mark.parametrize("policy", slow_but(["feddance"], SELECTORS))
def test_a_policy_is_resumed(policy, tmp_path):
    knobs = {"tmax_s": 0.8, "payload_bits": 1.8e7, "admission": "count", "count": 4, "over_commitment": 1.5}
    sections = {
        "seed": 2,
        "rounds": 5,
        "devices": {"count": 16},
        "availability": {"model": "bernoulli", "probability": 0.7},
        "round": knobs,
        "learning": {"pretrain": False, "steps": 2, "back_end": "loop"},
        "evaluation": {"every": 3, "samples": 20},
        "selection": {"policy": policy},
        "data": {"partition": "fedteddi"},
    }
    assert_stops_change_nothing(parse(sections, "test"), tmp_path, (4,))


COUNT = {"admission": "count", "count": 5}
LATE = {"late": "keep", "delay_knowledge": "planned", "plan_quantile": 0.2, "tmax_s": 0.6}
ROUNDS = {"synchronous": LATE, "buffered": {**COUNT, "protocol_options": {"buffer": 3}}, "asynchronous": COUNT}
"""Knobs by protocol with which work goes on behind a checkpoint."""
BATTERY = {"battery_j": 6.0, "battery_start": "drawn", "recharge_w": 1.0, "idle_power_w": 0.2}


def config(protocol: str, **sections: Any) -> RunConfig:
    base = {
        "seed": 3,
        "rounds": 12,
        "devices": {"count": 14},
        "radio": {"bandwidth_hz": 4e6},
        "round": {"payload_bits": 1e6, "protocol": protocol, **ROUNDS[protocol]},
        "data": {"dataset": "none"} if "drift" in sections else TIMED["data"],
        "learning": TIMED["learning"],
    }
    return parse(merged(base, sections), "test")


INTERRUPTIONS = ("abort", "pause", "ignore")
CASES_OF_WORK = list(itertools.product(PROTOCOLS, INTERRUPTIONS, ("reserved", "reshared"), (False, True)))
QUICK = [
    ("synchronous", "pause", "reserved", True),
    ("buffered", "pause", "reshared", True),
    ("asynchronous", "abort", "reserved", False),
]


@pytest.mark.whole_family
@pytest.mark.parametrize(("protocol", "interruption", "sharing", "battery"), slow_but(QUICK, CASES_OF_WORK))
def test_a_protocol_is_resumed_with_work_in_flight(protocol, interruption, sharing, battery, tmp_path):
    availability = {"model": "bernoulli", "probability": 0.7, "slot_s": 0.25, "interruption": interruption}
    devices = BATTERY if battery else {}
    this = config(protocol, availability=availability, radio={"sharing": sharing}, devices=devices)
    assert_stops_change_nothing(this, tmp_path, (3, 6, 9))


SLOTS = {"model": "bernoulli", "probability": 0.7, "slot_s": 0.25, "interruption": "pause"}
SELDOM = {"model": "bernoulli", "probability": 0.3, "slot_s": 0.4, "interruption": "ignore"}
CELLS = {"topology": {"file": "three-cells"}}
EDGES = {"topology": {"file": "three-cells", "aggregation": "hierarchical", "cloud_every": 3}}
SHARED = {"radio": {"sharing": "reshared"}}
FADING = {"radio": {"fading": "rayleigh"}}
WAYPOINTS = {"mobility": {"model": "waypoint", "speed_mps": [20.0, 60.0], "pause_s": 1.0}}
TURNS = {"mobility": {"model": "direction", "speed_mps": [20.0, 60.0], "turn_s": 2.0}}
FAST = {"mobility": {"model": "direction", "speed_mps": [40.0, 90.0], "turn_s": 2.0}}
HANDOVER = {"hysteresis_db": 0.0, "trigger_s": 0.05, "interruption_s": 0.2}
STARTED = {"handover": {"trigger_s": 0.05, "interruption_s": 0.2, "merge": "where_started"}}
IN_ROUNDS, ALL, NO_ROUNDS = ("synchronous",), tuple(ROUNDS), ("buffered", "asynchronous")
WORLDS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "slots by rounds": ({"availability": {key: of for key, of in SLOTS.items() if key != "slot_s"}}, IN_ROUNDS),
    "chains by rounds": ({"availability": {"model": "markov"}}, IN_ROUNDS),
    "downloads": ({"round": {"download_s": 0.3}}, ALL),
    "fading": (FADING | {"staleness": {"limit": 2}}, ALL),
    "a recorded band": ({"radio": {"channel": "recorded-capacity", "sharing": "reshared"}}, ALL),
    # A dozen uploads of unlike weights at the checkpoints.
    "many latecomers": (merged(SHARED, FADING, {"devices": {"count": 30}}), IN_ROUNDS),
    "cells": (CELLS | SHARED, ALL),
    "edges": (EDGES, IN_ROUNDS),
    "a moving deadline": ({"round": {"moving_deadline": 0.5}}, IN_ROUNDS),
    "an end in time": ({"rounds": 100, "stop_at_s": 9.1}, ALL),
    # Places stay free, so that the server waits for devices that are away; nobody leaves when they come.
    "too few devices": ({"availability": SELDOM, "round": {"count": 12}}, NO_ROUNDS),
    "sessions": ({"availability": {"model": "renewal"}}, ALL),
    "motion": (WAYPOINTS | CELLS | FADING | {"round": {"path_knowledge": "straight"}}, ALL),
    "motion on a shared band": (
        merged(TURNS, SHARED, {"radio": {"shadowing": "per_round"}, "availability": SLOTS}),
        ALL,
    ),
    # In an interruption; `test_handover` stops runs that wait for bandwidth in a full cell, too.
    "handovers": (FAST | CELLS | FADING | {"handover": HANDOVER}, ALL),
    "handovers on a shared band": (
        FAST | CELLS | SHARED | {"availability": SLOTS, "handover": {**HANDOVER, "upload": "restart"}},
        ALL,
    ),
    "handovers between edge servers": (FAST | EDGES | STARTED | {"round": {"late": "keep"}}, IN_ROUNDS),
}
QUICK_WORLDS = {
    *((world, "synchronous") for world in ("handovers", "motion", "slots by rounds", "many latecomers", "edges")),
    *((world, "synchronous") for world in ("motion on a shared band", "a moving deadline")),
    *(("motion on a shared band", "asynchronous"), ("cells", "buffered")),
    *(("too few devices", protocol) for protocol in NO_ROUNDS),
}


PLAYED_WORLDS = [(world, protocol) for world, (_, protocols) in WORLDS.items() for protocol in protocols]


@pytest.mark.parametrize(("world", "protocol"), slow_but(QUICK_WORLDS, PLAYED_WORLDS))
def test_a_world_is_resumed(world, protocol, tmp_path):
    stops = {"too few devices": (2, 4, 6, 8, 10)}.get(world, (3, 6, 7))
    assert_stops_change_nothing(config(protocol, **WORLDS[world][0]), tmp_path, stops)


TRAINING = {"training": "real", "pretrain": False, "steps": 2, "batch_size": 8, "back_end": "loop"}


LEFT = {"availability": {"model": "bernoulli", "probability": 0.8, "slot_s": 0.3}}
EF21 = {"upload": {"codec": "topk", "feedback": "ef21"}, "download": {"codec": "sign"}}
LEVELS = {"codec": "qsgd", "size": "adaquant", "levels": 3}
CONTROLS = {"upload": {"codec": "topk", "beside": "coded"}, "download": {"codec": "stc"}}
CONTROLS |= {"algorithm": {"name": "scaffold"}, "round": {"late": "drop"}}
ELIAS = {"codec": "qsgd", "coding": "elias", "norm": "l2", "plan": "last"}
STREAM = {"codec": "topk", "coding": "index", "ratio": 1.0, "size": "stream", "least": 0.001}
CLOSED = {**COUNT, "late": "drop", "allocator": "equal_bits", "close": "deadline", "payload_bits": 1e7}
TOPK = {"codec": "topk", "size": "fit"}
NOISE = {"clip": 1.0, "noise": 0.5, "delta": 1e-5}
FRAMES = {"rounds": [4, 4], "data": {"dataset": HUNDRED, "samples_per_device": 6}}
BACK_ENDS: dict[str, dict[str, Any]] = {"loop": {}, "stacked": {}, "workers": {"workers": 2}}
TRAINED: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "errors of late updates": ({"upload": {"codec": "sign"}}, IN_ROUNDS),
    "lost updates": (LEFT | {"upload": {"codec": "stc", "lost": "add"}, "round": {"late": "drop"}}, IN_ROUNDS),
    "coded changes": (EF21, NO_ROUNDS),
    "coded controls": (CONTROLS, IN_ROUNDS),
    "sizes by the band": ({"upload": TOPK, "round": {"allocator": "equal_bits"}}, IN_ROUNDS),
    "sizes by the link": ({"upload": TOPK}, NO_ROUNDS),
    "levels by the loss": ({"upload": LEVELS}, IN_ROUNDS),
    "sizes by the values": ({"upload": ELIAS}, ALL),
    # All are on the air until the deadline, at which each is taken in part.
    "streams": ({"upload": STREAM, "round": CLOSED}, IN_ROUNDS),
    "streams on a shared band": (SHARED | {"upload": STREAM, "round": CLOSED}, IN_ROUNDS),
    # Every round is made due or skipped by the accuracies before.
    **{
        f"rounds that are skipped, {skip}": (
            {"merging": {"signal": "test", "skip": skip}, "round": {"late": "drop", "tmax_s": 1.0}},
            IN_ROUNDS,
        )
        for skip in ("carry", "discard", "sent")
    },
    **{
        f"{mechanism} privacy": ({"privacy": {"mechanism": mechanism, **NOISE}, "round": {"late": "drop"}}, IN_ROUNDS)
        for mechanism in ("local", "central")
    },
    # The best model of a frame, with which the next one begins, is of a round before the stop.
    "frames from the best model": (FRAMES | {"learning": {"keep_best": True, "lr": 3.0}}, IN_ROUNDS),
    "frames from the last model": (FRAMES | {"learning": {"keep_best": False, "lr": 3.0}}, IN_ROUNDS),
    **{
        f"jobs that have not run, {name}": (
            {"learning": {"back_end": name, "persist_momentum": True, **more}, "evaluation": {"every_s": 0.7}},
            ALL,
        )
        for name, more in BACK_ENDS.items()
    },
}
QUICK_TRAINED = {
    *((feature, "synchronous") for feature in ("errors of late updates", "frames from the best model")),
    ("sizes by the link", "buffered"),
}


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("feature", "protocol"),
    slow_but(QUICK_TRAINED, [(feature, protocol) for feature, (_, of) in TRAINED.items() for protocol in of]),
)
def test_what_is_remembered_of_training_is_resumed(feature, protocol, tmp_path):
    """Such as errors of codecs, sizes that are planned, what a budget has spent; a stop is at the end of a frame."""
    sections = merged({"data": {"dataset": "digits"}, "learning": TRAINING}, TRAINED[feature][0])
    assert_stops_change_nothing(config(protocol, **sections), tmp_path, (3, 5, 6))


@pytest.mark.parametrize(
    ("law", "protocol"),
    slow_but([("rotation", "buffered")], itertools.product(sorted({*LAWS} - {"frames"}), PROTOCOLS)),
)
def test_a_drift_law_is_resumed(law, protocol, tmp_path):
    data = {"dataset": "digits"} | ({} if law == "rotation" else {"samples_per_device": 20})
    # The policy compares the data of a round with those of the one before.
    policy = {"policy": "pure-drift"} if law == "rotation" else {"policy": "random"}
    sections = {"drift": DRIFTS[law], "data": data, "learning": TRAINING, "selection": policy}
    assert_stops_change_nothing(config(protocol, **sections), tmp_path, (3, 6, 7))


@pytest.mark.parametrize("law", slow_but(["fedstg"], joining.LAWS))
def test_a_joining_law_is_resumed(law, tmp_path):
    """Devices join by how they have trained, latecomers too."""
    training = {name: value for name, value in TRAINING.items() if name != "steps"} | {"epochs": 2}
    sections = {"joining": {"law": law}, "data": {"dataset": "digits", "samples_per_device": 20}, "learning": training}
    assert_stops_change_nothing(config("synchronous", **sections), tmp_path, (3, 6, 7))
