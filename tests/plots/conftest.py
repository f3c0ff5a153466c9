"""Run folders and studies of made-up but plausible rounds, written with the project's own writer."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from edited_runs import forget_digests, write_plan

from edgesim.folder.records import RunWriter
from edgesim.streams import Streams

DEVICES, CLASSES = 10, 4

Writer = Callable[..., Path]


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
    streams = Streams(seed)
    config: dict[str, dict[str, object] | int] = {
        "seed": seed,
        "round": {"tmax_s": tmax_s, **(extra or {}).get("round", {})},
        "radio": {"bandwidth_hz": 20e6, "sharing": "reserved", **(extra or {}).get("radio", {})},
        "selection": {"policy": policy, **(extra or {}).get("selection", {})},
    }
    config = (extra or {}) | config
    writer = RunWriter(folder, config, {})
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
    for number in range(1, rounds + 1):
        start_s = (number - 1) * tmax_s
        chosen = np.argsort(streams.uniform(f"choice-{policy}", range(DEVICES), number))[:scheduled]
        compute_s = tmax_s * (0.05 + 0.12 * streams.exponential("compute", range(DEVICES), number))
        rows = []
        for device in range(DEVICES):
            end_s = min(compute_s[device], tmax_s)
            taken = device in chosen
            rows.append((device, "compute", 0.0, end_s, "done" if taken else "unscheduled", 0.0))
            if taken and end_s < tmax_s:
                outcome = "late" if device == chosen[0] else "dropped" if device == chosen[-1] else "done"
                stop_s = 0.7 * tmax_s + 0.3 * end_s if outcome == "dropped" else tmax_s
                rows.append((device, "upload", end_s, stop_s, outcome, 1e6))
        done = sum(row[1] == "upload" and row[4] == "done" for row in rows)
        device, activity, begin, end, outcome, bits = zip(*rows, strict=True)
        writer.write(
            "activities",
            {
                "round": [number] * len(rows),
                "device": device,
                "task": [number] * len(rows),
                "activity": activity,
                "t_start_s": start_s + np.array(begin),
                "t_end_s": start_s + np.array(end),
                "outcome": outcome,
                "bits": bits,
                "bandwidth_hz": [1e6] * len(rows),
                "energy_j": [0.1] * len(rows),
            },
        )
        merged = [row[0] for row in rows if row[1] == "upload" and row[4] == "done"]
        updates = {"device": merged, "weight": [1 / max(done, 1)] * done, "staleness": [0] * done}
        writer.write("updates", {"round": [number] * done, "task": [number] * done, **updates})
        counts = {"candidates": DEVICES, "selected": scheduled, "arrived": done, "late": 1, "dropped": 1}
        writer.write(
            "rounds",
            {
                "round": [number],
                "frame": [1],
                "t_start_s": [start_s],
                "t_end_s": [start_s + tmax_s],
                "bits_up": [1e6 * done],
                "energy_j": [3.0],
                "test_accuracy": [accuracy[number]],
                **{name: [value] for name, value in counts.items()},
            },
        )
        writer.write("metrics", {"round": [number], "name": ["infeasible_share"], "key": [""], "value": [0.1 / tmax_s]})
    writer.close("finished")
    forget_digests(folder)
    return folder


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


@pytest.fixture(scope="session")
def run_writer() -> Writer:
    """Writes one run folder."""
    return write_run


@pytest.fixture(scope="session")
def study_writer() -> Writer:
    """Writes one study folder."""
    return write_study
