"""How far the runs of a study are, as text: counts, and what is known of those that run, failed or were lost."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from edgesim.base.lease import LEASE_S
from edgesim.screen.console import PlainConsole
from edgesim.studies.ledger import STATUSES, State
from edgesim.tables.table_text import bare_table, print_whole


def print_ledger(folder: Path, ledger: Mapping[str, State]) -> None:
    """Print how many runs have each status, and a line for each of those that runs, failed or stopped."""
    console = PlainConsole()
    told = counts(ledger.values())
    console.print(f"{folder}: {len(ledger)} runs: {told}", highlight=False, soft_wrap=True)
    rows = [(name, state) for name, state in ledger.items() if state.status not in ("finished", "planned", "pruned")]
    if rows:
        shown = bare_table("", ["run", "", "what"], [])
        for name, state in rows:
            shown.add_row(name, state.status, what(state))
        print_whole(console, shown)


def counts(states: Iterable[State]) -> str:
    """How many runs have each status: ``3 finished, 1 failed``."""
    found = Counter(state.status for state in states)
    return ", ".join(f"{found[each]} {each}" for each in STATUSES if found[each])


def what(state: State) -> str:
    """What is known of a run beside its status: the process that works on it, or why it ended."""
    if state.holder is None:
        return state.reason
    who = f"process {state.holder.pid} on {state.holder.host}"
    if state.silent_s is None:
        return f"{who} is gone"
    unsure = f"; lost after {LEASE_S:g} s" if state.silent_s > LEASE_S / 3 else ""
    return f"{who}, last heard of {max(0.0, state.silent_s):.0f} s ago{unsure}"
