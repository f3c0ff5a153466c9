"""What devices learn: data, partition, models, local training, evaluation.

Importing this package, or `datasets`, `federation`, `batches`, `payload` and `timing_only`, imports no torch.
"""

from edgesim.config import RunConfig
from edgesim.learning.federation import Federation, make_federation
from edgesim.learning.interface import Evaluation, Learner, Merged, TrainingRound
from edgesim.streams import Streams

__all__ = [
    "Evaluation",
    "Federation",
    "Learner",
    "Merged",
    "TrainingRound",
    "make_federation",
    "make_learner",
]


def make_learner(config: RunConfig, federation: Federation, streams: Streams) -> Learner:
    """The learner that ``learning.training`` asks for; ``"none"`` imports no torch."""
    config = config.resolved()
    if config.learning.training == "none":
        from edgesim.learning.timing_only import TimingOnlyLearner

        return TimingOnlyLearner(config, federation, streams)
    from edgesim.learning.learner import TorchLearner

    return TorchLearner(config, federation, streams)
