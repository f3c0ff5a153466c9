"""Tables on the terminal of a study of FedStg, with the numbers of its paper in them."""

import pandas as pd

from edgesim.screen.console import PlainConsole
from edgesim.tables.table_text import bare_table, number, plain, print_whole, with_interval

_ACCURACY = {
    "final_percent": ("last round (%)", "{:.2f}"),
    "peak_percent": ("peak (%)", "{:.2f}"),
    "peak_round": ("its round", "{:.0f}"),
}
_COST = {
    "merged": ("rounds merged", "{:.1f}"),
    "trained": ("jobs of devices", "{:.0f}"),
    "uploads": ("uploads", "{:.0f}"),
    "gbit_up": ("Gbit up", "{:.3g}"),
    "gbit_down": ("Gbit down", "{:.3g}"),
    "kj": ("kJ", "{:.3g}"),
}


def print_beside_fedstg(beside: pd.DataFrame) -> None:
    """Print a table as from `edgesim.analysis.fedstg.beside_fedstg`: accuracies beside the paper's, then costs."""
    knobs = [name for name in beside.columns[: beside.columns.get_loc("seeds")] if name != "method"]
    varied = [name for name in knobs if beside[name].nunique() > 1]
    told = ", ".join(f"{name} {plain(beside[name].iloc[0])}" for name in knobs if name not in varied)
    names = [*varied, "method"]
    headings = [text for heading, _ in _ACCURACY.values() for text in (heading, "paper")]
    accuracy = bare_table(f"Accuracy beside the paper's ({told})", names, headings)
    cost = bare_table(f"What it took ({told})", names, [heading for heading, _ in _COST.values()])
    for row in beside.to_dict("records"):
        cells = [plain(row[name]) for name in names]
        accuracy.add_row(
            *cells,
            *(
                text
                for name, (_, form) in _ACCURACY.items()
                for text in (with_interval(row, name, form), number(row[f"{name}_paper"], form))
            ),
        )
        cost.add_row(*cells, *(number(row[name], form) for name, (_, form) in _COST.items()))
    console = PlainConsole()
    print_whole(console, accuracy)
    print_whole(console, cost)
    console.print(
        "paper: CIFAR-10 (or CIFAR-100 where the runs are on it), 20 devices, 100 rounds, one run of each method; "
        "±: 95 % t interval over seeds. The log of its public program has 86.14 % at round 98, 82.38 % at round 100, "
        "and 72 rounds merged.",
        highlight=False,
    )
