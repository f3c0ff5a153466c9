import numpy as np

from edgesim.plots.drift import draw_drift


def test_every_cell_is_the_share_of_a_class_at_an_instant():
    shares = np.array([[0.1, 0.9], [0.5, 0.5], [1.0, 0.0]])
    figure = draw_drift(np.array([0.0, 2.0, 4.0]), shares, True, "a title")
    axes, bar = figure.axes
    (image,) = axes.images
    np.testing.assert_array_equal(image.get_array(), shares.T)
    assert (image.norm.vmin, image.norm.vmax) == (0.0, 1.0)
    # Columns are 2 s wide, around their instants; classes have whole numbers.
    assert tuple(image.get_extent()) == (-1.0, 5.0, -0.5, 1.5)
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("simulated time (s)", "class")
    assert (axes.get_title(loc="left"), bar.get_ylabel()) == ("a title", "share of samples")
    # A single round has a column of its own.
    (image,) = draw_drift(np.array([1.0]), np.array([[0.2, 0.8]]), False, "").axes[0].images
    assert tuple(image.get_extent()) == (0.5, 1.5, -0.5, 1.5)
