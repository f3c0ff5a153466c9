import subprocess
import sys

import numpy as np
import pytest

from edgesim.errors import EdgesimError
from edgesim.learning.federation import make_federation
from edgesim.learning.learner import make_learner
from edgesim.learning.timing_only import TimingOnlyLearner
from edgesim.streams import Streams

_SCRIPT = """
import sys
import numpy as np
import edgesim.learning.datasets, edgesim.learning.batches, edgesim.learning.payload
from edgesim.config_file import parse
from edgesim.learning.federation import make_federation
from edgesim.learning.timing_only import TimingOnlyLearner
from edgesim.streams import Streams
config = parse({"learning": {"training": "none"}}, "test").resolved()
streams = Streams(0)
learner = TimingOnlyLearner(config, make_federation(config, streams), streams)
learner.prepare(print)
this = learner.open_round(1, 1)
this.start(np.arange(30))
this.due(3)
this.global_shares("batch")
assert this.merge(np.array([3])).weight.tolist() == [1.0]
assert learner.model_bits == 77120
loaded = [name for name in sys.modules if name.split(".")[0] in ("torch", "torchvision")]
sys.exit(f"imported {loaded[:3]}" if loaded else 0)
"""


def test_a_timing_only_round_imports_no_torch():
    done = subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("weights", ["samples", "equal"])
def test_a_timing_only_round_knows_the_counts_and_weights_of_the_training_round(weights, make_config):
    data = {"partition": "quantity", "samples_per_device": 20}
    config, streams = make_config(data=data, learning={"pretrain": False, "weights": weights}), Streams(0)
    federation = make_federation(config, streams)
    ids = np.array([4, 1, 17])
    timing = TimingOnlyLearner(config, federation, streams).open_round(3, 1)
    training = make_learner(config, federation, streams).open_round(3, 1)
    for source in ("batch", "dataset"):
        np.testing.assert_array_equal(timing.class_counts(ids, source), training.class_counts(ids, source))
        np.testing.assert_array_equal(timing.global_shares(source), training.global_shares(source))
    training.start(ids)
    for device in ids:
        training.due(int(device))
    real, merged = training.merge(ids), timing.merge(ids)
    np.testing.assert_array_equal(merged.weight, real.weight)
    assert (len(set(merged.weight)) == 1) == (weights == "equal")
    assert (merged.loss, merged.accuracy, merged.update_norm) == (None, None, None)
    assert timing.jobs_trained == 0


@pytest.mark.parametrize("quantity", ["losses", "update_norms", "gradient_deviations"])
def test_what_needs_training_is_refused(make_config, quantity):
    config, streams = make_config(learning={"training": "none"}), Streams(0)
    this = TimingOnlyLearner(config, make_federation(config, streams), streams).open_round(1, 1)
    with pytest.raises(EdgesimError, match="use 'real'"):
        getattr(this, quantity)(np.array([0]))
    with pytest.raises(EdgesimError, match="looks at gradients"):
        this.class_gradient_distances(np.array([0]), "all")
