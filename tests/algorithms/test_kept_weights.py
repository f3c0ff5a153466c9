"""Rounds that make no model, as a learner sees them: weights that devices keep, and every algorithm that allows it."""

import numpy as np
import pytest
import torch
from contract import make_config, many_devices, new_learner, work
from test_contract import OF_LEARNER, saved_and_read

from edgesim.base.errors import EdgesimError
from edgesim.config import MergingConfig
from edgesim.folder.records import read_table
from edgesim.learning.algorithms import ALGORITHMS
from edgesim.learning.jobs import Arrived
from edgesim.simulation import composition as simulation

STEPS = {"epochs": None, "steps": 3, "batch_size": 8}
"""Batch norm cannot train on the one sample of some device."""
CARRY = MergingConfig(signal="test", skip="carry")


def learner_of(merging=CARRY, pair=("fedavg", "own"), options=(), **learning):
    """One full step of all samples an epoch, without momentum, at a rate that stays."""
    whole = {"steps": None, "epochs": 1, "batch_size": 60, "momentum": 0.0, "lr_decay": 1.0, "precision": "float64"}
    config = make_config(pair, options=options, **whole | learning)
    return new_learner(config.model_copy(update={"merging": merging}))


def assert_near(found, expected):
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_steps_of_two_skipped_rounds_and_of_the_next_are_those_of_one_longer_job():
    """Devices 0 and 2 are in all, device 4 in the last alone; full steps on all of a device's samples."""
    kept, long, short = learner_of(), learner_of(epochs=3), learner_of()
    for number in (1, 2):
        work(kept, number, [0, 2], skips=True)
    assert set(kept.carried) == {0, 2}
    assert torch.equal(kept.global_weights, long.global_weights)
    found = work(kept, 3, [0, 2, 4])
    expected = work(long, 1, [0, 2]) | work(short, 1, [4])
    for device in (0, 2, 4):
        one, other = found[device].result, expected[device].result
        assert_near(one.update, other.update)
        assert one.update_norm == pytest.approx(float(other.update.norm()), rel=1e-12)
    sizes = kept.accounts.held.sizes[[0, 2, 4]]
    mean = sum(share * expected[k].result.update for share, k in zip(sizes / sizes.sum(), (0, 2, 4), strict=True))
    assert_near(kept.global_weights, new_start(kept) + mean)


def new_start(learner):
    """The model with which a run of the same config begins."""
    return new_learner(learner.config).global_weights


def test_kept_weights_are_thrown_away_once_the_model_has_changed():
    """Device 2 keeps some of round 1, and is away when the model changes."""
    learner = learner_of()
    work(learner, 1, [0, 2], skips=True)
    work(learner, 2, [0])
    assert learner.carried == {}
    later = work(learner, 3, [2], skips=True)[2]
    assert later.sent is None
    assert torch.equal(later.job.start, learner.global_weights)


def test_a_due_round_without_updates_leaves_kept_weights():
    learner = learner_of()
    work(learner, 1, [2], skips=True)
    before = learner.carried[2].clone()
    learner.open_round(2, 1)
    learner.merge([], np.array([], dtype=np.int64))
    assert torch.equal(learner.carried[2], before)


@pytest.mark.parametrize("skip", ["discard", "sent"])
def test_without_keeping_a_skipped_round_leaves_no_trace(skip):
    learner, other = learner_of(MergingConfig(signal="test", skip=skip)), learner_of(None)
    promises = work(learner, 1, [0, 2], skips=True)
    assert all(one.result is None for one in promises.values())
    assert (learner.carried, learner.jobs_trained) == ({}, 0)
    for one in (learner, other):
        work(one, 2, [0, 2])
    assert torch.equal(learner.global_weights, other.global_weights)


def test_memory_for_the_weights_of_all_devices_is_asked_for_before_anything_is_written(tmp_path):
    many = many_devices(make_config(("fedavg", "own"), memory_budget_mib=1))
    for merging in (None, CARRY.model_copy(update={"skip": "discard"})):
        new_learner(many.model_copy(update={"merging": merging})).close()
    with pytest.raises(EdgesimError, match=r"the weights that merging.skip = 'carry' keeps\), 1.057 MiB for all 115"):
        simulation.run(many.model_copy(update={"merging": CARRY}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_job_must_be_due_before_its_weights_are_kept():
    learner = learner_of()
    promise = learner.open_round(1, 1).start(np.array([3]))[0]
    with pytest.raises(ValueError, match=r"jobs of devices \[3\] are not due"):
        learner.skip([Arrived(promise)])


def models(learner, between=lambda learner, number: learner):
    """The models of two merges, each with one or two skipped rounds before it."""
    made = []
    for number, (ids, skips) in enumerate(
        [([0, 2, 5], True), ([0, 2, 7], False), ([1, 7], True), ([1, 2], True), ([1, 2, 7], False)], start=1
    ):
        learner = between(learner, number)
        work(learner, number, ids, skips=skips)
        made.append(learner.global_weights.clone())
    learner.close()
    return torch.stack(made)


def test_a_learner_that_is_saved_and_read_keeps_what_devices_keep():
    def resumed(learner, number):
        if number == 1:
            return learner
        return saved_and_read(learner, number, {})[0]

    assert "carried" in OF_LEARNER
    assert torch.equal(models(learner_of(), resumed), models(learner_of()))


@pytest.mark.parametrize("server", ["own", "mifa"])
def test_stacked_jobs_go_on_from_kept_weights_as_the_loop_does(server):
    """With moments of batch norm, whose mean is that of MIFA's updates."""
    learning = {"pair": ("fedavg", server), "model": "contract.with_dropout_and_batch_norm", **STEPS}
    loop, stacked = (models(learner_of(**learning, back_end=name)) for name in ("loop", "stacked"))
    moved = float((loop[-1] - loop[0]).norm())
    assert moved > 0
    assert float((stacked - loop).abs().max()) < 1e-9 * moved


def config_of(name, skip):
    base = make_config((name, "own"), availability={"model": "always"})
    merging = MergingConfig(signal="test", skip=skip)
    learning = base.learning.model_copy(update={"lr": 1e-9})
    return base.model_copy(update={"merging": merging, "learning": learning, "rounds": 8})


NEVER = {"safa", "cfed", "fedmd", "fedproto"}
PLAIN = {"fedavg", "fedavgm", "fedadam", "fedyogi", "afl", "fedstg", "mifa", "feddf"}
"""Algorithms whose devices train on cross-entropy alone, from wherever they start."""


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_skips_rounds_or_says_why_not(name, tmp_path):
    """At a rate at which accuracy stays: rounds 1 to 4 are due and the fifth, unless the start was the best."""
    refused = {"discard", "carry", "sent"} if name in NEVER else set() if name in PLAIN else {"carry"}
    said = "does not go with merging: it needs merges" if name in NEVER else "train by the model they were sent"
    for skip in refused:
        with pytest.raises(EdgesimError, match=f"{name}.*{said}"):
            simulation.complete(config_of(name, skip))
    if name in NEVER:
        return
    # One of the ways that are allowed, in turn.
    skip = sorted({"discard", "carry", "sent"} - refused)[list(ALGORITHMS).index(name) % (3 - len(refused))]
    rising = iter(np.linspace(0.1, 0.9, 40).tolist())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("edgesim.learning.learner.TorchLearner.signal", lambda learner, of: next(rising))
        result = simulation.run(config_of(name, skip), tmp_path / "run")
    assert result.status == "finished", result.reason
    updates, rounds = (read_table(tmp_path / "run", table) for table in ("updates", "rounds"))
    assert sorted(set(updates["round"])) == [1, 2, 3, 4, 6, 8]
    up = rounds.set_index("round")["bits_up"]
    assert (up[5] > 0) == (skip == "sent")
    assert up[6] > 0
    down = rounds.set_index("round")["bits_down"]
    assert (down[6] == 0) == (skip != "sent")
