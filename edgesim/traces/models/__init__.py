"""The registry of availability models: drawn at random, programmed or recorded."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from edgesim.base.errors import EdgesimError
from edgesim.base.registry import Registry
from edgesim.base.validation import entry_of
from edgesim.config import AvailabilityConfig
from edgesim.streams import Streams
from edgesim.traces.availability import Availability
from edgesim.traces.by_rounds import ByRounds
from edgesim.traces.forced import Forced
from edgesim.traces.interval_table import IntervalTable
from edgesim.traces.models.always import AlwaysModel
from edgesim.traces.models.arrival import Arrival
from edgesim.traces.models.bernoulli import Bernoulli
from edgesim.traces.models.markov import Markov
from edgesim.traces.models.options import Model
from edgesim.traces.models.periodic import Periodic
from edgesim.traces.models.renewal import Renewal
from edgesim.traces.models.round_robin import RoundRobin
from edgesim.traces.models.solar import Solar
from edgesim.traces.models.table import TableModel
from edgesim.traces.search import Search
from edgesim.traces.slots import Slots

_OWN: dict[str, type[Model]] = {
    "always": AlwaysModel,
    "table": TableModel,
    "renewal": Renewal,
    "bernoulli": Bernoulli,
    "markov": Markov,
    "solar": Solar,
    "periodic": Periodic,
    "round_robin": RoundRobin,
    "arrival": Arrival,
}
MODELS = Registry("availability.model", "presence", Model, _OWN)


def make_availability(
    config: AvailabilityConfig,
    device_count: int,
    streams: Streams,
    stop_at_s: float | None = None,
    search: Search | None = None,
) -> Availability:
    """Make the model that a config names; raises `EdgesimError` for an unknown name, a bad option or a bad file.

    If ``stop_at_s`` is given, a recording that ends earlier and does not repeat is refused as well. ``search`` limits
    searches for the next available device; without it, they go as far as the config says.
    """
    availability = entry_of(MODELS, config.model, config.options).make(device_count, streams)
    if not isinstance(availability, Availability):
        returned = f"make returned {type(availability).__name__}, expected a subclass of {Availability.__module__}"
        raise EdgesimError(f"availability.model {config.model!r}: {returned}.Availability", "availability.model")
    if isinstance(availability, Slots):
        availability = replace(availability, search=search or Search(config.searched_s))
    return availability.for_run_until(stop_at_s)


def empty_slots(availability: Availability, waited: int | None, t_end_s: float) -> int | None:
    """Number of slots of a run that ended at ``t_end_s`` in which nobody was available, if not forced.

    ``waited`` is the number of such slots that the server has let pass while no round was open, None if they were too
    many to look at. By rounds these are all of them; with slots in seconds, slots within a round, in which devices may
    still be at work, are not among them. None without slots, and for more slots than can be looked at.
    """
    if isinstance(availability, IntervalTable):
        return None if availability.slots is None else waited
    if not isinstance(availability, ByRounds | Slots):
        return None
    law = availability.in_slot
    return law.count(availability.slots_begun(t_end_s)) if isinstance(law, Forced) else waited


def resolve_options(model: str, options: Mapping[str, Any], tmax_s: float, has_rounds: bool) -> dict[str, Any]:
    """All options of a model, with all defaults, also those that depend on the protocol; raises `EdgesimError`."""
    return entry_of(MODELS, model, options).resolved(tmax_s, has_rounds).model_dump()
