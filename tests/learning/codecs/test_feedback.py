"""Residuals and EF21: worked numbers, order, losses, and where averaging on quadratics ends with them."""

from itertools import repeat

import pytest
import torch
from refusals import in_one_line

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
    """One shared by both would count it twice: (.6, -.8, .5, -.3) in all, with what is left."""
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
        with in_one_line(r"^upload\.feedback: needs a codec whose error is shorter"):
            codec.for_feedback()
    else:
        assert codec.for_feedback().distortion != "unbiased"
    assert make_codec("qsgd", {"rounding": "nearest"}).for_feedback().distortion == "contraction"


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
    assert average("none", 150, code=lambda update: update)[0][-1].tolist() == pytest.approx(FIXED_POINT, abs=1e-9)
    assert float(average("none", 300)[0][-1, 1]) == pytest.approx(0.255, abs=5e-4)
    tail = average("residual", 1000)[0][-700:]
    assert float(tail[:, 1].mean()) == pytest.approx(0.86418, abs=2e-4)
    spread = (tail.max(0).values - tail.min(0).values).tolist()
    assert spread == pytest.approx([0.47, 0.26], abs=5e-3)
    assert average("ef21", 200)[0][-1].tolist() == pytest.approx(FIXED_POINT, abs=1e-9)


@pytest.mark.parametrize("name", ["topk", "stc", "sign", "half", "randk"])
def test_sent_and_left_are_all_updates_of_a_device(name):
    codec = make_codec(name, {}).for_feedback()
    generator = torch.Generator().manual_seed(5)
    updates = torch.randn(20, 64, generator=generator, dtype=torch.float64)
    drawn = torch.rand(20, 64, generator=generator)
    sent = list(transmit(codec, "residual", updates, [0] * 20, {}, drawn))
    total = torch.stack([one.update for one in sent]).double().sum(0) + sent[-1].memory
    assert float((total - updates.sum(0)).abs().max()) < 1e-13
