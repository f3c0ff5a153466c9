"""Uploads that the deadline ends, of which the server uses what it has received (``upload.size = "stream"``)."""

import pandas as pd

from edgesim.activities import ON_AIR
from edgesim.analysis.runs import RunFolder


def received_share(run: RunFolder, activities: pd.DataFrame) -> pd.Series:
    """Share of the update that was received by each of some rows of ``activities``, in their index.

    It is 1 for rows that are no uploads, for uploads that were not done, and in runs without streams.
    """
    share = pd.Series(1.0, index=activities.index)
    of_tasks = run.metrics[run.metrics["name"] == "received_share"]
    if len(of_tasks):
        ended = activities[activities["activity"].isin(ON_AIR) & (activities["outcome"] == "done")]
        keys = ended["device"].astype(str) + "/" + ended["task"].astype(str)
        share[ended.index] = keys.map(of_tasks.set_index("key")["value"]).fillna(1.0)
    return share
