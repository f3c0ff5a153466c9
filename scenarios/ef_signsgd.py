"""Does a residual mend what signSGD breaks? Two of the counterexamples of "Error feedback fixes SignSGD".

Karimireddy, Rebjock, Stich, Jaggi, "Error feedback fixes SignSGD and other gradient compression schemes", ICML 2019,
section 3. No devices and no rounds: one number or two are trained by steps that lose all but their signs, or pass
edgesim's codec ``sign`` with its residual.

1. f = x / 4 with gradients of 4 with probability 1/4, else -1: right in the mean, but most of the signs are wrong.
   SignSGD climbs by an eighth of its rate a step; with feedback f falls by a sixteenth, as by SGD.
2. f = |x1 + x2| / 4 + |x1 - x2| from (1.3, 0.7): x1 - x2 decides the signs of both coordinates, which are opposite, so
   that signSGD never leaves x1 + x2 = 2. With feedback it comes to the minimum, 0 at (0, 0).
"""

from typing import Annotated

import numpy as np
import pandas as pd
from typer import Option

from edgesim.scenario import Runs, descent, scenario, start, tables

RATE_1, RATE_2 = 0.01, 0.05
FIRST = (1.3, 0.7)


def slope(value: float) -> float:
    """Derivative of |value|, 1 at 0."""
    return 1.0 if value >= 0 else -1.0


def rises(way: str, steps: int, seeds: int) -> np.ndarray:
    """Change of f = x / 4 in each step, in rates, [seeds x steps]."""
    found = []
    for seed in range(seeds):
        gradients = np.where(np.random.default_rng(seed).random(steps) < 0.25, 4.0, -1.0).tolist()
        points = descent.descend(
            way, (0.0,), steps, lambda number, _, of=gradients: (of[number - 1],), lambda _: RATE_1
        )
        found.append(np.diff(points[:, 0].numpy(), prepend=0.0) / 4 / RATE_1)
    return np.concatenate(found)


def end(way: str, steps: int) -> tuple[float, float]:
    """Where the second function and x1 + x2 end."""

    def gradient(number: int, point: object) -> tuple[float, float]:
        first, second = map(float, point)
        along, across = slope(first + second) / 4, slope(first - second)
        return along + across, along - across

    points = descent.descend(way, FIRST, steps, gradient, lambda number: RATE_2 / number**0.5)
    first, second = points[-1].tolist()
    return abs(first + second) / 4 + abs(first - second), first + second


@scenario("runs/ef-signsgd", seeds=5, quick={"steps": 2_000, "seeds": 2})
def main(runs: Runs, steps: Annotated[int, Option(min=100, help="Steps on each function.")] = 20_000) -> None:
    """Print what SGD, signSGD, and signs with a residual make of both functions; the second one has no seeds."""
    rows, by_seed = [], []
    for way in descent.WAYS:
        changes = rises(way, steps, runs.seeds)
        value, along = end(way, steps)
        error = changes.std(ddof=1) / len(changes) ** 0.5
        rows.append([way, changes.mean(), error, value, along])
        by_seed += [[way, seed, change.mean()] for seed, change in enumerate(np.split(changes, runs.seeds))]
    table = pd.DataFrame(rows, columns=["way", "rise_in_rates", "standard_error", "f_in_the_end", "x1_plus_x2"])
    runs.out.mkdir(parents=True, exist_ok=True)
    tables.save(table, runs.out / "steps.csv")
    ends = table[["way", "f_in_the_end", "x1_plus_x2"]].assign(seed=0)
    seeds = pd.DataFrame(by_seed, columns=["way", "seed", "rise_in_rates"])
    tables.save(seeds.merge(ends, on=["way", "seed"], how="left"), runs.out / "seeds.csv")
    forms = {name: (name.replace("_", " "), "{:.5f}") for name in table.columns[1:]}
    tables.show(table, f"{runs.out}: f = x / 4 by step, and |x1 + x2| / 4 + |x1 - x2| after {steps:,} steps", forms)


if __name__ == "__main__":
    start(main)
