from dataclasses import replace

import numpy as np
import pytest
import torch
from arriving import arrive
from hypothesis import given
from hypothesis import strategies as st
from quadratics import Play, Quadratic

from edgesim.learning.algorithms.records import Device, Sizes
from edgesim.learning.algorithms.safa import Safa
from edgesim.streams import Streams


def make(devices, lag):
    return Safa.Server(Safa.Options(lag_tolerance=lag), Sizes(32.0, 1, devices), Streams(0))


def uploads(algorithm, state, ledger, round, sizes, picked, undrafted=None, failed=()):
    """Arrivals of devices that upload models, by device, in a round in which those that ``failed`` began, too."""
    models = picked | (undrafted or {})
    ids = np.array(list(models), dtype=np.int64)
    starts = [
        algorithm.given(state, Device(device, int(sizes[device]), round, np.asarray(sizes), 1), ledger)["start"]
        for device in models
    ]
    changes = [torch.as_tensor(model) - start for model, start in zip(models.values(), starts, strict=True)]
    return arrive(
        torch.stack(changes) if changes else state.weights.new_empty((0, len(state.weights))),
        starts,
        ids,
        np.asarray(sizes)[ids],
        sizes,
        round=round,
        began_in=np.full_like(ids, round),
        picked=np.arange(len(ids)) < len(picked),
        began=np.array([*models, *failed], dtype=np.int64),
    )


def merge(algorithm, state, ledger, arrived):
    """The state after a round, of which the ledger takes note."""
    new = algorithm.merge(state, arrived, algorithm.weigh(arrived), ledger)
    note(algorithm, ledger, arrived)
    return new


def note(algorithm, ledger, arrived):
    algorithm.note(ledger, replace(arrived, alpha=np.ones(len(arrived.ids))))


def models(**values):
    return {int(device[1:]): torch.tensor([value]) for device, value in values.items()}


def test_everybody_begins_up_to_date_and_who_finishes_stays_so():
    algorithm, sizes = make(3, 5), np.ones(3, dtype=np.int64)
    versions, state = algorithm.ledger(7, None), algorithm.start(torch.zeros(1), None)
    assert versions.behind(7).tolist() == [0, 0, 0]
    note(algorithm, versions, uploads(algorithm, state, versions, 7, sizes, models(d1=1.0)))
    assert (versions.behind(8) == 0).tolist() == [False, True, False]


def test_equals_have_equal_shares_of_the_cache():
    algorithm = Safa.Server(Safa.Options(weights="equal"), Sizes(32.0, 1, 4), Streams(0))
    ledger, state = algorithm.ledger(1, None), algorithm.start(torch.zeros(1), None)
    arrived = uploads(algorithm, state, ledger, 1, [3, 1, 2, 4], models(d0=4.0, d3=8.0))
    assert algorithm.weigh(arrived).tolist() == [0.25, 0.25]
    assert merge(algorithm, state, ledger, arrived).weights.tolist() == [3.0]


SIZES_1_AND_3 = (Quadratic(1.0, samples=1), Quadratic(3.0, samples=3))


def test_three_rounds_on_quadratics_by_hand():
    """Two steps by 1/2 go 3/4 of the way to b = 1 and b = 3, which count 1/4 and 3/4 of the cache.

    Both begin at 0, and only device 0 is picked: it brings 3/4, device 1's 9/4 waits. Alone, device 0 goes on from
    w_1 = 3/16 to 3/16 + 3/4 * 13/16 = 51/64; now the 9/4 counts. Device 1, a round behind, goes on with it to
    9/4 + 3/4 * 3/4 = 45/16.
    """
    play = Play(Safa, SIZES_1_AND_3, {"lag_tolerance": 1}, lr=0.5)
    assert play.round(0, unpicked=[1]) == (3 / 4 + 3 * 0) / 4
    assert play.round(0) == (51 / 64 + 3 * 9 / 4) / 4
    assert play.round(1) == (51 / 64 + 3 * 45 / 16) / 4


def test_a_round_in_which_nothing_arrives_makes_a_model_of_what_waited():
    """And one beyond the tolerance: device 1's entry becomes the model of the round before, from which it begins."""
    play = Play(Safa, SIZES_1_AND_3, {"lag_tolerance": 0}, lr=0.5)
    first = play.round(0, unpicked=[1])
    second = play.round(failed=[0, 1])
    assert (first, second) == (3 / 16, (3 / 4 + 3 * 9 / 4) / 4)
    assert play.round(1) == (second + 3 * (second + 3 / 4 * (3 - second))) / 4


@st.composite
def histories(draw):
    """Rounds of (picked, undrafted, failed) among six devices."""
    rounds = []
    for _ in range(draw(st.integers(1, 12))):
        fates = draw(st.lists(st.sampled_from(["picked", "undrafted", "failed", "away"]), min_size=6, max_size=6))
        rounds.append([[d for d in range(6) if fates[d] == fate] for fate in ("picked", "undrafted", "failed")])
    return rounds


@given(histories(), st.integers(0, 3))
def test_the_sparse_cache_is_one_with_a_row_for_every_device(rounds, lag):
    """The rule word by word, on a whole table of scalar models; each trained model is a number of its own."""
    shares = np.array([0.1, 0.1, 0.2, 0.2, 0.15, 0.25])
    table, local, versions, model = [5.0] * 6, [5.0] * 6, [0] * 6, 5.0
    sizes, algorithm = np.array([10, 10, 20, 20, 15, 25]), make(6, lag)
    ledger, state = algorithm.ledger(1, None), algorithm.start(torch.tensor([5.0], dtype=torch.float64), None)
    for t, (picked, undrafted, failed) in enumerate(rounds, start=1):
        deprecated = [d for d in range(6) if t - 1 - versions[d] > lag]
        latest = [d for d in range(6) if versions[d] == t - 1]
        present = picked + undrafted + failed
        fetched = [d for d in present if d in latest + deprecated]
        for d in fetched:
            local[d] = model
        for d in deprecated:
            table[d] = local[d] = model
            versions[d] = t - 1
        for d in picked:
            table[d] = 100.0 * t + d
        model = sum(share * entry for share, entry in zip(shares, table, strict=True))
        for d in undrafted:
            table[d] = 100.0 * t + d
        for d in picked + undrafted:
            local[d] = table[d]
            versions[d] = t
        assert np.flatnonzero(ledger.deprecated(t)).tolist() == deprecated
        came = [{d: torch.tensor([100.0 * t + d], dtype=torch.float64) for d in ids} for ids in (picked, undrafted)]
        arrived = uploads(algorithm, state, ledger, t, sizes, *came, failed=failed)
        state = merge(algorithm, state, ledger, arrived)
        assert abs(float(state.weights) - model) < 1e-9
    following = len(rounds) + 1
    for d in np.flatnonzero(ledger.tolerable(following)).tolist():
        given = algorithm.given(state, Device(d, int(sizes[d]), following, np.asarray(sizes), 1), ledger)
        assert given["start"].tolist() == pytest.approx([local[d]])
