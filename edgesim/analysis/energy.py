"""Where a run's joules went: by activity and by device."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

ACTIVITIES = ("download", "compute", "upload")


def energy_by_activity_j(activities: pd.DataFrame) -> pd.DataFrame:
    """Joules per ``round`` (the index) and activity (the columns of `ACTIVITIES`), zeros where there were none."""
    table = activities.pivot_table(index="round", columns="activity", values="energy_j", aggfunc="sum", fill_value=0.0)
    return table.reindex(columns=list(ACTIVITIES), fill_value=0.0)


def energy_by_device_j(activities: pd.DataFrame, devices: pd.DataFrame) -> NDArray[np.float64]:
    """Joules of every device of a run, by ascending id, [devices]; zero for those that never worked."""
    everyone = np.unique(devices["device"])
    spent = activities.groupby("device")["energy_j"].sum().reindex(everyone, fill_value=0.0)
    return np.asarray(spent, dtype=np.float64)
