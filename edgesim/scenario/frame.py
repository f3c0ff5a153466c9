"""The frame of a scenario: the options that all have, the runs that it plans, and the study of these."""

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Concatenate, ParamSpec

from edgesim.api.study import StudyResult, study
from edgesim.scenario.closing import conclude
from edgesim.scenario.options import Folder, Fresh, Jobs, Out, OutOrNone, Seeds, Set, plain_errors, quick_option
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
        """Let the folder be ``runs/NAME`` unless ``--out`` says another one."""
        self.typed_out = self.typed_out or Path("runs") / name

    def study(
        self, out: Path | None = None, *, target: float | None = None, reference: str | None = None
    ) -> StudyResult:
        """Run what is planned, after which nothing is; the folder is ``--out`` when absent. As `edgesim.study`."""
        planned, self.planned = self.planned, []
        where: dict[str, Any] = {"out": out or self.out, "jobs": self.jobs, "fresh": self.fresh}
        return study(planned, target=target, reference=reference, **where)

    def compare(
        self,
        out: Path | None = None,
        *,
        target: float | None = None,
        reference: str | None = None,
        against: Sequence[tuple[str, str]] = (),
    ) -> StudyResult:
        """As `study`; then its tables and figures, as by `conclude`."""
        done = self.study(out, target=target, reference=reference)
        conclude(done.folder, against)
        return done


def scenario(
    out: str | None = None, *, quick: Mapping[str, Any], seeds: int = 5
) -> Callable[[Callable[Concatenate[Runs, P], None]], Callable[..., None]]:
    """Make a command of a function that takes `Runs` and options: it has the options of all scenarios, too.

    ``quick`` are values of options under ``--quick``; ``seeds`` and ``out`` are defaults, the folder under ``--quick``
    being ``OUT-quick``. Where a function has an option of all scenarios itself, with other help or another default,
    both the function and its `Runs` get the value. Errors are one line, as by `plain_errors`.
    """
    values = {**quick, "out": f"{out}-quick"} if out else quick
    options: dict[str, tuple[Any, Any]] = {
        "seeds": (Seeds, seeds),
        "folder": (Folder, Path("data")),
        "set_": (Set, None),
        "quick": (Annotated[bool, quick_option(**values)], False),
        "jobs": (Jobs, None),
        "fresh": (Fresh, False),
        "out": (Out, Path(out)) if out else (OutOrNone, None),
    }

    def of(main: Callable[Concatenate[Runs, P], None]) -> Callable[..., None]:
        own = [*inspect.signature(main).parameters.values()][1:]
        named = {parameter.name for parameter in own}
        common = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for name, (kind, default) in options.items()
            if name not in named
        ]

        @functools.wraps(main)
        def command(**given: Any) -> None:
            values = {name: given[name] for name in options if name != "out"}
            main(Runs(**values, typed_out=given["out"]), **{name: given[name] for name in named})  # type: ignore[call-arg]

        changed: Any = command
        changed.__signature__ = inspect.Signature([*own, *common])
        command.__annotations__ = {parameter.name: parameter.annotation for parameter in [*own, *common]}
        return plain_errors(command)

    return of
