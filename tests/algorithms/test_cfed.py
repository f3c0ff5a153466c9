"""CFeD: tasks and teachers, who learns and who reviews, and what each costs before and after that is settled."""

import math

import numpy as np
import pytest
import torch
from arriving import arrive
from contract import make_config, new_learner, two_frames, work
from eight_weights import PUBLIC, START, THREE, Bench, Holder
from quadratics import Play
from whole_runs import play

from edgesim.learning.algorithms.cfed import Cfed, _shard
from edgesim.learning.algorithms.records import Devices, Sizes
from edgesim.streams import Streams

DEVICES = 8


def made(devices=DEVICES, public=100, **options):
    sizes = Sizes(1000.0, 0, devices, 10, private=120 * devices, public=public)
    made = Cfed.Options(**options), sizes, Streams(3)
    return Cfed.Local(*made), Cfed.Server(*made).ledger(1, None)


def server_of(local):
    return Cfed.Server(local.options, local.sizes, local.streams)


def of(*ids, devices=DEVICES, size=10):
    return Devices(np.array(ids), np.zeros((devices, 10), dtype=np.int64), np.full(devices, size))


def learners(local, ledger, round, *ids):
    local.begin(of(*ids), round, ledger)
    return [device for device in ids if ledger.learns[device]]


def test_in_the_first_task_all_learn_and_then_a_random_six_tenths_of_those_that_begin_together():
    local, ledger = made(task_rounds=3)
    assert [len(learners(local, ledger, round, *range(8))) for round in (1, 2, 3)] == [8] * 3
    for count, expected in zip(range(1, 9), (1, 2, 2, 3, 3, 4, 5, 5), strict=True):
        assert len(learners(local, ledger, 3 + count, *range(count))) == expected
    drawn = {tuple(learners(local, ledger, round, *range(8))) for round in range(20, 60)}
    assert len(drawn) > 20
    assert {device for ids in drawn for device in ids} == set(range(8))


def test_of_devices_that_begin_one_by_one_as_many_learn_at_any_time_and_each_keeps_its_role_in_a_round():
    local, ledger = made(task_rounds=3)
    local.begin(of(0), 3, ledger)
    roles = [bool(learners(local, ledger, 4, device)) for device in range(8)]
    assert [sum(roles[:count]) for count in range(1, 9)] == [math.ceil(0.6 * count - 1e-9) for count in range(1, 9)]
    for _ in range(3):
        assert [bool(learners(local, ledger, 4, device)) for device in range(8)] == roles
    assert len(learners(local, ledger, 4, *range(8))) == sum(roles)


def test_with_a_new_frame_of_a_run_the_model_becomes_a_teacher_and_devices_review():
    """The first task of ten rounds ends after two, with the frame; the next goes on for another two at least."""
    learner = new_learner(make_config(("cfed", "own"), options={"task_rounds": 10}), two_frames)
    for round, frame in ((1, 1), (2, 1), (3, 2), (4, 2)):
        if round == 3:
            learner.end_frame()
            teacher = learner.global_weights.clone()
        given = [promise.job.given for promise in work(learner, round, range(8), frame=frame).values()]
        teachers = [tensors["teacher"] for tensors in given if "teacher" in tensors]
        assert len(teachers) == (0 if frame == 1 else 3)
        assert all(torch.equal(model, teacher) for model in teachers)
    learner.close()


def test_the_public_images_are_divided_among_the_devices_and_the_server():
    local, _ = made(public=95)
    public = np.random.default_rng(0).permutation(95)
    shards = [_shard(local.sizes, number, public) for number in range(9)]
    assert np.concatenate(shards).tolist() == public.tolist()
    assert sorted(map(len, shards)) == [10] * 4 + [11] * 5
    assert Cfed.epochs_over(local.options, local.sizes, np.array([120])) == [
        (len(shard), None) for shard in shards[:-1]
    ]
    at_server, _ = made(public=95, server_passes=1, review_batch=4)
    reviews = [(len(shard), 4) for shard in shards[:-1]]
    assert Cfed.epochs_over(at_server.options, at_server.sizes, np.array([120])) == [*reviews, (len(shards[-1]), None)]


def test_the_teacher_is_the_model_with_which_a_task_ended_and_the_first_review_of_a_task_recalls_nothing_new():
    """Of half the devices that begin the rest review: at once from their teacher, which leaves them as they are."""
    bench = Bench(Holder(list(PUBLIC.images) * 4, [0] * 12))
    play = Play(Cfed, THREE, {"task_rounds": 2, "learners": 0.5}, START, lr=0.5, bench=bench)
    models, moved = {}, {}
    for round in range(1, 7):
        jobs = play.begin(0, 1, 2)
        reviews = [job for job in jobs if len(job.given["teacher"])]
        assert len(reviews) == (round > 2)
        for job in reviews:
            assert torch.equal(job.given["teacher"], models[2 if round < 5 else 4])
            moved[round] = float(play._train(job).update.norm())
        play.merge(jobs)
        models[round] = play.state.weights
    assert {round: norm > 1e-6 for round, norm in moved.items()} == {3: False, 4: True, 5: False, 6: True}
    assert max(moved[3], moved[5]) < 1e-15


def arrived(ids, round, ages):
    return arrive(ids=ids, samples=np.ones(len(ids)), began_in=round - np.array(ages, dtype=np.int64))


def test_a_reviewer_gets_the_teacher_until_one_of_its_reviews_is_merged_in_the_task():
    local, ledger = made(task_rounds=2)

    def bits(round, *ids):
        return (server_of(local).download_bits(of(*ids), round, ledger) / 1000).tolist()

    everyone = range(8)
    learners(local, ledger, 1, *everyone)
    assert bits(1, *everyone) == [1] * 8
    # A plan for round 3 does not know who will review.
    assert bits(3, *everyone) == [2] * 8
    learn = learners(local, ledger, 3, *everyone)
    assert bits(3, *everyone) == [1 if device in learn else 2 for device in everyone]
    reviewers = [device for device in everyone if device not in learn]
    merged, lost = reviewers[:1], reviewers[1:]
    server_of(local).note(ledger, arrived(learn + merged, 3, [0] * (len(learn) + 1)))
    assert bits(4, *everyone) == [1 if device in merged else 2 for device in everyone]
    # What was begun in round 3 is merged in round 4, where others have begun since.
    learners(local, ledger, 4, *learn)
    server_of(local).note(ledger, arrived(lost, 4, [1] * len(lost)))
    assert bits(4, *reviewers) == [1] * len(reviewers)
    # The next task has another teacher.
    assert bits(5, *everyone) == [2] * 8
    assert local.upload_bits(of(*everyone), 5, ledger).tolist() == [1000] * 8


@pytest.mark.parametrize(("options", "batch"), [({}, 8), ({"review_batch": 1}, 1), ({"review_batch": 2}, 2)])
def test_reviews_are_in_batches_of_their_own_and_learning_in_those_of_the_run(options, batch):
    learner = new_learner(make_config(("cfed", "own"), options={"task_rounds": 1, "review_epochs": 2} | options))
    phases = [promise.job.phases[0] for promise in learner.open_round(2, 1).start(np.arange(8))]
    for phase in phases:
        size = len(phase.samples) // 2
        ends = [*range(0, size, batch)] + [size + start for start in range(0, size, batch)] + [2 * size]
        assert (phase.edges.tolist() == ends) == phase.public
    assert 0 < sum(phase.public for phase in phases) < 8
    learner.close()


@pytest.mark.parametrize(("options", "epochs"), [({}, 3), ({"review_epochs": 50}, 50), ({"review_epochs": 1}, 1)])
def test_a_review_costs_four_passes_over_the_devices_public_images_and_a_plan_the_more_of_both(options, epochs):
    """100 images for 8 devices and the server: 12 for the first device and 11 for the others; 25 samples of 10 are
    three epochs. A review of one epoch costs less than learning.
    """
    local, ledger = made(task_rounds=1, **options)
    samples = np.full(8, 25)
    costs = 4 * epochs * np.array([12] + [11] * 7) / (3 * 25)

    def factor(round):
        return local.compute_factor(of(*range(8)), samples, round, ledger).tolist()

    assert factor(1) == [1] * 8
    assert factor(2) == pytest.approx(np.maximum(costs, 1).tolist())
    learn = learners(local, ledger, 2, *range(8))
    assert factor(2) == pytest.approx([1 if device in learn else costs[device] for device in range(8)])


def test_reviewers_train_on_public_images_alone():
    learner = new_learner(make_config(("cfed", "own"), options={"task_rounds": 1}))
    for round in (1, 2):
        promises = work(learner, round, range(8))
        learns = learner.accounts.ledger.learns
        assert learns.sum() == (8 if round == 1 else 5)
        for device, promise in promises.items():
            own = learner.federation.frames[1].clients[device]
            assert set(promise.job.samples) <= set(own if learns[device] else learner.federation.public)
            assert ("teacher" in promise.job.given) != learns[device]
    learner.close()


def test_what_devices_compute_is_charged_by_role(tmp_path):
    """Beside a run in which all jobs take as long. An epoch is 40 samples; devices 0 and 1 have 19 public images, all
    others 18.
    """
    world = {
        "seed": 2,
        "rounds": 4,
        "devices": {"count": 10, "mu_samples_per_s": 400.0},
        "radio": {"bandwidth_hz": 4e6},
        "round": {"tmax_s": 1.0, "payload_bits": 2e5, "computes": "selected"},
        "data": {"partition": "iid", "samples_per_device": 40, "public": "carved"},
        "learning": {"pretrain": False, "epochs": 1, "training": "none"},
    }
    columns = {}
    for cost in ("passes", "equal"):
        played = play(tmp_path / cost, world, algorithm={"name": "cfed", "task_rounds": 2, "compute_cost": cost})
        computed = played.activities.query("activity == 'compute'").set_index(["round", "device"])
        columns[cost] = computed["t_end_s"] - computed["t_start_s"]
    factors = columns["passes"] / columns["equal"]
    assert len(factors.dropna()) == len(factors) > 20
    for round, rows in factors.droplevel("round").groupby(factors.index.get_level_values("round")):
        reviews = rows[(rows - 1).abs() > 1e-9]
        assert len(reviews) == (len(rows) - math.ceil(0.6 * len(rows) - 1e-9) if round > 2 else 0)
        assert reviews.tolist() == pytest.approx([4 * (19 if device < 2 else 18) / 120 for device in reviews.index])
