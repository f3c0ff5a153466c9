"""Tables on the terminal about recordings: availability, speeds, links, capacities, positions."""

from collections.abc import Mapping

import numpy as np
from rich.table import Table

from edgesim.base.arrays import Floats
from edgesim.devices.profile import Profile
from edgesim.traces.readers import Capacity, LinkRows, PositionRows
from edgesim.traces.session_statistics import Anatomy


def anatomy_table(traces: Mapping[str, Anatomy]) -> Table:
    """Statistics of availability traces, one column per trace."""
    table = Table(title="availability", title_justify="left")
    table.add_column("")
    for name in traces:
        table.add_column(name, justify="right")
    columns = [_statistics(trace) for trace in traces.values()]
    for heading in columns[0]:
        table.add_row(heading, *(column[heading] for column in columns))
    return table


def _statistics(trace: Anatomy) -> dict[str, str]:
    """Statistics of a trace as texts, by heading of their row."""
    count = len(trace.sessions)
    never = np.count_nonzero(trace.sessions == 0)
    hours = trace.share_by_hour
    busy, quiet = int(np.nanargmax(hours)), int(np.nanargmin(hours))
    lengths_s = trace.intervals.length_s
    instants_s, online = trace.counts_over_time
    online = online[instants_s < trace.length_s]

    def of_recorded(place: np.intp) -> str:
        return f"{online[place]:,} of {np.count_nonzero(lengths_s > instants_s[place]):,}"

    mean = f"{trace.duration_s.sum() / trace.length_s:,.1f} of {lengths_s.sum() / trace.length_s:,.1f}"
    shares, sessions = (np.quantile(values, [0.25, 0.5, 0.75]) for values in (trace.online_share, trace.sessions))
    return {
        "devices; never there": f"{count:,}; {never:,}",
        "recorded days": f"{trace.length_s / 86400:.2f}",
        "not observed": not_observed(trace),
        "online, of all time": f"{trace.pooled_share:.2%}",
        "online, of observed time": f"{trace.observed_share:.2%}" if trace.unobserved_share < 1 else "",
        "online per device: quartiles": ", ".join(f"{share:.1%}" for share in shares),
        # Of equal counts the first one, at which the most devices are still recorded.
        "online of those recorded: least, mean, most": (
            f"{of_recorded(online.argmin())}, {mean}, {of_recorded(online.argmax())}"
        ),
        "busiest and quietest hour": f"{busy:02d} h {hours[busy]:.1%}, {quiet:02d} h {hours[quiet]:.1%}",
        "sessions": f"{len(trace.duration_s):,}",
        "sessions per device: quartiles": ", ".join(f"{value:g}" for value in sessions),
        **_times("session", trace.duration_s),
        **_times("gap", trace.gap_s),
        "devices with a gap above 1 h": f"{np.count_nonzero(trace.longest_gap_s > 3600) / count:.1%}",
        "devices with a mean gap above 1 h": f"{np.count_nonzero(trace.mean_gap_s > 3600) / count:.1%}",
    }


def not_observed(trace: Anatomy) -> str:
    """Share of time that was not observed, and whether it counts as absent or present."""
    counts_as = f" (counts as {trace.intervals.unobserved_as})" if trace.unobserved_share > 0 else ""
    return f"{trace.unobserved_share:.1%}{counts_as}"


def _times(what: str, seconds: Floats) -> dict[str, str]:
    """Rows about durations [n]: their quartiles, and their 90 % quantile and mean; empty texts for no durations."""
    rows = {f"{what}: quartiles": "", f"{what}: 90 %, mean": ""}
    if len(seconds):
        *quartiles, most = np.quantile(seconds, [0.25, 0.5, 0.75, 0.9])
        rows[f"{what}: quartiles"] = ", ".join(map(duration, quartiles))
        rows[f"{what}: 90 %, mean"] = f"{duration(most)}, {duration(float(np.mean(seconds)))}"
    return rows


def duration(seconds: float) -> str:
    """A duration in the largest unit of which it has at least one."""
    for unit, size in (("d", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def profile_table(name: str, profile: Profile) -> Table:
    """Speeds and links over the devices."""
    rows = {"training time per sample (ms)": 1e3 * profile.s_per_sample}
    if profile.link_bps is not None:
        rows["rate of the link (Mbit/s)"] = profile.link_bps / 1e6
    return _quantiles(f"{name}: {len(profile.s_per_sample):,} devices", rows)


def links_table(name: str, links: LinkRows) -> Table:
    """Lengths and capacities of uplinks over the devices."""
    held_s = links.held_s
    length_s = np.bincount(links.device, held_s).astype(np.float64)
    # A device with a single row of unknown end has no duration to weight by, so the row's capacity is taken itself.
    weight = np.where(length_s[links.device] > 0, held_s, 1.0)
    whole = np.bincount(links.device, weight)
    rows = {
        "recorded seconds": length_s,
        "mean capacity (Mbit/s)": np.bincount(links.device, weight * links.bps) / whole / 1e6,
        "share of time at 0": np.bincount(links.device, weight * (links.bps == 0)) / whole,
    }
    return _quantiles(f"{name}: links of {links.device_count:,} devices", rows)


def positions_table(name: str, rows: PositionRows) -> Table:
    """Lengths, ways and speeds of recorded positions over the devices."""
    apart = np.diff(rows.device) > 0
    first, last = np.flatnonzero(np.append(True, apart)), np.flatnonzero(np.append(apart, True))
    recorded_s = rows.t_s[last] - rows.t_s[first]
    step_m = np.where(apart, 0.0, np.hypot(np.diff(rows.x_m), np.diff(rows.y_m)))
    way_m = np.bincount(rows.device[1:], step_m, rows.device_count).astype(np.float64)
    moving = recorded_s > 0
    table: dict[str, Floats] = {
        "rows": np.bincount(rows.device).astype(np.float64),
        "recorded seconds": recorded_s,
        "way (m)": way_m,
        "mean speed (m/s)": way_m[moving] / recorded_s[moving],
    }
    known = {heading: values for heading, values in table.items() if len(values)}
    return _quantiles(f"{name}: positions of {rows.device_count:,} devices", known)


def _quantiles(title: str, rows: Mapping[str, Floats]) -> Table:
    """A table with a row of quantiles for each quantity of the devices."""
    table = Table("", "5 %", "quartiles", "95 %", title=title)
    for heading, values in rows.items():
        low, *quartiles, high = np.quantile(values, [0.05, 0.25, 0.5, 0.75, 0.95])
        table.add_row(heading, f"{low:.4g}", ", ".join(f"{value:.4g}" for value in quartiles), f"{high:.4g}")
    return table


def capacity_table(capacity: Capacity) -> Table:
    """A table with one row for each capacity trace."""
    table = Table("trace", "seconds", "mean Mbit/s", "median", "90 %", "share of time at 0", title="capacity")
    for name, (t_s, bps) in capacity.tables.items():
        end_s = capacity.ends_s.get(name, t_s[-1])
        held_s = np.diff(np.append(t_s, end_s))
        if not held_s.sum():
            held_s = np.ones(1)
        order = np.argsort(bps)
        passed = np.cumsum(held_s[order]) / held_s.sum()
        middle, high = (bps[order][np.searchsorted(passed, share * (1 - 1e-12))] for share in (0.5, 0.9))
        mean = float(np.average(bps, weights=held_s))
        numbers = (f"{1e-6 * value:.4g}" for value in (mean, middle, high))
        table.add_row(name, f"{end_s:,.3f}", *numbers, f"{held_s[bps == 0].sum() / held_s.sum():.1%}")
    return table
