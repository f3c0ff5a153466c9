"""Numbers that programs which share nothing with this one worked out in float64, line by line, for every algorithm.

Of two quadratics (`quadratics.TWO`): eta .1, two steps a round, model after rounds 1, 2, 3; under partial participation
device 1 is alone in round 2. `tests/learning/test_worked_numbers.py` has the numbers of the net of eight weights.
"""

import pytest
from quadratics import TWO, Play
from worked_numbers import KINDS, KPFL

from edgesim.learning.algorithms import ALGORITHMS

pytestmark = pytest.mark.whole_family

QUADRATICS = """
FedAvg              -.415, -.68475, -.8600875                           -.415, -1.22335, -1.2101775
FedProx mu 1        -.39, -.6513, -.826371                              -.39, -1.1628, -1.169076
SCAFFOLD option I   -.415, -.71975, -.9136875                           -.415, -.62835, -.8522025
SCAFFOLD option II  -.415, -.715, -.909705                              -.415, -.7091, -.9031425
FedDyn alpha 1      -.78, -1.314, -1.55028                              -.78, -1.818, -1.8138
MIFA                -.415, -.68475, -.8600875                           -.415, -.724175, -.88571375
FedAvgM beta .9     -.415, -1.05825, -1.6817875                         -.415, -1.59685, -2.5166175
FedAdam lr .1       -.0976196656, -.2295390529, -.3827563834            -.0976196656, -.2238523097, -.3628960536
FedYogi lr .1       -.0976193890, -.2291861839, -.3815474440            -.0976193890, -.2237551884, -.3620775821
"""

LATE = """
FedAvg              .19, -.24305
SCAFFOLD option II  .19, -.288175
FedDyn alpha 1      .27, -.501
MIFA                .095, -.329025
"""
"""Both devices start at 0: device 0 arrives in round 1, and its next update with device 1's first one in round 2."""


def lines(table):
    parts = (line.partition("  ") for line in table.strip().splitlines())
    return [
        pytest.param(name, [float(number) for number in numbers.replace(",", " ").split()], id=name)
        for name, _, numbers in parts
    ]


def play(name, devices, **settings):
    algorithm, options = KINDS[name]
    return Play(ALGORITHMS[algorithm], devices, options, kpfl=KPFL.get(name), **settings)


@pytest.mark.parametrize(("name", "numbers"), lines(QUADRATICS))
def test_quadratics_under_full_and_under_partial_participation(name, numbers):
    full, partial = play(name, TWO), play(name, TWO)
    found = [full.round(0, 1) for _ in range(3)] + [partial.round(*ids) for ids in ((0, 1), (1,), (0, 1))]
    assert found == pytest.approx(numbers, abs=1e-10)


@pytest.mark.parametrize(("name", "numbers"), lines(LATE))
def test_quadratics_with_an_update_that_arrives_one_round_late(name, numbers):
    late = play(name, TWO)
    in_time, behind = late.begin(0, 1)
    assert [late.merge([in_time]), late.merge([*late.begin(0), behind])] == pytest.approx(numbers, abs=1e-10)


def test_a_late_update_that_counts_less_in_fedavg():
    late = play("FedAvg", TWO)
    in_time, behind = late.begin(0, 1)
    late.merge([in_time])
    assert late.merge([*late.begin(0), behind], age_weight=2**-0.5) == pytest.approx(-0.1423453009, abs=1e-10)
