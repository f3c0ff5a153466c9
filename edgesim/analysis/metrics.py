"""Measures of one run: speed of learning, accuracy, which devices were scheduled, how well the band was used.

The arguments are tables of a run folder as `edgesim.folder.records.read_table` gives them.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd

from edgesim.activities import COMPUTE, ON_AIR
from edgesim.base.arrays import Booleans
from edgesim.base.errors import EdgesimError

FINAL_EVALUATIONS = 5


class Reached(NamedTuple):
    """The test at which a target was reached; if ``reached`` is false, it was not, and this is the last test."""

    round: float
    """Number of the round whose model was tested."""
    t_s: float
    """Simulated seconds until the test."""
    reached: bool


def start_accuracy(metrics: pd.DataFrame) -> float | None:
    """Test accuracy before the first round (row of round 0), or None in a timing-only run."""
    rows = metrics[(metrics["round"] == 0) & (metrics["name"] == "test_accuracy")]
    return float(rows["value"].iloc[0]) if len(rows) else None


def evaluations(rounds: pd.DataFrame) -> pd.DataFrame:
    """The evaluated rounds: those whose ``test_accuracy`` is not null, in order."""
    return rounds[rounds["test_accuracy"].notna()].sort_values("round")


def like_the_last(tested: pd.DataFrame, metrics: pd.DataFrame) -> pd.DataFrame:
    """Select the tests (rows with ``round``) of as many models as the last one: all of them, as a rule.

    Where devices have models of their own, a test is a mean over all that were ever merged (``models_tested`` of
    ``metrics``). Their number only grows, and a newcomer moves the mean without any learning, so that a test of fewer
    models can be no best of the run.
    """
    counted = metrics[metrics["name"] == "models_tested"]
    if tested.empty or counted.empty:
        return tested
    models = tested["round"].map(counted.set_index("round")["value"]).fillna(0)
    return tested[models == models.iloc[-1]]


def tests(rounds: pd.DataFrame, metrics: pd.DataFrame) -> pd.DataFrame:
    """The accuracy tests of a run: columns ``round``, ``t_s`` and ``accuracy``, in order of time.

    With ``evaluation.every_s`` a model has one row for each instant of the tests (metric ``tested_at_s``) at which it
    was the server's model; otherwise it has one row, at the end of its round. The start model has no row.
    """
    evaluated = evaluations(rounds)
    table = pd.DataFrame(
        {"round": evaluated["round"], "t_s": evaluated["t_end_s"], "accuracy": evaluated["test_accuracy"]}
    )
    instants = metrics[metrics["name"] == "tested_at_s"][["round", "value"]]
    if len(instants):
        table = table.merge(instants, on="round", how="left")
        table["t_s"] = table["value"].fillna(table["t_s"])
    return table[["round", "t_s", "accuracy"]].sort_values(["round", "t_s"]).reset_index(drop=True)


def to_target(tests: pd.DataFrame, target: float, start: float) -> Reached:
    """The first test at or above the target accuracy; if there is none, the last test.

    ``tests`` as from `tests`, at least one. Raises `EdgesimError` unless the target lies above the start accuracy.
    """
    return _first(tests, tests["accuracy"].to_numpy() >= target, target, start)


def to_stay(tests: pd.DataFrame, target: float, start: float) -> Reached:
    """The first test from which on every test is at or above the target accuracy; otherwise as `to_target`."""
    there = tests["accuracy"].to_numpy() >= target
    return _first(tests, np.logical_and.accumulate(there[::-1])[::-1], target, start)


def _first(tests: pd.DataFrame, there: Booleans, target: float, start: float) -> Reached:
    if target <= start:
        raise EdgesimError(f"target {target:g} must lie above the start accuracy {start:g}; choose a higher target")
    row = tests.iloc[there.argmax() if there.any() else -1]
    return Reached(float(row["round"]), float(row["t_s"]), bool(there.any()))


def joules_until(rounds: pd.DataFrame, number: float) -> float:
    """Joules that the devices spent in all rounds up to that of this number, which is included."""
    return float(rounds.loc[rounds["round"] <= number, "energy_j"].sum())


def saving(rounds: float, reference_rounds: float) -> float:
    """Share of rounds saved against a reference: 1 - rounds / reference_rounds."""
    return 1.0 - rounds / reference_rounds


def final_accuracy(rounds: pd.DataFrame) -> float:
    """Mean test accuracy of the last five evaluations (of all if there are fewer); NaN without evaluations."""
    return float(evaluations(rounds)["test_accuracy"].tail(FINAL_EVALUATIONS).mean())


def mean_scheduled(rounds: pd.DataFrame) -> float:
    """Mean number of devices scheduled per round."""
    return float(rounds["selected"].mean())


def mean_arrived(rounds: pd.DataFrame) -> float:
    """Mean number of updates that arrived in time per round."""
    return float(rounds["arrived"].mean())


def miss_rate(rounds: pd.DataFrame) -> float:
    """Share of the scheduled devices that were late, over the whole run; NaN if no device was scheduled."""
    selected = int(rounds["selected"].sum())
    return float(rounds["late"].sum()) / selected if selected else float("nan")


def spectral_efficiency_bps_per_hz(rounds: pd.DataFrame, activities: pd.DataFrame, bandwidth_hz: float) -> float:
    """Bits of the uploads that arrived over (band B x sum of the round times), in bit/s/Hz."""
    arrived = activities["activity"].isin(ON_AIR) & (activities["outcome"] == "done")
    # A round that the end of the run cut short has no row in ``rounds``, so its uploads have no round time.
    whole = np.isin(activities["round"].to_numpy(), rounds["round"].to_numpy())
    round_time_s = float((rounds["t_end_s"] - rounds["t_start_s"]).sum())
    return sum_of(activities["bits"], arrived.to_numpy() & whole) / (bandwidth_hz * round_time_s)


def bits_up(activities: pd.DataFrame) -> float:
    """Bits that the devices of a whole run sent, including work that the end of the run cancelled."""
    return sum_of(activities["bits"], activities["activity"].isin(ON_AIR).to_numpy())


def bits_down(rounds: pd.DataFrame, metrics: pd.DataFrame) -> float:
    """Bits that the server of a whole run sent, including to devices whose work the end of the run cancelled."""
    cut = sum_of(metrics["value"], (metrics["name"] == "bits_down").to_numpy())
    return float(rounds["bits_down"].sum()) + cut


def sum_of(column: pd.Series, rows: Booleans) -> float:
    """Sum of a column over some of its rows, nulls left out."""
    return float(np.nansum(column.to_numpy()[rows]))


def mean_of(column: pd.Series, rows: Booleans) -> float:
    """Mean of a column over some of its rows, nulls left out; NaN of none."""
    count = int(np.count_nonzero(column.notna().to_numpy() & rows))
    return sum_of(column, rows) / count if count else float("nan")


def simulated_s(rounds: pd.DataFrame) -> float:
    """Simulated seconds from the start of the run to the end of its last round."""
    return float(rounds["t_end_s"].max())


def infeasible_share(metrics: pd.DataFrame) -> float:
    """Mean over rounds of the share of candidates whose upload no bandwidth ends in time; NaN if not recorded."""
    return mean_of(metrics["value"], (metrics["name"] == "infeasible_share").to_numpy())


def noise_to_update(metrics: pd.DataFrame) -> float:
    """Mean over rounds of the noise of privacy over the mean update; NaN without noise."""
    rows = (metrics["name"] == "privacy") & (metrics["key"] == "noise_to_update")
    return mean_of(metrics["value"], rows.to_numpy())


def new_class_devices(devices: pd.DataFrame) -> pd.DataFrame:
    """Devices that hold, in a frame, a class that they did not hold in the frame before.

    One row per device and frame from frame 1 on: ``device``, ``frame``, ``has_new_class``. Empty if the run has no
    classes (``class_counts`` null or empty).
    """
    columns = ["device", "frame", "has_new_class"]
    known = devices[devices["class_counts"].map(lambda counts: counts is not None and len(counts) > 0)]
    if known.empty:
        return pd.DataFrame({"device": [], "frame": [], "has_new_class": []}, dtype="int64")
    known = known.sort_values(["device", "frame"])
    held = np.stack(known["class_counts"].to_list()) > 0
    same_device = known["device"].to_numpy()[1:] == known["device"].to_numpy()[:-1]
    has_new = np.zeros(len(known), dtype=bool)
    has_new[1:] = same_device & (held[1:] & ~held[:-1]).any(axis=1)
    return known.assign(has_new_class=has_new)[columns][known["frame"] >= 1].reset_index(drop=True)


def scheduled_devices(rounds: pd.DataFrame, activities: pd.DataFrame) -> pd.DataFrame:
    """Devices that were scheduled: one row per ``round`` and ``device``, with ``share``, how certain that is.

    A device that uploaded, was late or has computing ``done``, ``skipped`` or ``kept`` was certainly scheduled: share 1
    (computing of a device that was not ends as ``unscheduled``). A device that dropped out before its upload may or may
    not have been scheduled: the drop-outs of a round share equally the number of ``selected`` that the certain ones
    leave, so that the shares of a round add up to ``selected``. Work that the end of the run cancelled belongs to no
    round.
    """
    activities = activities[activities["round"].isin(rounds["round"])]
    computed = (activities["activity"] == COMPUTE) & activities["outcome"].isin(["done", "skipped", "kept"])
    sure = activities["activity"].isin(ON_AIR) | computed | activities["outcome"].isin(["late", "cancelled"])
    who = activities[["round", "device"]].assign(
        sure=sure.astype(float), left=(activities["outcome"] == "dropped").astype(float)
    )
    who = who.groupby(["round", "device"], as_index=False, sort=True).max()
    who["left"] *= 1 - who["sure"]
    counts = who.groupby("round")[["sure", "left"]].transform("sum")
    missing = who["round"].map(rounds.set_index("round")["selected"]) - counts["sure"]
    who["share"] = who["sure"] + who["left"] * missing / counts["left"].clip(lower=1)
    return who.loc[who["share"] > 0, ["round", "device", "share"]].reset_index(drop=True)


def scheduled_share(activities: pd.DataFrame, devices: np.ndarray, rounds: int) -> np.ndarray:
    """Share of the rounds in which each device uploaded, [n]; an upload over several rounds counts once."""
    uploads = activities[activities["activity"].isin(ON_AIR)]
    counts = uploads.groupby("device")["round"].nunique()
    return np.asarray(counts.reindex(devices, fill_value=0).to_numpy() / rounds)


def scheduled_by_class(rounds: pd.DataFrame, activities: pd.DataFrame, devices: pd.DataFrame) -> pd.DataFrame:
    """Scheduled devices per round with and without a class that is new to them in the frame.

    One row per round: ``round``, ``frame``, ``with_new``, ``only_old`` (sums of the shares of
    `scheduled_devices`; 0 if no device was scheduled). FedTeddi, fig. 4.
    """
    frames = rounds[["round", "frame"]]
    chosen = scheduled_devices(rounds, activities).merge(frames, on="round")
    chosen = chosen.merge(new_class_devices(devices), on=["device", "frame"], how="left")
    is_new = chosen["has_new_class"].eq(True)
    with_new, only_old = (
        chosen[mask].groupby("round")["share"].sum().reindex(frames["round"], fill_value=0.0).to_numpy()
        for mask in (is_new, ~is_new)
    )
    return frames.assign(with_new=with_new, only_old=only_old).reset_index(drop=True)
