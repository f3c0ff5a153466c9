"""The command line of a scenario: common options, lists of values, plain errors."""

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar

import typer

from edgesim.base.errors import EdgesimError
from edgesim.screen import plain
from edgesim.screen.command_line import start as start
from edgesim.studies.executor_options import with_executor

Set = Annotated[list[str] | None, typer.Option("--set", help="Any other knob, as section.key=value.")]
Seeds = Annotated[int, typer.Option(min=1, help="Number of seeds.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Processes; one per core when absent.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Do again what is finished.")]
Out = Annotated[Path, typer.Option(help="Folder of the results.")]
OutOrNone = Annotated[Path | None, typer.Option(help="Folder of the results; named by what is compared when absent.")]
Folder = Annotated[Path, typer.Option(help="Where the files of torchvision's data sets lie.")]
"""Options that all scenarios have: for ``overrides`` and ``seeds`` of `edgesim.grid`, for ``jobs``, ``fresh`` and
``out`` of `edgesim.study`, and for ``data.folder``."""

Devices = Annotated[int, typer.Option(min=1, help="Number of devices.")]
Model = Annotated[str, typer.Option(help="Model.")]
Policies = Annotated[str, typer.Option(help="Policies to compare.")]
Rounds = Annotated[int, typer.Option(min=1, help="Rounds of each run.")]
TracesFolder = Annotated[Path, typer.Option(help="Where recordings lie that are given by name.")]
Target = Annotated[float, typer.Option(min=0, max=1, help="Accuracy to race to.")]
"""Options that many scenarios have."""

P = ParamSpec("P")
R = TypeVar("R")

_OPTIONS = (
    ("algorithm.name", "algorithms"),
    ("availability.file", "matrix"),
    ("availability.interruption", "interruption"),
    ("data.dataset", "dataset"),
    ("data.folder", "folder"),
    ("data.image_size", "image_size"),
    ("devices.count", "clients"),
    ("devices.count", "devices"),
    ("devices.links", "links"),
    ("devices.match", "match"),
    ("devices.profile", "profile"),
    ("devices.radius_m", "radius"),
    ("learning.model", "model"),
    ("radio.bandwidth_hz", "band_mhz"),
    ("radio.channel", "channel"),
    ("round.close", "close"),
    ("round.count", "count"),
    ("round.count", "participants"),
    ("round.outage", "outage"),
    ("round.payload_bits", "payload_bits"),
    ("round.plan_quantile", "quantiles"),
    ("round.tmax_s", "tmax"),
    ("selection.policy", "policies"),
    ("selection.policy", "policy"),
    ("selection.policy", "selectors"),
    ("topology.cloud_every", "cloud_every"),
)
"""Fields of a config, and the names of the scenarios' options that set them."""


def quick_option(**values: Any) -> Any:
    """The option ``--quick`` of a scenario, which gives the named parameters these ``values`` as defaults.

    The values should make the whole comparison take some seconds, on data that comes with edgesim. Options given
    together with ``--quick`` override them.
    """
    typed = " ".join(
        f"--{name.replace('_', '-')}" + ("" if value is True else f" {value}") for name, value in values.items()
    )

    def use(context: typer.Context, wanted: bool) -> bool:
        if wanted:
            context.default_map = values
        return wanted

    return typer.Option("--quick", is_eager=True, callback=use, help=f"A small, quick comparison, as by {typed}.")


def plain_errors(command: Callable[P, R]) -> Callable[P, R]:
    """As `edgesim.screen.plain.plain_errors`; an error that names a field also names the scenario's option for it.

    A scenario that takes ``jobs`` also takes the options of `edgesim.studies.executor_options`.
    """
    own = inspect.signature(command).parameters
    if "jobs" in own:
        command = with_executor(command)

    @plain.plain_errors
    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except EdgesimError as error:
            options = [
                f"{field} is --{name.replace('_', '-')}"
                for field, name in _OPTIONS
                if name in own and any(f"{named}.".startswith(f"{field}.") for named in error.fields)
            ]
            if options:
                error.args = (f"{error} (here {', '.join(options)})",)
            raise

    return wrapped


def refuse_unknown(option: str, given: Iterable[str], among: Iterable[str]) -> None:
    """Raise `EdgesimError` for the first of the values ``given`` to an option that is not ``among`` those known."""
    known = list(among)
    for name in given:
        if name not in known:
            raise EdgesimError(f"{option}: unknown {name!r}; known: {', '.join(known)}")


def names(text: str) -> list[str]:
    """A list of names separated by commas; raises `EdgesimError` if there is none."""
    found = [name.strip() for name in text.split(",") if name.strip()]
    if not found:
        raise EdgesimError(f"{text!r}: expected at least one value, several separated by commas")
    return found


def numbers(text: str) -> list[float]:
    """A list of numbers separated by commas; raises `EdgesimError`."""
    try:
        return [float(number) for number in names(text)]
    except ValueError:
        raise EdgesimError(f"{text!r}: expected numbers separated by commas, such as 0.8,1.0,1.2") from None


def counts(text: str) -> list[int]:
    """A list of whole numbers separated by commas; raises `EdgesimError`."""
    try:
        return [int(number) for number in names(text)]
    except ValueError:
        raise EdgesimError(f"{text!r}: expected whole numbers separated by commas, such as 10,30") from None


def short_names(files: Sequence[str]) -> list[str]:
    """Names of files in tables and figures: without folder and suffix, or the whole path if two would be equal."""
    stems = [Path(name).stem for name in files]
    return [stem if stems.count(stem) == 1 else name for stem, name in zip(stems, files, strict=True)]
