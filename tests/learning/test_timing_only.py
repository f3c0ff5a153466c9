import numpy as np
import pytest

from edgesim.base.errors import EdgesimError
from edgesim.learning.federation import make_federation
from edgesim.learning.timing_only import TimingOnlyLearner
from edgesim.streams import Streams


@pytest.mark.parametrize("quantity", ["losses", "update_norms", "sent_norms", "gradient_deviations"])
def test_what_needs_training_is_refused(make_config, quantity):
    config, streams = make_config(learning={"training": "none"}), Streams(0)
    this = TimingOnlyLearner(config, make_federation(config, streams), streams).open_round(1, 1)
    with pytest.raises(EdgesimError, match="use 'real'"):
        getattr(this, quantity)(np.array([0]))
    with pytest.raises(EdgesimError, match="uses gradients"):
        this.class_gradient_distances(np.array([0]), "all")
