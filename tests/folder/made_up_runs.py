"""Run folders and studies of made-up but plausible rounds, written with the project's own writer."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from edited_runs import forget_digests, write_plan

from edgesim.folder.records import RunWriter
from edgesim.streams import Streams

DEVICES, CLASSES = 10, 4

COLUMNS = ("round", "device", "task", "activity", "t_start_s", "t_end_s", "outcome", "bits", "bandwidth_hz", "energy_j")


def rows_of(streams: Streams, policy: str, number: int, tmax_s: float, scheduled: int) -> Iterator[tuple[object, ...]]:
    """What is done in a round: all devices compute; of those chosen the first is late and the last drops out."""
    start_s = (number - 1) * tmax_s
    chosen = np.argsort(streams.uniform(f"choice-{policy}", range(DEVICES), number))[:scheduled]
    compute_s = tmax_s * (0.05 + 0.12 * streams.exponential("compute", range(DEVICES), number))
    for device, end_s in enumerate(np.minimum(compute_s, tmax_s)):
        taken = device in chosen
        done = "done" if taken else "unscheduled"
        yield number, device, number, "compute", start_s, start_s + end_s, done, 0.0, 1e6, 0.1
        if taken and end_s < tmax_s:
            outcome = "late" if device == chosen[0] else "dropped" if device == chosen[-1] else "done"
            stop_s = start_s + (0.7 * tmax_s + 0.3 * end_s if outcome == "dropped" else tmax_s)
            yield number, device, number, "upload", start_s + end_s, stop_s, outcome, 1e6, 1e6, 0.1


def write_run(
    folder: Path,
    *,
    seed: int = 0,
    policy: str = "random",
    tmax_s: float = 1.0,
    rounds: int = 12,
    evaluated: bool = True,
    scheduled: int = 4,
    extra: dict[str, dict[str, object]] | None = None,
) -> Path:
    streams, extra = Streams(seed), extra or {}
    usual = {"round": {"tmax_s": tmax_s}, "radio": {"bandwidth_hz": 20e6, "sharing": "reserved"}}
    usual |= {"selection": {"policy": policy}}
    writer = RunWriter(folder, extra | {"seed": seed} | {key: of | extra.get(key, {}) for key, of in usual.items()}, {})
    speed = streams.uniform(f"speed-{policy}", 0) * 0.05 + 0.04 * scheduled
    accuracy = 0.5 + 0.45 * (1 - np.exp(-speed * np.arange(rounds + 1))) if evaluated else [None] * (rounds + 1)
    if evaluated:
        writer.write("metrics", {"round": [0], "name": ["test_accuracy"], "key": [""], "value": [0.5]})
    for frame in (0, 1):
        counts = np.zeros((DEVICES, CLASSES), dtype=int)
        counts[np.arange(DEVICES), np.arange(DEVICES) % 3] = 60
        if frame == 1:
            counts[:3, 3] = 30
        places = {"x_m": np.arange(DEVICES) * 10.0, "y_m": np.arange(DEVICES) * -5.0, "station": [0] * DEVICES}
        counted = {"class_counts": counts.tolist()}
        writer.write("devices", {"device": range(DEVICES), "frame": [frame] * DEVICES} | places | counted)
    writer.write("stations", {"station": [0], "name": ["station"], "x_m": [0.0], "y_m": [0.0], "bandwidth_hz": [20e6]})
    numbers = np.arange(1, rounds + 1)
    rows = [row for number in numbers for row in rows_of(streams, policy, number, tmax_s, scheduled)]
    work = pd.DataFrame(rows, columns=COLUMNS)
    writer.write("activities", {name: work[name] for name in COLUMNS})
    merged = work[(work["activity"] == "upload") & (work["outcome"] == "done")]
    weights = 1 / merged.groupby("round")["device"].transform("size")
    updates = {name: merged[name] for name in ("round", "device", "task")}
    writer.write("updates", updates | {"weight": weights, "staleness": [0] * len(merged)})
    done = merged.groupby("round").size().reindex(numbers, fill_value=0).to_numpy()
    ends = {"t_start_s": (numbers - 1) * tmax_s, "t_end_s": numbers * tmax_s, "test_accuracy": accuracy[1:]}
    counts = {"frame": 1, "candidates": DEVICES, "selected": scheduled, "late": 1, "dropped": 1, "energy_j": 3.0}
    each = {name: [value] * rounds for name, value in counts.items()}
    writer.write("rounds", {"round": numbers, "arrived": done, "bits_up": 1e6 * done} | ends | each)
    shares = {"name": ["infeasible_share"] * rounds, "key": [""] * rounds, "value": [0.1 / tmax_s] * rounds}
    writer.write("metrics", {"round": numbers} | shares)
    writer.close("finished")
    return forget_digests(folder)


def write_study(
    folder: Path,
    knobs: list[dict[str, str | float]],
    *,
    seeds: int = 2,
    target: float | None = 0.75,
    rounds: int = 12,
) -> Path:
    """A study with one run per combination of knobs and seed, timing-only when there is no target."""
    plan = []
    for number, combination in enumerate(knobs):
        for seed in range(seeds):
            name = f"run{number}-s{seed}"
            tmax_s = float(combination.get("tmax_s", 1.0))
            policy = str(combination.get("policy", "random"))
            write_run(
                folder / name,
                seed=seed,
                policy=policy,
                tmax_s=tmax_s,
                rounds=rounds,
                evaluated=target is not None,
                scheduled=3 + number % 4,
            )
            plan.append({"folder": name, "knobs": combination, "seed": seed, "status": "finished"})
    return write_plan(folder, "made up", plan, target)
