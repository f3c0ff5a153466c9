"""What every policy of the registry must keep to, whoever wrote it; a policy added there is tested here.

Rounds are played in a world of random arrays in which every policy finds what it wants to know.
"""

import json
import math
import tomllib
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import tomli_w
from candidates import PlainKnowledge, offers, report_of, view_of

from edgesim.base.errors import EdgesimError
from edgesim.base.saved import pack, unpack
from edgesim.selection import SELECTORS, make_selector, resolve_options
from edgesim.selection.view import ClassGradients, Drafter, Feedback, RoundReport, Spending
from edgesim.streams import Streams

DEVICES, CLASSES, ROUNDS, PLACES = 14, 3, 20, 5

TIES_BY_ID = {"best-channel", "best-norm", "power-of-choice", "fedcgd", "fedteddi", "safa", "fedcs"}
"""Policies that take the lowest id of equal devices; the others draw lots."""

OF_ITS_OWN_NUMBER = {"afl"}
"""Policies that offer no more devices once so many are taken as they want themselves."""

DRAWS_BY_PLACE = {"fed-cbs"}
"""Policies whose lots are of places in a round and not of devices: they tell devices by their numbers."""


def renamed(draw):
    """A draw of devices by what they are called elsewhere."""
    return lambda self, name, devices, *where, **more: draw(self, name, self.old[devices], *where, **more)


class Renamed(Streams):
    """Draws of device n are those that ``old[n]`` has elsewhere."""

    def __init__(self, seed, old):
        super().__init__(seed)
        self.old = old

    uniform, normal, exponential = map(renamed, (Streams.uniform, Streams.normal, Streams.exponential))


class Watched:
    """Another object, of which a look at some attributes is noted under a name."""

    def __init__(self, watched, names, asked):
        self.watched, self.names, self.asked = watched, names, asked

    def __getattr__(self, attribute):
        if attribute in self.names:
            self.asked.add(self.names[attribute])
        return getattr(self.watched, attribute)


KNOWLEDGE = dict.fromkeys(["class_counts", "previous_class_counts", "global_shares"], "class_counts") | {
    name: name for name in ("losses", "update_norms", "sent_norms", "gradient_deviations")
}
GRADIENTS = {"class_gradient_distances": "class_gradients"}
FEEDBACK = {"loss": "training_losses", "loss_rms": "training_losses", "accuracy": "training_accuracies"} | {
    "loss_drop": "loss_drops"
}


@cache
def numbers(seed, round):
    """Random numbers of a round by name, one row per device: positive, shares, and some of their own kind."""
    random = np.random.default_rng([seed, round])
    positive = ("gain", "loss", "norm", "deviation", "duration_s", "mean_loss", "loss_rms", "accuracy")
    share = ("there", "checks_in", "ready_s", "upload_s", "stays", "arrives", "comes_late")
    counts = random.integers(1, 30, (DEVICES, CLASSES))
    # No two devices have as many samples.
    counts[:, 0] += (random.permutation(DEVICES) - counts.sum(axis=1)) % DEVICES
    return {
        **{name: random.uniform(0.1, 4.0, DEVICES) for name in positive},
        **{name: random.uniform(0.0, 1.0, DEVICES) for name in share},
        "counts": counts,
        "need_hz": random.integers(1, 17, DEVICES) / 8,  # whose sums are exact in any order
        "work": 5 * random.permutation(DEVICES) + 10,
        "distances": random.uniform(0.1, 4.0, (DEVICES, CLASSES)),
        "shares": random.dirichlet([1.0] * CLASSES, DEVICES),
        "loss_drop": random.uniform(-0.5, 2.0, DEVICES),
    }


class World:
    """Rounds in which devices come and go, fail and are late; every number is a function of seed, round and device.

    With ``old`` the devices bear other names: device n is the one called ``old[n]`` without. With ``shuffled`` what is
    heard of a round comes in another order.
    """

    def __init__(self, seed=0, old=None, shuffled=False):
        self.seed, self.shuffled = seed, shuffled
        self.old = np.arange(DEVICES) if old is None else old
        self.times, self.late, self.asked = np.zeros(DEVICES, dtype=np.int64), np.empty(0, dtype=np.int64), set()

    def numbers(self, round):
        return {name: column[self.old] for name, column in numbers(self.seed, round).items()}

    def view(self, round):
        """What a policy sees of a round."""
        now, first, before = (self.numbers(number) for number in (round, 0, ROUNDS + 1))
        known = (first["counts"], before["counts"], now["counts"], now["loss"], now["norm"], now["deviation"])
        ids = np.flatnonzero(now["there"] < 0.7)
        estimates = {"ready": now["ready_s"][ids] / 2, "upload": now["upload_s"][ids] / 2, "due": 2.0}
        view = view_of(
            Watched(PlainKnowledge(*known), KNOWLEDGE, self.asked), ids, now["need_hz"], now["gain"], self.times,
            places=PLACES, estimates=estimates | {"leaves": 3 * now["stays"][ids]},
            round=round, frame=1 + round // 7, round_in_frame=1 + round % 7, rounds_in_frame=7,
        )  # fmt: skip
        return replace(view, work_samples=now["work"][ids], streams=Renamed(self.seed, self.old))

    def play(self, policy, first, last):
        """Rounds of a policy: the devices offered, taken and picked in each, by their old names."""
        return [self.round(policy, round) for round in range(first, last + 1)]

    def round(self, policy, round):
        view, now = self.view(round), self.numbers(round)
        offered, taken = offers(
            policy.choose(view),
            lambda device, taken: len(taken) < PLACES and now["need_hz"][[*taken, device]].sum() <= 4,
        )
        selected = np.array(taken, dtype=np.int64)
        self.times[selected] += 1
        # Nothing at all arrives in some rounds.
        in_time = (now["arrives"] < 0.8) & (round % 4 > 0)
        arrived = selected[in_time[selected]]
        picked = policy.draft(arrived, len(view.ids)) if isinstance(policy, Drafter) else arrived
        heard = np.concatenate([picked, np.setdiff1d(self.late, arrived)])
        self.late = selected[~in_time[selected] & (now["comes_late"][selected] < 0.5) & (round % 4 != 3)]
        if self.shuffled:
            heard, arrived, selected = (np.random.default_rng(9).permutation(ids) for ids in (heard, arrived, selected))
        told = (
            now[name][heard] for name in ("duration_s", "upload_s", "mean_loss", "loss_rms", "accuracy", "loss_drop")
        )
        # Where nothing comes late, uploads may have been streams.
        received = None if len(heard) > len(picked) else in_time[selected] * (now["stays"][selected] + 0.01)
        policy.hear(
            RoundReport(
                round,
                lambda: np.flatnonzero(now["checks_in"] < 0.8),
                selected,
                arrived,
                Watched(Feedback(heard, *told), FEEDBACK, self.asked),
                Watched(Gradients(now["distances"], now["shares"], round), GRADIENTS, self.asked),
                float(now["duration_s"].max()),
                float(round),
                None,
                lambda: Spending(0.0, 0.0, 0.0),
                received,
            )
        )
        return [self.old[np.array(ids, dtype=np.int64)].tolist() for ids in (offered, taken, picked)]


class Gradients:
    """Class gradients read from arrays of one row per device; at first nobody has samples of the last class."""

    def __init__(self, distances, shares, round):
        self.distances, self.shares = distances, shares
        self.global_shares = np.array([*[1 / CLASSES] * (CLASSES - 1), (round > 12) / CLASSES])

    def class_gradient_distances(self, ids, part):
        return ClassGradients(self.distances[ids], self.shares[ids], self.global_shares)


@pytest.fixture(params=SELECTORS)
def policy(request):
    return request.param


ENTRIES = [(policy, {}) for policy in SELECTORS] + [
    ("feddance", {"history_rounds": 4, "accuracy_window": 2, "init_newcomers": True, "unheard": "guess"}),
    ("fedteddi", {"L_mode": "scalar", "p_source": "dataset", "on_bw_fail": "stop"}),
    ("oort", {"pacer_step": 3, "exploration": 0.4, "pacer_start": 60.0}),
    ("afl", {"explore": 0.0, "participants": "adaptive"}),
    ("refl", {"cool_down": 1, "window": "rounds", "oracle_accuracy": 1.0}),
    ("refl", {"cool_down": 0, "forecast": "log", "history_rounds": 4}),
]
"""Every policy as it is by default, and with options by which more of what it remembers counts in a few rounds."""


@pytest.fixture(params=ENTRIES, ids=lambda entry: "-".join([entry[0], *map(str, entry[1].values())]))
def entry(request):
    return request.param


@pytest.fixture
def made(entry):
    return lambda: make_selector(*entry, DEVICES, CLASSES)


def test_offers_are_candidates_each_once_at_most(made):
    policy, here, others, busy = made(), World(seed=3), 0, 0
    for round in range(1, ROUNDS + 1):
        candidates = here.view(round).ids.tolist()
        offered, taken, _ = here.round(policy, round)
        assert len(set(offered)) == len(offered)
        assert set(offered) <= set(candidates)
        others += set(offered) < set(range(DEVICES))
        busy += len(taken) > 0
    assert others > ROUNDS / 2
    assert busy > ROUNDS / 3


def test_the_same_rounds_are_chosen_alike_and_another_world_otherwise(made):
    first, again = (World(seed=5).play(made(), 1, ROUNDS) for _ in range(2))
    assert first == again
    assert World(seed=6).play(made(), 1, ROUNDS) != first


@pytest.mark.parametrize("seed", range(2))
def test_devices_under_other_names_are_chosen_under_those_names(entry, made, seed):
    """Nothing hangs on a device's number but what is told and drawn of it, as long as no two are equal."""
    old = np.random.default_rng(seed).permutation(DEVICES)
    alike = World(seed=seed).play(made(), 1, ROUNDS) == World(seed=seed, old=old).play(made(), 1, ROUNDS)
    assert alike == (entry[0] not in DRAWS_BY_PLACE)


def test_the_order_in_which_updates_are_reported_changes_no_choice(made):
    assert World(seed=4, shuffled=True).play(made(), 1, ROUNDS) == World(seed=4).play(made(), 1, ROUNDS)


def test_without_candidates_nobody_is_offered_and_a_round_without_anybody_is_heard_of(made):
    policy, here = made(), World()
    for round in (1, 2, 9):
        view = here.view(round)
        empty = view_of(view.knowledge, [], round=round)
        assert list(policy.choose(empty)) == []
        policy.hear(report_of(round, gradients=None))
    assert here.play(policy, 10, 12)


def test_a_lone_candidate_is_offered(made):
    view = view_of(World().view(1).knowledge, [7], places=PLACES)
    assert offers(made().choose(view), lambda device, taken: True) == ([7], [7])


def test_equal_devices_go_by_the_lowest_id_or_by_lot(entry, made):
    """Equal but for the last bits, which hang on the library that worked them out."""
    orders = set()
    for round in range(1, 16):
        random = np.random.default_rng(round)
        gain, ready, upload, *known = (2.0 * (1 + random.integers(-3, 4, 6) * 2.0**-52) for _ in range(6))
        estimates = {"ready": ready, "upload": upload, "due": 99.0}
        view = view_of(PlainKnowledge(np.full((6, CLASSES), 10), None, None, *known), gain=gain, round=round,
                       estimates=estimates)  # fmt: skip
        orders.add(tuple(offers(made().choose(view), lambda device, taken: True)[0]))
    if entry[0] in TIES_BY_ID:
        assert orders == {tuple(range(6))}
    elif entry[0] in OF_ITS_OWN_NUMBER:
        assert set().union(*orders) == set(range(6))
        assert len(orders) > 10
    else:
        assert {tuple(sorted(order)) for order in orders} == {tuple(range(6))}
        assert len(orders) > 10


def test_it_looks_at_what_it_says_and_at_all_of_it(entry, made):
    here = World()
    here.play(made(), 1, ROUNDS)
    assert here.asked == SELECTORS[entry[0]].looks_at


def saved(policy):
    """A policy's state as the text of its JSON and arrays of its own."""
    packed, arrays = pack(policy.state)
    return json.dumps(packed, allow_nan=False), {name: array.copy() for name, array in arrays.items()}


@pytest.mark.parametrize("seed", range(2))
def test_a_policy_made_anew_with_the_saved_state_goes_on_as_if_undisturbed(made, seed):
    undisturbed = made()
    expected = World(seed=seed).play(undisturbed, 1, ROUNDS)
    disturbed, policy, chosen = World(seed=seed), made(), []
    for first, last in ((1, 1), (2, 7), (8, 15), (16, ROUNDS)):
        text, kept = saved(policy)
        # The one that it was saved from goes on elsewhere.
        World(seed=9).play(policy, first, first + 2)
        kind, policy = type(policy.state), made()
        policy.state = unpack(kind, json.loads(text), kept)
        chosen += disturbed.play(policy, first, last)
    assert chosen == expected
    (text, kept), (expected_text, expected_arrays) = saved(policy), saved(undisturbed)
    assert text == expected_text
    assert {name: array.tobytes() for name, array in kept.items()} == {
        name: array.tobytes() for name, array in expected_arrays.items()
    }


def test_resolved_options_are_all_there_and_survive_their_file(policy):
    resolved = resolve_options(policy, {})
    assert set(resolved) == set(SELECTORS[policy].Options.model_fields)
    # A file leaves out what is absent.
    written = tomli_w.dumps({key: value for key, value in resolved.items() if value is not None})
    assert resolve_options(policy, tomllib.loads(written)) == resolved


ALL_OPTIONS = {option for kind in SELECTORS.values() for option in kind.Options.model_fields}


def test_an_option_that_is_wrong_unknown_or_of_another_policy_is_one_line_that_names_it(policy):
    own = set(SELECTORS[policy].Options.model_fields)
    wrong = [{option: value} for option in sorted(ALL_OPTIONS) for value in ([], {"a": 1}, math.inf, "no such")]
    unknown = [{"no_such_option": 1}] + [{f"{option}_": resolve_options(policy, {})[option]} for option in own]
    for options in wrong + unknown:
        (name,) = options
        for ask in (lambda options=options: make_selector(policy, options, 6, 3),
                    lambda options=options: resolve_options(policy, options)):  # fmt: skip
            with pytest.raises(EdgesimError) as refusal:
                ask()
            message = str(refusal.value)
            assert "\n" not in message
            assert name in message
            assert repr(policy) in message or message.startswith(f"selection.{name}")
            assert name in own or any(words in message for words in ("unknown key", "is an option of", "no options"))
            assert name.removesuffix("_") == name or f"did you mean 'selection.{name[:-1]}'" in message
