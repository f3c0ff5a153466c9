"""The frame of a scenario: the options that all have, the runs that it plans, and the study of these."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Concatenate, ParamSpec

import typer

from edgesim.api.study import StudyResult, study
from edgesim.base.errors import EdgesimError
from edgesim.plots.formats import FORMAT_HELP, USUAL_FORMATS, Formats, known_formats
from edgesim.scenario.closing import conclude
from edgesim.scenario.options import OPTIONS
from edgesim.screen.plain import plain_errors
from edgesim.studies.executor_options import with_executor
from edgesim.studies.plan import Knob, PlannedRun, grid

P = ParamSpec("P")


@dataclass
class Runs:
    """Runs that a scenario plans, and the values of the options that all scenarios have."""

    seeds: int = 1
    folder: Path = Path("data")
    set_: list[str] | None = None
    quick: bool = False
    jobs: int | None = None
    fresh: bool = False
    check: bool = False
    formats: Formats = USUAL_FORMATS
    """Of all figures."""
    typed_out: Path | None = None
    """``--out``, or the scenario's own folder; None where that has to be named by `name_folder`."""
    planned: list[PlannedRun] = field(default_factory=list)
    """Those that `study` is to run."""

    def add(
        self,
        base: Mapping[str, Any],
        axes: Mapping[str, Sequence[Knob | None]] | None = None,
        *,
        labels: Mapping[str, Knob] | None = None,
        seeds: Sequence[int] | None = None,
    ) -> None:
        """Plan runs of every combination of the ``axes`` with every seed, as `edgesim.grid`; raises `EdgesimError`.

        ``--folder`` and ``--set`` are in them. ``seeds`` are as many as ``--seeds`` when absent.
        """
        whole = {**base, "data": {"folder": str(self.folder), **base.get("data", {})}}
        self.planned += grid(whole, axes or {}, range(self.seeds) if seeds is None else seeds, self.set_, labels)

    @property
    def out(self) -> Path:
        """The folder of the results."""
        assert self.typed_out is not None, "name_folder is called first"
        return self.typed_out

    def name_folder(self, name: str) -> None:
        """Set the folder to ``runs/NAME``, unless ``--out`` was given."""
        self.typed_out = self.typed_out or Path("runs") / name

    def study(
        self, out: Path | None = None, *, target: float | None = None, reference: str | None = None
    ) -> StudyResult:
        """Run the planned runs as `edgesim.study` and clear the plan; the folder is ``--out`` when absent."""
        planned, self.planned = self.planned, []
        where: dict[str, Any] = {"out": out or self.out, "jobs": self.jobs, "fresh": self.fresh, "check": self.check}
        return study(planned, target=target, reference=reference, **where)

    def compare(
        self,
        out: Path | None = None,
        *,
        target: float | None = None,
        reference: str | None = None,
        against: Sequence[tuple[str, Knob]] = (),
    ) -> StudyResult:
        """Run the planned runs, then print tables and draw figures by `conclude`."""
        done = self.study(out, target=target, reference=reference)
        conclude(done.folder, against, formats=self.formats)
        return done


def scenario(
    out: str | None = None, *, quick: Mapping[str, Any], seeds: int = 5
) -> Callable[[Callable[Concatenate[Runs, P], None]], Callable[..., None]]:
    """Make a command of a function that takes `Runs` and options: it has the options of all scenarios, too.

    These are ``--seeds``, ``--folder``, ``--set``, ``--quick``, ``--jobs``, ``--fresh``, ``--check``, ``--format``,
    ``--out`` and those of Ray; ``seeds`` and ``out`` are defaults. Where a function has one of them itself, with other
    help or another default, the function and its `Runs` get the value.

    ``--quick`` gives options the values ``quick`` as defaults, and the folder ``OUT-quick``. They should make the whole
    comparison take some seconds, on data that comes with edgesim; options given together with ``--quick`` override
    them. Errors are one line, as by `plain_errors`; one that names a field also names the option for it.
    """
    values = {**quick, "out": f"{out}-quick"} if out else quick
    typed = " ".join(
        f"--{name.replace('_', '-')}" + ("" if value is True else f" {value}") for name, value in values.items()
    )

    def use_quick(context: typer.Context, wanted: bool) -> bool:
        if wanted:
            context.default_map = dict(values)
        return wanted

    def option(name: str, kind: Any, default: Any, *flags: str, **how: Any) -> inspect.Parameter:
        kind = Annotated[kind, typer.Option(*flags, **how)]
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)

    quickly = {"is_eager": True, "callback": use_quick, "help": f"A small, quick comparison, as by {typed}."}
    named = "" if out else "; named by what is compared when absent"
    options = [
        option("seeds", int, seeds, min=1, help="Number of seeds."),
        option("folder", Path, Path("data"), help="Where the files of torchvision's data sets lie."),
        option("set_", list[str] | None, None, "--set", help="Any other knob, as section.key=value."),
        option("quick", bool, False, "--quick", **quickly),
        option("jobs", int | None, None, min=1, help="Processes; one per core when absent."),
        option("fresh", bool, False, "--fresh", help="Do again what is finished."),
        option("check", bool, False, "--check", help="Check each finished run, as edgesim check does."),
        option("formats", str, ",".join(USUAL_FORMATS), "--format", help=FORMAT_HELP),
        option("out", Path if out else Path | None, Path(out) if out else None, help=f"Folder of the results{named}."),
    ]

    def of(main: Callable[Concatenate[Runs, P], None]) -> Callable[..., None]:
        parameters = {parameter.name: parameter for parameter in [*inspect.signature(main).parameters.values()][1:]}
        own = [*parameters]
        parameters |= {parameter.name: parameter for parameter in options if parameter.name not in own}

        @functools.wraps(main)
        def command(**chosen: Any) -> None:
            common = {parameter.name: chosen[parameter.name] for parameter in options if parameter.name != "out"}
            try:
                common["formats"] = known_formats(common["formats"], "--format")
                main(Runs(**common, typed_out=chosen["out"]), **{name: chosen[name] for name in own})  # type: ignore[call-arg]
            except EdgesimError as error:
                here = ", ".join(
                    f"{field} is --{name.replace('_', '-')}"
                    for field, name in OPTIONS
                    if name in parameters and any(f"{named}.".startswith(f"{field}.") for named in error.fields)
                )
                error.args = (f"{error} (here {here})",) if here else error.args
                raise

        changed: Any = command
        changed.__signature__ = inspect.Signature([*parameters.values()])
        command.__annotations__ = {name: parameter.annotation for name, parameter in parameters.items()}
        return plain_errors(with_executor(command))

    return of
