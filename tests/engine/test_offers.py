"""What a policy offers is checked: candidates, by their ids, each once."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusals import in_one_line
from whole_runs import TIMED, play

from edgesim.engine.offers import Offers
from edgesim.selection import SELECTORS
from edgesim.selection.stateless import Stateless

CANDIDATES = [1, 3, 4, 8]


def offers(ids=CANDIDATES):
    return Offers("mine", 7, np.array(ids, dtype=np.int64), "the candidates")


@given(st.lists(st.lists(st.integers(-2, 10), max_size=5), max_size=4), st.sampled_from([CANDIDATES, [0, 1, 2, 3], []]))
def test_offers_pass_exactly_if_each_is_a_candidate_and_none_comes_twice(arrays, ids):
    seen: list[int] = []
    checked, one_by_one = offers(ids), offers(ids)
    for array in arrays:
        wrong = [place for place, one in enumerate(array) if one not in ids or one in seen + array[:place]]
        if wrong:
            culprit = array[wrong[0]]
            absent = [device for device in array if device not in ids]
            words = f"device {absent[0]}, which is not" if absent else f"device {culprit} twice"
            with in_one_line(rf"^selection.policy 'mine', round 7: offered {words}"):
                checked.rows(np.array(array, dtype=np.int64))
            for device in array[: wrong[0]]:
                one_by_one.row(device)
            with in_one_line(f"offered device {culprit}"):
                one_by_one.row(culprit)
            return
        assert [ids[row] for row in checked.rows(np.array(array, dtype=np.int64))] == array
        assert [ids[one_by_one.row(device)] for device in array] == array
        seen += array


@pytest.mark.parametrize(
    ("offer", "words"),
    [
        (np.array([True, False, True, True]), "an array of bool and shape (4,), which may be a mask"),
        (np.array([1.0, 3.0]), "an array of float64 and shape (2,); expected integer device ids"),
        (np.array([[1, 3]]), "an array of int64 and shape (1, 2)"),
        (np.array(["1"]), "an array of <U1"),
        (3.0, "3.0; expected integer device ids"),
        (True, "True"),
        ([1, 3], "[1, 3]"),
        (None, "None"),
    ],
)
def test_an_offer_that_is_no_id_and_no_array_of_ids_is_refused(offer, words):
    with in_one_line(r"^selection.policy 'mine', round 7") as refused:
        offers().rows(offer) if isinstance(offer, np.ndarray) else offers().row(offer)
    assert words in str(refused.value)


CONFIG = TIMED | {"rounds": 2, "devices": {"count": 6}, "selection": {"policy": "mine"}}
BY_COUNT = {"payload_bits": 1e5, "admission": "count", "count": 3}
WITHOUT_ROUNDS = BY_COUNT | {"protocol": "asynchronous"}


class OfAWorld(Stateless):
    """Yields what the test says."""

    offered = ()

    def choose(self, view):
        yield from (offer for offer in self.offered)


class Drafting(Stateless):
    """Picks of those that arrived what the test says."""

    picked = np.array([0])

    def choose(self, view):
        yield view.ids[1:]

    def draft(self, arrived, candidates):
        return self.picked


@pytest.mark.parametrize("knobs", [{"payload_bits": 1e5}, BY_COUNT, WITHOUT_ROUNDS], ids=["band", "count", "no-rounds"])
@pytest.mark.parametrize(
    ("offered", "words"),
    [
        ([np.array([4]), 4], "offered device 4 twice"),
        ([99], "offered device 99, which is not among the candidates (6)"),
        ([np.arange(6) > 2], "which may be a mask"),
    ],
)
@pytest.mark.whole_family
def test_a_run_whose_policy_offers_what_is_not_there_ends_with_a_line_that_names_it(
    tmp_path, monkeypatch, knobs, offered, words
):
    monkeypatch.setattr(OfAWorld, "offered", offered)
    monkeypatch.setitem(SELECTORS, "mine", OfAWorld)
    with in_one_line(rf"^selection\.policy 'mine', round 1: .*{re.escape(words)}"):
        play(tmp_path, CONFIG, round=knobs)


def test_a_choose_that_returns_its_offers_is_refused_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr(OfAWorld, "choose", lambda self, view: view.ids)
    monkeypatch.setitem(SELECTORS, "mine", OfAWorld)
    with in_one_line(r"^selection.policy 'mine': choose returned ndarray; yield"):
        play(tmp_path, CONFIG, round=BY_COUNT)


@pytest.mark.parametrize(
    ("picked", "words"),
    [
        (np.array([0]), "offered device 0, which is not among those whose updates arrived"),
        (np.array([2, 2]), "offered device 2 twice"),
        (np.array([False, True]), "which may be a mask"),
        ([1], "offered [1]; expected integer device ids"),
    ],
)
def test_what_a_policy_drafts_has_arrived_and_is_drafted_once(tmp_path, monkeypatch, picked, words):
    monkeypatch.setattr(Drafting, "picked", picked)
    monkeypatch.setitem(SELECTORS, "mine", Drafting)
    with in_one_line(re.escape(words)):
        play(tmp_path, CONFIG, round=BY_COUNT)


def test_good_offers_of_both_kinds_are_taken_in_order(tmp_path, monkeypatch):
    monkeypatch.setattr(OfAWorld, "offered", [np.array([5, 2], dtype=np.uint8), 0])
    monkeypatch.setitem(SELECTORS, "mine", OfAWorld)
    uploads = play(tmp_path, CONFIG, round=BY_COUNT).uploads
    assert set(uploads.query("round == 1")["device"]) == {0, 2, 5}
