"""Registries whose entries a config can name (policies, algorithms, laws, ...), and the section of their options."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from edgesim.base.registry import Registry
from edgesim.config import RunConfig
from edgesim.engine.protocols import PROTOCOLS
from edgesim.joining import LAWS as JOINING
from edgesim.learning.algorithms import ALGORITHMS
from edgesim.learning.codecs import CODECS, DOWNWARD
from edgesim.learning.drift import LAWS as DRIFT
from edgesim.learning.measures import METRICS
from edgesim.learning.partitions import PARTITIONS
from edgesim.mobility.models import MODELS as MOTION
from edgesim.prediction import PREDICTORS
from edgesim.radio.allocators import ALLOCATORS
from edgesim.radio.environment import path_loss_name
from edgesim.radio.laws import LAWS as PATH_LOSS
from edgesim.selection import SELECTORS
from edgesim.traces.models import MODELS as PRESENCE


@dataclass(frozen=True)
class ComponentKind:
    """Registry of one kind of entry that a config can name, and the place of its options."""

    word: str
    """Word for it in messages, such as ``policy``."""
    entries: Mapping[str, Any]
    """edgesim's own entries by name."""
    keys: tuple[str, ...] = ()
    """Keys of a config that name an entry."""
    section: str = ""
    """Section of a config with the options of an entry, whose model the entry has as ``Options`` or is itself; empty if
    its options stand elsewhere."""

    @property
    def names(self) -> list[str]:
        """edgesim's own names and those of installed packages, sorted."""
        return self.entries.names if isinstance(self.entries, Registry) else sorted(self.entries)


KINDS: dict[str, ComponentKind] = {
    "policies": ComponentKind("policy", SELECTORS, ("selection.policy",), "selection"),
    "algorithms": ComponentKind("algorithm", ALGORITHMS, ("algorithm.name", "algorithm.server"), "algorithm"),
    "allocators": ComponentKind("allocator", ALLOCATORS, ("round.allocator",)),
    "partitions": ComponentKind("partition", PARTITIONS, ("data.partition",), "data.partition_options"),
    "drift_laws": ComponentKind("law", DRIFT, ("drift.law",), "drift"),
    "joining_laws": ComponentKind("law", JOINING, ("joining.law",), "joining"),
    "presence_models": ComponentKind("model", PRESENCE, ("availability.model",), "availability"),
    "motion_models": ComponentKind("model", MOTION, ("mobility.model",), "mobility"),
    "path_loss_laws": ComponentKind("law", PATH_LOSS),
    "predictors": ComponentKind("predictor", PREDICTORS, (), "selection.predictor_options"),
    "metrics": ComponentKind("metric", METRICS, (), "evaluation.metrics"),
    "codecs": ComponentKind("codec", CODECS, ("upload.codec",), "upload"),
    "protocols": ComponentKind("protocol", PROTOCOLS, ("round.protocol",), "round.protocol_options"),
}
"""All kinds by the names of their lists, from which lists and explanations are made."""


def named(config: RunConfig) -> Iterator[tuple[str, Registry[Any], str]]:
    """Key, registry and name of each entry of a registry that a complete config names.

    Without the entries of edgesim whose code no key but its version identifies: allocators, presence and
    motion models, predictors, codecs, metrics, protocols and path-loss laws.
    """
    server, data, law = config.algorithm.server, config.data, config.drift.law
    yield "selection.policy", SELECTORS, config.selection.policy
    yield "algorithm.name", ALGORITHMS, config.algorithm.name
    if server != "own":
        yield "algorithm.server", ALGORITHMS, server
    if data.dataset != "none" and data.partition is not None:
        yield "data.partition", PARTITIONS, data.partition
    if law != "frames":
        yield "drift.law", DRIFT, law
    if config.joining is not None:
        yield "joining.law", JOINING, config.joining.law
    others: list[tuple[str, Registry[Any], str | None]] = [
        ("availability.model", PRESENCE, config.availability.model),
        ("mobility.model", MOTION, None if config.mobility is None else config.mobility.model),
        ("round.protocol", PROTOCOLS, config.round.protocol),
        ("round.allocator", ALLOCATORS, config.round.allocator),
        ("radio.channel.path_loss", PATH_LOSS, path_loss_name(config.radio.channel)),
        ("upload.codec", CODECS, None if config.upload is None else config.upload.codec),
        ("download.codec", DOWNWARD, None if config.download is None else config.download.codec),
        ("selection.predictor", PREDICTORS, config.selection.options.get("predictor")),
        *((f"evaluation.metrics.{name}", METRICS, name) for name in config.evaluation.metrics or ()),
    ]
    yield from ((key, entries, name) for key, entries, name in others if name is not None and entries.foreign(name))
