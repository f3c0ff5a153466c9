import numpy as np
import pytest
import torch
from begun import begun
from safetensors.torch import load_file

from edgesim.base.errors import EdgesimError
from edgesim.learning.jobs import Arrived
from edgesim.learning.loss_passes import mean_losses
from edgesim.learning.models import MODELS, make_model
from edgesim.learning.tensors import DeviceData
from edgesim.selection.view import ClassGradients


@pytest.fixture
def make(make_learner):
    def build(federation=None, **sections):
        sections["learning"] = {"pretrain": False, **sections.get("learning", {})}
        learner = make_learner(federation, **sections)
        learner.prepare(lambda _: None)
        return learner

    return build


@pytest.fixture
def normed(monkeypatch):
    """A model whose running statistics move more than its parameters."""

    def build(image_shape, class_count):
        pixels = int(np.prod(image_shape))
        return torch.nn.Sequential(
            torch.nn.Flatten(),
            torch.nn.BatchNorm1d(pixels),
            torch.nn.Linear(pixels, 8),
            torch.nn.ReLU(),
            torch.nn.Linear(8, class_count),
        )

    monkeypatch.setitem(MODELS, "normed", build)


def _merge(learner, arrived, began=()):
    return learner.merge(list(arrived), np.array(began, dtype=np.int64))


def _round(learner, number, started, merged, frame=1):
    this = learner.open_round(number, frame)
    promises = begun(this, started)
    return this, _merge(learner, [Arrived(promises[device]) for device in merged], started)


def test_the_saved_model_is_the_global_one_under_the_modules_own_names(make, tmp_path):
    learner = make()
    _round(learner, 1, [0, 1], [0, 1])
    learner.save(tmp_path)
    module = make_model("mlp", (1, 8, 8), 10)
    module.load_state_dict(load_file(tmp_path / "model.safetensors"))
    images, labels = learner.data.test(torch.arange(360))
    accuracy = (module(images).argmax(1) == labels).double().mean()
    assert learner.evaluate(1).accuracy == pytest.approx(float(accuracy))


@pytest.mark.parametrize("back_end", ["loop", "stacked"])
def test_norms_are_those_of_the_updates_merged_and_leave_running_statistics_out(back_end, make, normed):
    """One device alone has weight 1: the model moves by its update, for whose norm a job is not run twice."""
    learner = make(learning={"model": "normed", "back_end": back_end, "lr": 0.01})
    this, start = learner.open_round(1, 1), learner.global_weights
    norms = this.update_norms(np.array([3, 8]))
    merged = _merge(learner, map(Arrived, begun(this, [8]).values()))
    assert learner.jobs_trained == 2
    moved, trainable = (learner.global_weights - start).double(), learner.model.trainable
    assert merged.update_norm.tolist() == [norms[1]] == pytest.approx([float(moved[:trainable].norm())], rel=1e-4)
    assert float(moved[trainable:].norm()) > 0.4 * norms[1]


def _two_fresh_and_two_late(learner):
    """Updates of devices 0 and 2 in round 3, and late ones of devices 1 (round 2) and 3 (round 1)."""
    late = []
    for number, device in ((1, 3), (2, 1)):
        promise = begun(learner.open_round(number, 1), [device])[device]
        late.insert(0, Arrived(promise, staleness=3 - number))
    fresh = begun(learner.open_round(3, 1), [0, 2])
    return [Arrived(fresh[0]), Arrived(fresh[2])], late


def _by_refl(arrived, model):
    """Updates of two fresh jobs and of two that are 1 and 2 versions late, [4, P], and their REFL weights by hand, [4].

    1 for the fresh ones, else 0.65 / (s + 1) + 0.35 (1 - exp(-L / L_max)), where L = |mean - (update + 2 mean) / 3|^2 /
    |mean|^2 is what a late one would change of the fresh mean (REFL, section 4.2, beta = 0.35), of parameters alone.
    """
    updates = np.array([one.promise.result.update.double().numpy() for one in arrived])
    trained = updates[:, : sum(parameter.numel() for parameter in MODELS[model]((1, 4, 4), 3).parameters())]
    mean = (trained[0] + trained[1]) / 2
    change = np.array([np.sum((mean - (update + 2 * mean) / 3) ** 2) / np.sum(mean**2) for update in trained])
    # The largest change of a late update is neither that of the other one nor that of a fresh one.
    assert change[2] < 0.9 * change[3] < 0.81 * change[0]
    late = 0.65 / np.array([2, 3]) + 0.35 * (1 - np.exp(-change[2:] / change[3]))
    return updates, np.append([1, 1], late)


@pytest.fixture
def two_alone(make_dataset, make_frames):
    """Devices 0 and 2 hold one class each, devices 1 and 3 both and a third one."""
    samples = np.arange(120)
    frame = [samples[0::3], samples[60:], samples[1::3], samples[:60:2]]
    return make_frames(make_dataset(samples % 3), frame, frame)


BUFFERED = {"protocol": "buffered", "admission": "count", "count": 4, "protocol_options": {"buffer": 4}}


@pytest.mark.whole_family
@pytest.mark.parametrize("buffered", [False, True])
@pytest.mark.parametrize("model", ["mlp", "normed"])
def test_by_refls_weights_late_updates_count_by_what_they_change_of_the_fresh_mean(
    model, buffered, make, two_alone, normed
):
    """Parameters of a buffer are divided by its four updates, not by the sum of their weights (FedBuff)."""
    weights = {"weights": "samples" if buffered else "equal"}
    round_ = BUFFERED if buffered else {"late": "keep"}
    learner = make(two_alone, learning={"model": model}, algorithm=weights, staleness={"weight": "refl"}, round=round_)
    start = learner.global_weights
    fresh, late = _two_fresh_and_two_late(learner)
    merged = _merge(learner, [*fresh, *late], [0, 2])
    updates, weight = _by_refl([*fresh, *late], model)
    moved = (learner.global_weights - start).double().numpy()
    trainable, divisors = np.arange(len(moved)) < learner.model.trainable, np.array([[4], [weight.sum()]])
    by_parameter, by_sum = weight / divisors @ updates
    assert moved == pytest.approx(np.where(trainable & buffered, by_parameter, by_sum), abs=1e-6)
    if not buffered:
        assert merged.ids.tolist() == [0, 2, 1, 3]
        assert merged.weight == pytest.approx(weight / weight.sum(), rel=1e-5)


@pytest.mark.parametrize("keep_best", [True, False])
def test_a_further_frame_starts_from_the_best_model_of_the_one_before_though_it_is_not_the_last(
    keep_best, make, make_dataset, make_frames
):
    """Best on all images that the devices hold in the frame; steps so long that losses rise again."""
    frame = [[*range(device, 120, 6)] for device in range(6)]
    federation = make_frames(make_dataset(np.tile(np.arange(10), 12)), frame, frame, frame)
    learner = make(federation, learning={"keep_best": keep_best, "lr": 3.0, "back_end": "loop"})
    models, losses = [], []
    for number in range(1, 4):
        _round(learner, number, range(6), range(6))
        learner.evaluate(1)
        models.append(learner.global_weights)
        losses += mean_losses(learner.model, learner.data, [np.arange(120)]).tolist()
    learner.end_frame()
    assert np.argmin(losses) < 2, losses
    (promise,) = learner.open_round(4, 2).start(np.array([3]))
    assert torch.equal(promise.job.start, models[np.argmin(losses) if keep_best else -1])


def test_the_order_of_arrival_changes_no_byte(make):
    one, two = make(), make()
    ids = [4, 19, 0, 7, 28, 11]
    _, forward = _round(one, 1, ids, ids)
    _, backward = _round(two, 1, ids, ids[::-1])
    assert torch.equal(one.global_weights, two.global_weights)
    assert forward.loss.tolist() == backward.loss[::-1].tolist()


def test_a_result_cannot_be_used_before_its_simulated_work_is_done(make):
    learner = make()
    (promise,) = learner.open_round(1, 1).start(np.array([3]))
    with pytest.raises(ValueError, match=r"\[3\] are not due"):
        _merge(learner, [Arrived(promise)])


class _Greedy(torch.nn.Module):
    """Asks for more memory than there is once it gets real images; models are tried on blank ones."""

    def __init__(self, image_shape, class_count):
        super().__init__()
        self.layer = torch.nn.Linear(int(np.prod(image_shape)), class_count)

    def forward(self, images):
        if images.detach().any():
            torch.empty(1 << 60)
        return self.layer(images.flatten(1))


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (lambda make: make().evaluate(1), "testing the model, 1024 images at once: choose a smaller learning.model$"),
        (
            lambda make: make().open_round(1, 1).gradient_deviations(np.arange(2)),
            "computing the spread of gradients: set learning.batch_size lower$",
        ),
        (
            lambda make: make().open_round(1, 1).class_gradient_distances(np.arange(2), "all"),
            "computing gradients of classes: .*L_mode = 'lastlayer'$",
        ),
        (lambda make: make(pretrain=True), "pre-training: set learning.batch_size lower$"),
    ],
    ids=["test", "spread", "classes", "pre-training"],
)
def test_memory_that_runs_out_in_any_pass_is_one_line_with_what_to_set(make, monkeypatch, act, expected):
    monkeypatch.setitem(MODELS, "greedy", _Greedy)
    with pytest.raises(EdgesimError, match=f"^out of memory while {expected}"):
        act(lambda **more: make(learning={"model": "greedy", "back_end": "loop"} | more))


def test_a_data_set_that_does_not_fit_on_the_device_is_one_line(make, monkeypatch):
    monkeypatch.setattr(DeviceData, "__init__", lambda *_: torch.empty(1 << 60))
    with pytest.raises(EdgesimError, match=r"^out of memory while loading .* onto the cpu: choose a smaller "):
        make()


def test_class_gradients_come_with_the_shares_of_the_batches(make):
    learner = make()
    this, _ = _round(learner, 1, [0, 1], [0, 1])
    found = this.class_gradient_distances(np.array([4, 2]), "all")
    assert isinstance(found, ClassGradients)
    assert found.distances.shape == found.shares.shape == (2, 10)
    np.testing.assert_allclose(found.shares.sum(axis=1), 1)
    np.testing.assert_allclose(found.global_shares.sum(), 1)
    # Who lacks a class is as far from its gradient as that gradient is long: the same for all who lack it.
    lacking = np.flatnonzero((found.shares == 0).all(axis=0) & (found.global_shares > 0))
    np.testing.assert_array_equal(found.distances[0, lacking], found.distances[1, lacking])
    assert (found.distances[:, lacking] > 0).all()
    assert this.class_gradient_distances(np.empty(0, dtype=np.int64), "all").distances.shape == (0, 10)


def test_class_gradients_are_those_of_the_newest_model_and_losses_and_deviations_of_the_one_that_began_the_round(make):
    learner = make()
    this, ids = learner.open_round(1, 1), np.array([6, 1])
    before = [this.losses(ids), this.gradient_deviations(ids), this.class_gradient_distances(ids, "all").distances]
    _merge(learner, map(Arrived, begun(this, ids).values()), ids)
    after = [this.losses(ids), this.gradient_deviations(ids), this.class_gradient_distances(ids, "all").distances]
    assert [np.array_equal(one, other) for one, other in zip(before, after, strict=True)] == [True, True, False]


def test_a_device_of_one_sample_deviates_by_nothing_and_the_others_by_what_they_would(make):
    quantity = {"partition": "quantity", "partition_options": {"alpha": 0.05}}
    learner = make(data=quantity, learning={"epochs": 1})
    sizes = learner.federation.frames[1].sizes
    alone = np.flatnonzero(sizes == 1)
    others = np.flatnonzero(sizes > 1)
    assert min(len(alone), len(others)) > 2
    found = learner.open_round(1, 1).gradient_deviations(np.arange(30))
    assert found[alone] == pytest.approx(0.0, abs=1e-3)
    assert (found[others] > 0.1).all()
    np.testing.assert_array_equal(learner.open_round(1, 1).gradient_deviations(others), found[others])


def test_a_sample_of_the_test_images_is_fixed_and_from_the_classes_seen(make):
    learner = make(evaluation={"samples": 100})
    first = learner._test_samples()
    np.testing.assert_array_equal(first, learner._test_samples())
    assert len(np.unique(first)) == 100
    learner.accounts.held = learner.federation.frames[0]
    old = learner._test_samples()
    assert learner.dataset.test_labels[old].max() == 5
    assert len(old) == 100


def test_a_server_may_merge_an_update_that_began_from_another_ones_model(make):
    learner = make()
    learner.serve(2, lambda ids, t_s: ids % 2)
    learner.prepare(lambda _: None)
    promises = begun(learner.open_round(1, 1), [0, 1])
    start = [state.weights.clone() for state in learner.states]
    _merge(learner, [Arrived(promises[0], server=1), Arrived(promises[1])], [0, 1])
    west, east = (state.weights for state in learner.states)
    assert torch.equal(west, start[0])
    updates = torch.stack([promises[device].result.update for device in (0, 1)])
    torch.testing.assert_close(east - start[1], updates.mean(0), rtol=1e-4, atol=1e-7)
