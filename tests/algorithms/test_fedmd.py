"""FedMD: subsets of rounds, what is trained before the first round, and what it costs."""

import numpy as np
import pytest
import torch
from contract import make_config, new_learner, work
from eight_weights import PUBLIC, START, THREE, Bench, Holder
from quadratics import Play
from torch.nn import functional
from worked_numbers import FEDMD

from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.engine.protocols import make_protocol
from edgesim.learning import augmentation
from edgesim.learning.algorithms.fedmd import FedMd
from edgesim.learning.algorithms.records import Devices, Sizes
from edgesim.learning.federation import make_federation
from edgesim.learning.jobs import Arrived
from edgesim.learning.learner import TorchLearner
from edgesim.learning.timing_only import TimingOnlyLearner
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams

OWN = ("fedmd", "own")
ALL = np.array([0])


def play(public=PUBLIC, **options):
    return Play(FedMd, THREE, FEDMD | options, START, lr=0.5, bench=Bench(public))


def test_a_round_without_arrivals_leaves_the_consensus_and_a_device_away_digests_the_newest():
    """With other public images in each round: those of the round in which the consensus was made."""
    random = np.random.default_rng(1)
    many = Holder([tuple(image) for image in random.normal(size=(40, 2))], [0] * 40)
    found = play(many, public_subset="round")
    sets = {}
    for round, ids in enumerate(((0, 1), (1,), (), (2,)), start=1):
        (job, *_) = found.begin(*ids) or [None]
        if job:
            sets[round] = job.passed.tolist()
        before = found.state.shared["consensus"]
        found.round(*ids)
        assert torch.equal(found.state.shared["consensus"], before) == (not ids)
    assert all(len(images) == 3 == len(set(images)) for images in sets.values())
    assert len({tuple(images) for images in sets.values()}) == 3
    digest, own = found.begin(0)[0].phases
    assert digest.samples.tolist() == sets[4]
    assert own.rows is None
    # In round 4 the newest consensus was that of round 2.
    again = play(many, public_subset="round")
    for ids in ((0, 1), (1,), ()):
        again.round(*ids)
    assert again.begin(0)[0].phases[0].samples.tolist() == sets[2]


@pytest.mark.parametrize(("options", "edges"), [({}, [0, 3, 6]), ({"digest_batch": 2}, [0, 2, 3, 5, 6])])
def test_a_digest_is_in_batches_of_its_own(options, edges):
    """Two epochs over M = 3 images."""
    found = play(digest_epochs=2, **options)
    found.round(0, 1)
    digest, own = found.begin(0)[0].phases
    assert digest.edges.tolist() == edges
    assert own.edges.tolist() == play().begin(0)[0].phases[0].edges.tolist()
    (sized, *_) = FedMd.epochs_over(found.local.options, found.local.sizes, np.array([4]))
    assert sized == (3, options.get("digest_batch"))


def test_bits_and_computing_with_and_without_a_consensus():
    """M = 3 images of 2 classes: 192 bits; E n = 8 samples of device 0, with two digest epochs 1 + 7 * 3 / 24."""
    found = play(digest_epochs=2)
    devices = Devices(ALL, np.zeros((3, 2), dtype=np.int64), np.array([4, 2, 1]))

    def costs():
        asked = devices, found.merged + 1, found.ledger
        bits = [float(ask(*asked)[0]) for ask in (found.server.download_bits, found.local.upload_bits)]
        return [*bits, float(found.local.compute_factor(devices, np.array([8]), *asked[1:])[0])]

    assert costs() == [0, 192, 1 + 3 / 24]
    found.round()
    assert costs() == [0, 192, 1 + 3 / 24]
    found.round(1)
    assert costs() == [192, 192, 1 + 21 / 24]


def test_nobody_digests_the_consensus_of_its_own_model_alone():
    """|logits - consensus| would be rounding: device 1 has nothing to digest after rounds in which it is alone.

    With E n = 8 samples of each, 1 + M / 24 and, with a digest, 1 + 4 M / 24.
    """
    devices = Devices(np.arange(3), np.zeros((3, 2), dtype=np.int64), np.array([4, 2, 1]))
    alone = play()
    for ids, digests in (((1,), (0, 2)), ((), (0, 2)), ((1,), (0, 2)), ((0, 2), (0, 1, 2)), ((2,), (0, 1))):
        alone.round(*ids)
        assert [job.device for job in alone.begin(0, 1, 2) if len(job.phases) == 2] == list(digests), ids
        factors = alone.local.compute_factor(devices, np.array([8, 8, 8]), alone.merged + 1, alone.ledger)
        assert factors.tolist() == [1.5 if device in digests else 1.125 for device in range(3)]


def test_where_models_travel_nobody_digests_the_consensus_of_the_model_that_all_have():
    """A late update is added to a newer model than it started from: all have another model then."""
    found = play(average_weights=True)
    (late,) = found.begin(0)
    for jobs, digests in (([1], False), ([1, 2], True), ([late], True), ([2], False)):
        found.merge(jobs if jobs == [late] else found.begin(*jobs))
        assert [len(job.phases) == 2 for job in found.begin(0, 1, 2)] == [digests] * 3


@pytest.mark.parametrize("make", [TorchLearner, TimingOnlyLearner])
@pytest.mark.parametrize(("server_lr", "digests"), [(0.5, True), (1.0, False)])
def test_a_buffer_of_one_update_is_digested_where_the_server_takes_part_of_it(make, server_lr, digests):
    config = make_config(OWN, options={"average_weights": True, "digest_epochs": 1}, setting="buffered")
    options = {"buffer": 1, "server_lr": server_lr}
    config = config.model_copy(update={"round": config.round.model_copy(update={"protocol_options": options})})
    streams = Streams(config.seed)
    learner = make(config, make_federation(config, streams), streams, rule=make_protocol(config.round).rule)
    work(learner, 1, [2])
    accounts, ledger = learner.accounts, learner.accounts.ledger
    devices = Devices(np.array([2, 5]), np.zeros((2, 10), dtype=np.int64), np.array([1, 1]))
    begun = accounts.server.ledger(1, None)
    more = [accounts.local.compute_factor(devices, np.array([12, 12]), 2, of) - 1 for of in (begun, ledger)]
    # A pass of inference is a third of one of training, which the digest adds to it.
    assert more[1] / more[0] == pytest.approx([4 if digests else 1] * 2)


@pytest.mark.parametrize("more", [{}, {"average_weights": True}], ids=str)
def test_stacked_jobs_bring_what_the_loop_brings_after_a_round_with_one_arrival(more):
    """The sign of a difference that is rounding would make full steps, and models 0.02 to 0.04 apart.

    A pass over all public images at once and steps on five of them round otherwise.
    """
    models = []
    for back_end in ("loop", "stacked"):
        learner = new_learner(
            make_config(OWN, options={"digest_batch": 5} | more, back_end=back_end, precision="float64")
        )
        for number, ids in enumerate(([2], [2, 5], [5], [2, 5]), start=1):
            work(learner, number, [2, 5], merged=ids)
        kept = [learner.kept[device]["start"] for device in (2, 5) if not more]
        models.append(torch.cat([learner.global_weights, *kept]))
        learner.close()
    torch.testing.assert_close(*models, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("private", "public", "share", "count"), [(1237, 200, 0.1, 123), (54_000, 6000, 0.1, 5400), (1237, 50, 0.1, 50)]
)
def test_published_sizes_of_the_subset(private, public, share, count):
    sizes = Sizes(0.0, 0, 10, 10, private=private, public=public)
    algorithm = FedMd.Local(FedMd.Options(public_share=share), sizes, Streams(0))
    devices = Devices(ALL, np.zeros((1, 10), dtype=np.int64), ALL + 5)
    assert algorithm.upload_bits(devices, 1, None).tolist() == [320 * count]


def steps(learner, weights, samples, count, lr):
    """Weights after plain steps on all of the samples."""
    images, labels = learner.data.train(learner.data.index(samples))
    for _ in range(count):
        own = weights.clone().requires_grad_()
        tensors = dict(zip(learner.model.names, learner.model.split(own), strict=True))
        loss = functional.cross_entropy(learner.model.call(tensors, learner.model.inputs(images)), labels)
        weights = weights - lr * torch.autograd.grad(loss, own)[0]
    return weights


@pytest.mark.parametrize("back_end", ["loop", "stacked"])
def test_what_is_trained_before_the_first_round_is_a_devices_own_once(back_end):
    """Three epochs on the public set, and for each device two on its own data before the one that the config asks for:
    steps of 0.1 on all samples at once. A job that nobody merged never ran.
    """
    options = {"public_epochs": 3, "own_epochs": 2}
    learning = {"precision": "float64", "steps": None, "epochs": 1, "batch_size": 500, "lr": 0.1, "momentum": 0.0}
    learner = new_learner(make_config(OWN, options=options, back_end=back_end, **learning))
    start = learner.global_weights
    learner.prepare(print)
    first = steps(learner, start, learner.federation.public, 3, 0.1)
    assert torch.allclose(learner.global_weights, first, rtol=0, atol=1e-12)
    clients = learner.federation.frames[1].clients
    for round, (began, merged) in enumerate((((0, 1, 2), (0,)), ((0, 1), (0, 1))), start=1):
        promises = learner.open_round(round, 1).start(np.array(began))
        for promise in promises:
            promise.due = True
        if round == 1:
            for promise, result in zip(promises, learner.results(promises), strict=True):
                expected = steps(learner, first, clients[promise.device], 3, 0.1) - first
                assert torch.allclose(result.update, expected, rtol=0, atol=1e-12)
        sizes = [len(clients[device]) for device in began]
        own = [2 * size for size in sizes] if round == 1 else [0, 2 * sizes[1]]
        # The consensus of round 1 is of device 0's own model.
        digests = [0, 0, 0] if round == 1 else [0, len(promises[1].job.phases[-2].samples)]
        expected = [sum(parts) for parts in zip(own, digests, sizes, strict=True)]
        assert [len(promise.job.samples) for promise in promises] == expected
        learner.merge([Arrived(promise) for promise in promises if promise.device in merged], np.array(began))
    learner.close()


def test_public_images_are_as_they_are_where_own_ones_are_augmented():
    config = make_config(OWN, options={"own_epochs": 1})
    config = config.model_copy(update={"data": config.data.model_copy(update={"augment": "crop-flip"})})
    learner = new_learner(config)
    for round in (1, 2):
        (promise,) = work(learner, round, [round - 1]).values()
    job = promise.job
    before, digest, own = job.phases
    images = learner.data.train_images[learner.data.index(job.samples)]
    same = (augmentation.apply(images, learner.data.index(job.changes)) == images).flatten(1).all(1).tolist()
    edges = np.cumsum([0, *(len(phase.samples) for phase in job.phases)])
    assert np.isin(job.samples, learner.federation.public)[edges[1] : edges[2]].all()
    assert all(same[edges[1] : edges[2]])
    assert not all(same[: edges[1]])
    assert not all(same[edges[2] :])
    assert (before.changes is None, digest.changes is None, own.changes is None) == (False, True, False)
    assert (before.public, digest.public, own.public) == (False, True, False)
    assert job.rows.tolist() == [-1] * edges[1] + digest.rows.tolist() + [-1] * len(own.samples)
    learner.close()


@pytest.mark.parametrize(("average", "epochs"), [(False, 25), (True, None)])
def test_a_completed_config_is_complete_with_averaged_weights_too(average, epochs):
    world = {"data": {"partition": "fedteddi", "public": "carved"}, "learning": {"pretrain": True}}
    config = world | {"algorithm": {"name": "fedmd", "average_weights": average}}
    once = simulation.complete(parse(config, "run.toml"))
    again = simulation.complete(parse(simulation.as_toml(once), "run.toml"))
    assert again == once
    assert once.algorithm.options["own_epochs"] == epochs


def test_a_batch_of_one_image_is_refused_where_the_model_cannot_train_on_it(tmp_path):
    """M = 9 of 96 samples."""
    config = make_config(OWN, options={"public_share": 0.1}, model="contract.with_dropout_and_batch_norm")
    with pytest.raises(EdgesimError, match=r"^learning.batch_size: 8 leaves the algorithm's own training on 9 samples"):
        simulation.run(config, tmp_path / "run")
