import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from edgesim.analysis.convergence import growth, roughness, to_own_peak
from edgesim.errors import EdgesimError


def table_of(accuracy):
    rounds = 5 * np.arange(1, len(accuracy) + 1)
    return pd.DataFrame({"round": rounds, "t_s": 2.0 * rounds, "accuracy": accuracy})


def test_the_first_crossing_of_95_percent_of_the_own_peak_counts():
    """Of .8 that is .76: the third test, although the fourth is below it."""
    found = to_own_peak(table_of([0.3, 0.7, 0.77, 0.6, 0.8, 0.75]))
    assert found == (15, 30, True)
    assert to_own_peak(table_of([0.3, 0.7, 0.77, 0.6, 0.8]), share=1.0).round == 25
    assert to_own_peak(table_of([0.4])).round == 5


def test_roughness_is_the_mean_size_of_second_differences():
    assert roughness(np.array([2.3, 1.9, 1.95, 1.6, 1.5, 1.55])) == pytest.approx(0.3125, abs=1e-12)
    assert roughness(np.linspace(3, 1, 9)) == pytest.approx(0, abs=1e-12)
    assert np.isnan(roughness(np.array([1.0, 2.0])))


def test_growth_is_the_slope_of_logarithms_with_its_interval():
    devices = np.array([10, 50, 100, 200, 500, 500.0])
    seconds = 3 * devices**1.28 * np.array([1.05, 0.93, 1.1, 0.97, 1.02, 0.99])
    found = growth(devices, seconds)
    fit = sm.OLS(np.log(seconds), sm.add_constant(np.log(devices))).fit()
    assert found == pytest.approx((fit.params[1], *fit.conf_int(0.05)[1]), rel=1e-10)
    assert growth(devices, 7 * devices**1.12) == pytest.approx((1.12, 1.12, 1.12), abs=1e-6)


def test_two_numbers_of_devices_have_an_exponent_without_an_interval():
    found = growth(np.array([10.0, 1000.0]), np.array([2.0, 20.0]))
    assert found.exponent == pytest.approx(0.5)
    assert np.isnan([found.low, found.high]).all()


@pytest.mark.parametrize(
    ("devices", "seconds", "message"),
    [
        ([10.0, 10.0], [1.0, 2.0], "two numbers of devices or more"),
        ([10.0, 20.0], [1.0, 0.0], "above 0"),
    ],
)
def test_growth_of_what_has_none_is_refused(devices, seconds, message):
    with pytest.raises(EdgesimError, match=message):
        growth(np.array(devices), np.array(seconds))
