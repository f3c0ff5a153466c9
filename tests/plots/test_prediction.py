import numpy as np
import pytest

from edgesim.plots.prediction import draw_costs


@pytest.mark.parametrize("spread", [1.2, 3.0, 300.0])
def test_the_axes_of_costs_have_labels_at_powers_of_ten_only(spread):
    costs = {"poisson": 2e-8 * np.array([1.0, spread]), "arima": 2.5e-8 * np.array([1.0, spread])}
    figure = draw_costs(costs, costs, ["random"])
    figure.canvas.draw()
    for axes in figure.axes:
        low, high = np.log10(axes.get_xlim())
        assert (low, high) == pytest.approx((round(low), round(high)))
        labelled = [text.get_text() for text in axes.get_xticklabels(which="both") if text.get_text()]
        assert len(labelled) >= 2
        assert all(text.startswith("$\\mathdefault{10^{") for text in labelled)
        assert axes.xaxis.get_gridlines()[0].get_visible()
    assert "random: 0" in figure.axes[1].get_xlabel()
