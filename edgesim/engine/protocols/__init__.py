"""The registry of protocols, one per file."""

from edgesim.base.errors import EdgesimError
from edgesim.base.registry import Registry
from edgesim.base.validation import options_of
from edgesim.config import RoundConfig, Section
from edgesim.engine.protocols.asynchronous import Asynchronous
from edgesim.engine.protocols.buffered import Buffered
from edgesim.engine.protocols.protocol import Protocol
from edgesim.engine.protocols.synchronous import Synchronous
from edgesim.learning.algorithms.merge_rules import MergeRule

_OWN: dict[str, type[Protocol]] = {
    "synchronous": Synchronous,
    "buffered": Buffered,
    "asynchronous": Asynchronous,
}
PROTOCOLS = Registry("round.protocol", "protocols", Protocol, _OWN)


def make_protocol(config: RoundConfig) -> Protocol:
    """The protocol that a config names; raises `EdgesimError` for an unknown name, a bad option or a bad class."""
    kind, name = PROTOCOLS.including(config.protocol)[config.protocol], config.protocol
    for attribute, base in (("Options", Section), ("merge_rule", MergeRule)):
        if not (isinstance(own := getattr(kind, attribute), type) and issubclass(own, base)):
            needed = f"expected a subclass of {base.__module__}.{base.__name__}"
            raise EdgesimError(f"round.protocol {name!r}: {attribute} is {own!r}, {needed}", "round.protocol")
    kinds = {name: kind.Options for name, kind in PROTOCOLS.including(config.protocol).items()}
    options = options_of(kinds, config.protocol, config.protocol_options, "round.protocol", "round.protocol_options")
    return PROTOCOLS[config.protocol](options)


def has_rounds(config: RoundConfig) -> bool:
    """Whether devices work in rounds under the protocol that a config names."""
    return PROTOCOLS[config.protocol].has_rounds
