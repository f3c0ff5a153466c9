"""Log of the devices that checked in, over a window of the last rounds: the only input of predictors."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edgesim.base.arrays import Booleans, Floats, Integers
from edgesim.base.errors import EdgesimError


@dataclass
class CheckInLog:
    """A ring buffer of the last rounds' check-ins; rounds before the first one count as without check-ins."""

    ring: Booleans
    """D_m(v): whether device m checked in, [window, devices]; round v lies in row v modulo the window."""
    counts: NDArray[np.int32]
    """Check-ins within the window, [devices]."""
    rounds: int = 0
    """Rounds logged so far."""

    @classmethod
    def empty(cls, device_count: int, window_rounds: int) -> "CheckInLog":
        """The log before the first round; raises `EdgesimError` for a window without rounds."""
        if window_rounds < 1:
            raise EdgesimError(f"availability predictor: history_rounds must be at least 1 (got {window_rounds})")
        return cls(np.zeros((window_rounds, device_count), dtype=bool), np.zeros(device_count, dtype=np.int32))

    @property
    def window_rounds(self) -> int:
        """Rounds that the log remembers, K_h of FedDance."""
        return len(self.ring)

    def append(self, ids: Integers) -> None:
        """Log a round in which the devices ``ids``, each once, checked in; it replaces the oldest round."""
        self._need_known(ids)
        row = self.ring[self.rounds % self.window_rounds]
        self.counts -= row
        row[:] = False
        row[ids] = True
        self.counts += row
        self.rounds += 1

    def rates(self, ids: Integers) -> Floats:
        """lambda_m, check-ins per round of each device, [n]: FedDance, eq. 2; raises as `append` does."""
        self._need_known(ids)
        return np.asarray(self.counts[ids] / self.window_rounds)

    def latest(self, ids: Integers) -> Booleans:
        """Whether each device checked in in the last round, [n]; raises as `append` does."""
        self._need_known(ids)
        return np.asarray(self.ring[(self.rounds - 1) % self.window_rounds, ids])

    def history(self, ids: Integers) -> Booleans:
        """Check-ins of some devices in the window's rounds, oldest first, [window, n]; raises as `append` does."""
        self._need_known(ids)
        oldest = self.rounds % self.window_rounds
        return np.concatenate([self.ring[oldest:, ids], self.ring[:oldest, ids]])

    def _need_known(self, ids: Integers) -> None:
        """Raise `EdgesimError` for a device that the log has no column for."""
        devices = len(self.counts)
        if len(ids) and not 0 <= ids.min() <= ids.max() < devices:
            unknown = int(ids[(ids < 0) | (ids >= devices)][0])
            raise EdgesimError(f"availability predictor: unknown device {unknown}; known: 0 to {devices - 1}")


def need_future(future_rounds: int) -> None:
    """Raise `EdgesimError` if a forecast looks less than one round ahead."""
    if future_rounds < 1:
        raise EdgesimError(f"availability predictor: future_rounds must be at least 1 (got {future_rounds})")
