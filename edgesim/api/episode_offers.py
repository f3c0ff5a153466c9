"""Offers and shares of the band that somebody outside gives an episode, checked before the run gets them."""

from collections.abc import Iterable, Sequence

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.config import RunConfig
from edgesim.engine.offers import Offers
from edgesim.engine.protocols import PROTOCOLS
from edgesim.radio.allocators import Allocator, Request
from edgesim.selection.view import RoundView


def checked_offers(offers: Iterable[int] | Integers, view: RoundView, policy: str) -> Integers:
    """Device ids offered in order, [k]; raises `EdgesimError` for anything but candidates, each once.

    The message begins as that of a ``policy`` whose offers are refused.
    """
    among = Offers(policy, view.round, view.ids, "the candidates")
    if isinstance(offers, np.ndarray):
        return view.ids[among.rows(offers)]
    if isinstance(offers, str) or not isinstance(offers, Iterable):
        raise EdgesimError(
            f"offers: expected device ids in the order in which they are offered (got {str(offers)[:60]!r})"
        )
    return view.ids[np.array([among.row(device) for device in offers], dtype=np.int64)]


def refuse_shares(config: RunConfig) -> None:
    """Raise `EdgesimError` for a config in which no decision can share bands."""
    if not PROTOCOLS[config.round.protocol].has_rounds:
        raise EdgesimError(f"shares_hz: round.protocol = {config.round.protocol!r} has no rounds to share bands in")
    if config.radio.sharing == "reshared":
        raise EdgesimError("shares_hz: with radio.sharing = 'reshared' a band is shared anew with every upload")
    if config.radio.sharing == "own":
        raise EdgesimError("shares_hz: with radio.sharing = 'own' each device has a link of its own")


def checked_shares(shares_hz: Sequence[float] | Floats, count: int, config: RunConfig) -> Floats:
    """Shares of so many offers as an array, [k]; raises `EdgesimError`, as `refuse_shares` does."""
    refuse_shares(config)
    try:
        shares = np.array(shares_hz)
    except ValueError:  # rows of several lengths
        shares = np.array(None)
    if shares.dtype.kind not in "iuf":
        raise EdgesimError(f"shares_hz: expected numbers (got {str(shares_hz)[:60]!r})")
    if shares.shape != (count,):
        raise EdgesimError(f"shares_hz: expected one number for each of {count} offers (got shape {shares.shape})")
    if (bad := shares[~(np.isfinite(shares) & (shares >= 0))]).size:
        raise EdgesimError(f"shares_hz: expected a finite number of Hz, 0 or more, for each device (got {bad[0]:g})")
    return shares.astype(np.float64)


class GivenShares(Allocator):
    """Bandwidths that a decision gives to its devices."""

    def __init__(self, offers: Integers, shares_hz: Floats) -> None:
        self._by_device = dict(zip(offers.tolist(), shares_hz.tolist(), strict=True))

    @override
    def allocate(self, request: Request) -> Floats:
        shares_hz = np.array([self._by_device[device] for device in request.ids.tolist()])
        if not (total_hz := shares_hz.sum()) <= request.bandwidth_hz * (1 + 1e-9):
            raise EdgesimError(
                f"shares_hz: {total_hz:.10g} Hz for the {len(shares_hz)} devices taken, expected at most "
                f"{request.bandwidth_hz:.10g} Hz of the station's free band"
            )
        return shares_hz
