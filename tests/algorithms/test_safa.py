"""SAFA on quadratics by hand; `tests/engine/test_safa.py` has its rules, as a plain loop beside whole runs."""

from quadratics import Play, Quadratic

from edgesim.learning.algorithms.safa import Safa

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
