import numpy as np
import pytest

from edgesim.base.errors import EdgesimError
from edgesim.learning.federation import make_federation
from edgesim.learning.learner import TorchLearner
from edgesim.learning.timing_only import TimingOnlyLearner
from edgesim.streams import Streams


def test_a_timing_only_round_knows_the_counts_of_the_training_round(make_config):
    config, streams, ids = make_config(learning={"pretrain": False}), Streams(0), np.array([4, 1, 17])
    federation = make_federation(config, streams)
    timing, training = (
        kind(config, federation, streams).open_round(3, 1) for kind in (TimingOnlyLearner, TorchLearner)
    )
    np.testing.assert_array_equal(timing.previous_class_counts(ids), training.previous_class_counts(ids))
    for source in ("batch", "dataset"):
        np.testing.assert_array_equal(timing.class_counts(ids, source), training.class_counts(ids, source))
        np.testing.assert_array_equal(timing.global_shares(source), training.global_shares(source))


@pytest.mark.parametrize("quantity", ["losses", "update_norms", "sent_norms", "gradient_deviations"])
def test_what_needs_training_is_refused(make_config, quantity):
    config, streams = make_config(learning={"training": "none"}), Streams(0)
    this = TimingOnlyLearner(config, make_federation(config, streams), streams).open_round(1, 1)
    with pytest.raises(EdgesimError, match="use 'real'"):
        getattr(this, quantity)(np.array([0]))
    with pytest.raises(EdgesimError, match="uses gradients"):
        this.class_gradient_distances(np.array([0]), "all")
