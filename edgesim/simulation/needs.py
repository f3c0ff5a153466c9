"""Checks that a config offers what the algorithm, laws and policy that it names need."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Self

from typing_extensions import override

from edgesim.base.errors import EdgesimError
from edgesim.base.needs import GIVEN, NOTHING, Condition, Except, Rule, refuse
from edgesim.base.registry import look_up
from edgesim.config import RoundConfig, RunConfig, StalenessConfig
from edgesim.engine.protocols import PROTOCOLS
from edgesim.engine.protocols.protocol import Protocol
from edgesim.joining import LAWS as JOINING
from edgesim.learning import algorithms
from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.algorithms.server_half import merges_models
from edgesim.learning.drift import LAWS as DRIFT
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


_LAST_MODEL = "frames from the last model"

_TRAINING = Rule({}, {"learning.training": "real"})
_ROUNDS = {"round.protocol": _Protocols(lambda kind: kind.has_rounds)}
_NO_ROUNDS = {"round.protocol": _Protocols(lambda kind: not kind.has_rounds)}
_JOINT = {"round.protocol": _Protocols(lambda kind: not kind.merge_rule.one_by_one)}
_LATE = {"round.late": "keep"}
_OF_ROUNDS = (
    "allocator", "close", "computes", "delay_knowledge", "late", "leftover", "min_candidates", "moving_deadline",
    "outage", "over_commitment",
)  # fmt: skip

_CODED = {"upload.codec": GIVEN}
_CODED_DOWN = {"download.codec": GIVEN}
_OF_32_BITS = {"round.payload_bits": lambda bits: bits == "model" or bits >= 32}
_OF_LEVELS = ("dadaquant", "share", "adaquant")
_BY_CODEC = (
    Rule({"upload.coding": "elias"}, {"upload.size": "fixed"}, "what an update takes depends on its values"),
    Rule({"upload.coding": "elias"}, {"upload.beside": "plain"}, "one vector is written by its values"),
    Rule({"upload.plan": GIVEN}, {"upload.coding": "elias"}),
    Rule({"download.codec": "qsgd"}, {"download.coding": "fixed"}, "bits by values are of uploads alone"),
    Rule(_CODED, _OF_32_BITS, "a codec needs a number of 32 bits"),
    Rule(_CODED_DOWN, _OF_32_BITS, "a codec needs a number of 32 bits"),
    Rule({"upload.lost": "add"}, {"upload.feedback": "residual"}, "lost updates are added to residuals"),
    Rule({"upload.lost": "add"}, _ROUNDS, "without rounds nobody waits for an upload"),
    Rule({"upload.lost": "add"}, {"merging.skip": Except(["carry"])}, "the device continues from its weights"),
    Rule({"upload.size": _OF_LEVELS}, {"upload.codec": "qsgd"}, "it sets levels"),
    Rule({"upload.size": ("dadaquant", "share")}, _ROUNDS, "it goes by the weights of a round's devices"),
    Rule({"upload.size": "adaquant"}, _TRAINING.needs, "it goes by losses"),
    Rule({"upload.size": "stream"}, _ROUNDS, "without rounds no deadline ends a stream"),
    Rule({"upload.size": "stream"}, {"round.close": "deadline", "round.late": "drop"}, "the deadline ends each stream"),
    Rule(
        {"round.allocator": "least_error"},
        {"upload.codec": "qsgd", "upload.size": "fit"},
        "it chooses the bits of each level",
    ),
    Rule(_CODED_DOWN, {"topology.aggregation": "flat"}, "edge servers have models of their own"),
    Rule(_CODED_DOWN, {"merging.skip": Except(["carry"])}, "devices train on from weights of their own"),
)
"""Which keys go with coding of uploads and downloads."""

_BY_PROTOCOL = (
    Rule({"topology.aggregation": "hierarchical"}, _ROUNDS),
    Rule({"merging.rule": "stagnation"}, _ROUNDS, "one server skips rounds"),
    Rule({"privacy.mechanism": "central"}, _JOINT, "no mean is formed of one update; use 'local'"),
    Rule({"staleness.limit": GIVEN, **_ROUNDS}, _LATE, "it is for updates that come late"),
    Rule(
        _NO_ROUNDS,
        {"round.admission": "count", **{f"round.{key}": RoundConfig.model_fields[key].default for key in _OF_ROUNDS}},
        "it has no rounds, but a count of devices that are always at work",
    ),
)
"""Which keys go with which protocols."""

FEATURES: dict[str, Rule] = {
    "rounds": Rule({}, _ROUNDS, "a protocol without rounds has none"),
    "joint merges": Rule({}, _JOINT, "the others mix one model at a time"),
    "punctual updates": Rule({}, {"round.late": "drop"}),
    "merges in all rounds": Rule({}, {"merging": None}),
    "updates without residuals": Rule(
        {}, {"upload.feedback": Except(["residual"])}, "its server uses updates again; set it to 'ef21' or 'none'"
    ),
    "data set": Rule({}, {"data.dataset": Except(["none"])}),
    "public images": Rule({"data.dataset": Except(["none"])}, {"data.public": ("carved", "other")}),
    "known downloads": Rule(
        {"learning.training": "none"}, {"round.download_s": 0, "topology.file": None}, "its bits depend on training"
    ),
    _LAST_MODEL: Rule({"learning.training": "real"}, {"learning.keep_best": False}),
}
"""Keys of a config that offer what `needs` of algorithms, laws and policies name.

That frames begin with the last model is needed only where the data have several (`check_frames`).
"""

INPUTS: dict[str, Rule] = {
    "class_counts": Rule({}, {"data.dataset": Except(["none"])}),
    "losses": _TRAINING,
    "update_norms": _TRAINING,
    "sent_norms": _TRAINING,
    "gradient_deviations": Rule(
        {}, {"learning.training": "real", "learning.batch_size": _at_least_two}, "which two samples have, or more"
    ),
    "class_gradients": _TRAINING,
    "training_losses": _TRAINING,
    "training_accuracies": _TRAINING,
    "loss_drops": _TRAINING,
}
"""Keys of a config that offer what `looks_at` of policies and of decisions from outside names."""

FEATURES |= INPUTS


def check(config: RunConfig) -> None:
    """Refuse a complete config that does not offer what its algorithm, laws and model need; raises `EdgesimError`."""
    own = PROTOCOLS[config.round.protocol].stale_weight
    chosen = {"staleness.weight": Except([None, "constant", own])}
    refuse(config, [*_BY_PROTOCOL, Rule({**chosen, **_ROUNDS}, _LATE, "it is for updates that come late")])
    refuse(config, _BY_CODEC)
    _check_allocator(config)
    refuse(config, _whole(config, _of("round.protocol", (), PROTOCOLS[config.round.protocol].rules)))
    refuse(config, _whole(config, _of_algorithm(config)))
    refuse(config, _whole(config, _of("availability.model", (), PRESENCE[config.availability.model].rules)))
    refuse(config, _whole(config, _of("drift.law", (), DRIFT[config.drift.law].rules)))
    if config.joining is not None:
        law = JOINING[config.joining.law]
        refuse(config, _whole(config, _of("joining.law", law.needs, law.rules)))


def _check_allocator(config: RunConfig) -> None:
    """Refuse least bandwidths where uploads are planned with their smallest size; raises `EdgesimError`."""
    upload = config.upload
    if upload is None or upload.least is None or config.round.allocator != "least":
        return
    if PROTOCOLS[config.round.protocol].has_rounds and config.radio.sharing != "own":
        by_error = ", 'least_error'" if upload.codec == "qsgd" else ""
        of_whole = config.round.leftover == "equal_finish"
        shares = "round.leftover = 'equal_finish'" if of_whole else "'least', its default,"
        raise EdgesimError(
            f"upload.size = {upload.size!r} needs round.allocator = 'equal_bits'{by_error} or 'equal_share': {shares} "
            "would share the band for the smallest size",
            "upload.size",
            "round.leftover" if of_whole else "round.allocator",
        )


def _whole(config: RunConfig, rules: Iterable[Rule]) -> Iterator[Rule]:
    """Rules on keys alone: before each rule those of the features that it names."""
    offered = FEATURES | {"default staleness": _default_staleness(config)}
    for rule in rules:
        for name in rule.features:
            feature = look_up(offered, name, "rules")
            yield Rule({**rule.when, **feature.when}, feature.needs, rule.why or feature.why)
        yield rule


def _default_staleness(config: RunConfig) -> Rule:
    """The weights of stale updates that are no choice of the user's: the protocol's own, and none."""
    own = PROTOCOLS[config.round.protocol].stale_weight
    weights = tuple(dict.fromkeys(("constant", own)))
    return Rule({}, {"staleness.weight": weights, "staleness.a": (None, StalenessConfig().resolved(own).a)})


def check_policy(config: RunConfig, looks_at: frozenset[str]) -> None:
    """Refuse a policy that looks at what the run does not have; raises `EdgesimError`."""
    refuse(config, _of("selection.policy", looks_at, (), "looks_at"))


def check_outside(config: RunConfig, looks_at: Iterable[str]) -> None:
    """Refuse decisions from outside that look at what there is not, or not in the run; raises `EdgesimError`."""
    if isinstance(looks_at, str) or not isinstance(looks_at, Iterable):
        raise EdgesimError(f"looks_at: expected several names, such as a list (got {looks_at!r})", "looks_at")
    for name in looks_at:
        rule = look_up(INPUTS, name, "looks_at")
        refuse(config, [replace(rule, why=f"looks_at has {name}")])


def check_frames(config: RunConfig, frames: int) -> None:
    """Refuse skipped rounds in runs of several frames, and best models with a server that keeps state.

    Raises `EdgesimError`.
    """
    if frames == 1:
        return
    why = f"the data have {frames} frames, and a best accuracy on one says nothing of the next"
    refuse(config, [Rule({"data.dataset": GIVEN}, {"merging": None}, why)])
    last = "what devices know belongs to the last model, not to the best"
    refuse(config, [replace(FEATURES[_LAST_MODEL], when={**FEATURES[_LAST_MODEL].when, **_CODED_DOWN}, why=last)])
    why = f"the server's state belongs to the last model, not to the best, and the data have {frames} frames"
    rule = replace(FEATURES[_LAST_MODEL], why=why)
    own = config.algorithm
    _, server = algorithms.halves(own)
    parts = {"algorithm.name" if own.server == "own" else "algorithm.server": server.needs}
    parts |= {f"algorithm.{key}": wrapper.needs for key, wrapper in algorithms.wrappers(own).items()}
    refuse(config, [replace(rule, when={key: GIVEN, **rule.when}) for key, of in parts.items() if _LAST_MODEL in of])


def _of_algorithm(config: RunConfig) -> Iterator[Rule]:
    """Needs of both halves of an algorithm and of wrappers, and the settings that these exclude."""
    local, server = algorithms.halves(config.algorithm)
    of_server = "algorithm.name" if server is local else "algorithm.server"
    for key, half in {"algorithm.name": local, of_server: server}.items():
        yield from _of(key, half.needs - {_LAST_MODEL}, half.rules)
    if not algorithms.sends_models(config.algorithm):
        for coded in (_CODED, _CODED_DOWN):
            yield _without("algorithm.name", coded, "its devices send no models")
    if local.Local.upload_bits is not LocalHalf.upload_bits:
        other = "devices send other things than their update"
        yield _without("algorithm.name", {"privacy.mechanism": Except(["none"])}, other)
    if local.Local is not LocalHalf:
        yield _without("algorithm.name", {"merging.skip": "carry"}, "its devices train by the model they were sent")
    merges = {of_server: server.Server.merges}
    for name, wrapper in algorithms.wrappers(config.algorithm).items():
        key = f"algorithm.{name}"
        yield from _of(key, wrapper.needs - {_LAST_MODEL}, wrapper.rules)
        yield from (_without(key, when, why) for when, why in wrapper.excluded)
        if not merges_models(server.Server.merges):
            yield _without(of_server, {key: GIVEN}, "its server does more with models than average them")
        merges[key] = "otherwise"
    for key, how in merges.items():
        if how != "models":
            yield _without(key, {"topology.aggregation": "hierarchical"}, "edge servers merge weighted means alone")
        if how not in ("models", "updates"):
            yield _without(key, {"privacy.mechanism": "central"}, "its server goes by more than the weighted mean")


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
