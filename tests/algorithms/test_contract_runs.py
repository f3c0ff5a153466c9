"""What every algorithm of the registry must do in whole runs, alone and combined."""

import itertools
import json
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
import torch
from contract import (
    CASES,
    OWN_MODELS,
    PAIRS,
    SETTINGS,
    WITH_KPFL,
    allows,
    each,
    each_pair,
    halves,
    make_config,
    many_devices,
    marked_variants,
    new_learner,
    said_to_be_stored,
    server_of,
    two_frames,
)

from edgesim.base.errors import EdgesimError
from edgesim.folder.records import read_table
from edgesim.learning.algorithms import ALGORITHMS, make_halves
from edgesim.learning.algorithms.records import Sizes
from edgesim.learning.learner import TorchLearner
from edgesim.learning.training_round import TorchRound
from edgesim.simulation import composition as simulation
from edgesim.simulation import simulation as run_object
from edgesim.simulation.needs import check_frames
from edgesim.streams import Streams


@dataclass
class Seen:
    """What was seen of a run that trains; several tests look at the same one."""

    folder: Path
    down: dict[tuple[int, int], int] = field(default_factory=dict)
    """Bits of what the server holds and gives to a job, by device and task."""
    up: dict[tuple[int, int], int] = field(default_factory=dict)
    """Bits of what a job brings, buffers excepted, by device and task."""
    back: list[tuple] = field(default_factory=list)
    """Of devices that begin again: rounds away, what was remembered when they left and now, and what they are given."""


def remembered(learner, device):
    """Copies of all that server and device itself remember of a device, by name."""
    states = [*learner.states, *(state.inner for state in learner.states if hasattr(state, "inner"))]
    tables = [(f"{name} {edge}", of) for edge, state in enumerate(states) for name, of in vars(state).items()]
    at_server = {name: table[device] for name, table in tables if isinstance(table, dict) and device in table}
    every = at_server | dict(learner.kept.get(device, {}))
    return {name: getattr(of, "model", of).clone() for name, of in every.items()}


def numbers(tensor):
    """How many numbers are sent: NaN is none."""
    return tensor.numel() - int(tensor.isnan().sum())


def watch(patch, seen, setting):
    """Look at what goes in and out of the learner from now on."""
    begun, left = Counter(), {}
    start, merge = TorchRound.start, TorchLearner.merge

    def spied_start(self, ids):
        learner, promises = self._learner, start(self, ids)
        for promise in promises:
            device, given = promise.device, promise.job.given
            state = self._states[promise.server]
            if device in left:
                held, (round, before) = [state.weights, *state.shared.values()], left.pop(device)
                own = {name: of for name, of in given.items() if all(of is not one for one in held) and of.numel() > 1}
                seen.back.append((self.round - round - 1, before, remembered(learner, device), own))
            sent = learner.model.trainable * (given["start"] is state.weights)
            shared = [tensor for name, tensor in state.shared.items() if given.get(name) is tensor]
            models = [tensor[: learner.model.trainable] for tensor in shared if tensor.shape == state.weights.shape]
            others = [tensor for tensor in shared if tensor.shape != state.weights.shape]
            sent += sum(map(numbers, models + others))
            begun[device] += 1
            promise.number = promise.round if setting in ("rounds", "late", "edges") else begun[device]
            assert (device, promise.number) not in seen.down
            seen.down[device, promise.number] = 32 * sent
        return promises

    def spied_merge(self, arrived, began, *arguments):
        merged = merge(self, arrived, began, *arguments)
        for one in arrived:
            if (result := one.promise.result) is not None:
                sent = self.model.trainable * self.accounts.local.options.sends_models
                sent += sum(numbers(tensor) for tensor in result.up.values())
                seen.up[one.promise.device, one.promise.number] = 32 * sent
        left.update({device: (self._round, remembered(self, device)) for device in {*merged.ids, *began}})
        return merged

    patch.setattr(TorchRound, "start", spied_start)
    patch.setattr(TorchLearner, "merge", spied_merge)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """What was seen of a run."""

    @cache
    def run(pair, setting, options, download_s, learning):
        seen = Seen(tmp_path_factory.mktemp("trained") / "run")
        with pytest.MonkeyPatch.context() as patch:
            watch(patch, seen, setting)
            how = {"download_s": download_s, **dict(learning)}
            result = simulation.run(make_config(pair, setting, json.loads(options), **how), seen.folder)
        assert result.status == "finished", result.reason
        return seen

    return lambda pair, setting="rounds", options=(), download_s=0.02, **learning: run(
        pair, setting, json.dumps(dict(options)), download_s, tuple(learning.items())
    )


def rows(folder, name, without=()):
    table = read_table(folder, name)
    return table.drop(columns=[column for column in without if column in table])


def case_of_run(pair, setting):
    """Parameters of a whole run, slow where few algorithms are merged in such a way."""
    quick = setting == "rounds" or pair[0] in ("fedavg", "safa", "scaffold")
    marks = () if quick else pytest.mark.slow
    return pytest.param(pair, setting, {}, id=f"{'+'.join(pair)}-{setting}", marks=marks)


CASES_OF_RUNS = [
    case_of_run(pair, setting)
    for pair, setting in itertools.product(PAIRS, SETTINGS)
    if allows(pair, setting) and (setting == "rounds" or pair[1] == "own")
] + marked_variants("rounds")
each_run = pytest.mark.parametrize(("pair", "setting", "options"), CASES_OF_RUNS)


@each_run
def test_a_timing_only_run_has_the_rows_of_the_run_that_trains(pair, setting, options, trained, tmp_path):
    bits_unknown = any("known downloads" in half.needs for half in halves(pair))
    if bits_unknown:
        with pytest.raises(
            EdgesimError, match=r"^algorithm.\w+ = .* needs known downloads, its bits depend on training"
        ):
            make_config(pair, setting, options, training="none")
    download_s = 0.0 if bits_unknown else 0.02
    folders = [trained(pair, setting, options, download_s=download_s).folder, tmp_path / "none"]
    result = simulation.run(make_config(pair, setting, options, download_s=download_s, training="none"), folders[1])
    assert result.status == "finished", result.reason
    by_norms = "afl" in pair
    of_training = {
        "activities": (),
        "devices": (),
        "stations": (),
        # AFL weighs updates by their lengths.
        "updates": ("loss", "accuracy", "update_norm", *["weight"] * by_norms),
        "rounds": ("jobs_trained", "train_loss", "test_loss", "test_accuracy", "macro_f1", "model_held"),
    }
    for name, without in of_training.items():
        real, timed = (rows(folder, name, without) for folder in folders)
        if bits_unknown:
            bits = real.filter(like="bits").columns
            assert (real[bits] <= timed[bits]).all(axis=None)
            real, timed = real.drop(columns=bits), timed.drop(columns=bits)
        pd.testing.assert_frame_equal(real, timed, check_exact=True)
    said, said_without_training = (json.loads((folder / "run.json").read_text()) for folder in folders)
    assert ("bits_down_notice" in said_without_training) == bits_unknown
    assert ("update_weights" in said_without_training) == ("update_weights" in said)
    assert said["public_images"] == said_without_training["public_images"] == 20
    tests = (
        "accuracy",
        "class_accuracy",
        "test_accuracy",
        "tested_at_s",
        "models_tested",
        *[server_of(pair)] * by_norms,
    )
    real, timed = (rows(folder, "metrics") for folder in folders)
    pd.testing.assert_frame_equal(real[~real["name"].isin(tests)].reset_index(drop=True), timed, check_exact=True)
    updates = rows(folders[1], "updates")
    assert updates["device"].nunique() > 2
    if setting in ("late", "buffered", "asynchronous"):
        assert updates["staleness"].max() > 0


@each_run
def test_bits_charged_are_those_of_what_is_sent(pair, setting, options, trained):
    """32 for each number of a tensor: down, those that the server holds when a job begins; up, all but buffers."""
    assert_charged_as_sent(trained(pair, setting, options))


@pytest.mark.parametrize(("name", "options"), [("fedavg", {}), ("scaffold", {}), ("fedproto", {}), WITH_KPFL[0]])
def test_buffers_are_not_charged(name, options, trained):
    """With batch norm, whose moments travel with the model: neither in it nor in what goes with it."""
    assert_charged_as_sent(trained((name, "own"), options=options, model="contract.with_dropout_and_batch_norm"))


def assert_charged_as_sent(seen):
    acts = read_table(seen.folder, "activities")
    acts = acts[acts["outcome"].isin(["done", "unscheduled"])]
    for activity, sent in (("download", seen.down), ("upload", seen.up)):
        found = acts[acts["activity"] == activity].groupby(["device", "task"])["bits"].sum()
        assert len(found) > 5
        for key, bits in found.items():
            if activity == "download" or key in sent:
                assert bits == pytest.approx(sent[key]), (activity, key)
        assert all(key in found.index for key in seen.up) or activity == "download"
    computed = acts[acts["activity"] == "compute"].groupby(["device", "task"]).size().index
    fetched = acts[acts["activity"] == "download"].groupby(["device", "task"]).size().index
    assert {key for key in computed if seen.down[key] == 0} == set(computed) - set(fetched)


@each_pair
def test_the_run_says_when_updates_count_alike_by_the_algorithms_own_rule(pair, trained):
    """Those of devices of unlike sizes, with the options that it has by default."""
    folder = trained(pair).folder
    weights = read_table(folder, "updates").groupby("round")["weight"]
    alike = bool((weights.max() == weights.min()).all())
    assert int(weights.size().max()) > 2
    assert ("update_weights" in json.loads((folder / "run.json").read_text())) == alike


def tables(pair, options=()):
    """Vectors that are remembered of a device."""
    sizes = Sizes(0.0, 1, 8, classes=2, private=96, public=20)
    return sum(said_to_be_stored(make_halves(make_config(pair, options=options).algorithm, sizes, Streams(0))))


def remembers_by_itself(pair, options):
    """Whether state of devices is given to their jobs, as KPFL's pool is not."""
    return tables(pair, {name: value for name, value in options.items() if name != "kpfl"}) > 0


@pytest.mark.parametrize(("pair", "options"), [case for case in CASES if remembers_by_itself(*case.values)])
def test_a_device_that_was_away_finds_its_state_as_it_was(pair, options, trained):
    """All that server and device remember of it, bit for bit, and in its next job no less than if it had stayed."""
    seen = trained(pair, options=options).back
    assert {away for away, *_ in seen} >= {0, 1, 2, 3}
    for away, before, now, given in seen:
        assert 0 < len(before) <= tables(pair, options) + ("safa" in pair), away
        assert before.keys() == now.keys(), away
        assert all(torch.equal(now[name], tensor) and tensor.count_nonzero() > 0 for name, tensor in before.items())
        assert all(any(torch.equal(tensor, known) for known in before.values()) for tensor in given.values())
    # A local half remembers something in order to train with it.
    trains = {half for half in {*pair} - {"own", *OWN_MODELS} if "server" not in ALGORITHMS[half].halves}
    uses = {len(given.keys() - {"start"}) > 0 for *_, given in seen}
    assert uses == {any(tables((half, "own")) for half in trains)}


WITH_DRAWS = [(name, "own") for name in ("fedavg", "feddf", "fedgen", "fedmd", "cfed")]
"""FedAvg, and algorithms whose servers draw."""


@each(WITH_DRAWS)
def test_the_same_config_has_the_same_bytes(pair, trained, tmp_path):
    """Of its tables and its model, whether somebody looks on or not."""
    simulation.run(make_config(pair), tmp_path / "other")
    files = []
    for folder in (trained(pair).folder, tmp_path / "other"):
        found = sorted(path for path in folder.iterdir() if path.stem != "timing")
        files.append({path.name: path.read_bytes() for path in found if path.suffix in (".parquet", ".safetensors")})
    assert "model.safetensors" in files[0]
    assert files[0] == files[1]


@each_pair
def test_more_than_memory_is_given_for_is_refused_before_anything_is_written(pair, tmp_path):
    many = many_devices(make_config(pair, back_end="loop", memory_budget_mib=1))
    if not tables(pair):
        new_learner(many).close()
        return
    needed_mib = tables(pair) * 9640 * 115 / 2**20
    said = rf"^algorithm: stores .* MiB for each device .*, {needed_mib:.4g} MiB for all 115, above .* = 1; raise it"
    with pytest.raises(EdgesimError, match=said):
        simulation.run(many, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("learning", "said"),
    [
        ({}, r"^algorithm: .* \(1 x the model\), 1.057 MiB for the 115 of 119 "),
        ({"persist_momentum": True}, r"the model and learning.persist_momentum's velocity\), 2.114 MiB for the 115 of"),
    ],
)
def test_devices_that_no_round_can_merge_need_no_memory(learning, said, tmp_path):
    """The mlp's 2,410 numbers are 9,640 bytes: those of 108 devices fit into 2^20 bytes, those of 109 do not."""
    for rounds, fits in ((21, not learning), (23, False)):
        config = make_config(("moon", "own"), memory_budget_mib=1, **learning)
        round_ = config.round.model_copy(update={"admission": "count", "count": 5})
        many = many_devices(config, 119, rounds=rounds, round=round_)
        if fits:
            new_learner(many).close()
            continue
        with pytest.raises(EdgesimError, match=said if rounds == 23 else "for the 105 of 119"):
            new_learner(many)


@each_pair
def test_the_best_model_of_a_frame_is_kept_by_servers_alone_that_remember_nothing_else(pair):
    """SAFA's server forgets what it remembers when a frame ends."""
    if "frames from the last model" not in ALGORITHMS[server_of(pair)].needs:
        # Its learner goes back to the best model of a frame in another test.
        check_frames(make_config(pair), 2)
        return
    said = f"= {server_of(pair)!r} .*needs learning.keep_best = false, .* server's state .* the data have 2 frames$"
    with pytest.raises(EdgesimError, match=said):
        check_frames(make_config(pair), 2)
    check_frames(make_config(pair, training="none"), 2)


def test_a_run_with_frames_that_are_not_allowed_writes_nothing_and_goes_on_from_the_last_model(tmp_path, monkeypatch):
    monkeypatch.setattr(run_object, "make_federation", two_frames)
    kept, last = (
        make_config(("scaffold", "own"), keep_best=best).model_copy(update={"rounds": 2}) for best in (True, False)
    )
    with pytest.raises(EdgesimError, match="the data have 2 frames"):
        simulation.run(kept, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    assert simulation.run(last, tmp_path / "run").status == "finished"
