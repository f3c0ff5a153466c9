"""Error feedback against signSGD: two of the counterexamples of its paper, and what a residual does to them.

Karimireddy, Rebjock, Stich, Jaggi, "Error feedback fixes SignSGD and other gradient compression schemes", ICML 2019,
section 3. No devices and no rounds: one number or two are trained by steps, whose gradients pass edgesim's own codec
``sign`` with its residual, or lose all but their signs.

1. f = x / 4 with gradients of 4 with probability 1/4, else -1: right in the mean, but most of the signs are wrong.
   SignSGD climbs by an eighth of its rate a step; with feedback f falls by a sixteenth, as by SGD.
2. f = |x1 + x2| / 4 + |x1 - x2| from (1.3, 0.7): the signs of both coordinates are opposite wherever x1 + x2 counts for
   less than x1 - x2, so that signSGD never leaves x1 + x2 = 2. With feedback it reaches the minimum, 0 at (0, 0).
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from typer import Option

from edgesim.learning.codecs import make_codec
from edgesim.learning.codecs.feedback import send_with_residual
from edgesim.learning.codecs.transmission import receive
from edgesim.scenario import plain_errors, start
from edgesim.scenario.tables import save
from edgesim.streams import Streams

SIGN = make_codec("sign", {})
RATE_1, RATE_2 = 0.01, 0.05
FIRST = (1.3, 0.7)


def signs(step: Tensor, rate: float, residual: Tensor | None) -> tuple[Tensor, None]:
    """A step of signSGD, of its rate in each coordinate; nothing is remembered."""
    return torch.ones_like(step).copysign_(step + 0.0) * rate, None


def with_feedback(step: Tensor, rate: float, residual: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """A step as the codec decodes it, with the residual of those before, and the residual behind it."""
    sent = send_with_residual(step, residual, lambda vector: receive(SIGN, vector, None, 0))
    return sent.update.double(), sent.memory


def plain(step: Tensor, rate: float, residual: Tensor | None) -> tuple[Tensor, None]:
    """A step of SGD."""
    return step, None


METHODS: dict[str, Callable[[Tensor, float, Tensor | None], tuple[Tensor, Tensor | None]]] = {
    "sgd": plain,
    "signsgd": signs,
    "feedback": with_feedback,
}


def rise_per_step(method: str, draws: np.ndarray) -> tuple[float, float]:
    """Mean change of f = x / 4 in a step, and its standard error, for uniform draws [n] of the gradients."""
    residual, changes = None, []
    for draw in draws.tolist():
        gradient = torch.tensor([4.0 if draw < 0.25 else -1.0], dtype=torch.float64)
        moved, residual = METHODS[method](RATE_1 * gradient, RATE_1, residual)
        changes.append(-float(moved[0]) / 4)
    return float(np.mean(changes)), float(np.std(changes, ddof=1) / len(changes) ** 0.5)


def descent(method: str, steps: int) -> Tensor:
    """Points of the second function behind each step, [steps, 2]."""
    point, residual, points = torch.tensor(FIRST, dtype=torch.float64), None, []
    for number in range(1, steps + 1):
        total, apart = point[0] + point[1], point[0] - point[1]
        along, across = (1.0 if value >= 0 else -1.0 for value in (float(total), float(apart)))
        gradient = torch.tensor([along / 4 + across, along / 4 - across], dtype=torch.float64)
        rate = RATE_2 / number**0.5
        moved, residual = METHODS[method](rate * gradient, rate, residual)
        point = point - moved
        points.append(point)
    return torch.stack(points)


@plain_errors
def main(
    steps: Annotated[int, Option(min=100, help="Steps on the first function.")] = 200_000,
    descent_steps: Annotated[int, Option(min=100, help="Steps on the second one.")] = 20_000,
    seed: Annotated[int, Option(min=0, help="Seed of the gradients.")] = 0,
    quick: Annotated[bool, Option("--quick", help="A tenth of the steps.")] = False,
    out: Annotated[Path, Option(help="Folder of the table.")] = Path("runs/ef-signsgd"),
) -> None:
    """Print what SGD, signSGD and signSGD with feedback do to the two functions."""
    steps, descent_steps = (count // 10 if quick else count for count in (steps, descent_steps))
    draws = Streams(seed).generator("ef-signsgd").random(steps)
    rows = []
    for method in METHODS:
        rise, error = rise_per_step(method, draws)
        points = descent(method, descent_steps)
        total, apart = points[-1].sum(), points[-1][0] - points[-1][1]
        rows.append(
            {
                "method": method,
                "rise_per_step": rise,
                "standard_error": error,
                "in_rates": rise / RATE_1,
                "f_in_the_end": float(total.abs() / 4 + apart.abs()),
                "x1_plus_x2": float(total),
            }
        )
    table = pd.DataFrame(rows)
    out.mkdir(parents=True, exist_ok=True)
    save(table, out / "steps.csv")
    print(table.to_string(index=False))
    print(f"table in {out / 'steps.csv'}")


if __name__ == "__main__":
    start(main)
