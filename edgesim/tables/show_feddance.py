"""The table on the terminal of a study of FedDance's comparison, with the numbers of its paper in it."""

import pandas as pd
from rich.console import Console

from edgesim.analysis.feddance import PAPERS_TASKS
from edgesim.tables.show import print_frame

_COLUMNS = {
    "rounds": ("rounds", "{:.1f}"),
    "rounds_bound": ("or more than", "{:.1f}"),
    "never": ("never", "{:.0f}"),
    "speed_up": ("speed-up", "{:.2f}"),
    "paper_speed_up": ("the paper's speed-ups", "{}"),
    "accuracy": ("accuracy (%)", "{:.2f}"),
    "sd": ("± sd", "{:.2f}"),
    "points": ("points", "{:+.2f}"),
    "paper_points": ("the paper's points", "{}"),
    "devices": ("devices", "{:.1f}"),
}
"""Column -> (heading, format): rounds to the target, speed-up over random, points of accuracy above
random, devices that, used alike, would be as uneven."""


def print_beside_feddance(beside: pd.DataFrame) -> None:
    """Print a table as from `edgesim.analysis.feddance.beside_the_paper`."""
    print_frame(beside, f"Beside the paper, whose tasks are {', '.join(PAPERS_TASKS)}", _COLUMNS, Console())
