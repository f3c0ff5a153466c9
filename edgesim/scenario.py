"""Helpers of the scenario scripts: lists from the command line, plain errors, tables and figures at the end."""

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar

import typer
from rich.console import Console

from edgesim.analysis.differences import differences_table
from edgesim.analysis.runs import read_study
from edgesim.door.study import failures
from edgesim.errors import EdgesimError
from edgesim.plots.gallery import draw, draw_against
from edgesim.terminal import plain
from edgesim.terminal.console import PlainConsole
from edgesim.terminal.executor_options import with_executor
from edgesim.terminal.options import start as start
from edgesim.terminal.show import print_study
from edgesim.terminal.show_differences import print_differences

Set = Annotated[list[str] | None, typer.Option("--set", help="Any other knob, as section.key=value.")]
Seeds = Annotated[int, typer.Option(min=1, help="Number of seeds.")]
Jobs = Annotated[int | None, typer.Option(min=1, help="Processes; one per core when absent.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Run finished runs again.")]
Out = Annotated[Path, typer.Option(help="Study folder.")]
OutOrNone = Annotated[Path | None, typer.Option(help="Study folder; named by what is compared when absent.")]
Folder = Annotated[Path, typer.Option(help="Where the files of torchvision's data sets lie.")]
"""Options that scenarios have in common: for ``overrides`` and ``seeds`` of `edgesim.grid`, for ``jobs``, ``fresh`` and
``out`` of `edgesim.study`, and for ``data.folder`` of those that take a ``--dataset``."""

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
    """As `edgesim.terminal.plain.plain_errors`; an error that names a field also names the scenario's option for it.

    A scenario that takes ``jobs`` also takes the options of `edgesim.terminal.executor_options`.
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


def conclude(study_folder: Path, against: Sequence[tuple[str, str]] = (), answers: Sequence[str] = ()) -> None:
    """Print a study's tables and draw its figures into ``plots/`` of its folder; ends with status 1 if a run failed.

    The differences of the policies from the reference policy are written to ``differences-policy.csv``. For every pair
    (knob, reference value) in ``against``, the paired differences of the other values from it are printed, drawn and
    written to ``differences-KNOB.csv``, or ``differences-KNOB-REFERENCE.csv`` where a knob stands there several times.
    ``answers`` are findings, one or two sentences each, printed at the end.
    """
    console = PlainConsole()
    differences_table(study_folder, "policy", read_study(study_folder).reference, write=True)
    print_study(study_folder, console)
    knobs = [knob for knob, _ in against]
    for knob, reference in against:
        called = f"{knob}-{reference}" if knobs.count(knob) > 1 else knob
        _compare(study_folder, knob, reference, called, console)
    with console.status("drawing the figures"):
        figures = draw([study_folder], study_folder / "plots")
    console.print(f"{len(figures)} figures in {study_folder / 'plots'}; table in {study_folder / 'summary.csv'}")
    for answer in answers:
        console.print(answer, highlight=False)
    stop_if_failed(study_folder, console)


def stop_if_failed(study_folder: Path, console: Console) -> None:
    """Exit with status 1 and a line about the first failure if a run of the study did not finish."""
    if failed := failures(study_folder):
        told = f"{len(failed)} of the runs did not finish, the first one: {failed[0]}"
        console.print(told, highlight=False)
        sys.exit(1)


def _compare(study_folder: Path, knob: str, reference: str, called: str, console: Console) -> None:
    study = read_study(study_folder)
    values = {str(entry.run.knobs[knob]) for entry in study.planned if knob in entry.run.knobs}
    if str(reference) not in values:
        known = f"the values of {knob} are {', '.join(sorted(values))}"
        known = known if values else f"knobs: {', '.join(study.knob_names)}"
        console.print(f"No run has {knob} = {reference} to compare the others with; {known}.", highlight=False)
        return
    table = differences_table(study_folder, knob, reference, write=True, called=called)
    if not table.empty:
        print_differences(table, reference, console)
        draw_against(study, knob, reference, study_folder / "plots", called)
