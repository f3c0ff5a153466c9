"""What every algorithm of the registry must do where it trains and merges, alone and combined."""

import json
import pickle

import pytest
import torch
from contract import (
    CASES,
    COMBINED,
    KPFL,
    LASTING,
    PAIRS,
    PLAY,
    each,
    each_pair,
    make_config,
    new_learner,
    play,
    played,
    remembered_in_round_3,
    two_frames,
    with_lasting,
    work,
)
from safetensors.numpy import load, save

from edgesim.base.errors import Diverged
from edgesim.base.saved import pack, unpack
from edgesim.learning.back_ends.job_process import done, job_of, order_of, tensors_of
from edgesim.learning.back_ends.loop import LoopBackEnd
from edgesim.learning.jobs import build_jobs

OF_LEARNER = (
    "global_weights", "states", "kept", "first_kept", "velocities", "carried", "jobs_trained",
    "_counted", "_best", "_merged", "_last_merged", "_made_in", "_in_frame",
)  # fmt: skip
"""What a learner remembers from round to round, its ledger and open promises apart."""


def saved_and_read(learner, number, promises, frame=1, federate=None):
    """A new learner that goes on with what is saved of another one, and the promises that were open."""
    remembered = {name: getattr(learner, name) for name in OF_LEARNER}
    build_jobs(promises.values())
    remembered |= {"ledger": learner.accounts.ledger, "promises": promises}
    packed, arrays = pack(remembered)
    found = unpack(dict, json.loads(json.dumps(packed, allow_nan=False)), load(save(arrays)))
    learner.close()
    new = new_learner(learner.config, *([federate] if federate else []))
    new.server_of = learner.server_of
    for name in OF_LEARNER:
        setattr(new, name, found[name])
    new.accounts.ledger = found["ledger"]
    new.open_round(number, frame)
    return new, found["promises"]


def told(learner, number):
    """What a learner says of itself and in round 3 of its model, and all its attributes that are plain values."""
    plain = {name: value for name, value in vars(learner).items() if isinstance(value, int | set)}
    evaluation = learner.evaluate(1) if number == 3 else None
    return learner.facts(), evaluation, plain | {"merged last": learner._last_merged}


def assert_same_bits(found, expected):
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(found[name], tensor), name


WITH_LASTING = [pytest.param((name, "own"), id=name) for name in ("fedavg", "scaffold", "fedmd", "safa")]
"""Algorithms by which it is shown that a learner's velocities, which no algorithm sees, are stacked and saved."""


@pytest.mark.parametrize(
    ("pair", "options", "learning"),
    [pytest.param(*case.values, {}, id=case.id, marks=case.marks) for case in CASES]
    + [pytest.param(*case.values, {}, LASTING, id=f"{case.id}, lasting momentum") for case in WITH_LASTING],
)
def test_what_is_saved_of_a_learner_lets_a_new_one_go_on_as_if_undisturbed(pair, options, learning):
    """State, ledger, what devices keep (before their first update too) and open promises, in the middle of a round."""
    options = with_lasting(pair, options) if learning else options
    learner = new_learner(make_config(pair, options=options, **learning))
    undisturbed = played(pair, options, **learning)

    def resumed(learner, number, promises):
        before = told(learner, number)
        new, promises = saved_and_read(learner, number, promises)
        assert told(new, number) == before, number
        return new, promises

    assert any(name.startswith("velocity") for name in undisturbed) == bool(learning)
    assert_same_bits(play(learner, resumed), undisturbed)


MOON = ("moon", "own")
"""An algorithm whose devices keep something, and whose server goes with edge servers and with frames."""


def test_what_is_saved_behind_edge_servers_lets_a_new_learner_go_on_as_if_undisturbed():
    """Two edge servers, of which the cloud averages every second round what each has merged until then."""

    def in_cloud(learner, number):
        if number % 2 == 0:
            learner.average_in_cloud()
        return {f"edge {edge} {number}": state.weights.clone() for edge, state in enumerate(learner.states)}

    found = []
    for how in ({}, {"between": saved_and_read}):
        learner = new_learner(make_config(MOON))
        learner.serve(2, lambda ids, t_s: ids % 2)
        found.append(play(learner, at_end=in_cloud, **how))
    assert not torch.equal(found[0]["edge 0 1"], found[0]["edge 1 1"])
    assert_same_bits(*found)


def test_what_is_saved_within_a_frame_lets_a_new_learner_go_back_to_its_best_model():
    """The frame ends with round 3, whose model is not its best, as only those of the two before are looked at."""
    frames = (1, 1, 1, 2)

    def judged(learner, number):
        if number < 3:
            learner.evaluate(1)
        if number == 3:
            learner.end_frame()
        return {f"goes on {number}": learner.global_weights.clone()}

    def resumed(learner, number, promises):
        return saved_and_read(learner, number, promises, frames[number - 1], two_frames)

    found = []
    for how in ({}, {"between": resumed}):
        learner = new_learner(make_config(MOON), two_frames)
        found.append(play(learner, at_end=judged, frames=frames, **how))
    assert torch.equal(found[0]["goes on 2"], found[0]["model 2"])
    assert any(torch.equal(found[0]["goes on 3"], found[0][model]) for model in ("model 1", "model 2"))
    assert_same_bits(*found)


@pytest.mark.parametrize("options", [{"name": "fedavg"}, {"name": "fedproto"}, {"name": "fedadam"}, {"kpfl": KPFL}])
def test_a_last_step_that_makes_a_model_endless_ends_the_run_in_a_line(options):
    """The loss of the only step is that of the start model, so that no loss tells."""
    config = make_config(("fedavg", "own"), options=options, steps=1, weight_decay=1e6)
    learner = new_learner(config.model_copy(update={"learning": config.learning.model_copy(update={"lr": 1e38})}))
    whose = r"(round 1: the merged|device 0, round 1: the device's own)"
    with pytest.raises(Diverged, match=rf"^{whose} model is not finite; lower learning.lr$"):
        work(learner, 1, range(8))
    learner.close()


MODEL = "contract.with_dropout_and_batch_norm"


@pytest.mark.parametrize(
    ("learning", "bytes_each", "parameters", "buffers"),
    [
        ({"back_end": "loop", "model": "mlp"}, 4, 2410, 0),
        ({"back_end": "stacked", "model": MODEL, "precision": "float64"}, 8, 64 * 12 + 12 + 24 + 12 * 10 + 10, 24),
    ],
    ids=["loop", "stacked"],
)
@each_pair
def test_what_is_remembered_of_devices_is_what_it_says_and_nothing_of_those_never_merged(
    pair, learning, bytes_each, parameters, buffers
):
    """Looked at when the devices of the third round are at work; other tests play these runs too."""
    seen = remembered_in_round_3(pair, **learning)
    held, (whole, trainable) = seen.held, seen.tables
    bytes_per_device, total = (seen.facts.get(name, 0) for name in ("bytes_per_merged_device", "bytes_of_device_state"))
    said = whole + trainable
    merged = {device for _, picked, _ in PLAY[:2] for device in picked}
    if "safa" in pair:
        # Device 5 is merged as well, and devices share the models of the first two rounds.
        assert len(merged) + 1 <= len(held) <= said * (len(merged) + 1) + 2
        assert total == bytes_per_device * (len(merged) + 1)
    else:
        assert len(held) == said * len(merged)
        assert total == sum(entry.nbytes for entry in held.values())
    assert bytes_per_device == bytes_each * (parameters * said + buffers * whole)
    # A view would keep the tensor of all rows, or its buffers, in memory.
    assert all(entry.untyped_storage().nbytes() == entry.nbytes for entry in held.values())


def assert_alike(stacked, loop, tolerance):
    """Up to the tolerance, times how far training moves the model; what devices send and keep times its own size.

    That is at least a millionth of how far training moves: the first reviews of a task bring rounding alone.
    """
    assert loop.keys() == stacked.keys()
    moved = float((loop["model 4"] - loop["start"]).norm())
    for name, tensor in loop.items():
        assert tensor.dtype == stacked[name].dtype
        scale = moved if name.startswith("model") else max(1e-6 * moved, float(tensor.double().norm()))
        assert float((stacked[name] - tensor).double().norm()) <= tolerance * scale, name


CONVOLUTIONAL = [pytest.param((name, "own"), {}, "small-cnn", id=f"{name}, small-cnn") for name in ("moon", "scaffold")]
"""With teachers and with a vector in every gradient."""


@pytest.mark.parametrize(
    ("pair", "options", "model"),
    [pytest.param(*case.values, MODEL, id=case.id, marks=case.marks) for case in CASES] + CONVOLUTIONAL,
)
def test_stacked_jobs_bring_what_the_loop_brings(pair, options, model):
    learning = {"precision": "float64", "model": model}
    loop = played(pair, options, **learning)
    assert loop["model 4"].dtype == torch.float64
    assert_alike(played(pair, options, back_end="stacked", **learning), loop, 1e-9)


@each_pair
def test_stacked_jobs_in_float32_bring_what_the_loop_brings(pair):
    assert_alike(played(pair, back_end="stacked"), played(pair), 1e-3)


@pytest.mark.parametrize("pair", WITH_LASTING)
def test_clipped_gradients_and_lasting_momentum_are_the_same_in_a_stack_and_not_the_plain_ones(pair):
    """Device 5 is merged by SAFA alone, and devices are away for a round before they go on with their momentum.

    Momentum lasts from a device's first job to its second.
    """
    options, precision = with_lasting(pair, {}), {"precision": "float64"}
    loop = played(pair, options, **LASTING, **precision)
    stacked = played(pair, options, **LASTING, **precision, back_end="stacked")
    assert {"velocity 0", "velocity 7"} <= loop.keys()
    assert_alike(stacked, loop, 1e-9)
    # Of lower precision; other tests play it too.
    plain = played(pair, options)
    clipped = played(pair, options, clip_norm=LASTING["clip_norm"], **precision)
    for name, without in (("update 1 0", plain), ("update 4 0", clipped)):
        assert float((without[name] - loop[name]).norm()) > 1e-3 * float(loop[name].norm()), name


@each_pair
def test_jobs_halves_and_results_that_travel_to_other_processes_bring_the_very_bits_of_the_loop(pair, monkeypatch):
    """As processes send them; those of `workers` themselves are tested in `tests/learning/back_ends`."""
    train = LoopBackEnd.train

    def elsewhere(loop, job):
        local, order = pickle.loads(pickle.dumps((loop._local, order_of(job, ["start"]))))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop, "_local", local)
            result = train(loop, job_of(order, {"start": job.start}, tensors_of))
        return pickle.loads(pickle.dumps(done(result))).result(result.update, tensors_of)

    monkeypatch.setattr(LoopBackEnd, "train", elsewhere)
    assert_same_bits(play(new_learner(make_config(pair))), played(pair))


@pytest.mark.slow
@each([("fedavg", "own"), ("fedproto", "own"), ("fedprox", "mifa")])
def test_actors_of_ray_bring_the_very_bits_of_the_loop(pair, ray_actors):
    assert_same_bits(play(new_learner(make_config(pair, back_end="ray", workers=1))), played(pair))


FEDAVG = ("fedavg", "own")
VISIBLE = {"fedprox": {"mu": 0.5}, "fedcl": {"coe": 20.0}}
"""Options of algorithms whose defaults change hardly more than rounding does in so few steps."""
OTHERS = [case for case in CASES if case.values[0] != FEDAVG]
OTHERS += [pytest.param(pair, {}, id="+".join(pair)) for pair in COMBINED if pair not in PAIRS and "fedavg" not in pair]


@pytest.mark.parametrize(("pair", "options"), OTHERS)
def test_its_model_is_not_that_of_federated_averaging_nor_of_either_half_alone(pair, options):
    """Three local steps, four rounds, devices of different sizes, of which some are away and come back: else some are.

    By 2e-3 of how far FedAvg moves or more.
    """
    found, plain = played(pair, VISIBLE.get(pair[0], {}) | options)["model 4"], played(FEDAVG)
    least = 2e-3 * float((plain["model 4"] - plain["start"]).norm())
    for half in {"fedavg", *(pair if {"own", "fedavg"}.isdisjoint(pair) else ())}:
        assert float((found - played((half, "own"), VISIBLE.get(half, {}))["model 4"]).norm()) > least, half
