import numpy as np
import pytest
from begun import begun

from edgesim.base.errors import EdgesimError
from edgesim.learning.federation import make_federation
from edgesim.learning.jobs import Arrived
from edgesim.learning.learner import TorchLearner
from edgesim.learning.timing_only import TimingOnlyLearner
from edgesim.streams import Streams


@pytest.mark.parametrize("weights", ["samples", "equal"])
def test_a_timing_only_round_knows_the_counts_and_weights_of_the_training_round(weights, make_config):
    data = {"partition": "quantity", "samples_per_device": 20}
    sections = {"data": data, "learning": {"pretrain": False}, "algorithm": {"weights": weights}}
    config, streams = make_config(**sections), Streams(0)
    federation = make_federation(config, streams)
    ids = np.array([4, 1, 17])
    learners = TimingOnlyLearner(config, federation, streams), TorchLearner(config, federation, streams)
    timing, training = (learner.open_round(3, 1) for learner in learners)
    for source in ("batch", "dataset"):
        np.testing.assert_array_equal(timing.class_counts(ids, source), training.class_counts(ids, source))
        np.testing.assert_array_equal(timing.global_shares(source), training.global_shares(source))
    merges = []
    for learner, this in zip(learners, (timing, training), strict=True):
        merges.append(learner.merge(map(Arrived, begun(this, ids).values()), ids))
    merged, real = merges
    np.testing.assert_array_equal(merged.weight, real.weight)
    assert (len(set(merged.weight)) == 1) == (weights == "equal")
    assert (merged.loss, merged.accuracy, merged.update_norm) == (None, None, None)
    assert learners[0].jobs_trained == 0


@pytest.mark.parametrize("quantity", ["losses", "update_norms", "sent_norms", "gradient_deviations"])
def test_what_needs_training_is_refused(make_config, quantity):
    config, streams = make_config(learning={"training": "none"}), Streams(0)
    this = TimingOnlyLearner(config, make_federation(config, streams), streams).open_round(1, 1)
    with pytest.raises(EdgesimError, match="use 'real'"):
        getattr(this, quantity)(np.array([0]))
    with pytest.raises(EdgesimError, match="uses gradients"):
        this.class_gradient_distances(np.array([0]), "all")
