"""Where a run's joules went: by activity and by device."""

import numpy as np
import pandas as pd

from edgesim.arrays import Floats

ACTIVITIES = ("download", "compute", "upload")
IDLE = "idle"


def energy_by_activity_j(activities: pd.DataFrame, metrics: pd.DataFrame) -> pd.DataFrame:
    """Joules per ``round`` (the index) and activity (the columns of `ACTIVITIES`), zeros where there were none.

    The column `IDLE` is what all devices drew all the time (``devices.idle_power_w``), whatever they did.
    """
    table = activities.pivot_table(index="round", columns="activity", values="energy_j", aggfunc="sum", fill_value=0.0)
    idle_j = _idle_j(metrics)
    rounds = table.index.union(idle_j.index)
    table = table.reindex(index=rounds, columns=list(ACTIVITIES), fill_value=0.0)
    return table.assign(**{IDLE: idle_j.reindex(rounds, fill_value=0.0)})


def energy_j(activities: pd.DataFrame, metrics: pd.DataFrame) -> float:
    """Joules of a whole run, those of the work that its end cancelled included (which no row of ``rounds`` has)."""
    return float(activities["energy_j"].sum() + _idle_j(metrics).sum())


def energy_by_device_j(activities: pd.DataFrame, metrics: pd.DataFrame, devices: pd.DataFrame) -> Floats:
    """Joules of every device of a run, by ascending id, [devices]; of those that never worked what idling took.

    All devices idle alike, but for those whose batteries ran empty: a finished run tells what each one's idling took.
    """
    everyone = np.unique(devices["device"])
    spent = activities.groupby("device")["energy_j"].sum().reindex(everyone, fill_value=0.0)
    own = metrics[(metrics["name"] == "idle_j") & (metrics["key"] != "")]
    idle = own.set_index(own["key"].astype(int))["value"].reindex(everyone)
    alike_j = float(_idle_j(metrics).sum()) / len(everyone)
    return np.asarray(spent + idle.fillna(alike_j), dtype=np.float64)


def _idle_j(metrics: pd.DataFrame) -> pd.Series:
    """Joules of idling per round, of all devices together."""
    return metrics[(metrics["name"] == "idle_j") & (metrics["key"] == "")].set_index("round")["value"]
