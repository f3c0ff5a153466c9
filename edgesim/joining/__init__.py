"""Joining laws, by which devices that have checked in join a round or do not, and their registry.

The law belongs to the run, not to an algorithm or a policy, which see the devices that join as the candidates.
"""

from edgesim.base.registry import Registry
from edgesim.base.validation import entry_of
from edgesim.config import JoiningConfig
from edgesim.devices.population import Population
from edgesim.joining.everyone import Everyone
from edgesim.joining.fedstg import FedStgJoining
from edgesim.joining.joiners import Joiners
from edgesim.joining.law import Fleet, Law, Measured
from edgesim.streams import Streams

_OWN: dict[str, type[Law]] = {"all": Everyone, "fedstg": FedStgJoining}
LAWS = Registry("joining.law", "joining", Law, _OWN)


def make_law(joining: JoiningConfig) -> Law:
    """Make the joining law that a config names; raises `EdgesimError` for an unknown name or option."""
    return entry_of(LAWS, joining.law, joining.options)


def measured(joining: JoiningConfig | None) -> Measured | None:
    """Samples of which devices' accuracies are measured; None where the law looks at no accuracy."""
    return None if joining is None else make_law(joining).measured


def make_joiners(
    joining: JoiningConfig | None, population: Population, rounds: int, streams: Streams
) -> Joiners | None:
    """A run's joining law with its memory, for so many ``rounds``; None where all devices join without being asked."""
    if joining is None:
        return None
    return Joiners(make_law(joining), Fleet(population.a_s + 1 / population.mu_per_s, rounds), streams)
