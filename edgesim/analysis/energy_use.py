"""Energy of a run by activity and by device."""

import numpy as np
import pandas as pd

from edgesim.activities import ACTIVITIES
from edgesim.analysis.metrics import sum_of
from edgesim.base.arrays import Booleans, Floats

IDLE = "idle"


def energy_by_activity_j(activities: pd.DataFrame, metrics: pd.DataFrame) -> pd.DataFrame:
    """Joules per ``round`` (the index) and activity (the columns of `ACTIVITIES`), 0 where nothing was spent.

    The column `IDLE` is the energy of ``devices.idle_power_w``, which all devices draw all the time, also at work.
    """
    table = activities.pivot_table(index="round", columns="activity", values="energy_j", aggfunc="sum", fill_value=0.0)
    idle_j = metrics[_is_idle(metrics)].set_index("round")["value"]
    rounds = table.index.union(idle_j.index)
    table = table.reindex(index=rounds, columns=list(ACTIVITIES), fill_value=0.0)
    return table.assign(**{IDLE: idle_j.reindex(rounds, fill_value=0.0)})


def energy_j(activities: pd.DataFrame, metrics: pd.DataFrame) -> float:
    """Joules of a whole run, including work that the end of the run cancelled (which no row of ``rounds`` counts)."""
    return float(activities["energy_j"].sum() + sum_of(metrics["value"], _is_idle(metrics)))


def energy_by_device_j(activities: pd.DataFrame, metrics: pd.DataFrame, devices: pd.DataFrame) -> Floats:
    """Joules of every device of a run, by ascending id, [devices]; devices that never worked have spent idle energy.

    A finished run of devices with batteries records the idle energy of each device, since an empty battery stops
    idling. Without these records the idle energy is divided equally among the devices.
    """
    everyone = np.unique(devices["device"])
    spent = activities.groupby("device")["energy_j"].sum().reindex(everyone, fill_value=0.0)
    own = metrics[(metrics["name"] == "idle_j") & (metrics["key"] != "")]
    idle = own.set_index(own["key"].astype(int))["value"].reindex(everyone)
    alike_j = sum_of(metrics["value"], _is_idle(metrics)) / len(everyone)
    return np.asarray(spent + idle.fillna(alike_j), dtype=np.float64)


def _is_idle(metrics: pd.DataFrame) -> Booleans:
    """Whether a row holds the joules of idling of all devices together, [rows]."""
    return np.asarray((metrics["name"] == "idle_j") & (metrics["key"] == ""), dtype=np.bool_)
