"""What every algorithm of the registry must do, alone and with each server half that it may be combined with.

An algorithm that is added is tested here by its line in the registry.
"""

import itertools
import json
import pickle
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.numpy import load, save

from edgesim import simulation
from edgesim.algorithms import ALGORITHMS, LOCAL_METHODS, make_algorithm
from edgesim.algorithms.algorithm import Sizes
from edgesim.config_file import parse
from edgesim.errors import EdgesimError
from edgesim.learning.federation import Federation, make_federation
from edgesim.learning.jobs import Arrived
from edgesim.learning.learner import TorchLearner, make_learner
from edgesim.learning.training_round import TorchRound
from edgesim.runs.records import read_table
from edgesim.runs.saved import pack, unpack
from edgesim.streams import Streams

PAIRS = [(name, "own") for name in ALGORITHMS] + [
    (local, server)
    for local, server in itertools.permutations(ALGORITHMS, 2)
    if "local" in ALGORITHMS[local].halves and "server" in ALGORITHMS[server].halves
]
COUNT = {"admission": "count", "count": 4}
SETTINGS = {
    "rounds": {},
    "late": {"round": {"late": "keep", "delay_knowledge": "planned", "plan_quantile": 0.3}},
    "buffered": {"round": {**COUNT, "protocol": "buffered", "protocol_options": {"buffer": 2}}},
    "asynchronous": {"round": {**COUNT, "protocol": "asynchronous"}},
    "edges": {"topology": {"file": "three-cells", "aggregation": "hierarchical", "cloud_every": 2}},
}
"""Ways to merge updates; each algorithm allows some of them."""

QUICK = {("fedprox", "safa"), ("fedprox", "mifa"), ("moon", "fedavgm")}
"""Combined halves that quick tests play; the others are played by slow ones."""


def marked(pair, *more, slow=False, **how):
    """The parameters of a test, slow where two halves are combined that quick tests do not play."""
    quick = not slow and (pair[1] == "own" or pair in QUICK)
    return pytest.param(pair, *more, marks=() if quick else pytest.mark.slow, **how)


def marked_setting(pair, setting):
    """The parameters of a test that plays whole runs: quick ones merge in rounds, or have few algorithms."""
    slow = setting != "rounds" and pair not in {("fedavg", "own"), ("safa", "own"), ("scaffold", "own")}
    return marked(pair, setting, id=f"{'+'.join(pair)}-{setting}", slow=slow)


each_pair = pytest.mark.parametrize("pair", [marked(pair, id="+".join(pair)) for pair in PAIRS])
VARIANTS = [
    ("scaffold", {"option": "I"}),
    ("scaffold", {"derive_control": True}),
    ("feddyn", {"adaptive": False, "alpha": 0.1}),
    ("mifa", {"wait": True}),
]
"""Options of algorithms that change what is trained or merged."""
each_variant = pytest.mark.parametrize(
    ("pair", "options"),
    [marked(pair, {}, id="+".join(pair)) for pair in PAIRS]
    + [pytest.param((name, "own"), options, id=f"{name}, {options}") for name, options in VARIANTS],
)


def allows(pair, setting):
    halves = [ALGORITHMS[half] for half in pair if half != "own"]
    if setting == "late":
        return all(half.late_updates for half in halves)
    if setting == "edges":
        return all(half.at_edges for half in halves)
    protocol = "synchronous" if setting == "rounds" else setting
    return all(protocol in half.protocols for half in halves)


ALLOWED = [(pair, setting) for pair, setting in itertools.product(PAIRS, SETTINGS) if allows(pair, setting)]
REFUSED = [(pair, setting) for pair, setting in itertools.product(PAIRS, SETTINGS) if not allows(pair, setting)]


def make_config(pair, setting="rounds", options=(), **learning):
    """Eight devices of different sizes that come and go, and train on little."""
    own = SETTINGS[setting]
    return simulation.complete(
        parse(
            {
                "seed": 7,
                "rounds": 6,
                "devices": {"count": 8, "mu_samples_per_s": 400.0},
                "availability": {"model": "bernoulli", "probability": 0.6},
                "radio": {"bandwidth_hz": 2e6},
                **own,
                "round": {"tmax_s": 0.5, "download_s": 0.02, **own.get("round", {})},
                "data": {"partition": "quantity", "samples_per_device": 12},
                "learning": {"pretrain": False, "steps": 3, "batch_size": 8, "back_end": "loop", **learning},
                "algorithm": dict(zip(("name", "server"), pair, strict=True)) | dict(options),
                "evaluation": {"samples": 20, "every": 100},
            },
            "contract",
        )
    )


PLAY = [
    ([0, 1, 2, 3, 4, 5], [4, 0, 2], [5]),
    ([1, 3, 4, 6], [3, 1, 6], []),
    ([0, 2, 5, 7], [7, 0], [2]),
    ([0, 1, 2, 3, 4, 5, 6, 7], [6, 0, 3, 1, 7, 5, 4, 2], []),
]
"""Rounds: devices that begin, that arrive and are picked, and that arrive and are not picked."""


def new_learner(config):
    streams = Streams(config.seed)
    return make_learner(config, make_federation(config, streams), streams)


def play(pair, options=(), between=None, **learning):
    """Tensors after the rounds of `PLAY`, by name: models, updates, what devices sent and what they keep.

    ``between`` is called with the learner, the round and the promises by device when the devices of the round are at
    work; it answers with the learner and the promises to go on with.
    """
    learner = new_learner(make_config(pair, options=options, **learning))
    found = {"start": learner.global_weights.clone()}
    try:
        assert learner.back_end.name == learning.get("back_end", "loop")
        for number, (began, picked, unpicked) in enumerate(PLAY, start=1):
            promises = {promise.device: promise for promise in learner.open_round(number, 1).start(np.array(began))}
            learner, promises = between(learner, number, promises) if between else (learner, promises)
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
        found |= {f"kept {device} {name}": t for device, kept in learner.kept.items() for name, t in kept.items()}
    finally:
        learner.close()
    return found


@each_variant
def test_what_is_saved_of_a_learner_lets_a_new_one_go_on_as_if_undisturbed(pair, options):
    """State, ledger, what devices keep (before their first update too) and open promises, in the middle of a round."""

    def saved_and_read(learner, number, promises):
        remembered = {
            "weights": learner.global_weights,
            "states": learner.states,
            "kept": learner.kept,
            "first_kept": learner.first_kept,
            "ledger": learner.accounts.ledger,
            "promises": promises,
        }
        packed, arrays = pack(remembered)
        found = unpack(dict, json.loads(json.dumps(packed, allow_nan=False)), load(save(arrays)))
        learner.close()
        new = new_learner(learner.config)
        new.global_weights, new.states = found["weights"], found["states"]
        new.kept, new.first_kept = found["kept"], found["first_kept"]
        new.accounts.ledger = found["ledger"]
        new.open_round(number, 1)
        return new, found["promises"]

    undisturbed, disturbed = play(pair, options), play(pair, options, saved_and_read)
    assert undisturbed.keys() == disturbed.keys()
    for name, tensor in undisturbed.items():
        assert torch.equal(disturbed[name], tensor), name


@each_pair
@pytest.mark.parametrize("back_end", ["loop", "stacked"])
def test_what_is_remembered_of_devices_is_what_it_says_and_nothing_of_those_never_merged(pair, back_end):
    """Looked at when the devices of the third round are at work."""
    seen = []

    def look(learner, number, promises):
        states = [entries for entries in vars(learner.states[0]).values() if isinstance(entries, dict)]
        kept = [{(device, name): of[name] for device, of in learner.kept.items() for name in of}]
        tables = [entries for entries in states if not entries or isinstance(next(iter(entries)), int)] + kept
        held = {entry.data_ptr(): entry for entries in tables for entry in entries.values()}
        seen.append((held, learner.accounts.algorithm.tables, learner.facts().get("bytes_per_merged_device", 0)))
        return learner, promises

    play(pair, between=look, back_end=back_end)
    held, said, bytes_per_device = seen[2]
    merged = {device for _, picked, _ in PLAY[:2] for device in picked}
    if "safa" in pair:
        # Device 5 is merged as well, and devices share the models of the first two rounds.
        assert len(merged) + 1 <= len(held) <= said * (len(merged) + 1) + 2
    else:
        assert len(held) == said * len(merged)
    assert bytes_per_device == 4 * 2410 * said
    # A view would keep the tensor of all rows in memory.
    assert all(entry.untyped_storage().nbytes() == 4 * 2410 for entry in held.values())


@each_pair
def test_more_than_memory_is_given_for_is_refused_before_anything_is_written(pair, tmp_path):
    """The mlp's 2,410 numbers are 9,640 bytes, those of 115 devices 1.057 MiB."""
    config = make_config(pair, back_end="loop", memory_budget_mib=1)
    many = config.model_copy(update={"devices": config.devices.model_copy(update={"count": 115}), "rounds": 1})
    tables = make_algorithm(config.algorithm, Sizes(0.0, 1, 115), Streams(0)).tables
    if not tables:
        assert simulation.run(many, tmp_path / "run").status == "finished"
        return
    needed_mib = tables * 9640 * 115 / 2**20
    said = rf"^algorithm: remembers .* MiB of each device, {needed_mib:.4g} MiB of all 115, above .* = 1; raise it"
    with pytest.raises(EdgesimError, match=said):
        simulation.run(many, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
@each_variant
def test_processes_bring_the_very_bits_of_the_loop(pair, options):
    loop, workers = play(pair, options), play(pair, options, back_end="workers", workers=2)
    assert loop.keys() == workers.keys()
    for name, tensor in loop.items():
        assert torch.equal(workers[name], tensor), name


@each_variant
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-3)], ids=str)
def test_stacked_jobs_bring_what_the_loop_brings(pair, options, dtype, tolerance, monkeypatch):
    """Up to the tolerance, times how far training moves the model; what devices send and keep times its own size."""
    new_model = "edgesim.learning.learner.new_model"
    from edgesim.learning.models import new_model as plain

    monkeypatch.setattr(new_model, lambda *arguments: plain(*arguments).to(dtype))
    loop, stacked = play(pair, options), play(pair, options, back_end="stacked")
    assert loop.keys() == stacked.keys()
    moved = float((loop["model 4"] - loop["start"]).norm())
    for name, tensor in loop.items():
        assert tensor.dtype == stacked[name].dtype
        scale = moved if name.startswith("model") else float(tensor.double().norm())
        assert float((stacked[name] - tensor).double().norm()) <= tolerance * scale, name


@each_variant
def test_its_model_is_not_that_of_federated_averaging(pair, options):
    """Three local steps, devices of different sizes, of which some are away and come back: else some would be."""
    if pair == ("fedavg", "own"):
        pytest.skip("this is federated averaging")
    other = [ALGORITHMS[half] for half in pair if half not in ("own", "fedavg")]
    assert other
    found, plain = play(pair, options), play(("fedavg", "own"))
    moved = float((plain["model 3"] - plain["start"]).norm())
    assert float((found["model 3"] - plain["model 3"]).norm()) > 1e-4 * moved


def rows(folder, name, without=()):
    table = read_table(folder, name)
    return table.drop(columns=[column for column in without if column in table])


@pytest.mark.parametrize(("pair", "setting"), [marked_setting(*case) for case in ALLOWED])
def test_a_timing_only_run_has_the_rows_of_the_run_that_trains(pair, setting, tmp_path):
    folders = []
    for training in ("real", "none"):
        folders.append(tmp_path / training)
        result = simulation.run(make_config(pair, setting, training=training), folders[-1])
        assert result.status == "finished", result.reason
    of_training = {
        "activities": (),
        "devices": (),
        "stations": (),
        "updates": ("loss", "accuracy", "update_norm"),
        "rounds": ("jobs_trained", "train_loss", "test_loss", "test_accuracy", "macro_f1", "model_held"),
    }
    for name, without in of_training.items():
        real, timed = (rows(folder, name, without) for folder in folders)
        pd.testing.assert_frame_equal(real, timed, check_exact=True)
    tests = ("class_accuracy", "test_accuracy", "tested_at_s")
    real, timed = (rows(folder, "metrics") for folder in folders)
    pd.testing.assert_frame_equal(real[~real["name"].isin(tests)].reset_index(drop=True), timed, check_exact=True)
    updates = rows(folders[1], "updates")
    assert updates["device"].nunique() > 2
    if setting in ("late", "buffered", "asynchronous"):
        assert updates["staleness"].max() > 0


@pytest.mark.parametrize(
    ("pair", "setting", "options"),
    [pytest.param(*case.values, {}, id=case.id, marks=case.marks) for case in (marked_setting(*of) for of in ALLOWED)]
    + [pytest.param((name, "own"), "rounds", options, id=f"{name}, {options}") for name, options in VARIANTS],
)
def test_bits_charged_are_those_of_what_is_sent(pair, setting, options, tmp_path, monkeypatch):
    """32 for each number of a tensor: down, those that the server holds when a job begins; up, all but buffers."""
    down, up, began = {}, {}, Counter()
    start, merge = TorchRound.start, TorchLearner.merge

    def spied_start(self, ids):
        promises = start(self, ids)
        trainable = self._learner.model.trainable
        for promise in promises:
            state = self._states[int(self._learner.server[promise.device])]
            given = promise.job.given
            sent = trainable * (given["start"] is state.weights)
            sent += sum(tensor.numel() for name, tensor in state.shared.items() if given.get(name) is tensor)
            began[promise.device] += 1
            number = promise.round if setting in ("rounds", "late", "edges") else began[promise.device]
            assert (promise.device, number) not in down
            down[promise.device, number] = 32 * sent
            promise.number = number
        return promises

    def spied_merge(self, arrived, *arguments):
        merged = merge(self, arrived, *arguments)
        for one in arrived:
            if (result := one.promise.result) is not None:
                numbers = self.model.trainable + sum(tensor.numel() for tensor in result.up.values())
                up[one.promise.device, one.promise.number] = 32 * numbers
        return merged

    monkeypatch.setattr(TorchRound, "start", spied_start)
    monkeypatch.setattr(TorchLearner, "merge", spied_merge)
    simulation.run(make_config(pair, setting, options), tmp_path)
    acts = read_table(tmp_path, "activities")
    acts = acts[acts["outcome"].isin(["done", "unscheduled"])]
    for activity, sent in (("download", down), ("upload", up)):
        found = acts[acts["activity"] == activity].groupby(["device", "task"])["bits"].sum()
        assert len(found) > 5
        for key, bits in found.items():
            if activity == "download" or key in sent:
                assert bits == pytest.approx(sent[key]), (activity, key)
        assert all(key in found.index for key in up) or activity == "download"
    computed = acts[acts["activity"] == "compute"].groupby(["device", "task"]).size().index
    fetched = acts[acts["activity"] == "download"].groupby(["device", "task"]).size().index
    assert {key for key in computed if down[key] == 0} == set(computed) - set(fetched)


@each_pair
def test_the_same_config_has_the_same_bytes(pair, tmp_path):
    files = []
    for place in ("one", "other"):
        simulation.run(make_config(pair), tmp_path / place)
        found = sorted(path for path in (tmp_path / place).iterdir() if path.stem != "timing")
        files.append({path.name: path.read_bytes() for path in found if path.suffix in (".parquet", ".safetensors")})
    assert "model.safetensors" in files[0]
    assert files[0] == files[1]


@each_pair
def test_it_can_be_sent_to_another_process(pair):
    config = make_config(pair).algorithm
    algorithm = make_algorithm(config, Sizes(96.0, 3, 8), Streams(0))
    again = pickle.loads(pickle.dumps(algorithm))
    assert type(again) is type(algorithm)
    assert (again.options, again.sizes) == (algorithm.options, algorithm.sizes)
    local = ALGORITHMS[pair[0]]
    for name in LOCAL_METHODS:
        assert getattr(again, name).__func__ is getattr(local, name)
        assert getattr(again, name).__self__.options == getattr(algorithm, name).__self__.options


@each_pair
def test_every_option_of_both_halves_is_in_the_complete_config_and_reaches_its_half(pair):
    config = make_config(pair).algorithm
    halves = [ALGORITHMS[half].Options.model_fields.keys() for half in pair if half != "own"]
    # What an update counts is up to the server half alone.
    without = {"weights"} - halves[-1]
    assert config.options.keys() == set().union(*halves) - without
    algorithm = make_algorithm(config, Sizes(96.0, 3, 8), Streams(0))
    for half, answers in ((pair[0], algorithm.pull.__self__), (pair[-1], algorithm)):
        own = ALGORITHMS[pair[0] if half == "own" else half].Options.model_fields.keys() - without
        assert {name: getattr(answers.options, name) for name in own} == {name: config.options[name] for name in own}


@pytest.mark.parametrize(
    ("pair", "setting"), REFUSED, ids=lambda value: value if isinstance(value, str) else "+".join(value)
)
def test_a_way_to_merge_that_it_does_not_allow_is_refused_before_anything_is_written(pair, setting, tmp_path):
    key = {"late": "round.late", "edges": "topology.aggregation"}.get(setting, "round.protocol")
    with pytest.raises(EdgesimError, match=rf"^algorithm '\w+' is for {key} = '.*', not '\w+': [a-z ,]+$") as refusal:
        make_config(pair, setting)
    assert "\n" not in str(refusal.value)


@each_pair
def test_the_best_model_of_a_frame_is_kept_by_servers_alone_that_remember_nothing_else(pair, tmp_path, monkeypatch):
    """SAFA's server forgets what it remembers when a frame ends."""

    def two_frames(*arguments):
        federation = make_federation(*arguments)
        return Federation(federation.dataset, [*federation.frames, federation.frames[-1]])

    monkeypatch.setattr(simulation, "make_federation", two_frames)
    server = pair[0] if pair[1] == "own" else pair[1]
    if not ALGORITHMS[server].keeps_state:
        assert simulation.run(make_config(pair), tmp_path / "run").status == "finished"
        return
    said = (
        f"^learning.keep_best: the data have 2 frames, and what the server of algorithm {server!r} remembers .* false$"
    )
    with pytest.raises(EdgesimError, match=said):
        simulation.run(make_config(pair), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    for learning in ({"keep_best": False}, {"training": "none"}):
        result = simulation.run(make_config(pair, **learning), tmp_path / "-".join(learning))
        assert result.status == "finished", result.reason


@pytest.mark.parametrize(
    ("local", "server"),
    [pair for pair in itertools.permutations(ALGORITHMS, 2) if pair not in PAIRS],
    ids=str,
)
def test_halves_that_do_not_go_together_are_refused_with_those_that_do(local, server):
    key, name, half = (
        ("name", local, "local") if "local" not in ALGORITHMS[local].halves else ("server", server, "server")
    )
    said = rf"^algorithm.{key}: the {half} half of '{name}' cannot be combined with another algorithm; those that can: "
    with pytest.raises(EdgesimError, match=said) as refusal:
        make_config((local, server))
    named = str(refusal.value).partition("those that can: ")[2].split(", ")
    assert named == [other for other, kind in ALGORITHMS.items() if half in kind.halves]


@each_pair
def test_an_option_of_another_algorithm_is_refused_with_its_owner(pair):
    own = make_config(pair).algorithm.options.keys()
    others = {
        name: owner for owner, kind in ALGORITHMS.items() for name in kind.Options.model_fields if name not in own
    }
    for name in others:
        values = dict(zip(("name", "server"), pair, strict=True)) | {name: 1}
        with pytest.raises(EdgesimError, match=rf"^algorithm.{name}: is an option of algorithm '") as refusal:
            simulation.complete(parse({"algorithm": values}, "run.toml"))
        named = pair[0] if pair[1] in ("own", pair[0]) else f"{pair[0]} with server {pair[1]}"
        assert f"not of {named!r}" in str(refusal.value)
        assert repr(others[name]) in str(refusal.value)


@pytest.mark.parametrize(
    ("algorithm", "said"),
    [
        ({"name": "fedpox"}, "^algorithm.name: unknown .*'fedpox', did you mean 'fedprox'"),
        ({"server": "sava"}, "^algorithm.server: unknown .*'sava', did you mean 'safa'"),
        # No server half is near: that of 'scaffold' cannot be combined.
        ({"server": "scafold"}, "^algorithm.server: unknown server 'scafold'; known: own, .*, safa$"),
        ({"name": "fedprox", "mu": -1.0}, "^algorithm 'fedprox': algorithm.mu: input should be greater than or equal"),
        ({"name": "fedprox", "mou": 1.0}, "unknown key 'algorithm.mou', did you mean 'mu'"),
        (
            {"name": "fedprox", "server": "safa", "lag_tolerance": -1},
            "^algorithm 'fedprox with server safa': algorithm.lag_tolerance: input should be greater than or equal",
        ),
        (
            {"name": "fedprox", "server": "mifa", "weights": "samples"},
            "^algorithm.weights: is an option of algorithm 'fedadam' or .*, not of 'fedprox with server mifa'",
        ),
        ({"weights": "size"}, "weights: input should be 'samples' or 'equal'"),
        ({"name": "safa", "lag_tolerance": -1}, "lag_tolerance: input should be greater than or equal to 0"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_key_and_what_was_expected(algorithm, said):
    with pytest.raises(EdgesimError, match=said) as refusal:
        simulation.complete(parse({"algorithm": algorithm}, "run.toml"))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("round_", "said"),
    [
        (
            {**COUNT, "protocol": "buffered", "protocol_options": {"mixing": 0.5}},
            "^round.protocol_options.mixing: is an option of protocol 'asynchronous', not of 'buffered'",
        ),
        (
            {"protocol_options": {"buffer": 3}},
            "^round.protocol_options.buffer: is an option of protocol 'buffered', not of 'synchronous'",
        ),
        (
            {"protocol_options": {"k": 3}},
            "^round.protocol_options: protocol 'synchronous' takes no options, remove 'k'",
        ),
        ({**COUNT, "protocol": "buffered", "protocol_options": {"buffer": 0}}, "buffer: .* greater than or equal to 1"),
        (
            {**COUNT, "protocol": "asynchronous", "protocol_options": {"mixing": 2.0}},
            "mixing: .* less than or equal to 1",
        ),
    ],
)
def test_options_of_another_protocol_are_refused_with_their_owner(round_, said):
    with pytest.raises(EdgesimError, match=said) as refusal:
        simulation.complete(parse({"round": round_}, "run.toml"))
    assert "\n" not in str(refusal.value)
