"""Whether one value of a knob really beats another in runs given by their folders: `edgesim compare`."""

import html
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from typing_extensions import override

from edgesim.analysis.common_past import common_rounds
from edgesim.analysis.differences import margin, summarise_differences
from edgesim.analysis.equal_time import stretched_payloads, unequal_time
from edgesim.analysis.judgement import describe
from edgesim.analysis.measures import IN_SECONDS
from edgesim.analysis.outcomes import outcomes
from edgesim.analysis.pairing import Comparison, Knobs, Pairing, comparisons, pairings
from edgesim.analysis.runs import Knob, RunFolder, has_runs, read_study, refuse_same, runs_of, value_text
from edgesim.analysis.variance import analyse
from edgesim.base.errors import EdgesimError
from edgesim.base.registry import did_you_mean
from edgesim.folder.records import read_run
from edgesim.folder.state import state_of

_MOST_NAMED = 3


@dataclass(frozen=True)
class Compared:
    """Result of a comparison."""

    found: list[Comparison]
    table: pd.DataFrame
    """One row per comparison: `summarise_differences` and `describe` side by side, with ``choice`` and ``against``.

    Where there are forks, ``common_past_rounds`` are the rounds in which the two runs of each seed are the same (the
    fewest of all seeds).
    """
    variances: dict[str, pd.DataFrame]
    """`analyse` of each measure: over the compared knob and, as one factor, the combinations of those ``within``."""
    notes: list[str]

    @override
    def __str__(self) -> str:
        return "\n".join([self.table.T.to_string(header=False), *self.notes])

    def _repr_html_(self) -> str:
        """The table as notebooks show it, and the notes."""
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return f"{self.table._repr_html_()}{notes}"


def compare(
    folders: Sequence[Path],
    metrics: Sequence[str],
    by: str,
    reference: str | None = None,
    within: Sequence[str] = (),
    target: float | None = None,
    detect: float | str | None = None,
) -> Compared:
    """Compare runs, or the finished runs of studies, by a knob, seed by seed and in each place.

    A place is a combination of the knobs ``within``; runs may differ in no others, but for those that only some values
    of ``by`` have, which belong to what is compared. With a ``reference`` every other value is compared with it; it is
    the study's for policies. Without one every two are compared. All comparisons in all measures are corrected
    together. ``detect`` is the difference that `describe` counts seeds for: a number in the unit of the measures, or a
    text such as ``5%``, a share of the mean of the second of each two; when absent each comparison's margin of
    equivalence. Raises `EdgesimError` for runs that are not pairs.
    """
    wanted = None if detect is None else _share_or_number(detect)
    runs, studied_target, studied_reference = _runs(folders, target)
    if reference is None and by == "policy":
        reference = studied_reference
    of = outcomes(runs, metrics, studied_target)
    _check_knobs(runs, by, within)
    value = None if reference is None else _reference(runs, by, reference)
    paired = pairings(runs, by, value)
    _check_others(runs, by, within, paired)
    if not paired:
        raise EdgesimError(f"by {by}: no two runs differ in it alone; {_differing_by(runs, by, within)}")
    for pairing in paired:
        _check_seeds(pairing, by)
    compared = comparisons(paired, metrics, lambda run: of[run.folder])
    table = summarise_differences(compared)
    named = pd.DataFrame({"choice": [label(comparison.pairing.choice, by) for comparison in compared],
                          "against": [label(comparison.pairing.other, by) for comparison in compared]})  # fmt: skip
    detected = [margin(comparison) if wanted is None else wanted(comparison) for comparison in compared]
    further = describe([comparison.sides for comparison in compared], table["alpha"].tolist(), detected)
    past = [min(common_rounds(*pair) for pair in comparison.pairing.runs) for comparison in compared]
    if any(past):
        named["common_past_rounds"] = past
    variances, notes, place = {}, _left_out(runs, paired) + _forks(runs), " and ".join(within)
    # Places with other times or payloads than these are not held against them.
    sides = [[run for pair in pairing.runs for run in pair] for pairing in paired]
    notes += stretched_payloads([run for both in sides if stretched_payloads(both) for run in both])
    if any(name in IN_SECONDS for name in metrics):
        notes += unequal_time([run for both in sides if unequal_time(both) for run in both])
    for name in metrics:
        values = pd.DataFrame(
            {by: value_text(run.knobs.get(by)), place: _place(run, within), "value": of[run.folder].get(name, np.nan)}
            for run in runs
            if {name, f"{name}_bound"} & of[run.folder].keys()
        )
        if reason := _no_variance(values, by, place):
            notes.append(f"No analysis of variance of {name}: {reason}.")
        else:
            variances[name] = analyse(values, [by, place] if values[place].nunique() > 1 else [by])
    return Compared(compared, pd.concat([table, named, further], axis=1), variances, notes)


def _share_or_number(detect: float | str) -> Callable[[Comparison], float]:
    """The difference to detect in a comparison; raises `EdgesimError` unless it is positive and finite."""
    text = str(detect).strip()
    is_share = text.endswith("%")
    try:
        value = float(text.removesuffix("%")) / (100 if is_share else 1)
    except ValueError:
        value = math.nan
    if not (value > 0 and math.isfinite(value)):
        raise EdgesimError(f"detect {detect}: expected a positive difference such as 0.02, or a share such as 5%")
    return lambda comparison: value * (abs(float(comparison.sides.times[1].mean())) if is_share else 1.0)


def label(knobs: Knobs, by: str) -> str:
    """A choice in words: the value of the compared knob, then knobs that it alone has."""
    own = [value_text(knobs[by])] if by in knobs else [f"no {by}"]
    return ", ".join(own + [f"{name} = {value_text(value)}" for name, value in knobs.items() if name != by])


def _runs(folders: Sequence[Path], target: float | None) -> tuple[list[RunFolder], float | None, str | None]:
    """The runs, the target accuracy and the reference policy: of one study as in its plan."""
    twice = [path for path, times in Counter(path.resolve() for path in folders).items() if times > 1]
    if twice:
        raise EdgesimError(f"{twice[0]}: is given more than once, and would count as several seeds; give it once")
    studies = {path: read_study(path) for path in folders if has_runs(path)}
    targets = {study.target for study in studies.values()}
    if target is None and len(targets) > 1:
        differing = ", ".join(f"{path}: {study.target}" for path, study in studies.items())
        raise EdgesimError(f"the studies have different targets ({differing}); give a target")
    target = next(iter(targets), None) if target is None else target
    references = {study.reference for study in studies.values()}
    reference = references.pop() if len(references) == 1 else None
    if len(studies) == len(folders) == 1:
        runs = next(iter(studies.values())).finished
        if not runs:
            raise EdgesimError(f"{folders[0]}: no run of the study is finished; run it first")
    else:
        inside = {path: [run.folder for run in study.finished] for path, study in studies.items()}
        runs = runs_of([folder for path in folders for folder in inside.get(path, [path])])
    for run in runs:
        _refuse_unfinished(run.folder)
    refuse_same(runs)
    known = {run.knobs.get("policy") for run in runs}
    return runs, target, reference if reference in known else None


def _refuse_unfinished(folder: Path) -> None:
    """Raises `EdgesimError` for a run that has not finished, with how it goes on."""
    if read_run(folder)["status"] == "finished":
        return
    state = state_of(folder)
    goes_on = f"resume it with `edgesim resume {folder}`"
    remedies = {
        "running": "is running; wait for its end",
        "lost": f"is lost (its process is gone); {goes_on}",
        "stopped": f"was stopped; {goes_on}",
    }
    failed = f"is {state.status}{f' ({state.reason})' if state.reason else ''}; run it again"
    raise EdgesimError(f"{folder}: {remedies.get(state.status, failed)}, or leave it out")


def _values(runs: Sequence[RunFolder], name: str) -> list[Knob]:
    return list(dict.fromkeys(run.knobs[name] for run in runs if name in run.knobs))


def _varying(runs: Sequence[RunFolder]) -> list[str]:
    """Knobs in which the runs differ; one that only some runs have does."""
    names = dict.fromkeys(name for run in runs for name in run.knobs)
    return [name for name in names if len({run.knobs.get(name) for run in runs}) > 1]


def _check_knobs(runs: Sequence[RunFolder], by: str, within: Sequence[str]) -> None:
    """Refuse knobs that are unknown or have one value."""
    varying = _varying(runs)
    for option, name in (("by", by), *(("within", name) for name in within)):
        if not _values(runs, name):
            hint = did_you_mean(name, varying) or f"; they differ in {', '.join(varying) or 'the seed alone'}"
            raise EdgesimError(f"{option} {name}: the runs do not differ in a knob of this name{hint}")
    if by in within:
        raise EdgesimError(f"within {by}: the runs are compared by it already; leave it out")
    if by not in varying:
        raise EdgesimError(
            f"by {by}: all runs have {by} = {value_text(_values(runs, by)[0])}; expected two values or more"
        )


def _check_others(runs: Sequence[RunFolder], by: str, within: Sequence[str], paired: Sequence[Pairing]) -> None:
    """Refuse runs that differ in knobs beside the compared one and those ``within``."""
    others = [name for name in _varying(runs) if name not in (by, *within) and all(name in run.knobs for run in runs)]
    if not others:
        return
    differing = ", ".join(f"{name} ({_some_values(runs, name)})" for name in others[:_MOST_NAMED])
    differing += f" and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
    if not paired:
        raise EdgesimError(
            f"the runs are of different worlds: no two to compare differ in {by} alone, but in {differing} as well; "
            f"expected runs that agree in all but {by} and the seed"
        )
    names = ", ".join(others)
    raise EdgesimError(
        f"within: the runs differ in more than {by}: {differing}; give {names} to compare at equal values"
    )


def _some_values(runs: Sequence[RunFolder], name: str) -> str:
    values = [value_text(value) for value in _values(runs, name)]
    return ", ".join(values[:3]) + (", ..." if len(values) > 3 else "")


def _reference(runs: Sequence[RunFolder], by: str, text: str) -> Knob:
    values = {value_text(value): value for value in _values(runs, by)}
    if text not in values:
        raise EdgesimError(f"reference {text}: no run has {by} = {text}; the values are {', '.join(values)}")
    return values[text]


def _differing_by(runs: Sequence[RunFolder], by: str, within: Sequence[str]) -> str:
    """Other knobs that differ between the values of the compared one."""
    differing = [
        name
        for name in _varying(runs)
        if name != by and len({frozenset(_values([r for r in runs if r.knobs.get(by) == value], name))
                               for value in _values(runs, by)}) > 1
    ]  # fmt: skip
    return f"its values differ in {', '.join(differing) or ', '.join(within)} as well"


def _check_seeds(pairing: Pairing, by: str) -> None:
    """Refuse a pairing of which a seed is missing, or which has fewer than two."""
    one, other = (f"{by} = {label(knobs, by)}" for knobs in (pairing.choice, pairing.other))
    where = f" at {knobs_text(pairing.place)}" if pairing.place else ""
    if not pairing.runs:
        seeds = " against ".join(_seeds(runs) for runs in pairing.lone)
        raise EdgesimError(f"{one} and {other} have no seed in common{where} ({seeds})")
    for runs, lacking, having in ((pairing.lone[0], other, one), (pairing.lone[1], one, other)):
        if runs:
            seeds = f"seed{'s' * (len(runs) > 1)} {_seeds(runs)}"
            raise EdgesimError(f"{lacking} lacks {seeds}{where}, which {having} has; run what is missing")
    if len(pairing.runs) < 2:
        seed = pairing.runs[0][0].seed
        raise EdgesimError(f"{one} and {other} have one seed in common{where} ({seed}); expected two or more")


def _seeds(runs: Sequence[RunFolder]) -> str:
    return ", ".join(str(seed) for seed in sorted(run.seed for run in runs))


def knobs_text(knobs: Knobs) -> str:
    """Knobs with their values, separated by commas."""
    return ", ".join(f"{name} = {value_text(value)}" for name, value in knobs.items())


def _place(run: RunFolder, within: Sequence[str]) -> str:
    return knobs_text({name: run.knobs[name] for name in within if name in run.knobs})


def _left_out(runs: Sequence[RunFolder], paired: Sequence[Pairing]) -> list[str]:
    """A note about the combinations of knobs that were compared with nothing."""
    compared = {run.folder for pairing in paired for pair in pairing.runs for run in pair}
    alone = dict.fromkeys(knobs_text(run.knobs) for run in runs if run.folder not in compared)
    return [f"Compared with nothing: {'; '.join(alone)}."] if alone else []


def _forks(runs: Sequence[RunFolder]) -> list[str]:
    """Notes about the past that forks have in common with another run."""
    forks = {run.folder: run.fork for run in runs}
    pasts = [f"{folder} is {fork.parent} until the end of round {fork.round}" for folder, fork in forks.items() if fork]
    return [f"Common past: {'; '.join(pasts)}. Only what follows can differ."] if pasts else []


def _no_variance(values: pd.DataFrame, by: str, place: str) -> str:
    """Why there is no analysis of variance; empty if there is one."""
    if values["value"].isna().any():
        return "some runs never reached the target"
    cells = values.groupby([by, place]).size()
    if len(cells) < values[by].nunique() * values[place].nunique():
        return f"not every {by} is at every {place}"
    if cells.min() < 2 or np.ptp(values["value"]) == 0.0:
        return "runs of one combination do not differ"
    return ""
