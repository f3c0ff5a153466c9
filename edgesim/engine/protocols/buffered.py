"""FedBuff: Nguyen et al., "Federated Learning with Buffered Asynchronous Aggregation", 2022."""

from edgesim.engine.protocols.protocol import Protocol
from edgesim.learning.algorithms import merge_rules


class Buffered(Protocol):
    """Makes a model of every K updates of devices that are always at work."""

    Options = merge_rules.FedBuffOptions
    merge_rule = merge_rules.FedBuff
    has_rounds = False
    stale_weight = "polynomial"
    none_made = "model was made, since too few updates arrived"
