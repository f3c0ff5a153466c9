"""Configs of edgesim 0.2 and before, in today's keys."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from edgesim.base.errors import EdgesimError

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
    """The nested mapping of a config with every old key moved; a config without old keys is returned as it is.

    Raises `EdgesimError` for an unknown aggregation, and where an old key and today's key contradict each other.
    """
    new = copy.deepcopy(dict(values))
    # What is no table, or no value of its key, is refused when the new config is validated.
    learning, round_ = (new[key] if isinstance(new.get(key), dict) else {} for key in ("learning", "round"))
    algorithm: dict[str, Any] = {}
    proximal = learning.pop("proximal", 0)
    if type(proximal) not in (int, float) or proximal != 0:
        algorithm |= {"name": "fedprox", "mu": proximal}
    aggregation = learning.pop("aggregation", "average")
    if aggregation not in ("average", "safa"):
        raise EdgesimError(f"learning.aggregation: expected 'average' or 'safa' (got {aggregation!r})")
    if aggregation == "safa":
        algorithm["server" if algorithm else "name"] = "safa"
    algorithm |= {key: learning.pop(key) for key in ("weights", "lag_tolerance") if key in learning}
    options = {key: round_.pop(key) for key in ("buffer", "server_lr", "mixing") if key in round_}
    if options:
        round_["protocol_options"] = _beside(options, round_.get("protocol_options", {}), "round.protocol_options")
    if algorithm:
        new["algorithm"] = _beside(algorithm, new.get("algorithm", {}), "algorithm")
    return {section: table for section, table in new.items() if table != {} or values.get(section) == {}}


def in_old_keys(values: Mapping[str, Any], fields: Sequence[str]) -> str:
    """What to say before an error about ``fields`` of a migrated config: the old key that gave one of them, if any did.

    ``values`` are those of the old config.
    """
    sections = {name: table for name, table in values.items() if isinstance(table, dict)}
    given = [f"{name}.{key}" for name, table in sections.items() for key in table]
    return "".join(f"{old}: " for old, new in RENAMED.items() if old in given and new.split(",")[0] in fields)


def _beside(moved: dict[str, Any], there: object, section: str) -> object:
    """The values moved into a table that holds some already; what stands there instead of a table is left to refuse."""
    if not isinstance(there, dict):
        return there
    for key in moved.keys() & there.keys():
        if there[key] != moved[key]:
            raise EdgesimError(
                f"{section}.{key} = {there[key]!r} contradicts {moved[key]!r} of an old key; leave one of them out"
            )
    return moved | there
