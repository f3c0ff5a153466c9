"""Checks that a config offers what the algorithm, laws and policy that it names need."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Self

from typing_extensions import override

from edgesim.base.needs import GIVEN, NOTHING, Condition, Except, Rule, refuse
from edgesim.base.registry import look_up
from edgesim.config import RoundConfig, RunConfig, StalenessConfig
from edgesim.engine.protocols import PROTOCOLS
from edgesim.engine.protocols.protocol import Protocol
from edgesim.joining import LAWS as JOINING
from edgesim.learning import algorithms
from edgesim.learning.algorithms.algorithm import Algorithm
from edgesim.learning.algorithms.kpfl import Kpfl
from edgesim.learning.drift import LAWS as DRIFT
from edgesim.selection.view import Selector
from edgesim.traces.models import MODELS as PRESENCE


def _at_least_two(sizes: Any) -> bool:
    return bool(min(sizes if isinstance(sizes, list) else [sizes]) >= 2)


class _Protocols(tuple[object, ...]):
    """Condition of ``round.protocol``: those that offer something. Messages name edgesim's own alone."""

    offer: Callable[[type[Protocol]], bool]

    def __new__(cls, offer: Callable[[type[Protocol]], bool]) -> Self:
        """Of edgesim's own protocols, and of any other that a config names, those for which ``offer`` is true."""
        those = super().__new__(cls, (name for name, kind in PROTOCOLS.items() if offer(kind)))
        those.offer = offer
        return those

    @override
    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.offer(PROTOCOLS[name])


_TRAINING = Rule({}, {"learning.training": "real"})
_ROUNDS = {"round.protocol": _Protocols(lambda kind: kind.has_rounds)}
_NO_ROUNDS = {"round.protocol": _Protocols(lambda kind: not kind.has_rounds)}
_JOINT = {"round.protocol": _Protocols(lambda kind: not kind.merge_rule.one_by_one)}
_LATE = {"round.late": "keep"}
_OF_ROUNDS = (
    "allocator", "close", "computes", "delay_knowledge", "late", "leftover", "min_candidates", "moving_deadline",
    "outage", "over_commitment",
)  # fmt: skip

_BY_PROTOCOL = (
    Rule({"topology.aggregation": "hierarchical"}, _ROUNDS),
    Rule({"merging.rule": "stagnation"}, _ROUNDS, "one server skips rounds"),
    Rule({"privacy.mechanism": "central"}, _JOINT, "no mean is formed of one update; use 'local'"),
    Rule({"staleness.weight": Except([None, "constant"]), **_ROUNDS}, _LATE, "it is for updates that come late"),
    Rule({"staleness.limit": GIVEN, **_ROUNDS}, _LATE, "it is for updates that come late"),
    Rule(
        _NO_ROUNDS,
        {"round.admission": "count", **{f"round.{key}": RoundConfig.model_fields[key].default for key in _OF_ROUNDS}},
        "it has no rounds, but a count of devices that are always at work",
    ),
)
"""Which keys go with which protocols."""

FEATURES: dict[str, Rule] = {
    "rounds": Rule({}, _ROUNDS, "the others have none"),
    "joint merges": Rule({}, _JOINT, "the others mix one model at a time"),
    "punctual updates": Rule({}, {"round.late": "drop"}),
    "merges in all rounds": Rule({}, {"merging": None}),
    "data set": Rule({}, {"data.dataset": Except(["none"])}),
    "public images": Rule({"data.dataset": Except(["none"])}, {"data.public": ("carved", "other")}),
    "known downloads": Rule(
        {"learning.training": "none"}, {"round.download_s": 0, "topology.file": None}, "its bits depend on training"
    ),
    "class_counts": Rule({}, {"data.dataset": Except(["none"])}),
    "losses": _TRAINING,
    "update_norms": _TRAINING,
    "gradient_deviations": Rule(
        {}, {"learning.training": "real", "learning.batch_size": _at_least_two}, "which two samples have, or more"
    ),
    "class_gradients": _TRAINING,
    "training_losses": _TRAINING,
    "training_accuracies": _TRAINING,
    "loss_drops": _TRAINING,
}
"""Keys of a config that offer what `needs` and `looks_at` of algorithms, laws and policies name."""


def check(config: RunConfig) -> None:
    """Refuse a complete config that does not offer what its algorithm, laws and model need; raises `EdgesimError`."""
    refuse(config, _BY_PROTOCOL)
    refuse(config, _of("round.protocol", (), PROTOCOLS[config.round.protocol].rules))
    refuse(config, _whole(config, _of_algorithm(config)))
    refuse(config, _whole(config, _of("availability.model", (), PRESENCE[config.availability.model].rules)))
    refuse(config, _of("drift.law", (), DRIFT[config.drift.law].rules))
    if config.joining is not None:
        law = JOINING[config.joining.law]
        refuse(config, _whole(config, _of("joining.law", law.needs, law.rules)))


def _whole(config: RunConfig, rules: Iterable[Rule]) -> Iterator[Rule]:
    """Rules on keys alone: before each rule those of the features that it names."""
    offered = FEATURES | {"default staleness": _default_staleness(config)}
    for rule in rules:
        for name in rule.features:
            feature = offered[name]
            yield Rule({**rule.when, **feature.when}, feature.needs, rule.why or feature.why)
        yield rule


def _default_staleness(config: RunConfig) -> Rule:
    """The weights of stale updates that are no choice of the user's: the protocol's own, and none."""
    own = PROTOCOLS[config.round.protocol].stale_weight
    weights = tuple(dict.fromkeys(("constant", own)))
    return Rule({}, {"staleness.weight": weights, "staleness.a": (None, StalenessConfig().resolved(own).a)})


def check_policy(config: RunConfig, selector: Selector) -> None:
    """Refuse a policy that looks at what the run does not have; raises `EdgesimError`."""
    refuse(config, _of("selection.policy", selector.looks_at, (), "looks_at"))


def _of_algorithm(config: RunConfig) -> Iterator[Rule]:
    """Needs of both halves of an algorithm and of KPFL, and the settings that these exclude."""
    local, server = algorithms.halves(config.algorithm)
    of_server = "algorithm.name" if server is local else "algorithm.server"
    parts: dict[str, type[Algorithm]] = {"algorithm.name": local, of_server: server}
    if config.algorithm.kpfl is not None:
        parts["algorithm.kpfl"] = Kpfl
    for key, half in parts.items():
        yield from _of(key, half.needs | ({"known downloads"} if half.bits_from_training else set()), half.rules)
        if not half.at_edges:
            yield _without(key, {"topology.aggregation": "hierarchical"}, "edge servers merge weighted means alone")
        if half.upload_bits is not Algorithm.upload_bits:
            yield _without(key, {"privacy.mechanism": Except(["none"])}, "devices send other things than their update")
    if not server.model_is_mean:
        yield _without(of_server, {"algorithm.kpfl": GIVEN}, "its server does more with models than average them")
    if not server.averages:
        yield _without(of_server, {"privacy.mechanism": "central"}, "its server goes by more than the weighted mean")
    if algorithms.looks_at_start(local):
        yield _without("algorithm.name", {"merging.skip": "carry"}, "its devices train by the model they were sent")


def _without(key: str, when: Mapping[str, Condition], why: str) -> Rule:
    return Rule(when, {key: NOTHING}, why)


def _of(key: str, needs: Iterable[str], rules: Iterable[Rule], attribute: str = "needs") -> Iterator[Rule]:
    """Turn the needs and rules of the entry that ``key`` names into rules on the config."""
    for name in sorted(needs):
        rule = look_up(FEATURES, name, f"{key}.{attribute}")
        why = ", ".join((f"it needs {name}", rule.why)).removesuffix(", ")
        yield Rule({key: GIVEN, **rule.when}, rule.needs, why)
    for rule in rules:
        yield replace(rule, when={key: GIVEN, **rule.when})
