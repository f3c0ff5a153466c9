"""Whole runs in which devices join by a law: who is asked, who is a candidate, and what their accuracies are of."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from refusals import in_one_line
from small_runs import DRIFTS
from whole_runs import config_of, merged
from whole_runs import play as simulate

from edgesim.learning.drift.law import When
from edgesim.learning.evaluation import predictions
from edgesim.learning.federation import make_federation
from edgesim.learning.jobs import Arrived
from edgesim.learning.learner import TorchLearner
from edgesim.selection import SELECTORS
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams

LAWS = {"frames": {"law": "frames"}} | DRIFTS
BASE = {
    "seed": 5,
    "rounds": 8,
    "devices": {"count": 8, "mu_samples_per_s": 300.0},
    "round": {"tmax_s": 2.0, "payload_bits": 3e6, "admission": "count", "count": 4, "computes": "selected"},
    "data": {"samples_per_device": 20},
    "evaluation": {"samples": 20, "every": 4},
    "learning": {"pretrain": False, "epochs": 2, "batch_size": 8, "back_end": "loop"},
    "joining": {"law": "fedstg"},
}
TIMED = {"learning": BASE["learning"] | {"training": "none"}, "joining": {"law": "fedstg", "performance": 1}}


def values(*parts, **sections):
    """Sections of a run."""
    found = merged(BASE, *parts, sections)
    if found.get("drift", {}).get("law", "frames") == "frames":
        found["data"] = {"partition": "fedteddi"} | found["data"]
    return found


@pytest.fixture
def play(tmp_path):
    """Runs a config."""
    return lambda *parts, **sections: simulate(
        tmp_path / f"run-{len(list(tmp_path.iterdir()))}", values(*parts, **sections)
    )


def answered(played, name):
    """Rows of the answers, [rounds, devices]; nan for devices that were not asked."""
    rows = played.metrics.query("name == @name")
    return rows.assign(key=rows["key"].astype(int)).pivot(index="round", columns="key", values="value").to_numpy()


def same(one, other, *tables):
    for table in tables:
        pd.testing.assert_frame_equal(getattr(one, table), getattr(other, table), obj=table)


def test_policies_see_the_devices_that_join_as_the_candidates_and_no_other(play, monkeypatch):
    seen = []
    choose = SELECTORS["random"].choose
    monkeypatch.setattr(SELECTORS["random"], "choose", lambda own, view: seen.append(view.ids) or choose(own, view))
    played = play()
    joined, worked = answered(played, "joined"), played.activities
    assert 0 < joined.sum() < joined.size
    assert [ids.tolist() for ids in seen] == [np.flatnonzero(row).tolist() for row in joined if row.any()]
    assert played.rounds["candidates"].tolist() == joined.sum(axis=1).tolist()
    for row, number in zip(joined, range(1, 9), strict=True):
        assert set(worked[worked["round"] == number]["device"]) <= set(np.flatnonzero(row))


def test_devices_that_are_away_or_at_work_are_not_asked(play):
    away = {"availability": {"model": "bernoulli", "probability": 0.6, "slots": "rounds"}}
    late = {"late": "keep", "delay_knowledge": "planned", "plan_quantile": 0.5, "tmax_s": 0.5}
    played = play(**away, round=late, joining={"performance": 1, "base": 1.0})
    asked = ~np.isnan(answered(played, "join_chance"))
    assert 0.3 < asked.mean() < 0.9
    assert played.rounds["late"].sum() > 0
    begun = played.activities.groupby(["device", "task"])["t_end_s"].max()
    opened = played.rounds.set_index("round")["t_start_s"]
    for (device, task), end_s in begun.items():
        for of_round in range(task + 1, 9):
            if opened[of_round] < end_s - 1e-6:
                assert not asked[of_round - 1, device], (device, of_round)


def test_a_round_that_nobody_joins_lasts_to_its_deadline_and_leaves_the_model(play):
    rounds = play(joining={"performance": 1, "base": 0.01, "floor": 0.0}, evaluation={"every": 1}).rounds
    empty = rounds["candidates"] == 0
    assert empty.sum() >= 5
    np.testing.assert_allclose((rounds["t_end_s"] - rounds["t_start_s"])[empty], 2.0)
    before = rounds["test_loss"].shift()
    assert (rounds["test_loss"] == before)[empty & before.notna()].all()


def test_workers_measure_the_same_accuracies_and_so_have_the_same_participants(play):
    """Loop and stacked ones measure those of plain torch, below."""
    learning = {"epochs": [1, 3], "batch_size": [4, 12]}
    kinds = ({"back_end": "loop"}, {"back_end": "workers", "workers": 1})
    loop, workers = (play(learning=learning | kind) for kind in kinds)
    assert len(np.unique(answered(loop, "join_chance"))) > 12
    same(loop, workers, "rounds", "updates", "metrics", "activities")


def test_a_performance_that_is_given_makes_joins_the_same_for_all_methods_and_without_training(play):
    joining = {"performance": 1}
    runs = [play(joining=joining, algorithm={"name": name}) for name in ("fedavg", "fedprox", "feddyn")]
    timed = play(**TIMED)
    for other in [*runs[1:], timed]:
        np.testing.assert_array_equal(answered(runs[0], "joined"), answered(other, "joined"))
    columns = ["round", "t_start_s", "t_end_s", "candidates", "selected", "arrived", "bits_up", "bits_down", "energy_j"]
    pd.testing.assert_frame_equal(runs[0].rounds[columns], timed.rounds[columns])
    same(runs[0], timed, "activities")


def test_all_join_without_the_section_and_under_the_law_without_effect(play):
    absent, everyone = play(joining=None), play(joining={"law": "all"})
    same(absent, everyone, "rounds", "activities", "updates", "devices")
    assert not {"joined", "join_chance"} & set(absent.metrics["name"])
    assert (answered(everyone, "joined") == 1).all()
    assert "joining" not in (absent.folder / "config.toml").read_text()
    assert "joining.law" in everyone.facts["inputs"]


def federation_of(law, data=(), **sections):
    size = {"samples_per_device": None if law["law"] == "rotation" else 20}
    config = simulation.complete(config_of(values({"data": size}, drift=law, data=dict(data), **sections)))
    return config, make_federation(config, Streams(config.seed))


@pytest.mark.parametrize(
    ("law", "pool"),
    [("frames", None), *((law, pool) for law in list(LAWS)[1:] for pool in ("shared", "iid_partition"))],
)
def test_a_device_never_holds_what_it_holds_out_under_any_law(law, pool):
    chosen = LAWS[law] | ({} if pool is None else {"pool": pool})
    drift = federation_of(chosen, data={} if pool else {"partition": "iid"})[1].drift
    out = [drift.held_out.of(device) for device in range(8)]
    ever = [set() for _ in out]
    for R in range(1, 41):
        held = drift.at(When(R, 1, 0.3 * R))
        for device in range(8):
            samples = held.samples_of(device)
            assert len(samples) == held.sizes[device] == held.class_counts[device].sum()
            ever[device].update(samples.tolist())
    for own, seen in zip(out, ever, strict=True):
        assert len(own) >= 1
        assert len(np.unique(own)) == len(own)
        assert not seen & set(own.tolist())
    pool_size = {"shared": 1437, "iid_partition": 1437 // 8, None: 20}[pool]
    assert [len(own) for own in out] == [pool_size // 10] * 8
    assert drift.held_out.sizes(np.arange(8)).tolist() == [pool_size // 10] * 8
    assert (len({tuple(own) for own in out}) == 1) == (pool == "shared")


def test_frames_that_follow_each_other_hold_out_the_same_samples():
    _, federation = federation_of(LAWS["frames"], data={"partition": "fedteddi"})
    frames = federation.drift.frames
    assert frames[0].sizes.tolist() != frames[1].sizes.tolist()
    for device in range(8):
        out = federation.drift.held_out.of(device)
        assert len(out) >= 1
        for frame in frames:
            assert not np.isin(frame.samples_of(device), out).any()
    _, whole = federation_of(LAWS["frames"], data={"partition": "fedteddi"}, joining={"performance": 1})
    assert not len(whole.drift.held_out.of(0))
    for device in range(8):
        union = np.unique(np.concatenate([frame.samples_of(device) for frame in whole.drift.frames]))
        own = np.concatenate([federation.drift.held_out.of(device), *(frame.samples_of(device) for frame in frames)])
        assert np.unique(own).tolist() == union.tolist()
        assert len(federation.drift.held_out.of(device)) == len(union) // 10


@pytest.mark.parametrize("form", ["paper", "code"])
@pytest.mark.parametrize("back_end", ["loop", "stacked"])
def test_accuracies_of_epochs_are_those_of_the_model_as_it_then_is(form, back_end):
    """Against plain torch that trains the job's own samples epoch by epoch."""
    learning = {"model": "mlp", "epochs": 3, "back_end": back_end, "momentum": 0.0, "lr": 0.05, "precision": "float64"}
    law = LAWS["rotation"] | {"pool": "iid_partition"}
    config, federation = federation_of(law, joining={"form": form}, learning=learning)
    learner = TorchLearner(config, federation, Streams(config.seed), 1, dict)
    learner.prepare(lambda _: None)
    ids = np.array([1, 4, 6])
    promises = learner.open_round(1, 1).start(ids)
    for promise in promises:
        promise.due = True
    found = learner.epoch_accuracies(promises)
    assert learner.jobs_trained == 3
    start = learner.global_weights.clone()
    learner.merge([Arrived(promise) for promise in promises], ids)
    assert learner.jobs_trained == 3
    assert all(len(of_device) == 3 for of_device in found)
    assert {len(np.unique(promise.job.held_out)) for promise in promises} == {17 if form == "paper" else 0}
    data = federation.dataset
    images = torch.from_numpy(data.images[0]).double() / 16
    labels = torch.from_numpy(data.train_labels)
    for promise, accuracies in zip(promises, found, strict=True):
        layers = torch.nn.Flatten(), torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10)
        module = torch.nn.Sequential(*layers).double()
        torch.nn.utils.vector_to_parameters(start.clone(), module.parameters())
        job, per_epoch, expected = promise.job, federation.drift.at(When(1, 1, 0.0)).sizes[promise.device], []
        epochs = np.split(job.samples, [per_epoch, 2 * per_epoch])
        for epoch in epochs:
            right = 0
            for batch in torch.split(torch.from_numpy(epoch), 8):
                logits = module(images[batch])
                right += int((logits.argmax(1) == labels[batch]).sum())
                loss = torch.nn.functional.cross_entropy(logits, labels[batch])
                gradients = torch.autograd.grad(loss, list(module.parameters()))
                with torch.no_grad():
                    for parameter, gradient in zip(module.parameters(), gradients, strict=True):
                        parameter -= 0.05 * gradient
            out = torch.from_numpy(job.held_out)
            tested = (module(images[out]).argmax(1) == labels[out]).double().mean() if form == "paper" else 0
            expected.append(float(tested) if form == "paper" else right / len(epoch))
        assert accuracies == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("back_end", ["loop", "stacked"])
def test_tests_between_epochs_change_nothing_of_the_training_and_are_in_evaluation_mode(back_end):
    """On a net with dropout and running moments, whose outputs differ in training mode."""
    learning = {"model": "fedstg-cnn", "back_end": back_end, "epochs": [1, 2], "batch_size": 6, "lr": 0.02}
    config, federation = federation_of(LAWS["frames"], data={"partition": "iid"}, learning=learning)
    learner = TorchLearner(config, federation, Streams(config.seed), 1, dict)
    promises = learner.open_round(1, 1).start(np.arange(5))
    out = federation.drift.frames[1].samples_of(7)
    with_tests = [replace(promise, built=replace(promise.job, held_out=out)) for promise in promises]
    without = [replace(promise, built=replace(promise.job, held_out=out[:0])) for promise in promises]
    tested, plain = learner.results(with_tests), learner.results(without)
    assert {len(result.epoch_accuracies) for result in tested} == {1, 2}
    for promise, one, other in zip(promises, tested, plain, strict=True):
        assert torch.equal(one.update, other.update)
        learner.model.load(promise.job.start + one.update)
        _, classes = predictions(learner.model, learner.data, out, test=False)
        assert one.epoch_accuracies[-1] == (classes == federation.dataset.train_labels[out]).mean()
    assert len({result.epoch_accuracies[-1] for result in tested}) > 1


FEDMD = {"name": "fedmd", "public_epochs": 1}
CARVED = {"data": {"public": "carved"}}
MIXED = {
    "fedmd": CARVED | {"algorithm": FEDMD | {"average_weights": False, "own_epochs": 1}},
    "fedmd-averaged": CARVED | {"algorithm": FEDMD | {"average_weights": True}},
    "cfed": CARVED | {"algorithm": {"name": "cfed", "task_rounds": 2, "learners": 0.5}},
    "kpfl": {"algorithm": {"name": "fedprox", "mu": 0.1, "kpfl": {"generator_steps": 2, "distil_steps": 2}}},
}
"""Algorithms whose devices train on more than their own samples, or have models of their own, or a model distilled."""


@pytest.mark.parametrize("name", list(MIXED))
@pytest.mark.parametrize("back_end", ["loop", "stacked"])
def test_devices_measure_themselves_on_what_they_hold_out_whatever_they_train_on(play, monkeypatch, name, back_end):
    """The models are tested apart from the run, and chances worked out from that."""
    results, history = TorchLearner.results, {}

    def watch(learner, promises):
        brought = results(learner, promises)
        for promise in promises:
            job, own = promise.job, federation.drift.held_out.of(promise.device)
            assert job.held_out.tolist() == own.tolist()
            learner.model.load(job.start + promise.result.update)
            _, classes = predictions(learner.model, learner.data, own, test=False)
            right = float((classes == federation.dataset.train_labels[own]).mean())
            history[promise.device, promise.round] = promise.result.epoch_accuracies
            if np.isin(job.samples, federation.public).all():
                # A reviewer, which trains on nothing of its own.
                assert promise.result.epoch_accuracies == ()
            else:
                assert promise.result.epoch_accuracies[-1] == right
        return brought

    monkeypatch.setattr(TorchLearner, "results", watch)
    world = {"data": {"partition": "iid", "samples_per_device": 30}, "joining": {"floor": 0.0}}
    # All that join compute, and one of them uploads: the others are known by their own devices alone.
    world["round"] = {"computes": "candidates", "count": 1}
    sections = merged(world, {"learning": {"back_end": back_end, "lr": 0.05}}, MIXED[name])
    config = simulation.complete(config_of(values(sections)))
    federation = make_federation(config, Streams(config.seed))
    played = play(sections)
    chances = answered(played, "join_chance")
    assert played.rounds["arrived"].sum() < len(history)
    capability = np.array([1.0, 0.9, 0.8])[np.arange(8) % 3]
    told = 0
    for device in range(8):
        known = [accuracy for R in range(1, 8) for accuracy in history.get((device, R), [])][-3:]
        performance = np.mean(known) if known else 1.0
        assert chances[-1, device] == pytest.approx(min(0.95, 0.8 * capability[device] * performance * 0.5))
        told += bool(known)
    assert told > 4
    assert (() in history.values()) == (name == "cfed")


def test_time_and_energy_are_charged_for_tests_on_what_is_held_out(play):
    """A forward pass costs a third of training: 2 epochs of 18 samples, and 2 tests of 2."""
    fixed = {"devices": {"a_s_per_sample": 0.01, "mu_samples_per_s": 1e15}, "round": {"tmax_s": 9.0}}
    fixed["data"], seconds = {"partition": "iid"}, {}
    for form in ("paper", "code"):
        work = play(joining={"form": form}, **fixed).activities.query("activity == 'compute'")
        seconds[form] = np.unique((work["t_end_s"] - work["t_start_s"]).round(6)).tolist()
        np.testing.assert_allclose(work["energy_j"], 2.0 * (work["t_end_s"] - work["t_start_s"]))
    assert seconds == {"paper": [round(0.01 * (2 * 18 + 2 * 2 / 3), 6)], "code": [0.4]}


MEASURED = r"joining\.law = 'fedstg' with joining\.performance = 'measured' "
WITHOUT_ROUNDS = {"round": {"protocol": "asynchronous", "computes": None}, "joining": {"performance": 1}}
TINY = {"devices": {"count": 1000}, "drift": LAWS["arrival"], "data": {"samples_per_device": 2}}


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("sections", "said"),
    [
        (TIMED | {"joining": {"performance": "measured"}}, MEASURED + "needs l"),
        ({"learning": {"epochs": None, "steps": 3}}, MEASURED + "needs l"),
        ({"learning": {"pretrain": True}}, MEASURED + "with jo"),
        ({"joining": {"classes": "profile"}}, r"law = 'fedstg' with joining\.classes = 'profile' needs device"),
        (WITHOUT_ROUNDS, r"joining\.law = 'fedstg' needs round\.protocol = 'synchronous', not 'as"),
        (TINY, "drift.pool: each device holds out 1 of its pool of 1 samples"),
    ],
)
def test_a_law_that_does_not_go_with_the_run_is_refused_before_anything_is_written(tmp_path, sections, said):
    with in_one_line(said):
        simulate(tmp_path / "run", values(sections))
    assert not (tmp_path / "run").exists()
