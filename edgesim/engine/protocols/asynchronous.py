"""FedAsync: Xie, Koyejo, Gupta, "Asynchronous Federated Optimization", 2019."""

from edgesim.engine.protocols.protocol import Protocol
from edgesim.learning.algorithms import merge_rules


class Asynchronous(Protocol):
    """Makes a model of every update of devices that are always at work."""

    Options = merge_rules.FedAsyncOptions
    merge_rule = merge_rules.FedAsync
    has_rounds = False
    stale_weight = "polynomial"
    none_made = "model was made, since no update arrived"
