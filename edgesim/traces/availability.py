"""The interface of all availability models. An answer never depends on earlier calls.

Answers are exact: a returned instant is the first one of the floating-point clock at which the condition holds.
"""

from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.base.device_keys import DeviceKeys
from edgesim.base.errors import EdgesimError

if TYPE_CHECKING:
    from edgesim.traces.slots import Slots


@dataclass(frozen=True)
class KnownSlots:
    """The slots of a file, after which nothing is known."""

    file: str
    count: int
    remedy: str
    """Advice for the message where more slots are needed."""

    def need(self, slots: int) -> None:
        """Raise `EdgesimError` if a run needs more slots than the file has."""
        if slots > self.count:
            raise EdgesimError(
                f"{self.file}: has columns for {self.count} rounds, but the run needs {slots} (a wait for enough "
                f"devices takes one too); {self.remedy}"
            )


class Availability(ABC):
    """An availability model; device ids are [n], instants seconds on the run's clock, a scalar or [n].

    A model implements the five abstract methods; it overrides others where their defaults do not hold.
    """

    device_count: int
    name: str = "availability"
    """Name in messages."""
    remedy: str
    """Advice for an error message when too few devices are ever available; of models with slots alone."""
    in_slot: Callable[[Integers, Integers], Booleans]
    """Whether devices, [n], are available in slots, [n], as a pure function; of models with slots alone."""
    keys: DeviceKeys | None = None
    """Keys of a recording's devices; None for models and recordings without keys."""
    known_until_s: float = np.inf
    """Instant, in s, by which a run must have ended, since nothing is known of later time."""
    known: KnownSlots | None = None
    """The known slots of a matrix by rounds that ends; None if all slots are known."""
    starts_s: "array[float] | None" = None
    """Start of each slot that has begun, in s, ascending, where slots are rounds; None elsewhere."""

    @abstractmethod
    def available(self, ids: Integers, t_s: ArrayLike) -> Booleans:
        """Whether each device is available at an instant, [n]."""

    @abstractmethod
    def available_until(self, ids: Integers, t_s: ArrayLike, horizon_s: float = np.inf) -> Floats:
        """Instant at which each device's current available stretch ends, [n].

        ``inf`` if it lasts to the instant ``horizon_s`` or longer, ``t_s`` if the device is not available.
        """

    @abstractmethod
    def next_available(self, ids: Integers, t_s: ArrayLike) -> Floats:
        """First instant >= ``t_s`` at which each device is available, [n]; inf if there is none."""

    @abstractmethod
    def next_time_with(self, count: int, t_s: float) -> float:
        """First instant >= ``t_s`` with at least ``count`` devices available; inf if there is none."""

    @abstractmethod
    def next_change(self, t_s: float) -> float:
        """First instant > ``t_s`` at which any device may become available or unavailable; inf if none is known."""

    def counts_in(self, slots: range) -> Integers:
        """Number of devices available in each slot, [slots]."""
        ids = np.arange(self.device_count)
        return np.array([np.count_nonzero(self.in_slot(ids, np.full(len(ids), slot))) for slot in slots], np.int64)

    @property
    def by_rounds(self) -> bool:
        """Whether slots are rounds, which the server begins (`begin_slot`): nothing is known of later ones."""
        return self.starts_s is not None

    def begin_slot(self, t_s: float) -> None:
        """Note, where slots are rounds, that one begins at ``t_s``; raises `EdgesimError` if it is not known."""
        raise NotImplementedError

    def is_settled(self, count: int) -> bool:
        """Whether fewer than ``count`` devices are available in the last slot that has begun and in all later ones."""
        return False

    @property
    def slots(self) -> "Slots | None":
        """Slots of equal length in seconds, at whose edges alone devices come and leave; None for other models."""
        return None

    @property
    def changes_every(self) -> tuple[str, float] | None:
        """Name of changes or repetitions at a fixed interval, and that interval in s; None if there are none."""
        return None

    def ever_has(self, count: int) -> bool:
        """Whether ``count`` devices may be available at one instant; False only where that certainly never happens."""
        return True

    def most_at_once(self) -> int:
        """Most devices available at one instant, or a bound on it."""
        return self.device_count

    def for_run_until(self, stop_at_s: float | None) -> Self:
        """The model for a run that ends at ``stop_at_s``, None where that is not known.

        Where the end is not known, the run has to end before ``known_until_s``: looks ahead of the clock are none of
        its business. Raises `EdgesimError` where the end is known and a recording ends before it.
        """
        if stop_at_s is None or np.isinf(self.known_until_s):
            return self
        if stop_at_s > self.known_until_s:
            self.refuse_time_beyond(f"{stop_at_s:.10g} s (stop_at_s)")
        covered = copy(self)
        covered.known_until_s = np.inf
        return covered

    def refuse_time_beyond(self, what: str = "what follows") -> NoReturn:
        """Raise `EdgesimError` for a question, ``what``, about time after ``known_until_s``."""
        raise EdgesimError(
            f"{self.name}: the trace ends at {self.known_until_s:.10g} s, but {what} is asked for; end the run earlier "
            '(stop_at_s), repeat the trace (availability.after_end = "wrap") or count everyone as gone '
            '(availability.after_end = "absent")'
        )

    def facts(self) -> dict[str, Any]:
        """Facts for ``run.json``."""
        return {}
