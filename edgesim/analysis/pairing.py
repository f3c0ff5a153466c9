"""Pairs of runs to compare: two values of a knob at equal other knobs, seed by seed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from edgesim.analysis.censored import Outcomes
from edgesim.analysis.judgement import Sides
from edgesim.analysis.measures import step
from edgesim.analysis.runs import Knob, RunFolder
from edgesim.folder.digests import WHAT_WAS_DONE

Knobs = Mapping[str, Knob]
Measures = Mapping[str, float]


@dataclass(frozen=True, eq=False)
class Pairing:
    """Two combinations of knobs that differ in the compared knob, and the runs of both that share a seed."""

    place: Knobs
    """Knobs in which both agree."""
    choice: Knobs
    """The compared knob of the first, and the knobs that it alone has (such as the quantile of one way to plan)."""
    other: Knobs
    """Results of the second choice, the reference if there is one."""
    runs: tuple[tuple[RunFolder, RunFolder], ...]
    """The runs of each seed that both have."""
    lone: tuple[tuple[RunFolder, ...], tuple[RunFolder, ...]]
    """Runs of the first whose seed the second lacks, and of the second whose seed the first lacks."""

    @property
    def is_same(self) -> bool:
        """Whether both made the same runs: of each seed, the devices' work and the model have the same bytes."""
        did = [tuple([run.digests.get(name) for name in WHAT_WAS_DONE] for run in pair) for pair in self.runs]
        return all(any(mine) and mine == theirs for mine, theirs in did)


@dataclass(frozen=True, eq=False)
class Comparison:
    """Values of a pairing in one measure."""

    pairing: Pairing
    measure: str
    runs: tuple[RunFolder, ...]
    """The first's runs that have the measure."""
    sides: Sides


def pairings(runs: Sequence[RunFolder], knob: str, reference: Knob | None = None) -> list[Pairing]:
    """All pairings of ``runs``, in their order: with the ``reference`` as the second, or without one of every two.

    A combination is paired with one that agrees with it in all other knobs that the second has. The second of every two
    is the one that came first among the runs. Raises nothing: runs that nothing is paired with are absent.
    """
    groups: dict[frozenset[tuple[str, Knob]], dict[int, RunFolder]] = {}
    for run in runs:
        groups.setdefault(frozenset(run.knobs.items()), {})[run.seed] = run
    cells = list(groups.values())
    knobs = [next(iter(cell.values())).knobs for cell in cells]
    paired = []
    for i, mine in enumerate(knobs):
        if reference is not None:
            others = [j for j, of in enumerate(knobs) if of.get(knob) == reference and _agree(mine, of, knob)][:1]
            others = [] if mine.get(knob) == reference else others
        else:
            others = [j for j, of in enumerate(knobs[:i]) if of.get(knob) != mine.get(knob)]
            others = [j for j in others if _agree(mine, knobs[j], knob) or _agree(knobs[j], mine, knob)]
        paired += [_pairing(cells[i], cells[j], knob) for j in others]
    return paired


def _agree(mine: Knobs, theirs: Knobs, knob: str) -> bool:
    """Whether two sets of knobs agree in all knobs of the second but ``knob``."""
    return all(mine.get(name) == value for name, value in theirs.items() if name != knob)


def _pairing(mine: Mapping[int, RunFolder], theirs: Mapping[int, RunFolder], knob: str) -> Pairing:
    first, second = (next(iter(cell.values())).knobs for cell in (mine, theirs))
    place = {name: value for name, value in first.items() if name != knob and name in second}
    choice, other = ({name: value for name, value in of.items() if name not in place} for of in (first, second))
    shared = tuple((run, theirs[seed]) for seed, run in mine.items() if seed in theirs)
    lone = (_without(mine, theirs), _without(theirs, mine))
    return Pairing(place, choice, other, shared, lone)


def _without(cell: Mapping[int, RunFolder], other: Mapping[int, RunFolder]) -> tuple[RunFolder, ...]:
    return tuple(run for seed, run in cell.items() if seed not in other)


def comparisons(
    paired: Sequence[Pairing], measures: Sequence[str], of: Callable[[RunFolder], Measures]
) -> list[Comparison]:
    """Every pairing in every measure that both runs of some pair have, by measure and then in the pairings' order.

    ``of`` gives a run's measures by name. A measure X of a run that never reached its target is absent, and then
    ``X_bound`` is what the run had taken by its last test.
    """
    compared = []
    for name in measures:
        for pairing in paired:
            outcomes = [(_outcome(of(mine), name), _outcome(of(theirs), name)) for mine, theirs in pairing.runs]
            there = [_known(mine) and _known(theirs) for mine, theirs in outcomes]
            values = np.array([pair for pair, had in zip(outcomes, there, strict=True) if had])
            if len(values):
                runs = tuple(run for (run, _), had in zip(pairing.runs, there, strict=True) if had)
                first, second = (Outcomes(values[:, side, 0], values[:, side, 1]) for side in (0, 1))
                others = [run for (_, run), had in zip(pairing.runs, there, strict=True) if had]
                sides = Sides(first, second, (step(name, runs), step(name, others)))
                compared.append(Comparison(pairing, name, runs, sides))
    return compared


def _known(outcome: tuple[float, float]) -> bool:
    return not np.isnan(outcome).all()


def _outcome(measures: Measures, name: str) -> tuple[float, float]:
    value = measures.get(name, np.nan)
    return value, measures.get(f"{name}_bound", np.nan) if np.isnan(value) else np.nan
