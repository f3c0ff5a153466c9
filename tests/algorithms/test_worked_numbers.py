"""Numbers that programs which share nothing with this one worked out in float64, line by line, for every algorithm.

The first two tables are of two quadratics (`quadratics.TWO`): eta .1, two steps a round, model after rounds 1, 2, 3;
under partial participation device 1 is alone in round 2. The third is of the net of `eight_weights`, device 0 away in
round 2 and device 2 new in it: check sums after rounds 1, 2, 3, then the first six weights after round 3 (the last two
are (.4, .2) minus the two before in every line), and the distance from FedAvg after round 3.
"""

import pytest
import torch
from eight_weights import ROUNDS, START, THREE, check_sum
from quadratics import TWO, Play

from edgesim.algorithms import ALGORITHMS

KINDS = {
    "FedAvg": ("fedavg", {}),
    "FedAvg, uniform weights": ("fedavg", {"weights": "equal"}),
    "FedProx mu 1": ("fedprox", {"mu": 1.0}),
    "FedProx mu .5": ("fedprox", {"mu": 0.5}),
    "SCAFFOLD option I": ("scaffold", {"option": "I"}),
    "SCAFFOLD option II": ("scaffold", {"option": "II"}),
    "FedDyn alpha 1": ("feddyn", {"alpha": 1.0, "adaptive": False}),
    "FedDyn alpha .1": ("feddyn", {"alpha": 0.1, "adaptive": False}),
    "FedDyn alpha .1, adaptive": ("feddyn", {"alpha": 0.1, "adaptive": True}),
    "MOON mu 1, T .5": ("moon", {"mu": 1.0, "T": 0.5}),
    "MIFA": ("mifa", {}),
    "MIFA, lr .5, .25, .125": ("mifa", {}),
    "MIFA, waiting": ("mifa", {"wait": True}),
    "FedAvgM beta .9": ("fedavgm", {"beta": 0.9}),
    "FedAdam lr .1": ("fedadam", {"lr": 0.1}),
    "FedYogi lr .1": ("fedyogi", {"lr": 0.1}),
}

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

EIGHT_WEIGHTS = """
FedAvg                   5.5388701066 6.0106982214 5.7176515693  .7015496410 -.4842546460 .2462592827 .4779178597 .7292711923 -.1963521591  .0e+00
FedAvg, uniform weights  5.6982402022 6.0328530165 5.8639312688  .6847909187 -.5370059238 .2240134577 .5533746355 .7735241348 -.2573307761  1.4e-01
FedProx mu .5            5.5341020247 5.9437494701 5.6938426317  .6772278776 -.4660592418 .2397349321 .4684026471 .7141299322 -.1920888587  3.9e-02
SCAFFOLD option I        5.6982402022 5.8467054444 5.9811995047  .6881674477 -.5165026218 .2822164918 .5069979134 .7250723862 -.2507704721  9.7e-02
SCAFFOLD option II       5.6982402022 5.8407991046 5.9756662614  .6890040307 -.5186924610 .2818484930 .5068913223 .7246543425 -.2501225347  9.6e-02
FedDyn alpha .1          5.8222837334 6.4886177440 6.6024744214  .8651062062 -.7183790583 .3073106295 .7004895915 .8917576632 -.4168757017  5.3e-01
FedDyn alpha .1, adaptive  5.8175869712 6.4743456591 6.5720378790  .8596985851 -.6972874261 .3140736199 .6761893680 .8707807914 -.4007486987  4.9e-01
MOON mu 1, T .5          5.5388701066 5.7774745452 5.3242475060  .5763762125 -.5329897212 -.0424331828 .6375457932 .6987146064 -.1941981621  3.6e-01
MIFA                     5.6321601348 5.7505471271 5.8722345343  .6531472130 -.4974730869 .2683312599 .4845969094 .7010540453 -.2363800842  8.9e-02
MIFA, lr .5, .25, .125   5.6321601348 5.6902851726 5.7181136478  .5725872540 -.3964662782 .2561553963 .4250533685 .6273822122 -.1622718558  2.2e-01
MIFA, waiting            5.5000000000 5.5907224382 5.6912494215  .6223107013 -.4788791890 .2291451338 .4812864559 .7043811689 -.2114391055  9.1e-02
FedAvgM beta .9          5.5388701066 6.0456813174 6.1933250504  .8278280382 -.6309972115 .3814552364 .4903331257 .7404873842 -.3013839957  2.8e-01
FedAdam lr .1            5.6786491211 6.2986324859 6.6020694168  .8030775358 -.6374850203 .3882990901 .5543881196 .7037470709 -.3495031575  3.3e-01
FedYogi lr .1            5.6783665640 6.2974526604 6.6010170434  .8024139816 -.6366206180 .3881719719 .5541595724 .7037089880 -.3490540342  3.3e-01
"""  # noqa: E501


def lines(table):
    parts = (line.partition("  ") for line in table.strip().splitlines())
    return [
        pytest.param(name, [float(number) for number in numbers.replace(",", " ").split()], id=name)
        for name, _, numbers in parts
    ]


def play(name, devices, **settings):
    algorithm, options = KINDS[name]
    return Play(ALGORITHMS[algorithm], devices, options, **settings)


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


@pytest.mark.parametrize(("name", "numbers"), lines(EIGHT_WEIGHTS))
def test_a_net_of_eight_weights_on_devices_that_come_and_go(name, numbers):
    def lr(round):
        return 0.5**round if name.endswith(".125") else 0.5

    fedavg, found, sums = play("FedAvg", THREE, start=START, lr=0.5), play(name, THREE, start=START, lr=lr), []
    for ids in ROUNDS:
        fedavg.round(*ids)
        found.round(*ids)
        sums.append(check_sum(found.state.weights))
    weights = found.state.weights
    assert sums + weights[:6].tolist() == pytest.approx(numbers[:9], abs=1e-10)
    assert weights[6:].tolist() == pytest.approx([0.4 - numbers[7], 0.2 - numbers[8]], abs=1e-10)
    distance = float(torch.linalg.vector_norm(weights - fedavg.state.weights))
    assert f"{distance:.1e}" == f"{numbers[9]:.1e}"
