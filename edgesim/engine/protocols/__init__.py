"""The registry of protocols, one per file."""

from edgesim.base.registry import Registry
from edgesim.base.validation import options_of
from edgesim.config import RoundConfig
from edgesim.engine.protocols.asynchronous import Asynchronous
from edgesim.engine.protocols.buffered import Buffered
from edgesim.engine.protocols.protocol import Protocol
from edgesim.engine.protocols.synchronous import Synchronous

_OWN: dict[str, type[Protocol]] = {
    "synchronous": Synchronous,
    "buffered": Buffered,
    "asynchronous": Asynchronous,
}
PROTOCOLS = Registry("round.protocol", "protocols", Protocol, _OWN)


def make_protocol(config: RoundConfig) -> Protocol:
    """The protocol that a config names; raises `EdgesimError` for an unknown name and a bad option."""
    kinds = {name: kind.Options for name, kind in PROTOCOLS.including(config.protocol).items()}
    options = options_of(kinds, config.protocol, config.protocol_options, "round.protocol", "round.protocol_options")
    return PROTOCOLS[config.protocol](options)


def has_rounds(config: RoundConfig) -> bool:
    """Whether devices work in rounds under the protocol that a config names."""
    return PROTOCOLS[config.protocol].has_rounds
