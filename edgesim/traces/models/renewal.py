"""Phones of one week: an alternating renewal process with a day/night rhythm and very different devices.

Calibrated to what FedDance (SoCC 2025, section 2.2 and fig. 3) reports of a trace of 136,000 phones over a week:
20.26 % of all time online, dozens to hundreds of sessions per device, most sessions a few minutes long, and over 65 %
of the devices with gaps above one hour. In 100,000 generated weeks 20.2 % of the time is online, four devices of five
have 21 to 224 sessions (the median one 82), 62 % of the sessions last under ten minutes and 11 % under one (median 6.3
minutes), and the mean gap of 67 % of the devices is above an hour.

The hours are those of 723 phones of the FLASH recording (Yang et al., WWW 2021): most are there at 4 h, twice as many
as in the afternoon. The shapes of the distributions are our choice.
"""

import numpy as np
from pydantic import Field
from scipy.special import betaincinv

from edgesim.arrays import Floats, Integers
from edgesim.streams import Streams
from edgesim.traces.intervals import Intervals, joined
from edgesim.traces.models.options import DAY_S, WEEK_S, Repeated

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
_BLOCK = 64
"""Sessions drawn at once."""


class Renewal(Repeated):
    """Draws: streams ``availability-device`` and, indexed by the session, ``availability``."""

    length_s: float = Field(WEEK_S, gt=0)
    """Time laid down; then it begins again."""
    online_share: float = Field(0.2026, gt=0, lt=1)
    """Mean share of time online over the devices."""
    sessions_per_week: float = Field(90.0, gt=0)
    """Of a device in the middle of both spreads, time online and rate; the median over all is a tenth below."""
    rhythm: float = Field(0.57, ge=0, lt=1)
    """How much sooner devices come at night than by day: the rate swings by this share around its mean."""
    peak_h: float = Field(3.0, ge=0, lt=24)
    """Hour of the day at which they come soonest."""

    def intervals(self, device_count: int, streams: Streams) -> Intervals:
        """Sessions from 0 to ``length_s`` in whole seconds.

        Every device's sessions and gaps are log-normal around its own means. Gaps pass in a time that runs faster at
        night. The process starts one day before 0, in a session with the device's own share as probability and, there
        and in a gap, with the length-biased remainder of a renewal process in equilibrium.
        """
        ids = np.arange(device_count, dtype=np.int64)
        session_s, gap_s = self._means_s(ids, streams)
        device, start_s, end_s = [], [], []
        begin = -DAY_S
        at_s = np.full(device_count, begin)
        open_ = ids
        block = 0
        while len(open_):
            draws = streams.normal("availability", open_, block, count=2 * _BLOCK)
            for number in range(_BLOCK):
                wait_s = gap_s[open_] * _log_normal(draws[:, 2 * number], _GAP_LOG_STD)
                stay_s = session_s[open_] * _log_normal(draws[:, 2 * number + 1], _SESSION_LOG_STD)
                if block == number == 0:
                    wait_s, stay_s = self._in_equilibrium(open_, session_s, gap_s, draws, streams)
                come_s = self._real_s(self._inner_s(at_s[open_]) + wait_s)
                at_s[open_] = come_s + stay_s
                device.append(open_)
                start_s.append(come_s)
                end_s.append(at_s[open_])
                still = at_s[open_] < self.length_s
                open_, draws = open_[still], draws[still]
            block += 1
        from_s, to_s = np.floor(np.concatenate(start_s)), np.floor(np.concatenate(end_s))
        return joined(np.concatenate(device), from_s, to_s, self.length_s, device_count, "availability")

    def _means_s(self, ids: Integers, streams: Streams) -> tuple[Floats, Floats]:
        """Mean session and mean gap of each device, [n]."""
        draws = streams.uniform("availability-device", ids, count=2)
        normal = streams.normal("availability-device", ids, 1)
        mean_share = min(self.online_share * (1 + _LOST_TO_RHYTHM * self.rhythm**2), 0.999)
        other_shape = _SPREAD_OF_SHARE * (1 / mean_share - 1)
        share = np.clip(betaincinv(_SPREAD_OF_SHARE, other_shape, draws[:, 0]), 1e-4, 1 - 1e-4)
        relative = share / betaincinv(_SPREAD_OF_SHARE, other_shape, 0.5)
        rate = self.sessions_per_week * np.exp(_RATE_LOG_STD * normal) * relative ** (1 - _SHARE_IN_LENGTHS)
        cycle_s = WEEK_S / rate
        return share * cycle_s, (1 - share) * cycle_s

    def _in_equilibrium(
        self, ids: Integers, session_s: Floats, gap_s: Floats, draws: Floats, streams: Streams
    ) -> tuple[Floats, Floats]:
        """What is left of the gap and of the session in which the process begins; in a session no gap is left."""
        uniform = streams.uniform("availability-device", ids, 2, count=2)
        inside = uniform[:, 0] < session_s[ids] / (session_s[ids] + gap_s[ids])
        # A length-biased log-normal is the log-normal shifted by its variance; an instant falls anywhere in it.
        rest = uniform[:, 1]
        wait_s = gap_s[ids] * _log_normal(draws[:, 0], _GAP_LOG_STD)
        stay_s = session_s[ids] * _log_normal(draws[:, 1], _SESSION_LOG_STD)
        wait_s = np.where(inside, 0.0, rest * wait_s * np.exp(_GAP_LOG_STD**2))
        return wait_s, np.where(inside, rest * stay_s * np.exp(_SESSION_LOG_STD**2), stay_s)

    def _inner_s(self, t_s: Floats) -> Floats:
        """The time in which gaps pass: the integral of 1 + rhythm cos(2 pi (t - peak) / day)."""
        turn = 2 * np.pi * (t_s / DAY_S - self.peak_h / 24)
        return np.asarray(t_s + self.rhythm * DAY_S / (2 * np.pi) * np.sin(turn))

    def _real_s(self, inner_s: Floats) -> Floats:
        """Inverse of `_inner_s`, to a few seconds: by its values at every minute of a day."""
        minutes_s = np.arange(0.0, DAY_S + 60.0, 60.0)
        table_s = self._inner_s(minutes_s)
        # The integral over a whole day is a day.
        days, rest_s = np.divmod(inner_s - table_s[0], DAY_S)
        return np.asarray(days * DAY_S + np.interp(rest_s + table_s[0], table_s, minutes_s))


def _log_normal(normal: Floats, log_std: float) -> Floats:
    """Log-normal draws of mean 1."""
    return np.asarray(np.exp(log_std * normal - log_std**2 / 2))
