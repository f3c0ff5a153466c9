"""Phones of one week: an alternating renewal process with a day/night rhythm and very different devices.

Calibrated to what FedDance (SoCC 2025, section 2.2 and fig. 3) reports of a trace of 136,000 phones over a week:
20.26 % of all time online, dozens to hundreds of sessions per device, most sessions a few minutes long, and over 65 %
of the devices with gaps above one hour. In 100,000 generated weeks 20.2 % of the time is online, four devices of five
have 21 to 224 sessions (the median one 82), 62 % of the sessions last under ten minutes and 11 % under one (median 6.3
minutes), and the mean gap of 67 % of the devices is above an hour.

The hours are those of 723 phones of the FLASH recording (Yang et al., WWW 2021): most are there at 4 h, twice as many
as in the afternoon. The shapes of the distributions are our choice.
"""

from collections.abc import Iterator
from itertools import chain, pairwise
from typing import Self

import numpy as np
from pydantic import Field, model_validator
from scipy.special import betaincinv
from typing_extensions import override

from edgesim.base.arrays import Floats, Integers
from edgesim.base.quantities import Factor, Seconds
from edgesim.streams import Streams
from edgesim.traces.availability import Availability
from edgesim.traces.interval_table import IntervalTable
from edgesim.traces.intervals import Intervals, merged
from edgesim.traces.models.options import DAY_S, WEEK_S, Repeated
from edgesim.traces.stays import Stays, windows_of

_SPREAD_OF_SHARE = 0.8
"""First shape of the beta distribution of the devices' shares of time online; below 1, many are hardly ever there."""
_SESSION_LOG_STD = 1.3
_GAP_LOG_STD = 1.3
_RATE_LOG_STD = 0.6
"""Spread of the numbers of sessions a week of devices that are online alike."""
_SHARE_IN_LENGTHS = 0.5
"""A device that is online four times as much as another comes twice as often and stays twice as long."""
_LOST_TO_RHYTHM = 0.09
"""Part of the share that a rhythm of 1 would cost, measured: nights cannot be filled by as much as days are emptied."""
_LEAST_SHARE = 1e-4
"""Least share of time online of a device; its gaps take at least as much."""
_MOST_SESSIONS = 20_000
"""Most sessions of a device in the middle of both spreads: those of four years at 90 a week, drawn one by one."""
_BLOCK_BITS = 6
"""2^6 sessions have one index of the stream; shifts take a tenth of a division's time."""

_AT_ONCE = 1 << 14
_CELLS = 1 << 13
"""Equal parts of a day, of which no two hold two minutes' edges of a swing as strong as the default one."""


class Renewal(Repeated):
    """Draws: streams ``availability-device`` and, indexed by the session, ``availability``."""

    length_s: Seconds = Field(WEEK_S, ge=1e-6)
    """Length of the recording generated, which is repeated from there on."""
    online_share: float = Field(0.2026, ge=_LEAST_SHARE, lt=1)
    """Mean share of time online over the devices."""
    sessions_per_week: Factor = Field(90.0, gt=0)
    """Of a device in the middle of both spreads, time online and rate; the median over all is a tenth below."""
    rhythm: float = Field(0.57, ge=0, lt=1)
    """How much sooner devices come at night than by day: the rate swings by this share around its mean."""
    peak_h: float = Field(3.0, ge=0, lt=24)
    """Hour of the day at which they come soonest."""

    @model_validator(mode="after")
    def _can_be_drawn(self) -> Self:
        sessions = self.sessions_per_week * (self.length_s + DAY_S) / WEEK_S
        if sessions > _MOST_SESSIONS:
            raise ValueError(
                f"sessions_per_week ({self.sessions_per_week:g}) and length_s ({self.length_s:g}) make {sessions:.3g} "
                f"sessions of a device; expected at most {_MOST_SESSIONS:,}"
            )
        return self

    @override
    def make(self, device_count: int, streams: Streams) -> Availability:
        """The table of the sessions, which are drawn as far in time as questions go."""
        if self.order != "given":
            return super().make(device_count, streams)
        windows = windows_of(device_count * self.sessions_per_week * self.length_s / WEEK_S, device_count)
        # Sessions are of whole seconds, and cut at whole seconds they stay so.
        edges_s = np.unique(np.append(np.floor(np.arange(windows) * (self.length_s / windows)), self.length_s))
        stays = Stays(device_count, edges_s, self.windows(device_count, streams, edges_s))
        nothing, lengths_s = np.empty(0), np.broadcast_to(self.length_s, device_count)
        undrawn = Intervals(nothing.astype(np.int64), nothing, nothing, lengths_s, "availability")
        return IntervalTable(undrawn, self.after_end, stays)

    @override
    def intervals(self, device_count: int, streams: Streams) -> Intervals:
        """Sessions from 0 to ``length_s`` in whole seconds.

        Every device's sessions and gaps are log-normal around its own means. Gaps pass in a time that runs faster at
        night. The process starts one day before 0, in a session with the device's own share as probability and, there
        and in a gap, with the length-biased remainder of a renewal process in equilibrium.
        """
        return next(self.windows(device_count, streams, np.array([0.0, self.length_s])))

    def windows(self, device_count: int, streams: Streams, edges_s: Floats) -> Iterator[Intervals]:
        """The sessions between each edge, [windows + 1], and the next, cut at both; all but the last whole seconds."""
        ids = np.arange(device_count, dtype=np.int64)
        session_s, gap_s = self._means_s(ids, streams)
        rhythm = Rhythm(self.rhythm, self.peak_h)
        # Of the last session drawn for each device, and the number of the next one.
        start_s, end_s, number = np.full(device_count, -DAY_S), np.full(device_count, -DAY_S), np.zeros_like(ids)

        def drawn_until(until_s: float) -> Iterator[tuple[Integers, Floats, Floats]]:
            """Sessions, [n] at a time, of the devices whose last one ends before an instant, until none does."""
            open_ = np.flatnonzero(end_s < until_s)
            while len(open_):
                unfinished = []
                # In pieces that stay in a processor's cache.
                for first in range(0, len(open_), _AT_ONCE):
                    some = open_[first : first + _AT_ONCE]
                    session = number[some]
                    block, within = session >> _BLOCK_BITS, session & (1 << _BLOCK_BITS) - 1
                    draws = streams.normal("availability", some, block, count=2, first_pair=within)
                    wait_s = gap_s[some] * _log_normal(draws[:, 0], _GAP_LOG_STD)
                    stay_s = session_s[some] * _log_normal(draws[:, 1], _SESSION_LOG_STD)
                    if session[0] == 0:
                        wait_s, stay_s = self._in_equilibrium(some, session_s, gap_s, wait_s, stay_s, streams)
                    come_s = rhythm.real_s(rhythm.inner_s(end_s[some]) + wait_s)
                    leave_s = come_s + stay_s
                    start_s[some], end_s[some], number[some] = come_s, leave_s, session + 1
                    yield some, come_s, leave_s
                    unfinished.append(some[np.flatnonzero(leave_s < until_s)])
                open_ = np.concatenate(unfinished)

        for _ in drawn_until(0.0):
            pass
        for begin_s, until_s in pairwise(edges_s.tolist()):
            last = np.flatnonzero(np.floor(start_s) < until_s)
            sessions = chain([(last, start_s[last], end_s[last])], drawn_until(until_s))
            parts = zip(*(_cut(*some, begin_s, until_s) for some in sessions), strict=True)
            columns = merged(*(np.concatenate(column) for column in parts))
            yield Intervals(*columns, np.broadcast_to(until_s, device_count), "availability")

    def _means_s(self, ids: Integers, streams: Streams) -> tuple[Floats, Floats]:
        """Mean session and mean gap of each device, [n]."""
        draws = streams.uniform("availability-device", ids, count=2)
        normal = streams.normal("availability-device", ids, 1)
        mean_share = min(self.online_share * (1 + _LOST_TO_RHYTHM * self.rhythm**2), 0.999)
        other_shape = _SPREAD_OF_SHARE * (1 / mean_share - 1)
        share = np.clip(betaincinv(_SPREAD_OF_SHARE, other_shape, draws[:, 0]), _LEAST_SHARE, 1 - _LEAST_SHARE)
        relative = share / betaincinv(_SPREAD_OF_SHARE, other_shape, 0.5)
        rate = self.sessions_per_week * np.exp(_RATE_LOG_STD * normal) * relative ** (1 - _SHARE_IN_LENGTHS)
        cycle_s = WEEK_S / rate
        return share * cycle_s, (1 - share) * cycle_s

    def _in_equilibrium(
        self, ids: Integers, session_s: Floats, gap_s: Floats, wait_s: Floats, stay_s: Floats, streams: Streams
    ) -> tuple[Floats, Floats]:
        """Rests of the gap and of the session, of lengths ``wait_s`` and ``stay_s`` [n], in which the process begins.

        In s, [n] each; the rest of the gap is 0 where it begins in a session.
        """
        uniform = streams.uniform("availability-device", ids, 2, count=2)
        inside = uniform[:, 0] < session_s[ids] / (session_s[ids] + gap_s[ids])
        # A length-biased log-normal is the log-normal shifted by its variance; an instant falls anywhere in it.
        rest = uniform[:, 1]
        wait_s = np.where(inside, 0.0, rest * wait_s * np.exp(_GAP_LOG_STD**2))
        return wait_s, np.where(inside, rest * stay_s * np.exp(_SESSION_LOG_STD**2), stay_s)


def _cut(
    device: Integers, come_s: Floats, leave_s: Floats, begin_s: float, until_s: float
) -> tuple[Integers, Floats, Floats]:
    """Parts of sessions, [n], between two instants, in whole seconds: devices, starts and ends, [k] each."""
    from_s, to_s = np.maximum(np.floor(come_s), begin_s), np.minimum(np.floor(leave_s), until_s)
    rows = np.flatnonzero(from_s < to_s)
    return device[rows], from_s[rows], to_s[rows]


class Rhythm:
    """The time in which gaps pass: the integral of 1 + rhythm cos(2 pi (t - peak) / day)."""

    def __init__(self, rhythm: float, peak_h: float) -> None:
        self._rhythm, self._peak_h = rhythm, peak_h
        self._minute_s = np.arange(0.0, DAY_S + 60.0, 60.0)
        inner_s = self.inner_s(self._minute_s)
        self._slope = np.append(np.diff(self._minute_s) / np.diff(inner_s), 0.0)
        self._inner_s = np.append(inner_s, np.inf)
        # A cell's instants are rounded: the minute is that of the cell before, and then looked for.
        cells_s = inner_s[0] + np.arange(-1, _CELLS + 1) * (DAY_S / _CELLS)
        self._minute = np.maximum(np.searchsorted(inner_s, cells_s, "right") - 1, 0)

    def inner_s(self, t_s: Floats) -> Floats:
        """Inner time at real times, [n]."""
        turn = 2 * np.pi * (t_s / DAY_S - self._peak_h / 24)
        return np.asarray(t_s + self._rhythm * DAY_S / (2 * np.pi) * np.sin(turn))

    def real_s(self, inner_s: Floats) -> Floats:
        """Real time at inner times, [n]: linear between values of `inner_s` at every minute, a few seconds off.

        The same bits as np.interp in a fifth of its time.
        """
        # The integral over a whole day is a day. As np.divmod, in a fraction of its time.
        since_s = inner_s - self._inner_s[0]
        days = np.floor(since_s / DAY_S)
        days -= days * DAY_S > since_s
        rest_s = since_s - days * DAY_S
        minute = self._minute[(rest_s * (_CELLS / DAY_S)).astype(np.int64)]
        rest_s += self._inner_s[0]
        later = np.flatnonzero(rest_s >= self._inner_s[1:][minute])
        while len(later):
            minute[later] += 1
            later = later[rest_s[later] >= self._inner_s[minute[later] + 1]]
        within_s = self._slope[minute] * (rest_s - self._inner_s[minute]) + self._minute_s[minute]
        return np.asarray(days * DAY_S + within_s)


def _log_normal(normal: Floats, log_std: float) -> Floats:
    """Log-normal draws of mean 1."""
    return np.asarray(np.exp(log_std * normal - log_std**2 / 2))
