"""What holds between the tables of every finished run: time, bits, band, energy, presence and outcomes.

Nothing here is shared with the code that wrote the tables: every sum is made anew from the rows of ``activities``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from edgesim.activities import ACTIVITIES, COMPUTE, ON_AIR
from edgesim.analysis.band_use import band_use, stations_of
from edgesim.analysis.runs import RunFolder
from edgesim.analysis.waste import AMOUNTS, work_by_kind
from edgesim.base.arrays import Booleans, Floats
from edgesim.folder.records import read_run, read_table
from edgesim.folder.rows_file import ABSENCES
from edgesim.folder.work_kinds import USEFUL

CLOSE_S = 1e-6
"""Instants nearer than this are the same: the clock rounds at 1e-9 of a deadline, at the end of a run at 1e-6 of it."""
_RELATIVE = 1e-9
"""Sums that differ by less, relative to the terms, differ by the order in which they were made."""


@dataclass(frozen=True)
class Tables:
    """The tables of a run that invariants look at, with the columns that several of them need."""

    run: RunFolder

    @cached_property
    def activities(self) -> pd.DataFrame:
        """Table ``activities`` in the order of devices and time; ``row`` counts its rows in the file from 1."""
        rows = self.run.activities
        rows["row"] = np.arange(1, len(rows) + 1)
        return rows.sort_values(["device", "t_start_s", "t_end_s"], kind="stable", ignore_index=True)

    @cached_property
    def rounds(self) -> pd.DataFrame:
        """Table ``rounds``, in order; empty where no round was finished."""
        return read_table(self.run.folder, "rounds").sort_values("round", ignore_index=True)

    @cached_property
    def updates(self) -> pd.DataFrame:
        """Table ``updates``."""
        return self.run.updates

    @cached_property
    def facts(self) -> dict[str, Any]:
        """What ``run.json`` says."""
        return read_run(self.run.folder)

    @cached_property
    def is_last(self) -> Booleans:
        """Whether a row of `activities` is the last of its task."""
        return np.asarray(~self.activities.duplicated(["device", "task"], keep="last"))

    def of_rounds(self, name: str) -> Floats:
        """Value of a row of ``metrics`` without a key for each round of `rounds`; 0 where there is none."""
        metrics = self.run.metrics
        rows = metrics[(metrics["name"] == name) & (metrics["key"] == "")]
        return np.asarray(self.rounds["round"].map(rows.set_index("round")["value"]).fillna(0.0))

    def sums(self, column: str, rows: Booleans | slice = slice(None)) -> Floats:
        """Sum of a column of the ``rows`` of `activities` for each round of `rounds`."""
        sums = self.activities[rows].groupby("round")[column].sum()
        return np.asarray(self.rounds["round"].map(sums).fillna(0.0))


def broken_invariants(folder: Path) -> list[str]:
    """Invariants that the tables of a finished run break, a line each that names the table and its first wrong row.

    Raises `EdgesimError` for a table that cannot be read.
    """
    tables = Tables(RunFolder(folder, {}, 0))
    return [f"{folder / table}.parquet: {line}" for holds in INVARIANTS for table, line in holds(tables)]


Fault = tuple[str, str]
"""Name of a table, and what is wrong in it."""


def _first(table: str, rows: pd.DataFrame, wrong: Booleans | pd.Series, expected: str) -> Iterator[Fault]:
    """The first wrong row of a table in its file, and how many others are wrong; nothing where none is."""
    if (count := int(np.count_nonzero(wrong))) == 0:
        return
    numbers = rows["row"] if "row" in rows else pd.Series(np.arange(1, len(rows) + 1), rows.index)
    more = f" (and {count - 1} more)" if count > 1 else ""
    yield table, f"row {int(numbers[np.asarray(wrong)].min())}{more}: expected {expected}"


def _differ(a: Floats, b: Floats) -> Booleans:
    """Whether numbers differ by more than the order of a sum explains."""
    return np.abs(a - b) > _RELATIVE * np.maximum(np.abs(a), np.abs(b)) + 1e-12


def time(tables: Tables) -> Iterator[Fault]:
    """Rounds follow each other, no device does two things at once, and nothing goes on behind the end of the run."""
    rounds, rows = tables.rounds, tables.activities
    before_s = rounds["t_end_s"].shift(fill_value=0.0)
    yield from _first("rounds", rounds, rounds["t_start_s"] < before_s - CLOSE_S, "a start not before the last end")
    same = rows["device"].eq(rows["device"].shift())
    wrong = same & (rows["t_start_s"] < rows["t_end_s"].shift() - CLOSE_S)
    yield from _first("activities", rows, wrong, "one activity of a device at a time")
    end_s = tables.facts.get("t_end_s")
    if isinstance(end_s, int | float):
        wrong = rows["t_end_s"] > end_s + CLOSE_S * max(1.0, tables.run.tmax_s)
        yield from _first("activities", rows, wrong, f"an end not after that of the run ({end_s:g} s)")


def bits(tables: Tables) -> Iterator[Fault]:
    """Rounds have the bits that their uploads have, and to compute moves none."""
    rows, rounds = tables.activities, tables.rounds
    yield from _first("activities", rows, rows["activity"].eq(COMPUTE) & rows["bits"].ne(0), "no bits to compute")
    on_air = rows["activity"].isin(ON_AIR).to_numpy()
    sums = tables.sums("bits", on_air)
    yield from _first("rounds", rounds, _differ(sums, rounds["bits_up"].to_numpy()), "bits_up of its uploads")


def band(tables: Tables) -> Iterator[Fault]:
    """No station gives more bandwidth, nor more hertz-seconds, than its band has; without a band there is none."""
    rows = tables.activities
    on_air = rows["activity"].isin(ON_AIR)
    has_band = on_air & (tables.run.sharing != "own")
    yield from _first("activities", rows, ~has_band & rows["bandwidth_hz"].ne(0), "bandwidth_hz of uploads alone")
    stations = tables.run.stations.set_index("station")["bandwidth_hz"]
    uploads = rows[has_band].assign(station=stations_of(tables.run, rows[has_band]))
    for station, of in uploads.groupby("station"):
        band_hz = float(stations.loc[station])
        is_reshared = tables.run.sharing == "reshared"
        used = band_use(of, band_hz, reshared=is_reshared)
        share, lengths_s = used.share[:-1], np.diff(used.t_s)
        wrong = (share > 1 + _RELATIVE) & (lengths_s > CLOSE_S)
        if wrong.any():
            at = int(np.argmax(wrong))
            yield "activities", f"{share[at] * band_hz:g} Hz at {used.t_s[at]:g} s: expected at most {band_hz:g} Hz"
        if is_reshared:
            # Its rows have each upload's mean; the whole band is in use while anybody sends.
            spent = float(of["bandwidth_hz"] @ (of["t_end_s"] - of["t_start_s"]))
            most = band_hz * float(share @ lengths_s)
            if spent > most * (1 + _RELATIVE) + band_hz * CLOSE_S:
                yield "activities", f"{spent:g} Hz s of uploads: expected at most {most:g} Hz s"


def energy(tables: Tables) -> Iterator[Fault]:
    """Rounds have the joules of their rows and of idling, and a device draws one power in one activity."""
    rows, rounds = tables.activities, tables.rounds
    sums = tables.sums("energy_j") + tables.of_rounds("idle_j")
    yield from _first("rounds", rounds, _differ(sums, rounds["energy_j"].to_numpy()), "energy_j of its rows and idling")
    seconds = rows["t_end_s"] - rows["t_start_s"]
    long = seconds > CLOSE_S
    power_w = rows["energy_j"] / seconds.where(long, 1.0)
    of_kind = power_w.where(long).groupby([rows["device"], rows["activity"]])
    wrong = long & _differ(of_kind.transform("median").to_numpy(), power_w.to_numpy())
    yield from _first("activities", rows, wrong, "the power that the device draws in its other rows of this activity")


def presence(tables: Tables) -> Iterator[Fault]:
    """Devices work while they are there, or ``away_s`` says how long they were not."""
    rows, absences = tables.activities, ABSENCES.read(tables.run.folder)
    away_s = np.zeros(len(rows)) if absences is None else _away_s(rows, absences)
    ignored = tables.run.config["availability"]["interruption"] == "ignore"
    wrong = np.abs(rows["away_s"] - (away_s if ignored else 0.0)) > CLOSE_S
    yield from _first("activities", rows, wrong, "away_s as long as the device's absences, 0 unless these are ignored")
    if not ignored:
        yield from _first("activities", rows, away_s > CLOSE_S, "an activity while the device is there")


def _away_s(rows: pd.DataFrame, absences: pd.DataFrame) -> Floats:
    """Seconds of each row in which its device was absent."""
    away_s = np.zeros(len(rows))
    spans = dict(iter(absences.groupby("device")))
    for device, place in rows.groupby("device").indices.items():
        if device in spans:
            start_s, end_s = (spans[device][name].to_numpy() for name in ("t_start_s", "t_end_s"))
            from_s, to_s = (rows[name].to_numpy()[place] for name in ("t_start_s", "t_end_s"))
            away_s[place] = _absent_s(to_s, start_s, end_s) - _absent_s(from_s, start_s, end_s)
    return away_s


def _absent_s(t_s: Floats, start_s: Floats, end_s: Floats) -> Floats:
    """Seconds of absence before each instant, of a device with these absences in order."""
    total_s = np.concatenate(([0.0], np.cumsum(end_s - start_s)))
    begun = np.searchsorted(start_s, t_s)
    last_end_s = np.append(-np.inf, end_s)[begun]
    return total_s[begun] - np.maximum(last_end_s - t_s, 0.0)


def outcomes(tables: Tables) -> Iterator[Fault]:
    """Tasks pass through their activities in order and end once, updates are of tasks that arrived, waste adds up."""
    rows, rounds, updates = tables.activities, tables.rounds, tables.updates
    order = rows["activity"].map({name: place for place, name in enumerate(ACTIVITIES)})
    task = [rows["device"], rows["task"]]
    wrong = order < order.groupby(task).shift(fill_value=0)
    yield from _first("activities", rows, wrong, f"{', '.join(ACTIVITIES)} of a task in this order")
    # Uploads that handovers restart drop what was sent before.
    restarts = (tables.run.config.get("handover") or {}).get("upload") == "restart"
    before = ["done", "paused", "dropped"] if restarts else ["done", "paused"]
    wrong = ~tables.is_last & ~rows["outcome"].isin(before)
    yield from _first("activities", rows, wrong, f"outcomes but {', '.join(before)} in the last row of a task alone")
    if tables.facts.get("has_rounds") is True:
        lost = rounds["selected"] - rounds[["arrived", "late", "dropped"]].sum(axis=1)
        # In a round that makes no model nobody arrives, is late or drops out.
        skipped = rounds["round"].isin(rows.loc[rows["outcome"].isin(["skipped", "kept"]), "round"])
        yield from _first("rounds", rounds, (lost != 0) & ~skipped, "selected = arrived + late + dropped")
    yield from _first("updates", updates, updates.duplicated(["device", "task"]), "an update of a task once")
    arrived = rows[tables.is_last & rows["activity"].isin(ON_AIR) & rows["outcome"].isin(["done", "kept"])]
    keys = pd.MultiIndex.from_frame(arrived[["device", "task"]])
    wrong = ~pd.MultiIndex.from_frame(updates[["device", "task"]]).isin(keys)
    yield from _first("updates", updates, wrong, "a task whose upload is done")
    yield from _waste(tables)


def _waste(tables: Tables) -> Iterator[Fault]:
    """``metrics`` has the waste of the rows by round; over the whole run where devices kept weights for a later one."""
    work, metrics = work_by_kind(tables.activities, tables.updates), tables.run.metrics
    by = ["kind"] if tables.activities["outcome"].eq("kept").any() else ["round", "kind"]
    wasted = work[work["kind"] != USEFUL].groupby(by, observed=True)[list(AMOUNTS)].sum()
    for amount, name in zip(AMOUNTS, ("wasted_s", "wasted_bits", "wasted_j"), strict=True):
        rows = metrics[metrics["name"] == name].rename(columns={"key": "kind"})
        both = wasted[[amount]].join(rows.groupby(by)["value"].sum(), how="outer").fillna(0.0)
        wrong = both[_differ(both[amount].to_numpy(), both["value"].to_numpy())]
        if len(wrong):
            key = wrong.index[0]
            where = key if isinstance(key, str) else f"{key[1]} of round {key[0]}"
            more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
            yield (
                "metrics",
                f"{name} of {where}{more}: expected {wrong[amount].iloc[0]:g} (got {wrong['value'].iloc[0]:g})",
            )


INVARIANTS: tuple[Callable[[Tables], Iterator[Fault]], ...] = (time, bits, band, energy, presence, outcomes)
