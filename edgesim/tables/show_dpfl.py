"""A table on the terminal of a study of dynamic participation, with the numbers of the DPFL benchmark's paper in it."""

import pandas as pd

from edgesim.analysis.dpfl import LAWS, MEASURES
from edgesim.screen.console import PlainConsole
from edgesim.tables.table_text import bare_table, number, plain, print_whole, with_interval

_HEADINGS = {
    "we_percent": ("WE (%)", "{:.2f}"),
    "idp_points": ("IDP (points)", "{:+.2f}"),
    "id_points": ("ID (points)", "{:.2f}"),
}


def print_beside_dpfl(beside: pd.DataFrame) -> None:
    """Print a table as from `edgesim.analysis.dpfl.beside_dpfl`, in sections of equal participation."""
    paper = any(beside[f"{measure}_paper"].notna().any() for measure in MEASURES)
    knobs = [name for name in beside.columns[: beside.columns.get_loc("seeds")] if name != "algorithm"]
    varied = [name for name in knobs if beside[name].nunique() > 1]
    headings = [text for heading, _ in _HEADINGS.values() for text in ([heading, "paper"] if paper else [heading])]
    told = ", ".join(f"{name} {plain(beside[name].iloc[0])}" for name in knobs if name not in varied)
    table = bare_table(f"Under dynamic participation ({told})", [*varied, "algorithm"], headings)
    for place, (_, group) in enumerate(beside.groupby(knobs, sort=False)):
        if place:
            table.add_section()
        for row in group.to_dict("records"):
            cells = []
            for name, (_, form) in _HEADINGS.items():
                cells.append(with_interval(row, name, form))
                cells += [number(row[f"{name}_paper"], form)] if paper else []
            table.add_row(*(plain(row[knob]) for knob in [*varied, "algorithm"]), *cells)
    console = PlainConsole()
    print_whole(console, table)
    if paper:
        console.print(
            f"paper: Office-Caltech-10, ResNet-10, 100 rounds ({', '.join(LAWS)}: static, timed-random and Markov "
            "participation in tables 1 to 3); ±: 95 % t interval over seeds.",
            highlight=False,
        )
