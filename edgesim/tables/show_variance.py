"""An analysis of variance as a table on the terminal."""

import pandas as pd
from rich.table import Table

from edgesim.tables.table_text import bare_table, number, p_value


def variance_table(name: str, variance: pd.DataFrame) -> Table:
    """A table of `edgesim.analysis.variance.analyse` of the measure ``name``."""
    shown = bare_table(f"Analysis of variance of {name}", ["source"], ["squares", "df", "F", "p", "share"])
    for row in variance.to_dict("records"):
        shown.add_row(
            row["source"],
            f"{row['sum_sq']:.4g}",
            f"{row['df']:g}",
            number(row["f"], "{:.3f}"),
            p_value(row["p"]),
            f"{row['share']:.1%}",
        )
    return shown
