"""``edgesim run``: one run, by its config."""

import sys
from pathlib import Path
from typing import Annotated

import typer
from typing_extensions import override

import edgesim
from edgesim.base.errors import EdgesimError
from edgesim.base.validation import keys_called
from edgesim.commands import completion
from edgesim.commands.options import CheckpointS, Log, NoUserCode
from edgesim.config import RunConfig
from edgesim.screen.command_line import Command, start
from edgesim.screen.plain import plain_errors, say
from edgesim.simulation.composition import CHECKPOINT_S


class RunCommand(Command):
    """A command that suggests ``--set`` for a key of the config given as an option."""

    @override
    def remedy(self, option: str) -> str:
        """Advice to use ``--set`` for the keys that an unknown option may mean."""
        keys = [*keys_called(option.lstrip("-").replace("-", "_"), RunConfig)]
        return f"; {' or '.join(f'--set {key}=VALUE' for key in keys)} sets it in the config" if keys else ""


@plain_errors
def run_command(
    config: Annotated[Path, typer.Argument(help="TOML file of the run; `edgesim explain` tells its keys.")],
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="A key and its value, such as round.tmax_s=0.8; may be repeated.",
            autocompletion=completion.settings,
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Run folder; runs/<name of the config> when absent.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Run from the start, even if it is finished.")] = False,
    no_user_code: NoUserCode = False,
    checkpoint_s: CheckpointS = CHECKPOINT_S,
    log: Log = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what the run would be, and what is wrong; write nothing.")
    ] = False,
) -> None:
    """Simulate one run, or resume it where it was stopped."""
    if dry_run:
        _print_outlook(edgesim.dry_run(config, out, set_ or [], user_code=not no_user_code))
        return
    finished = edgesim.run(
        config, out, set_ or [], fresh=fresh, log=log, user_code=not no_user_code, checkpoint_s=checkpoint_s
    )
    finished.show()


def _print_outlook(outlook: edgesim.Outlook) -> None:
    """Print a complete config and facts about its run; only raises `EdgesimError` where that would be refused."""
    if outlook.refused:
        raise EdgesimError("would be refused: " + "; and for another reason: ".join(outlook.refused))
    say(outlook.toml())
    for about, fact in outlook.facts.items():
        say(f"{about}: {fact}")


def main() -> None:
    """Run ``edgesim run`` without the other commands, whose libraries take longer to load than a short run."""
    sys.path.insert(0, "")
    start(run_command, sys.argv[2:], "edgesim run", RunCommand)
