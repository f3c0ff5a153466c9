"""Registries whose entries a config can name (policies, algorithms, laws, ...), and the section of their options."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from edgesim.base.registry import Registry
from edgesim.config import RunConfig
from edgesim.joining import LAWS as JOINING
from edgesim.learning.algorithms import ALGORITHMS, MERGE_RULES
from edgesim.learning.drift import LAWS as DRIFT
from edgesim.learning.measures import METRICS
from edgesim.learning.partitions import PARTITIONS
from edgesim.prediction import PREDICTORS
from edgesim.radio.environment import path_loss_name
from edgesim.radio.laws import LAWS as PATH_LOSS
from edgesim.selection import SELECTORS
from edgesim.traces.models import MODELS as PRESENCE

Names = Mapping[str, str | None]
"""Names that a config uses, by its keys; None where it uses none."""


@dataclass(frozen=True)
class ComponentKind:
    """One kind of thing that a config names."""

    word: str
    """Word for it in messages, such as ``policy``."""
    entries: Mapping[str, Any]
    """edgesim's own entries by name."""
    section: str = ""
    """Where a config has the options of an entry; empty if its options stand elsewhere."""
    options: Callable[[Any], type[BaseModel]] = lambda entry: entry
    """The model of an entry's options."""
    named: Callable[[RunConfig], Names] = lambda config: {}
    """Entries of this kind that a complete config names, if their code belongs to the run's inputs."""

    @property
    def names(self) -> list[str]:
        """edgesim's own names and those of installed packages, sorted."""
        return self.entries.names if isinstance(self.entries, Registry) else sorted(self.entries)


def _algorithms(config: RunConfig) -> Names:
    server = config.algorithm.server
    return {"algorithm.name": config.algorithm.name, "algorithm.server": None if server == "own" else server}


def _partition(config: RunConfig) -> Names:
    return {"data.partition": config.data.partition if config.data.dataset != "none" else None}


def _drift(config: RunConfig) -> Names:
    return {"drift.law": None if config.drift.law == "frames" else config.drift.law}


def _joining(config: RunConfig) -> Names:
    return {"joining.law": None if config.joining is None else config.joining.law}


def _presence(config: RunConfig) -> Names:
    return _if_foreign(PRESENCE, "availability.model", config.availability.model)


def _predictor(config: RunConfig) -> Names:
    return _if_foreign(PREDICTORS, "selection.predictor", config.selection.options.get("predictor"))


def _metrics(config: RunConfig) -> Names:
    metrics = config.evaluation.metrics or {}
    return {
        key: name
        for metric in metrics
        for key, name in _if_foreign(METRICS, f"evaluation.metrics.{metric}", metric).items()
    }


def _path_loss(config: RunConfig) -> Names:
    return _if_foreign(PATH_LOSS, "radio.channel.path_loss", path_loss_name(config.radio.channel))


def _if_foreign(entries: Registry[Any], key: str, name: str | None) -> Names:
    """Name of an entry if it is not edgesim's own, whose code is identified by the version of edgesim."""
    return {key: name if name is not None and entries.foreign(name) else None}


KINDS: dict[str, ComponentKind] = {
    "policies": ComponentKind(
        "policy",
        SELECTORS,
        "selection",
        lambda entry: entry.Options,
        lambda config: {"selection.policy": config.selection.policy},
    ),
    "algorithms": ComponentKind("algorithm", ALGORITHMS, "algorithm", lambda entry: entry.Options, _algorithms),
    "partitions": ComponentKind("partition", PARTITIONS, "data.partition_options", named=_partition),
    "drift_laws": ComponentKind("law", DRIFT, "drift", named=_drift),
    "joining_laws": ComponentKind("law", JOINING, "joining", named=_joining),
    "presence_models": ComponentKind("model", PRESENCE, "availability", named=_presence),
    "path_loss_laws": ComponentKind("law", PATH_LOSS, named=_path_loss),
    "predictors": ComponentKind("predictor", PREDICTORS, "selection.predictor_options", named=_predictor),
    "metrics": ComponentKind("metric", METRICS, "evaluation.metrics", named=_metrics),
    "protocols": ComponentKind("protocol", MERGE_RULES, "round.protocol_options", lambda entry: entry.Options),
}
"""All kinds by the names of their lists; lists, explanations and hashes are made from it."""


def named(config: RunConfig) -> Iterable[tuple[str, Registry[Any], str]]:
    """Key, registry and name of each entry of a registry that a complete config names."""
    for kind in KINDS.values():
        for key, name in kind.named(config).items():
            if name is not None and isinstance(kind.entries, Registry):
                yield key, kind.entries, name
