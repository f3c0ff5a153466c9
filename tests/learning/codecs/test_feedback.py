"""Residuals and EF21: worked numbers, order, losses, and what they do to averaging on quadratics."""

from itertools import repeat

import numpy as np
import pytest
import torch

from edgesim.base.errors import EdgesimError
from edgesim.learning.codecs import CODECS, make_codec
from edgesim.learning.codecs.feedback import SENDERS, send_change, send_with_residual, with_lost
from edgesim.learning.codecs.transmission import receive, transmit

UPDATES = [[0.4, -0.3, 0.2, 0.1], [0.1, -0.3, 0.3, 0.2], [0.2, 0.1, 0.3, -0.4]]
TOP_1 = make_codec("topk", {"ratio": 0.25})


def vector(*numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def coder(codec, uniforms=None):
    return lambda update: receive(codec, update, uniforms, codec.setting(len(update)))


def close(found, expected, within=1e-6):
    return found.tolist() == pytest.approx(expected, rel=0, abs=within)


def top_1(update):
    """In float64, unlike codecs."""
    values = torch.zeros_like(update)
    place = int(update.abs().argmax())
    values[place] = update[place]
    return values


BOTH = pytest.mark.parametrize(("code", "within"), [(coder(TOP_1), 1e-6), (top_1, 1e-9)], ids=["codec", "float64"])


def sent_in_all(fates, code):
    """Sum of what was received and the last residual, of updates that are merged, forgotten or added."""
    total, residual = torch.zeros(4, dtype=torch.float64), None
    for numbers, fate in zip(UPDATES, fates, strict=True):
        update = vector(*numbers)
        if fate == "merged":
            sent = send_with_residual(update, residual, code)
            total, residual = total + sent.update, sent.memory
        elif fate == "added":
            residual = with_lost(residual, update)
    return total, residual


@BOTH
@pytest.mark.parametrize(
    ("fates", "in_all", "left"),
    [
        (["merged", "merged", "merged"], [0.4, -0.6, 0.8, 0], [0.3, 0.1, 0, -0.1]),
        (["merged", "forgotten", "merged"], [0.4, 0, 0.5, 0], [0.2, -0.2, 0, -0.3]),
        (["merged", "added", "merged"], [0.4, 0, 0.8, 0], [0.3, -0.5, 0, -0.1]),
    ],
    ids=["none lost", "one lost", "one lost and added"],
)
def test_a_residual_gives_back_what_was_lost(code, within, fates, in_all, left):
    total, residual = sent_in_all(fates, code)
    assert close(total, in_all, within)
    assert close(residual, left, within)
    assert close(total + residual, [0.7, -0.5, 0.8, -0.1], within) == ("forgotten" not in fates)


def test_a_lost_update_becomes_a_residual_of_its_own():
    update = vector(1, 2)
    residual = with_lost(None, update)
    update.zero_()
    assert close(residual, [1, 2])


def test_two_updates_of_a_device_in_one_merge_use_its_residual_once():
    """One shared by both would count it twice: (.6, -.8, .5, -.3) with what is left."""
    first = send_with_residual(vector(*UPDATES[0]), None, coder(TOP_1))
    memories = {4: first.memory, 9: vector(5, 5, 5, 5)}
    later = [vector(*UPDATES[1]), vector(0, 0, 0, 1), vector(*UPDATES[2])]
    sent = list(transmit(TOP_1, "residual", later, [4, 7, 4], memories, repeat(None)))
    total = first.update + sent[0].update + sent[2].update
    assert close(total, [0.4, -0.6, 0.8, 0])
    assert close(total + sent[2].memory, [0.7, -0.5, 0.8, -0.1])
    assert close(sent[1].encoded, [0, 0, 0, 1])
    # Whoever merges commits: until then memories are as they were, those of others always.
    assert memories[4] is first.memory
    assert close(memories[9], [5, 5, 5, 5])
    shared = [send_with_residual(update, first.memory, coder(TOP_1)) for update in (later[0], later[2])]
    wrong = first.update + shared[0].update + shared[1].update + shared[1].memory
    assert close(wrong, [0.6, -0.8, 0.5, -0.3])


def test_the_server_and_the_device_know_the_same_by_ef21():
    update = vector(0.5, -0.3, 0.2, 0.4, 0.6, -0.1, -0.2, 0.3)
    known = vector(0.4, -0.2, 0.1, 0.1, 0.5, 0, 0, 0.1)
    sent = send_change(update, known, coder(make_codec("topk", {"ratio": 0.375})))
    assert close(sent.update, [0.4, -0.2, 0.1, 0.4, 0.5, 0, -0.2, 0.3])
    assert sent.memory is sent.update
    assert float(((update - known) ** 2).sum()) == pytest.approx(0.22)
    assert float(((update - sent.memory) ** 2).sum()) == pytest.approx(0.05)


def test_without_feedback_there_is_no_memory():
    (sent,) = transmit(TOP_1, "none", [vector(*UPDATES[0])], [0], {}, repeat(None))
    assert sent.memory is None
    assert sent.decoded is sent.update
    assert close(sent.update, [0.4, 0, 0, 0])


@pytest.mark.parametrize("feedback", SENDERS)
def test_a_merge_may_be_split_anywhere(feedback):
    """Bytes of what the server uses, by one call or by two."""
    generator = torch.Generator().manual_seed(2)
    updates, devices = torch.randn(9, 50, generator=generator), [3, 1, 4, 1, 5, 3, 2, 1, 3]
    codec = make_codec("stc", {"ratio": 0.1})

    def merge(memories, rows):
        sent = list(transmit(codec, feedback, updates[rows], devices[rows], memories, repeat(None)))
        kept = {device: one.memory for device, one in zip(devices[rows], sent, strict=True) if one.memory is not None}
        return [one.update for one in sent], memories | kept

    at_once, memories = merge({}, slice(None))
    for cut in range(1, 9):
        first, between = merge({}, slice(cut))
        second, in_the_end = merge(between, slice(cut, None))
        assert torch.equal(torch.stack(first + second), torch.stack(at_once))
        assert in_the_end.keys() == memories.keys()
        assert all(torch.equal(in_the_end[device], memory) for device, memory in memories.items())


@pytest.mark.parametrize("name", CODECS)
def test_codecs_that_amplify_refuse_feedback(name):
    codec = make_codec(name, {})
    if name in ("qsgd", "natural"):
        with pytest.raises(EdgesimError, match=r"^upload\.feedback: needs a codec whose error is shorter") as refused:
            codec.for_feedback()
        assert len(str(refused.value).splitlines()) == 1
    else:
        assert codec.for_feedback().distortion != "unbiased"
    assert make_codec("qsgd", {"rounding": "nearest"}).for_feedback().distortion == "contraction"


def test_a_residual_of_scaled_random_numbers_grows_without_end_and_of_unscaled_ones_not():
    """d/k = 5 and the same update twelve times, 20 draws."""
    update = torch.randn(500, generator=torch.Generator().manual_seed(0))
    lengths = {}
    scaled = make_codec("randk", {"ratio": 0.2})
    for name, codec in (("scaled", scaled), ("unscaled", scaled.for_feedback())):
        residual, generator = None, torch.Generator().manual_seed(1)
        for _ in range(12):
            drawn = torch.rand(500, generator=generator)
            residual = send_with_residual(update, residual, coder(codec, drawn)).memory
        lengths[name] = float(residual.norm() / update.norm())
    assert lengths["scaled"] > 500
    assert 4 < lengths["unscaled"] < 6
    # With d/k the residual of a round is (d/k - 1) times as long in the mean of squares: 2 to the power of 12.
    assert lengths["scaled"] == pytest.approx(2**12, rel=0.9)


A, B = vector(1, 3), torch.stack([vector(1, 0.5), vector(-2, 1)])
"""Curvatures of two devices, and their optima; steps of .1, two of them."""


def average(feedback, rounds, participants=lambda turn: [0, 1], code=top_1):
    """FedAvg on the quadratics from zero: models after each round, and memories."""
    model, memories, models = torch.zeros(2, dtype=torch.float64), {}, []
    for turn in range(rounds):
        updates = []
        for device in participants(turn):
            update = (1 - (1 - 0.1 * A[device]) ** 2) * (B[device] - model)
            sent = SENDERS[feedback](update, memories.get(device), code)
            updates.append(sent.update)
            memories[device] = sent.memory
        model = model + torch.stack(updates).mean(0)
        models.append(model)
    return torch.stack(models), memories


FIXED_POINT = [-1.1857142857, 0.8642857143]


def test_a_residual_oscillates_and_ef21_settles():
    assert average("none", 500, code=lambda update: update)[0][-1].tolist() == pytest.approx(FIXED_POINT, abs=1e-9)
    assert float(average("none", 1500)[0][-1, 1]) == pytest.approx(0.255, abs=5e-4)
    tail = average("residual", 3000)[0][-2000:]
    assert float(tail[:, 1].mean()) == pytest.approx(0.86418, abs=2e-4)
    spread = (tail.max(0).values - tail.min(0).values).tolist()
    assert spread == pytest.approx([0.47, 0.26], abs=5e-3)
    assert average("ef21", 1000)[0][-1].tolist() == pytest.approx(FIXED_POINT, abs=1e-9)


def test_what_arrives_and_what_is_left_is_the_sum_of_all_updates_while_all_take_part():
    """w + sum p e = w_0 + sum of weighted updates; under partial participation w + mean e is not."""
    for participants, holds in ((lambda turn: [0, 1], True), (lambda turn: [[0, 1], [1]][turn % 2], False)):
        model, exact, memories = vector(0, 0), vector(0, 0), {}
        for turn in range(3):
            taken = participants(turn)
            updates = [(1 - (1 - 0.1 * A[device]) ** 2) * (B[device] - model) for device in taken]
            sent = [
                send_with_residual(update, memories.get(device), top_1)
                for device, update in zip(taken, updates, strict=True)
            ]
            memories |= {device: one.memory for device, one in zip(taken, sent, strict=True)}
            model = model + torch.stack([one.update for one in sent]).mean(0)
            exact = exact + torch.stack(updates).mean(0)
        difference = float((model + torch.stack([*memories.values()]).mean(0) - exact).abs().max())
        assert (difference < 1e-15) == holds
        assert holds or difference > 0.1


def test_a_server_that_uses_updates_again_needs_ef21():
    """MIFA's table of last updates, rounds {0, 1}, {1}, {0, 1} again and again; the first coordinate."""
    ends = {}
    for feedback in ("residual", "ef21"):
        model, memories, table, models = vector(0, 0), {}, {}, []
        for turn in range(3000):
            for device in ([0, 1], [1], [0, 1])[turn % 3]:
                update = (1 - (1 - 0.1 * A[device]) ** 2) * (B[device] - model)
                sent = SENDERS[feedback](update, memories.get(device), top_1)
                memories[device], table[device] = sent.memory, sent.update
            model = model + torch.stack([*table.values()]).mean(0)
            models.append(model[0])
        ends[feedback] = float(torch.stack(models[1500:]).mean())
    assert ends["ef21"] == pytest.approx(-1.1857142857, abs=1e-9)
    assert ends["residual"] == pytest.approx(-1.11928, abs=2e-4)


def test_residual_and_ef21_are_not_the_same():
    residual, ef21 = average("residual", 3)[0][-1], average("ef21", 3)[0][-1]
    assert float((residual - ef21).abs().max()) > 0.01


@pytest.mark.parametrize("name", ["topk", "randk"])
def test_with_all_numbers_kept_ef21_and_residual_are_the_algorithm_alone(name):
    codec = make_codec(name, {"ratio": 1.0}).for_feedback()
    updates = torch.randn(3, 40, generator=torch.Generator().manual_seed(3))
    drawn = repeat(torch.rand(40, generator=torch.Generator().manual_seed(4)))
    for feedback in SENDERS:
        sent = list(transmit(codec, feedback, updates, [0, 0, 0], {}, drawn))
        difference = torch.stack([one.update for one in sent]) - updates
        assert float(difference.abs().max()) < (1e-6 if feedback == "ef21" else 1e-12)


@pytest.mark.parametrize("name", ["topk", "stc", "sign", "half", "randk"])
def test_sent_and_left_are_all_updates_of_a_device(name):
    codec = make_codec(name, {}).for_feedback()
    generator = torch.Generator().manual_seed(5)
    updates = torch.randn(20, 64, generator=generator, dtype=torch.float64)
    drawn = torch.rand(20, 64, generator=generator)
    sent = list(transmit(codec, "residual", updates, [0] * 20, {}, drawn))
    total = torch.stack([one.update for one in sent]).double().sum(0) + sent[-1].memory
    assert float((total - updates.sum(0)).abs().max()) < 1e-13


def gaps_of_scaffold(how, rounds, codec):
    """Distance to the optimum of ten quadratics of 20 numbers behind each round; four devices, five steps of .05.

    Updates have a residual (top 2). Of controls are sent the changes from what the server has; with ``how`` =
    ``residual`` these have a residual as well; with ``own`` devices train with their own exact controls, and what the
    server lacks of these is their residual.
    """
    random, generator = np.random.default_rng(0), torch.Generator().manual_seed(1)
    curvatures, optima = torch.tensor(random.uniform(0.5, 3, (10, 20))), torch.tensor(random.normal(0, 2, (10, 20)))
    optimum = (curvatures * optima).sum(0) / curvatures.sum(0)
    model, control = torch.zeros(20, dtype=torch.float64), torch.zeros(20, dtype=torch.float64)
    own, exact = torch.zeros(10, 20, dtype=torch.float64), torch.zeros(10, 20, dtype=torch.float64)
    residuals, memories, gaps = {}, {}, []
    for _ in range(rounds):
        updates, changes = [], torch.zeros_like(control)
        for device in random.choice(10, 4, replace=False).tolist():
            drawn = torch.rand(20, generator=generator)
            used = exact[device].clone() if how == "own" else own[device].clone()
            weights = model.clone()
            for _ in range(5):
                gradient = curvatures[device] * (weights - optima[device])
                weights -= 0.05 * (gradient - used + control)
            update = weights - model
            sent = send_with_residual(update, residuals.get(device), coder(make_codec("topk", {"ratio": 0.1})))
            residuals[device] = sent.memory
            updates.append(sent.update)
            change = -control - update / 0.25
            exact[device] = used + change
            sender = SENDERS["none" if how == "changes" else "residual"]
            sent = sender(change, memories.get(device), coder(codec, drawn))
            memories[device] = sent.memory
            own[device] += sent.update
            changes += sent.update
        model, control = model + torch.stack(updates).mean(0), control + changes / 10
        gaps.append(float((model - optimum).norm()))
    return gaps


def test_controls_whose_changes_are_sent_need_no_residual_which_would_count_twice_what_is_missing():
    """That what the server lacks is the residual of exact controls is another way to the same end."""
    codec = make_codec("topk", {"ratio": 0.1})
    assert gaps_of_scaffold("changes", 200, codec)[-1] < 1e-2
    assert gaps_of_scaffold("own", 200, codec)[-1] < 1e-2
    assert gaps_of_scaffold("residual", 100, codec)[-1] > 10


def test_controls_whose_changes_an_unbiased_codec_lengthens_grow_without_end():
    """One level of the length of 20 numbers has an error of up to 4.5 times the square of the change."""
    codec = make_codec("qsgd", {"levels": 1, "norm": "l2"})
    assert gaps_of_scaffold("changes", 100, codec)[-1] > 10
