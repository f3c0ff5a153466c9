"""Command-line options of the executor, the same for every command that runs a study."""

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, get_type_hints

import typer

from edgesim.base.errors import EdgesimError
from edgesim.studies.on_ray import Ray
from edgesim.studies.running import carried_out_by

P = ParamSpec("P")
R = TypeVar("R")


def _options(
    *,
    executor: Annotated[
        Literal["local", "ray"], typer.Option(help="local: processes of this machine; ray: a cluster of Ray.")
    ] = "local",
    address: Annotated[
        str | None, typer.Option(help="HOST:PORT of the Ray cluster's head; this machine alone when absent.")
    ] = None,
    cpus_per_run: Annotated[float | None, typer.Option(help="With ray: cores that a run takes; 1 when absent.")] = None,
    gpus_per_run: Annotated[
        float | None, typer.Option(help="With ray: GPUs, or a share of one, that a run takes.")
    ] = None,
    memory_per_run: Annotated[float | None, typer.Option(help="With ray: GiB of memory that a run takes.")] = None,
) -> Ray | None:
    """The executor that the options name; None: processes of this machine."""
    options = {"address": address, "cpus_per_run": cpus_per_run, "gpus_per_run": gpus_per_run}
    options |= {"memory_per_run_gib": memory_per_run}
    chosen = {name: value for name, value in options.items() if value is not None}
    if executor == "ray":
        return Ray(**chosen)  # type: ignore[arg-type]
    if chosen:
        option = next(iter(chosen)).removesuffix("_gib").replace("_", "-")
        raise EdgesimError(f"--{option}: is for --executor ray; add it, or leave --{option} out")
    return None


def with_executor(command: Callable[P, R]) -> Callable[P, R]:
    """Add the executor's options to a command; its studies are carried out by the executor that they name."""
    own, added = inspect.signature(command), inspect.signature(_options).parameters

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        chosen = _options(**{name: kwargs.pop(name) for name in added if name in kwargs})  # type: ignore[arg-type]
        with carried_out_by(chosen):
            return command(*args, **kwargs)

    changed: Any = wrapped
    changed.__signature__ = own.replace(parameters=[*own.parameters.values(), *added.values()])
    hints = get_type_hints(_options, include_extras=True)
    wrapped.__annotations__ = {**command.__annotations__, **{name: hints[name] for name in added}}
    return wrapped
