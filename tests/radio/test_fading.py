import numpy as np
from scipy import stats

from edgesim.radio.fading import power_factor
from edgesim.streams import Streams

IDS = np.arange(50_000)


def test_rayleigh_power_is_exponential_with_mean_one():
    factor = power_factor("rayleigh", Streams(1), IDS, 1)
    assert stats.kstest(factor, "expon").pvalue > 1e-4
    # The mean of n draws of Exp(1) has standard error 1 / sqrt(n).
    assert abs(factor.mean() - 1.0) < 4 / np.sqrt(len(IDS))


def test_each_upload_has_a_draw_of_its_own_that_hangs_on_device_and_round_alone():
    streams = Streams(4)
    everyone = power_factor("rayleigh", streams, np.arange(100), 5)
    some = np.array([42, 7, 99])
    assert power_factor("rayleigh", streams, some, 5).tolist() == everyone[some].tolist()
    assert not set(everyone.tolist()) & set(power_factor("rayleigh", streams, np.arange(100), 6).tolist())
    rounds = power_factor("rayleigh", streams, 3, np.arange(20_000))  # type: ignore[arg-type]
    assert abs(np.corrcoef(rounds[:-1], rounds[1:])[0, 1]) < 4 / np.sqrt(len(rounds))


def test_fading_and_shadowing_are_drawn_apart():
    streams = Streams(5)
    factor = power_factor("rayleigh", streams, IDS, 1)
    correlation = stats.spearmanr(factor, streams.normal("shadowing", IDS, 1)).statistic
    assert abs(correlation) < 4 / np.sqrt(len(IDS))
