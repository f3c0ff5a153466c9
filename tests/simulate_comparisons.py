"""How often comparisons of choices err, and how often they find a difference: by simulation, as a table in Markdown.

    python tests/simulate_comparisons.py --families 1000

Each simulated study compares seven choices with a reference, seed by seed, by the code that judges real studies. Laws
of a run's result: `normal` (mean 100, one seed's runs share a part of their noise), `skewed` (lognormal, sigma 0.8),
`skewed against narrow` (the same against a reference that spreads by a hundredth of its mean), `whole numbers` (some
20 rounds, spread 0.6, rounded) and `25 % censored` (lognormal times, sigma 0.8, of which the run's end cuts off a
quarter).

Columns: family-wise error, the share of studies of eight equal choices in which any difference is significant;
coverage, the share of 95 % intervals that contain the true difference; P(equivalent) at the margin, the share of
comparisons called equivalent whose true difference is the margin, a tenth of the reference's mean; power, the share of
comparisons found significant whose true difference is `DIFFERENCES`, alone and where six others without any are judged
with it.
"""

import sys
from collections.abc import Callable, Sequence
from typing import Annotated
from unittest import mock

import numpy as np
import typer

from edgesim.analysis.censored import Outcomes, known
from edgesim.analysis.differences import read
from edgesim.analysis.judgement import Sides, judge
from edgesim.analysis.pairing import Comparison, Pairing

CHOICES = 7
SEEDS = (3, 5, 10, 20)
SIGMA = 0.8
MARGIN = 1.1
Array = np.ndarray
Law = Callable[[np.random.Generator, int, float], list[Sides]]
"""The sides of `CHOICES` comparisons over so many seeds; the first choice's mean is the reference's times a ratio."""
NOWHERE = Pairing({}, {}, {}, (), ((), ()))


def normal(draws: np.random.Generator, seeds: int, ratio: float) -> list[Sides]:
    """Mean 100; standard deviation 5 of what runs of a seed share, and 5 of each run's own."""
    values = 100 + draws.normal(0, 5, seeds) + draws.normal(0, 5, (CHOICES + 1, seeds))
    values[1] += 100 * (ratio - 1)
    return [Sides(known(mine), known(values[0])) for mine in values[1:]]


def skewed(draws: np.random.Generator, seeds: int, ratio: float) -> list[Sides]:
    """Lognormal of mean 100."""
    values = lognormal(draws, seeds)
    values[1] *= ratio
    return [Sides(known(mine), known(values[0])) for mine in values[1:]]


def skewed_against_narrow(draws: np.random.Generator, seeds: int, ratio: float) -> list[Sides]:
    """Lognormal of mean 100 against a reference of mean 100 and standard deviation 1."""
    values = lognormal(draws, seeds)
    values[0] = draws.normal(100, 1, seeds)
    values[1] *= ratio
    return [Sides(known(mine), known(values[0])) for mine in values[1:]]


def whole_numbers(draws: np.random.Generator, seeds: int, ratio: float) -> list[Sides]:
    """Rounds: normal of mean 20 and standard deviation 0.6, rounded."""
    values = draws.normal(20, 0.6, (CHOICES + 1, seeds))
    values[1] += 20 * (ratio - 1)
    return [Sides(known(mine), known(values[0]), (1.0, 1.0)) for mine in np.round(values)[1:]]


def censored(draws: np.random.Generator, seeds: int, ratio: float) -> list[Sides]:
    """Rounds: lognormal of mean 100, rounded; the runs end where three quarters of the reference's got there."""
    end = np.round(100 * np.exp(-(SIGMA**2) / 2 + SIGMA * 0.6744897501960817))
    values = lognormal(draws, seeds)
    values[1] *= ratio
    values = np.ceil(values)
    sides = [Outcomes(np.where(of <= end, of, np.nan), np.where(of <= end, np.nan, end)) for of in values]
    return [Sides(mine, sides[0], (1.0, 1.0)) for mine in sides[1:]]


def lognormal(draws: np.random.Generator, seeds: int) -> Array:
    """Lognormal results of mean 100, [choices and reference, seeds]."""
    return 100 * np.exp(draws.normal(-(SIGMA**2) / 2, SIGMA, (CHOICES + 1, seeds)))


LAWS: dict[str, Law] = {
    "normal": normal,
    "skewed": skewed,
    "skewed against narrow": skewed_against_narrow,
    "whole numbers": whole_numbers,
    "25 % censored": censored,
}
DIFFERENCES = {
    "normal": 1.1,
    "skewed": 2.2,
    "skewed against narrow": 2.2,
    "whole numbers": 1.05,
    "25 % censored": 1 / 2.2,
}
"""Ratio of means that power is of, by law."""


def judged(sides: Sequence[Sides]) -> list[dict[str, float]]:
    """Rows of `judge`; in each call statsmodels collects garbage, which takes longer than all else."""
    with mock.patch("gc.collect"):
        return judge(sides).to_dict("records")


def contains(row: dict[str, float]) -> bool:
    """Whether an interval contains no difference."""
    return row["ratio_low"] <= 1 <= row["ratio_high"] if row["never"] else row["low"] <= 0 <= row["high"]


def lone(sides: Sequence[Sides]) -> list[dict[str, float]]:
    """Rows of comparisons each of which is judged alone, where the corrected p is p itself."""
    return [row | {"p_holm": row["p"]} for row in judged(sides)]


def simulate(law: str, seeds: int, families: int) -> list[str]:
    """The cells of one law and number of seeds."""
    draws = np.random.default_rng([seeds, list(LAWS).index(law)])
    null = [judged(LAWS[law](draws, seeds, 1.0)) for _ in range(families)]
    at_margin = [LAWS[law](draws, seeds, MARGIN)[0] for _ in range(families)]
    differing = [LAWS[law](draws, seeds, DIFFERENCES[law]) for _ in range(families)]
    shares = [
        np.mean([any(row["p_holm"] < 0.05 for row in rows) for rows in null]),
        np.mean([contains(row) for rows in null for row in rows]),
        np.mean([read(Comparison(NOWHERE, "rounds_to_target", (), sides), row) == "equivalent"
                 for sides, row in zip(at_margin, lone(at_margin), strict=True)]),
        np.mean([row["p_holm"] < 0.05 for row in lone([sides[0] for sides in differing])]),
        np.mean([judged(sides)[0]["p_holm"] < 0.05 for sides in differing]),
    ]  # fmt: skip
    return [f"{100 * share:.1f} %" for share in shares]


def main(
    families: Annotated[int, typer.Option(help="Simulated studies of each law and number of seeds.")] = 1000,
) -> None:
    """Print the table."""
    headings = ["law", "seeds", "family-wise error", "coverage", "P(equivalent) at the margin"]
    headings += ["true ratio", "power alone", "power among seven"]
    print("| " + " | ".join(headings) + " |\n| " + " | ".join("---" for _ in headings) + " |")
    for law in LAWS:
        for seeds in SEEDS:
            *first, alone, among = simulate(law, seeds, families)
            cells = [law, str(seeds), *first, f"{DIFFERENCES[law]:.3g}", alone, among]
            print("| " + " | ".join(cells) + " |")
            sys.stdout.flush()


if __name__ == "__main__":
    typer.run(main)
