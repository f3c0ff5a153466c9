"""Complete configs: every default filled in, and all that their parts need of each other checked."""

from typing import Any

from edgesim import joining
from edgesim.base.registry import look_up
from edgesim.config import RunConfig
from edgesim.engine.protocols import make_protocol
from edgesim.learning import algorithms, codecs, drift, measures
from edgesim.mobility import models as motion
from edgesim.radio.allocators import ALLOCATORS
from edgesim.selection import resolve_options
from edgesim.simulation import needs
from edgesim.traces import models


def complete(config: RunConfig) -> RunConfig:
    """The config with every default filled in, also those of policy, algorithm, availability and partition.

    Raises `EdgesimError`.
    """
    config = config.resolved()
    selection, availability, knobs = config.selection, config.availability, config.round
    look_up(ALLOCATORS, knobs.allocator, "round.allocator")
    protocol = make_protocol(knobs)
    update = {
        "selection": selection.with_options(resolve_options(selection.policy, selection.options)),
        "availability": availability.with_options(
            models.resolve_options(availability.model, availability.options, knobs.tmax_s, protocol.has_rounds)
        ),
        "data": drift.resolve_data(config),
        "drift": config.drift.with_defaults(drift.LAWS),
        "evaluation": measures.resolve(config.evaluation),
        "joining": config.joining and config.joining.with_defaults(joining.LAWS),
        "mobility": config.mobility and config.mobility.with_defaults(motion.MODELS),
        "algorithm": algorithms.resolve(config),
        **codecs.resolve(config),
        "round": knobs.model_copy(update={"protocol_options": protocol.options.model_dump()}),
        "staleness": config.staleness.resolved(protocol.stale_weight),
    }
    completed = config.model_copy(update=update)
    needs.check(completed)
    return completed


def as_toml(config: RunConfig) -> dict[str, Any]:
    """The config as a mapping that TOML can hold (which has no null)."""
    return config.model_dump(exclude_none=True, by_alias=True)
