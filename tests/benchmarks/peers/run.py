"""Wall time of a FedAvg round: edgesim beside Flower and pfl-research, and a plain PyTorch loop.

    python tests/benchmarks/peers/run.py --out runs/peers --folder data

The work is `small-cnn` on Fashion-MNIST, whose IDX files the folder holds (images are made up without one), and `mlp`
on digits. Same clients, samples, batches, epochs, network and torch everywhere, all on the CPU. The peers are installed
from PyPI into environments of their own below the folder (some gigabytes, once). Each side runs in every configuration
of processes x threads that fills the cores; its best one counts. Sides take turns, and the least of the repeats'
medians counts, as the machine may be busy with other things. Writes ``peers.json`` and ``peers.md``, the table of
docs/speed.md, which is printed, too.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from side_edgesim import config_of
from work import Work

from edgesim.config import DataConfig
from edgesim.learning.datasets import load_dataset
from edgesim.learning.federation import make_federation
from edgesim.screen.plain import plain_errors
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams

HERE = Path(__file__).parent
CLIENTS = 10
INSTALLED = {"flower": "flwr[simulation]", "pfl": "pfl"}
SIDES = ("loop", "edgesim", *INSTALLED)
VSIM = "vsim", ["--no-deps", "appfl==1.12.0", "colorama"]
"""Environment of the driver of `tests/benchmarks/test_vsim.py`, and what pip installs into it: the driver needs no more
of the packages that APPFL requires, which are several gigabytes."""


@dataclass(frozen=True)
class Measured:
    """One configuration of one side at one work."""

    work: str
    side: str
    how: str
    """Processes x threads, or the back end that edgesim chose."""
    round_s: float
    accuracy: float
    versions: dict[str, str]


@plain_errors
def main() -> None:
    """Install, measure, write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/peers"), help="folder for environments and results")
    parser.add_argument("--environments", type=Path, help="folder of the environments; OUT/environments when absent")
    parser.add_argument("--folder", type=Path, help="folder of Fashion-MNIST's IDX files; images made up when absent")
    parser.add_argument("--repeats", type=int, default=3, help="how often each side takes its turn")
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=SIDES, help="sides that take part")
    asked = parser.parse_args()
    environments = asked.environments or asked.out / "environments"
    pythons = dict.fromkeys(asked.sides, sys.executable)
    torch = f"torch=={metadata.version('torch').partition('+')[0]}"
    for peer, package in INSTALLED.items():
        if peer in asked.sides:
            pythons[peer] = str(install(environments / peer, [torch, package]))
    install(environments / VSIM[0], VSIM[1])
    if asked.folder is None:
        name, images = "made-up images", made_up(60_000, 10_000)
    else:
        name, images = "Fashion-MNIST", fashion_mnist(asked.folder)
    works = {
        name: prepare(asked.out / "images", images, 600, network="small-cnn", batch=32, lr=0.05, warm_up=2, rounds=6),
        "digits": prepare(asked.out / "digits", digits(), 14, network="mlp", batch=8, lr=0.1, warm_up=10, rounds=60),
    }
    cores = len(os.sched_getaffinity(0))
    results = []
    for name, work in works.items():
        for turn in range(1, asked.repeats + 1):
            for measured in take_turns(name, work, pythons, cores):
                how = f"{1000 * measured.round_s:8.1f} ms/round, accuracy {measured.accuracy:.3f}"
                print(f"{name}, turn {turn}: {measured.side:8} {measured.how:8} {how}", flush=True)
                results.append(measured)
    (asked.out / "peers.json").write_text(json.dumps([asdict(measured) for measured in results], indent=1) + "\n")
    (asked.out / "peers.md").write_text(table(results, cores))
    print(f"\n{table(results, cores)}")


def install(folder: Path, packages: Sequence[str]) -> Path:
    """An environment in which pip has installed packages, given as its arguments, made once; its python."""
    python = folder / "bin" / "python"
    if not (folder / "ready").is_file():
        print(f"installing {' '.join(packages)} into {folder}", flush=True)
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        (folder / "ready").touch()
    return python


def fashion_mnist(folder: Path) -> dict[str, np.ndarray]:
    """Its 60,000 and 10,000 images [n, 28, 28] and labels; raises `EdgesimError` where a file is missing or broken."""
    dataset = load_dataset(DataConfig(dataset="fashion-mnist", folder=str(folder)))
    train, test = dataset.images
    return {
        "train_images": train[:, 0],
        "train_labels": dataset.train_labels,
        "test_images": test[:, 0],
        "test_labels": dataset.test_labels,
    }


def made_up(train: int, test: int) -> dict[str, np.ndarray]:
    """Ten smooth patterns under noise, as large as Fashion-MNIST's images, so many for training and for testing."""
    random = np.random.default_rng(0)
    patterns = np.kron(random.uniform(108, 148, (10, 7, 7)), np.ones((4, 4)))
    made = {}
    for part, count in (("train", train), ("test", test)):
        labels = random.integers(0, 10, count)
        noisy = patterns[labels] + random.normal(0, 120, (count, 28, 28))
        made |= {f"{part}_images": noisy.clip(0, 255).astype(np.uint8), f"{part}_labels": labels}
    return made


def digits() -> dict[str, np.ndarray]:
    """scikit-learn's digits, one fifth of them for testing."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    test = np.random.default_rng(0).permutation(len(bunch.target)) < len(bunch.target) // 5
    pixels = bunch.images.astype(np.uint8)
    return {
        "train_images": pixels[~test],
        "train_labels": bunch.target[~test],
        "test_images": pixels[test],
        "test_labels": bunch.target[test],
    }


def prepare(folder: Path, data: dict[str, np.ndarray], samples: int, **knobs: Any) -> Work:
    """Write down a work; its clients are those that edgesim makes."""
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(folder / "data.npz", **data)
    (folder / "work.json").write_text(json.dumps(knobs))
    work = Work.read(folder)
    config = simulation.complete(config_of(work, CLIENTS, samples))
    np.save(folder / "clients.npy", np.stack(make_federation(config, Streams(config.seed)).frames[1].clients))
    return work


def take_turns(name: str, work: Work, pythons: dict[str, str], cores: int) -> Iterator[Measured]:
    """Measure each side, whose interpreter ``pythons`` holds, once in every configuration that fills the cores."""
    title = f"`{work.network}` on {name}, {len(work.clients[0][1])} samples, batches of {work.batch}"
    for side, python in pythons.items():
        for processes, threads in shapes(side, cores):
            result = measure(work, side, python, processes, threads)
            how = result.pop("back_end") or f"{processes} x {threads}"
            yield Measured(title, side, how, **result)


def shapes(side: str, cores: int) -> Sequence[tuple[int, int]]:
    """Processes and threads of each configuration of a side."""
    if side == "edgesim":
        return [(0, 0)]  # It decides by itself.
    several = sorted({(1, 1), (1, cores), (cores, 1)})
    return [shape for shape in several if shape[0] == 1] if side == "loop" else several


def measure(work: Work, side: str, python: str, processes: int, threads: int) -> dict[str, Any]:
    """What one side reports, run in a process of its own; ends the program with its output where it fails."""
    command = [python, str(HERE / f"side_{side}.py"), str(work.folder), str(processes), str(threads)]
    quiet = {"CUDA_VISIBLE_DEVICES": "", "FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    paths = [str(HERE), os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else [str(HERE)]
    variables = os.environ | quiet | {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def table(results: Iterable[Measured], cores: int) -> str:
    """Best configuration of each side at each work, in milliseconds and beside the plain loop, in Markdown."""
    best: dict[tuple[str, str], Measured] = {}
    versions: dict[str, str] = {}
    for measured in sorted(results, key=lambda measured: measured.round_s):
        best.setdefault((measured.work, measured.side), measured)
        versions |= measured.versions
    lines = [
        f"{cores} cores, {processor()}, {date.today()}; {', '.join(map(' '.join, versions.items()))}",
        "",
        "| work | side | ms per round | times the loop | accuracy | processes x threads |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for (work, side), measured in sorted(best.items(), key=lambda item: item[0][0]):
        loop = best.get((work, "loop"))
        ratio = "" if loop is None else f"{measured.round_s / loop.round_s:.2f}"
        round_ms = f"{1000 * measured.round_s:.1f}"
        lines.append(f"| {work} | {side} | {round_ms} | {ratio} | {measured.accuracy:.3f} | {measured.how} |")
    return "\n".join(lines) + "\n"


def processor() -> str:
    """Name of this machine's processor."""
    models = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return models[0] if models else "unknown processor"


if __name__ == "__main__":
    main()
