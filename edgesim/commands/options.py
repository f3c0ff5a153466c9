"""Options that several commands have."""

from typing import Annotated

import typer

NoUserCode = Annotated[bool, typer.Option("--no-user-code", help="Refuse configs that name code outside edgesim.")]
CheckpointS = Annotated[float, typer.Option(min=0, help="Least wall time between checkpoints; 0: at each round's end.")]
Log = Annotated[
    bool | None, typer.Option("--log/--no-log", help="Progress as a line every 30 s, as it is without a terminal.")
]
