"""Small run folders and studies with numbers worked by hand."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from edited_runs import forget_digests, write_plan

from edgesim.folder.records import RunWriter

Paths = Sequence[Sequence[float | None]]


def write_run(
    folder: Path,
    accuracies: Sequence[float | None],
    *,
    start: float | None = 0.5,
    seed: int = 0,
    classes: Sequence[Mapping[int, float]] = (),
    config: Mapping[str, object] | None = None,
    facts: Mapping[str, object] | None = None,
    models: Sequence[int] = (),
) -> Path:
    """One run of two-second rounds at 1 MHz: 4 scheduled, 3 arrived, 1 late, one upload of 3e6 bits merged.

    Of its 6 J a round, 4 J are those of the upload that arrived and 2 J those of the late one. ``classes`` are the
    accuracies by class of each round; ``config`` are further sections of its configuration. ``models`` are the numbers
    of devices' own models of whose accuracies that of each round is the mean.
    """
    settings = {"seed": seed, "radio": {"bandwidth_hz": 1e6}, "round": {"tmax_s": 2.0}, **(config or {})}
    writer = RunWriter(folder, settings, facts or {})
    writer.write("stations", {"station": [0], "name": ["one"], "x_m": [0.0], "y_m": [0.0], "bandwidth_hz": [1e6]})
    if start is not None:
        writer.write("metrics", {"round": [0], "name": ["test_accuracy"], "key": [""], "value": [start]})
    for number, of_class in enumerate(classes, start=1):
        rows = {"round": [number] * len(of_class), "name": ["class_accuracy"] * len(of_class)}
        writer.write("metrics", rows | {"key": [str(label) for label in of_class], "value": list(of_class.values())})
    for number, count in enumerate(models, start=1):
        writer.write("metrics", {"round": [number], "name": ["models_tested"], "key": [""], "value": [float(count)]})
    count = len(accuracies)
    rounds = np.arange(1, count + 1)
    starts_s, ends_s = 2.0 * (rounds - 1), 2.0 * rounds
    counts = {"frame": 1, "candidates": 10, "selected": 4, "arrived": 3, "late": 1, "bits_up": 3.5e6, "energy_j": 6.0}
    columns = {"round": rounds, "t_start_s": starts_s, "t_end_s": ends_s, "test_accuracy": list(accuracies)}
    writer.write("rounds", columns | {name: [value] * count for name, value in counts.items()})
    each = {"device": [0, 1], "activity": ["upload"] * 2, "outcome": ["done", "late"]}
    each |= {"bits": [3e6, 0.5e6], "energy_j": [4.0, 2.0]}
    twice = {"round": rounds, "task": rounds, "t_start_s": starts_s, "t_end_s": ends_s}
    work = {name: np.repeat(column, 2) for name, column in twice.items()}
    writer.write("activities", work | {name: values * count for name, values in each.items()})
    update = {"round": rounds, "task": rounds, "device": [0] * count, "weight": [1.0] * count}
    writer.write("updates", update | {"staleness": [0] * count})
    writer.close("finished")
    forget_digests(folder)
    return folder


def write_study(
    folder: Path,
    runs: Sequence[tuple[dict[str, str | float], int, str, Sequence[float | None]]] | Mapping[str, Paths],
    *,
    knobs: Mapping[str, str | float] | None = None,
    target: float | None = 0.75,
    start: float | None = 0.5,
    configs: Sequence[Mapping[str, object] | None] | None = None,
    classes: Sequence[Sequence[Mapping[int, float]]] | None = None,
) -> Path:
    """A study of (knobs, seed, status, accuracies); only the finished runs get a folder.

    Or of the accuracies of each policy on seeds 0, 1 and so on, at the same further ``knobs``.

    ``configs`` are further sections of each run's configuration, ``classes`` its accuracies by class and round.
    """
    if isinstance(runs, Mapping):
        by_policy = [({"policy": policy, **(knobs or {})}, paths) for policy, paths in runs.items()]
        runs = [(of, seed, "finished", path) for of, paths in by_policy for seed, path in enumerate(paths)]
    plan = []
    folder.mkdir()
    for i, (knobs, seed, status, accuracies) in enumerate(runs):
        if status == "finished":
            further = {"config": configs[i] if configs else None, "classes": classes[i] if classes else ()}
            write_run(folder / f"run{i}", accuracies, start=start, seed=seed, **further)
        plan.append({"folder": f"run{i}", "knobs": knobs, "seed": seed, "status": status})
    return write_plan(folder, "by hand", plan, target)


@pytest.fixture(scope="session")
def run_writer() -> Callable[..., Path]:
    """Writes one run folder."""
    return write_run


@pytest.fixture(scope="session")
def study_writer() -> Callable[..., Path]:
    """Writes one study folder."""
    return write_study
