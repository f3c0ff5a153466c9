"""Coded updates in a learner: what is merged, what devices remember of it, and what is told."""

import codec_reference as reference
import numpy as np
import pytest
import torch
from begun import begun

from edgesim.base.errors import Diverged
from edgesim.learning.codecs import make_codec
from edgesim.learning.codecs.entropy import entropy_bits
from edgesim.learning.jobs import Arrived
from edgesim.learning.transforms import make_transforms
from edgesim.learning.transforms.encode import Encode
from edgesim.learning.transforms.transform import Updates
from edgesim.streams import Streams

IDS = np.array([3, 1, 3])
TASKS = np.array([1, 1, 2])
TOP = {"codec": "topk", "ratio": 0.1, "feedback": "residual"}


@pytest.fixture
def make_learner(make_learner):
    def make(upload, algorithm=None, **more):
        own = {name: more.pop(name) for name in ("privacy", "staleness", "round") if name in more}
        learning = {"pretrain": False, "back_end": "loop", "precision": "float64"} | more
        return make_learner(upload=upload, learning=learning, algorithm=algorithm or {"name": "fedavg"}, **own)

    return make


def promises(learner, number, ids):
    return [*begun(learner.open_round(number, 1), ids).values()]


def trained(learner, made):
    return {promise.device: result.update.clone() for promise, result in zip(made, learner.results(made), strict=True)}


def merge(learner, number, ids, arriving=None):
    """The updates that devices trained in a round in which some arrive, or all, and what the merge answers."""
    made = promises(learner, number, ids)
    updates = trained(learner, made)
    arrived = [Arrived(promise) for promise in made if arriving is None or promise.device in arriving]
    return updates, learner.merge(arrived, np.array(ids))


def top(vector):
    """The tenth of a vector that is largest, by another implementation."""
    numbers = vector.tolist()
    return torch.tensor(reference.topk(numbers, -(-len(numbers) // 10)), dtype=torch.float64)


def test_over_rounds_with_losses_and_returns_sent_and_left_are_all_updates_that_were_merged(make_learner):
    """Device 0 is lost in round 2 and away in round 3; what it remembers then stays as it was."""
    learner = make_learner(TOP)
    sums, received = {0: 0, 1: 0}, {0: 0, 1: 0}
    for number, (ids, arriving) in enumerate([([0, 1], [0, 1]), ([0, 1], [1]), ([1], [1]), ([0, 1], [0, 1])], 1):
        residuals = {device: residual.clone() for device, residual in learner.transforms[0].state.items()}
        before = learner.global_weights.clone()
        updates, _ = merge(learner, number, ids, arriving)
        for device in arriving:
            sent = top(updates[device] + residuals.get(device, 0.0))
            sums[device], received[device] = sums[device] + updates[device], received[device] + sent
            left = learner.transforms[0].state[device]
            assert torch.allclose(received[device] + left, sums[device], rtol=0, atol=1e-6)
        if len(arriving) == 1:
            assert torch.allclose(learner.global_weights, before + sent, rtol=0, atol=1e-6)
        for device in {0, 1} - {*arriving}:
            assert torch.equal(learner.transforms[0].state[device], residuals[device])


def test_with_add_a_lost_update_becomes_part_of_the_residual(make_learner):
    learner = make_learner(TOP | {"lost": "add"})
    merge(learner, 1, [0, 1])
    left = learner.transforms[0].state[0].clone()
    made = promises(learner, 2, [0, 1])
    second = trained(learner, made)
    ran = learner.jobs_trained
    learner.lose([made[0]])
    learner.merge([Arrived(made[1])], np.array([0, 1]))
    assert learner.jobs_trained == ran
    assert torch.allclose(learner.transforms[0].state[0], left + second[0], rtol=0, atol=1e-12)
    learner.lose(promises(learner, 3, [5]))
    assert learner.jobs_trained == ran + 1
    assert 5 in learner.transforms[0].state


def test_of_two_updates_of_a_device_the_one_that_arrived_first_passes_first(make_learner):
    learner = make_learner(TOP)
    late, new = promises(learner, 1, [0]) + promises(learner, 2, [0])
    first, second = (trained(learner, [promise])[0] for promise in (late, new))
    learner.merge([Arrived(late, staleness=1), Arrived(new)], np.array([0]))
    left = first - top(first) + second
    assert torch.allclose(learner.transforms[0].state[0], left - top(left), rtol=0, atol=1e-6)


def test_norms_as_they_would_be_received_leave_nothing_behind(make_learner):
    learner = make_learner(TOP)
    merge(learner, 1, [0, 1])
    residual = learner.transforms[0].state[0].clone()
    this = learner.open_round(2, 1)
    norms = this.sent_norms(np.array([0, 1]))
    updates = trained(learner, this.start(np.array([0, 1])))
    expected = [float(top(updates[device] + learner.transforms[0].state[device]).norm()) for device in (0, 1)]
    assert norms.tolist() == pytest.approx(expected, rel=1e-6)
    assert this.update_norms(np.array([0])).tolist() == pytest.approx([float(updates[0].norm())])
    assert torch.equal(learner.transforms[0].state[0], residual)


def test_norms_follow_the_channel_where_sizes_do(make_learner):
    """With room for 7 and for 60 numbers, and for less than the smallest size; without a room it is 1 % of them."""
    learner = make_learner(
        {"codec": "topk", "coding": "index", "size": "fit", "least": 0.001, "feedback": "none"},
        round={"allocator": "equal_bits"},
    )
    d, this = learner.model.trainable, learner.open_round(1, 1)
    entry = 32 + (d - 1).bit_length()
    rooms = np.array([32.0 + 8 * entry - 1, 32.0 + 60 * entry, 5.0])
    updates = trained(learner, this.start(np.arange(3)))
    kept = [7, 60, -(-d // 1000)]
    expected = [float(updates[device].abs().topk(k).values.norm()) for device, k in enumerate(kept)]
    assert this.sent_norms(np.arange(3), lambda: rooms).tolist() == pytest.approx(expected, rel=1e-6)
    whole = float(updates[0].abs().topk(-(-d // 100)).values.norm())
    assert this.sent_norms(np.array([0])).tolist() == pytest.approx([whole], rel=1e-6)


def test_without_coding_they_are_the_norms_of_the_updates(make_learner):
    this = make_learner(None).open_round(1, 1)
    assert this.sent_norms(np.array([2, 4])).tolist() == this.update_norms(np.array([2, 4])).tolist()


@pytest.mark.parametrize(
    ("upload", "worst", "what"),
    [
        (TOP, np.inf, "an update has numbers that are not finite"),
        ({"codec": "qsgd", "norm": "l2", "feedback": "none"}, 2e38, "the scale of an update is 4.53e+39, above"),
    ],
)
def test_what_diverges_on_its_way_names_the_device_and_the_keys(make_learner, upload, worst, what):
    learner = make_learner(upload)
    made = promises(learner, 1, [4])
    learner.results(made)[0].update[: learner.model.trainable] = worst
    with pytest.raises(Diverged) as ended:
        learner.merge([Arrived(promise) for promise in made], np.array([4]))
    assert str(ended.value).startswith(f"device 4: upload.codec: {what}")
    assert ended.value.fields == ("upload.codec", "learning.lr")
    assert not learner.transforms[0].state


@pytest.mark.parametrize("mechanism", ["clip", "local"])
def test_a_lost_update_is_clipped_and_noised_before_it_joins_the_residual(make_learner, make_config, mechanism):
    privacy = {"mechanism": mechanism, "clip": 0.01} | ({"noise": 0.5, "delta": 1e-5} if mechanism == "local" else {})
    learner = make_learner(TOP | {"lost": "add"}, privacy=privacy)
    made = promises(learner, 1, [4])
    update = trained(learner, made)[4]
    assert float(update.norm()) > 0.02
    learner.lose(made)
    sent = [update]
    for transform in learner.transforms[:-1]:
        sent = transform.apply(Updates(np.array([4]), np.array([made[0].task]), sent)).received
    assert torch.equal(learner.transforms[-1].state[4], sent[0])
    if mechanism == "clip":
        assert float(sent[0].norm()) == pytest.approx(0.01)


def test_run_json_counts_devices_that_remember_lost_updates_alone(make_learner):
    learner = make_learner(TOP | {"lost": "add"})
    merge(learner, 1, [0, 1])
    learner.lose(promises(learner, 2, [1, 5]))
    assert learner.facts()["bytes_of_device_state"] == 3 * 8 * learner.model.trainable


def control_after_two_rounds(learner):
    """SCAFFOLD's controls of device 0 behind rounds 1 and 2, and those that it sent."""
    found = []
    for number in (1, 2):
        made = promises(learner, number, [0, 1])
        sent = {
            promise.device: result.up["own"].clone()
            for promise, result in zip(made, learner.results(made), strict=True)
        }
        known = {promise.device: promise.job.given.get("own") for promise in made}
        learner.merge([Arrived(promise) for promise in made], np.array([0, 1]))
        found.append((sent[0], known[0], learner.states[0].own[0]))
    return found


def test_controls_of_scaffold_travel_as_coded_changes_of_what_the_server_has(make_learner):
    scaffold = {"name": "scaffold"}
    learner = make_learner(TOP | {"beside": "coded"}, scaffold)
    (first, nothing, behind), (second, known, then) = control_after_two_rounds(learner)
    assert nothing is None
    assert torch.allclose(behind, top(first), rtol=0, atol=1e-6)
    assert torch.equal(known, behind)
    assert torch.allclose(then, behind + top(second - behind), rtol=0, atol=1e-6)
    # c is the mean of all c_i.
    controls = learner.states[0].own.values()
    mean = sum(controls) / learner.accounts.local.sizes.devices
    assert torch.allclose(learner.states[0].shared["control"], mean, rtol=0, atol=1e-9)


def test_random_places_of_changes_are_sent_as_they_are_also_where_updates_count_times_d_over_k(make_learner):
    upload = {"codec": "randk", "ratio": 0.1, "feedback": "none", "beside": "coded"}
    (first, _, behind), _ = control_after_two_rounds(make_learner(upload, {"name": "scaffold"}))
    sent = behind != 0
    # Controls of pixels that are always 0 are 0.
    assert 0.05 * len(first) < int(sent.sum()) <= -(-len(first) // 10)
    assert torch.allclose(behind[sent].double(), first[sent].double(), rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    ("steps", "momentum", "lr", "factor"), [(2, 0.0, 0.1, 5.0), (20, 0.9, 0.02, 0.41)], ids=["two steps", "momentum"]
)
def test_derived_controls_of_scaffold_have_the_error_of_the_decoded_update_over_the_length_of_the_way(
    make_learner, steps, momentum, lr, factor
):
    """Over K_eff lr: that of two steps of 0.1 is 5 times as large."""
    learner = make_learner(TOP, {"name": "scaffold", "derive_control": True}, momentum=momentum, steps=steps, lr=lr)
    made = promises(learner, 1, [0])
    update = trained(learner, made)[0]
    learner.merge([Arrived(made[0])], np.array([0]))
    own, sent = learner.states[0].own[0], top(update)
    exact = float(own.norm() / sent.norm())
    assert exact == pytest.approx(factor, rel=1e-2)
    assert torch.allclose(own, -exact * sent, rtol=0, atol=1e-6)
    # Sent controls have no error, so that both forms differ under a codec, unlike without one.
    assert float((own + exact * update).norm()) == pytest.approx(exact * float((update - sent).norm()), rel=1e-6)


@pytest.mark.parametrize("name", ["fedavg", "feddyn", "fedavgm", "fedadam", "fedyogi", "afl", "scaffold", "moon"])
def test_servers_weigh_and_merge_what_is_decoded(make_learner, name):
    learner, seen = make_learner(TOP, {"name": name}), []
    weigh = learner.accounts.weigh
    learner.accounts.weigh = lambda rows: seen.append(rows) or weigh(rows)
    updates, _ = merge(learner, 1, [0, 2])
    decoded = [top(updates[device]) for device in (0, 2)]
    first, then = seen
    if name == "afl":
        assert first.norms.tolist() == pytest.approx([float(one.norm()) for one in decoded], rel=1e-6)
    for received, expected in zip(then.separate, decoded, strict=True):
        assert torch.allclose(received, expected, rtol=0, atol=1e-7)
    if name == "feddyn":
        first, residual = decoded[0], learner.transforms[0].state[0].clone()
        again, _ = merge(learner, 2, [0, 2])
        # Each decoded update counts once, with what was left of the one before.
        second = top(again[0] + residual)
        assert torch.allclose(learner.states[0].own[0], first + second, rtol=0, atol=1e-6)


def test_losses_and_norms_of_a_merge_are_of_what_was_trained(make_learner):
    found = []
    for upload in (None, TOP):
        learner = make_learner(upload)
        learner.accounts.looked_at = frozenset({"loss_drops"})
        _, merged = merge(learner, 1, [0, 2])
        found.append((merged.loss_drop.tolist(), merged.update_norm.tolist(), merged.loss.tolist()))
    assert found[0] == found[1]


def test_residuals_go_on_where_a_frame_begins_with_its_best_model(make_learner):
    learner = make_learner(TOP)
    merge(learner, 1, [0, 2])
    residuals, best = dict(learner.transforms[0].state), learner.global_weights + 1
    learner._best = (0.0, best)
    learner.end_frame()
    assert torch.equal(learner.global_weights, best)
    assert learner.transforms[0].state == residuals
    updates, _ = merge(learner, 2, [0])
    left = updates[0] + residuals[0]
    assert torch.allclose(learner.transforms[0].state[0], left - top(left), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    "upload", [TOP | {"feedback": "ef21"}, {"codec": "qsgd", "feedback": "none"}], ids=["topk", "qsgd"]
)
def test_devices_of_safa_train_on_from_what_the_server_has_of_their_models(make_learner, upload):
    """Device 0 finishes rounds 1 and 3, between which it lags; its entry in the mean is where it begins again."""
    learner = make_learner(upload, {"name": "safa"})
    first = learner.global_weights.clone()
    updates, _ = merge(learner, 1, [0, 2])
    received = learner.states[0].entries[0] - first
    if upload["codec"] == "topk":
        assert torch.allclose(received, top(updates[0]), rtol=0, atol=1e-7)
    merge(learner, 2, [2])
    again = promises(learner, 3, [0])
    assert torch.equal(again[0].job.start, first + received)
    assert not torch.equal(again[0].job.start, first + updates[0])
    change = trained(learner, again)[0]
    learner.merge([Arrived(again[0])], np.array([0]))
    known = received if upload["feedback"] == "ef21" else torch.zeros_like(received)
    sent = learner.states[0].entries[0] - (first + received)
    if upload["codec"] == "topk":
        assert torch.allclose(sent, known + top(change - known), rtol=0, atol=1e-6)
    else:
        assert float((sent - change).norm()) < 0.5 * float(change.norm())


def updates_of(rows, width=12):
    return list(torch.randn(rows, width, generator=torch.Generator().manual_seed(4), dtype=torch.float64))


def test_buffers_pass_as_they_are():
    coding = Encode(make_codec("sign", {}), "residual", Streams(0), 10)
    updates = updates_of(3)
    passed = coding.apply(Updates(IDS, TASKS, updates))
    for before, after in zip(updates, passed.received, strict=True):
        assert torch.equal(after[10:], before[10:])
        assert len(after[:10].abs().unique()) == 1
    assert all(len(memory) == 10 for memory in passed.memories.values())


@pytest.mark.parametrize("codec", ["qsgd", "natural", "randk"])
def test_draws_are_those_of_device_and_task(codec):
    """However a merge is split; and a device draws anew for its next task."""
    updates = [updates_of(1, 400)[0]] * 3
    coding = Encode(make_codec(codec, {"ratio": 0.1} if codec == "randk" else {}), "none", Streams(0), 400)
    together = coding.apply(Updates(IDS, TASKS, updates)).received
    apart = [coding.apply(Updates(IDS[[row]], TASKS[[row]], [updates[row]])).received[0] for row in range(3)]
    assert all(torch.equal(one, other) for one, other in zip(together, apart, strict=True))
    assert not torch.equal(together[0], together[2])
    assert not torch.equal(together[0], together[1])


def test_rows_of_metrics_are_means_over_the_updates():
    coding = Encode(make_codec("topk", {"ratio": 0.25}), "residual", Streams(0), 8)
    updates = updates_of(2, 8)
    rows = coding.apply(Updates(np.array([0, 1]), np.array([1, 1]), updates)).report(np.ones(2))
    lost = [float((one - torch.tensor(reference.topk(one.tolist(), 2))).norm() / one.norm()) for one in updates]
    assert rows[("codec", "error")] == pytest.approx(np.mean(lost), rel=1e-6)
    assert rows[("codec", "missing")] == pytest.approx(np.mean(lost), rel=1e-6)
    assert rows[("codec", "setting")] == 2
    assert rows[("codec", "entropy_bits")] == pytest.approx(-(0.25 * np.log2(0.25) + 0.75 * np.log2(0.75)))
    zero = Updates(np.array([0]), np.array([1]), [torch.zeros(8, dtype=torch.float64)])
    nothing = coding.apply(zero).report(np.ones(1))
    assert nothing == {("codec", "setting"): 2.0, ("codec", "entropy_bits"): 0.0}


def entropy_by_counting(values):
    shares = np.unique(values, return_counts=True)[1] / len(values)
    return float(-(shares * np.log2(shares)).sum())


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("qsgd", {}),
        ("qsgd", {"norm": "l2", "bucket": 64}),
        ("natural", {}),
        ("sign", {}),
        ("stc", {"ratio": 0.1}),
        ("half", {}),
    ],
)
def test_entropy_is_that_of_the_symbols(name, options):
    """Levels of a bucket counted by their values over its scale; all else by the values themselves."""
    codec = make_codec(name, options)
    vector = torch.randn(640, generator=torch.Generator().manual_seed(1))
    drawn = torch.rand(640, generator=torch.Generator().manual_seed(2)) if codec.draws else None
    setting = codec.setting(640)
    decoded = codec.coded(vector, drawn, setting)
    values = decoded.double().numpy()
    if name == "qsgd":
        cut = [slice(first, first + codec.bucket) for first in range(0, 640, codec.bucket)]
        scales = [reference.scale_of(vector[part].tolist(), codec.norm) for part in cut]
        values = np.concatenate([np.rint(values[part] / scale * 7) for part, scale in zip(cut, scales, strict=True)])
    found = entropy_bits(codec.counts(vector, decoded, setting))
    assert found == pytest.approx(entropy_by_counting(values), abs=1e-12)


def test_central_privacy_clips_what_is_decoded_again(make_config):
    """Coding lengthens: a unit vector by its sign and k = d / 2 of randk times 2."""
    privacy = {"mechanism": "central", "clip": 1.0, "noise": 1.0, "delta": 1e-5}
    config = make_config(privacy=privacy, upload={"codec": "randk", "ratio": 0.5, "feedback": "none"})
    update, ids = torch.ones(64, dtype=torch.float64), np.array([0])
    transforms = make_transforms(config, Streams(0), 64)
    lengths, metrics, updates = [], {}, [update]
    for transform in transforms:
        passed = transform.apply(Updates(ids, ids, updates))
        updates, metrics = passed.received, metrics | passed.report(np.ones(1))
        lengths.append(float(updates[0].norm()))
    assert lengths == pytest.approx([1.0, 2**0.5, 1.0], rel=1e-6)
    assert metrics[("privacy", "clipped")] == metrics[("privacy", "clipped_again")] == 1.0
