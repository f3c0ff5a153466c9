"""Configs of edgesim 0.2 and before, in today's keys."""

import copy
from collections.abc import Mapping
from typing import Any

RENAMED = {
    "learning.proximal": "algorithm.mu, with algorithm.name = 'fedprox'",
    "learning.weights": "algorithm.weights",
    "learning.aggregation": "algorithm.name, or algorithm.server beside another algorithm's local half",
    "learning.lag_tolerance": "algorithm.lag_tolerance, with algorithm.name = 'safa'",
    "round.buffer": "round.protocol_options.buffer",
    "round.server_lr": "round.protocol_options.server_lr",
    "round.mixing": "round.protocol_options.mixing",
}
"""Keys that are no longer known, and the keys that have replaced them."""


def migrated(values: Mapping[str, Any]) -> dict[str, Any]:
    """The nested mapping of a config with every old key moved; a config without old keys is returned as it is."""
    new = copy.deepcopy(dict(values))
    # What is no table, or no algorithm's name, is refused when the new config is validated.
    learning, round_ = (new[key] if isinstance(new.get(key), dict) else {} for key in ("learning", "round"))
    algorithm: dict[str, Any] = {}
    if proximal := learning.pop("proximal", 0):
        algorithm |= {"name": "fedprox", "mu": proximal}
    if (aggregation := learning.pop("aggregation", "average")) != "average":
        algorithm["server" if algorithm else "name"] = aggregation
    for key in ("weights", "lag_tolerance"):
        if key in learning:
            algorithm[key] = learning.pop(key)
    options = {key: round_.pop(key) for key in ("buffer", "server_lr", "mixing") if key in round_}
    if options:
        round_["protocol_options"] = _beside(options, round_.get("protocol_options", {}))
    if algorithm:
        new["algorithm"] = _beside(algorithm, new.get("algorithm", {}))
    return {section: table for section, table in new.items() if table != {} or values.get(section) == {}}


def _beside(moved: dict[str, Any], there: object) -> object:
    """The values moved into a table that holds some already; what stands there instead of a table is left to refuse."""
    return moved | there if isinstance(there, dict) else there
