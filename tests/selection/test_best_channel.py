import numpy as np
from candidates import PlainKnowledge, schedule, view_of

from edgesim.selection.best_channel import BestChannel
from edgesim.selection.view import Options


def test_the_strongest_channels_come_first_and_what_does_not_fit_is_skipped():
    gain = np.array([2e-11, 8e-11, 4e-11, 4e-11 * (1 + 2**-51), 9e-11])
    view = view_of(PlainKnowledge(np.ones((5, 2), dtype=int)), gain=gain, need_hz=[3.0, 5.0, 4.0, 4.0, 2.0])
    offered, taken = schedule(BestChannel(Options(), 5, 2).choose(view), view, band_hz=10.0)
    assert offered == [4, 1, 2, 3, 0]
    assert taken == [4, 1, 0]
