"""``edgesim tune``: knobs tuned by an optimiser instead of a grid."""

from pathlib import Path
from typing import Annotated

import typer

import edgesim
from edgesim.commands.options import NoUserCode
from edgesim.commands.study_command import Jobs
from edgesim.plots.formats import FORMAT_HELP, USUAL, known_formats
from edgesim.screen.plain import plain_errors
from edgesim.tuning.knobs import parse_knobs
from edgesim.tuning.objectives import OBJECTIVES


@plain_errors
def tune_command(
    config: Annotated[Path, typer.Argument(help="TOML file of a run.")],
    knob: Annotated[
        list[str], typer.Option(help="A key with a range or a list: round.tmax_s=0.1:2.0, round.count=5,10; repeated.")
    ],
    objective: Annotated[
        list[str], typer.Option(help=f"What is sought; several give a Pareto front: {', '.join(OBJECTIVES)}.")
    ],
    trials: Annotated[int, typer.Option(help="Trials of all processes that tune in the folder.")] = 60,
    target: Annotated[float | None, typer.Option(help="Accuracy of what is to a target.")] = None,
    seeds: Annotated[int, typer.Option(help="Runs of a trial.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the optimiser.")] = 0,
    judge: Annotated[int, typer.Option(help="Best cells that are run again on fresh seeds.")] = 3,
    fresh: Annotated[bool, typer.Option("--fresh", help="Ask all trials anew, and run finished runs again.")] = False,
    prune: Annotated[
        bool, typer.Option("--prune/--no-prune", help="Give up trials that can no longer be among the best.")
    ] = True,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A key and its value, such as rounds=50; may be repeated.")
    ] = None,
    jobs: Jobs = None,
    out: Annotated[Path | None, typer.Option(help="Study folder; runs/<name of the config>-tune when absent.")] = None,
    format_: Annotated[str, typer.Option("--format", help=FORMAT_HELP)] = USUAL,
    no_user_code: NoUserCode = False,
) -> None:
    """Find the values of knobs that are best by an objective, with an optimiser instead of a grid."""
    known_formats(format_, "--format")
    edgesim.tune(
        config,
        parse_knobs(knob),
        objective,
        trials,
        out,
        target=target,
        seeds=seeds,
        seed=seed,
        set=set_ or [],
        jobs=jobs,
        prune=prune,
        judge=judge,
        fresh=fresh,
        user_code=not no_user_code,
        format=format_,
    )
