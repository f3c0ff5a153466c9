"""Impact of dynamic participation (IDP): a run compared with the static run that is like it in all else."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from edgesim.analysis.participation import course, impact
from edgesim.analysis.runs import NEUTRAL, Knob, RunFolder, flat_settings
from edgesim.base.errors import EdgesimError
from edgesim.folder.records import read_run

_HASH = "the contents of "
_MOST_NAMED = 3


class Pair(NamedTuple):
    """A run under dynamic participation and its static run."""

    run: RunFolder
    static: RunFolder
    idp_points: float
    """Accuracy that the run lacks against the static one, in percentage points, mean over rounds."""


class Refused(NamedTuple):
    """A run under dynamic participation without a pair, and why, in one line."""

    run: RunFolder
    reason: str


def is_static(run: RunFolder) -> bool:
    """Whether a run has the model ``always``, which the static run of a pair must have.

    Other models may come to the same, such as ``bernoulli`` with probability 1 or a matrix of ones: a run with one
    counts as dynamic, and its IDP against the static run is 0, which makes it a control. No file is read for this.
    """
    return bool(run.config.get("availability", {}).get("model", "always") == "always")


def pair(run: RunFolder, static: RunFolder) -> Pair:
    """The pair of a run and a static run; raises `EdgesimError` that names what but participation differs."""
    result = _paired(run, static)
    if isinstance(result, Refused):
        raise EdgesimError(f"{run.folder}: no IDP: {result.reason}")
    return result


def _paired(run: RunFolder, static: RunFolder) -> Pair | Refused:
    if not is_static(static):
        return Refused(run, f"{static.folder.name} is no static run, which has availability.model = 'always'")
    if differing := _differences(_all_else(run), _all_else(static)):
        only = "a pair may differ in [availability] alone"
        return Refused(run, f"the static run {static.folder.name} differs in {differing}; {only}")
    try:
        return Pair(run, static, impact(course(static), course(run)))
    except EdgesimError as error:
        return Refused(run, f"with the static run {static.folder.name}: {error}")


def pairs(runs: Sequence[RunFolder]) -> tuple[list[Pair], list[Refused]]:
    """Each tested run under dynamic participation with the static run that is like it in all else, in their order.

    Without such a run, the reason names what the static run of its seed that is most like it differs in. Both lists
    are empty where no run is static.
    """
    tested = [run for run in runs if run.rounds["test_accuracy"].notna().any()]
    dynamic = [run for run in tested if not is_static(run)]
    static = [(run, _all_else(run)) for run in tested if is_static(run)] if dynamic else []
    paired: list[Pair] = []
    refused: list[Refused] = []
    for run in dynamic if static else []:
        mine = _all_else(run)
        nearest, _ = min(static, key=lambda other: _count(mine, other[1]))
        result = _paired(run, nearest)
        if isinstance(result, Pair):
            paired.append(result)
        else:
            refused.append(result)
    return paired, refused


def _all_else(run: RunFolder) -> dict[str, Knob]:
    """The settings of a run but for its participation, and the hashes of the files and the code that it read."""
    settings = flat_settings(run.config)
    compared = {key: of for key, of in settings.items() if key not in NEUTRAL and not key.startswith("availability.")}
    inputs = read_run(run.folder).get("inputs", {})
    hashes = {key: of for key, of in inputs.items() if not key.startswith("availability.")}
    # The only key that is no ``section.key`` is edgesim's version, which is compared itself.
    return compared | {f"{_HASH}{key}" if "." in key else key: str(of) for key, of in hashes.items()}


def _differing(mine: Mapping[str, Knob], theirs: Mapping[str, Knob]) -> list[str]:
    return [key for key in dict.fromkeys([*mine, *theirs]) if mine.get(key) != theirs.get(key)]


def _count(mine: Mapping[str, Knob], theirs: Mapping[str, Knob]) -> tuple[bool, int]:
    """Distance of two runs: whether their seeds differ, then the number of settings that differ."""
    differing = _differing(mine, theirs)
    return "seed" in differing, len(differing)


def _differences(mine: Mapping[str, Knob], theirs: Mapping[str, Knob]) -> str:
    """The settings that differ, each with their value and mine, as text; the first few of them."""
    differing = _differing(mine, theirs)
    named = [
        key if key.startswith(_HASH) else f"{key} ({_value(theirs.get(key))} instead of {_value(mine.get(key))})"
        for key in differing[:_MOST_NAMED]
    ]
    more = len(differing) - len(named)
    return ", ".join(named) + (f" and {more} more" if more else "")


def _value(value: Knob | None) -> str:
    return "absent" if value is None else f"{value}"
