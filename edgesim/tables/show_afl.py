"""Tables on the terminal of a study of AFL: its methods beside the paper's numbers, and against a reference."""

from edgesim.analysis.afl import MEASURES, BesideAfl
from edgesim.screen.console import PlainConsole
from edgesim.tables.show import mean_text
from edgesim.tables.show_differences import print_differences
from edgesim.tables.table_text import bare_table, number, print_whole, with_interval

_HEADINGS = {
    "final_accuracy": ("accuracy", "{:.3f}"),
    "final_macro_f1": ("macro F1", "{:.3f}"),
    "final_roc_auc": ("AUC", "{:.3f}"),
    "rounds_to_own_peak": ("rounds to\n95 % of own peak", "{:.1f}"),
    "rounds_to_target": ("rounds to\nthe target", "{:.1f}"),
    "simulated_s": ("simulated\nseconds", "{:.0f}"),
    "gigabytes": ("GB", "{:.3g}"),
}


def print_beside_afl(beside: BesideAfl, reference: str) -> None:
    """Print the tables of `edgesim.analysis.afl.beside_afl`."""
    console = PlainConsole()
    means = beside.means
    never = {"rounds_to_target"} if means["not_reached"].any() else set()
    shown = [name for name in MEASURES if means[name].notna().any() or name in never]
    papers = [name for name in shown if means[f"{name}_paper"].notna().any()]
    headings = [text for name in shown for text in [_HEADINGS[name][0]] + ["paper"] * (name in papers)]
    table = bare_table("Mean ± 95 % t interval over seeds", ["skew", "method"], headings)
    for row in means.to_dict("records"):
        cells = []
        for name in shown:
            form = _HEADINGS[name][1]
            cells.append(mean_text(row, name, form) if name == "rounds_to_target" else with_interval(row, name, form))
            cells += [number(row[f"{name}_paper"], form)] * (name in papers)
        table.add_row(row["skew"], row["method"], *cells)
    print_whole(console, table)
    if papers:
        console.print("paper: data unnamed, so that only the order of its numbers can be compared.", highlight=False)
    if len(beside.differences):
        looks = {name: (title, form.replace("{:", "{:+")) for name, (title, form) in _HEADINGS.items()}
        print_differences(beside.differences, reference, console, looks)
