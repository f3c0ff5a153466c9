"""Numbers of a run by round, and its settings, for tools that track experiments."""

from typing import NamedTuple

import numpy as np
import pandas as pd

from edgesim.analysis.runs import RunFolder


class Measures(NamedTuple):
    """Numbers by name, as columns ``round``, ``t_s`` and ``value``, in order of rounds."""

    by_name: dict[str, pd.DataFrame]
    end_s: float
    """Instant of the end of the last round."""


def measures(run: RunFolder) -> Measures:
    """The columns of ``rounds``, the simulated seconds as ``simulated_s``, and what ``metrics`` has of whole rounds.

    A value that a run did not measure is absent. Round 0 is the start, before any round.
    """
    rounds = run.rounds.sort_values("round")
    t_s = pd.concat([pd.Series({0: 0.0}), rounds.set_index("round")["t_end_s"]])
    columns = {"simulated_s": rounds["t_end_s"]}
    columns |= {name: rounds[name] for name in rounds.columns if name not in ("round", "t_start_s", "t_end_s")}
    tables = {
        name: pd.DataFrame({"round": rounds["round"], "t_s": rounds["t_end_s"], "value": column.astype(np.float64)})
        for name, column in columns.items()
    }
    for name, rows in run.metrics[run.metrics["key"] == ""].groupby("name", sort=True):
        rows = rows[rows["round"].isin(t_s.index)].drop_duplicates("round", keep="last")
        table = pd.DataFrame({"round": rows["round"], "t_s": rows["round"].map(t_s), "value": rows["value"]})
        # The start model's accuracy stands in metrics, those of the rounds' models in rounds.
        tables[str(name)] = pd.concat([table, tables[str(name)]]) if name in tables else table
    finite = {name: table[np.isfinite(table["value"])].sort_values("round") for name, table in tables.items()}
    return Measures({name: table for name, table in finite.items() if len(table)}, float(rounds["t_end_s"].max()))
