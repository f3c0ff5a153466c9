"""Wall time of a FedAvg round: edgesim beside Flower and pfl-research, and a plain PyTorch loop.

    python tests/benchmarks/peers/run.py --out runs/peers --folder data

The work is `small-cnn` on Fashion-MNIST, whose IDX files the folder holds (images are made up without one), and `mlp`
on digits. Same clients, samples, batches, epochs and network everywhere, all on the CPU. The peers are installed from
PyPI into environments of their own below the folder (some gigabytes, once). Each side runs in every configuration of
processes x threads that fills the cores; its best one counts. Sides take turns, and the least of the repeats' medians
counts, as the machine may be busy with other things. Writes ``peers.json`` and ``peers.md``.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import venv
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import date
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from side_edgesim import config_of
from work import Work

from edgesim import simulation
from edgesim.config import DataConfig
from edgesim.learning.datasets import load_dataset
from edgesim.learning.federation import make_federation
from edgesim.streams import Streams
from edgesim.terminal.plain import plain_errors

HERE = Path(__file__).parent
CLIENTS = 10
INSTALLED = {"flower": "flwr[simulation]", "pfl": "pfl"}
SIDES = ("loop", "edgesim", *INSTALLED)


@dataclass(frozen=True)
class Measured:
    """One configuration of one side at one work."""

    work: str
    side: str
    environment: str
    processes: int
    threads: int
    round_s: float
    accuracy: float
    versions: dict[str, str]


@plain_errors
def main() -> None:
    """Install, measure, write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/peers"), help="folder for environments and results")
    parser.add_argument("--environments", type=Path, help="folder of the environments; OUT/environments when absent")
    parser.add_argument(
        "--torch",
        default=f"torch=={metadata.version('torch').partition('+')[0]}",
        help="torch of the peers; that of this environment when absent",
    )
    parser.add_argument("--folder", type=Path, help="folder of Fashion-MNIST's IDX files; images made up when absent")
    parser.add_argument("--repeats", type=int, default=3, help="how often each side takes its turn")
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=SIDES, help="sides that take part")
    asked = parser.parse_args()
    environments = asked.environments or asked.out / "environments"
    pythons = {"edgesim": sys.executable}
    for peer in INSTALLED:
        if peer in asked.sides:
            pythons[peer] = str(install(peer, environments / peer, asked.torch))
    images = made_up() if asked.folder is None else fashion_mnist(asked.folder)
    name = "made-up-images" if asked.folder is None else "fashion-mnist"
    works = [
        prepare(asked.out / name, images, 600, network="small-cnn", batch=32, lr=0.05, warm_up=2, rounds=6),
        prepare(asked.out / "digits", digits(), 14, network="mlp", batch=8, lr=0.1, warm_up=10, rounds=60),
    ]
    found = []
    for work in works:
        for repeat in range(asked.repeats):
            for side, environment, processes, threads in turns(asked.sides, pythons):
                measured = measure(work, side, environment, pythons[environment], processes, threads)
                where = f"{side:8} in {environment:8} {processes} x {threads} threads"
                how = f"{1000 * measured.round_s:8.1f} ms/round, accuracy {measured.accuracy:.3f}"
                print(f"{work.folder.name:8} turn {repeat + 1}: {where} {how}", flush=True)
                found.append(measured)
    (asked.out / "peers.json").write_text(json.dumps([asdict(measured) for measured in found], indent=1) + "\n")
    (asked.out / "peers.md").write_text(table(found))
    print(table(found))


def install(peer: str, folder: Path, torch: str) -> Path:
    """An environment with torch and a peer, made once; its python."""
    python = folder / "bin" / "python"
    if not (folder / "ready").is_file():
        print(f"installing {INSTALLED[peer]} and {torch} into {folder}", flush=True)
        venv.create(folder, with_pip=True)
        for package in (torch, INSTALLED[peer]):
            subprocess.run([python, "-m", "pip", "install", "--quiet", package], check=True)
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


def made_up() -> dict[str, np.ndarray]:
    """Ten smooth patterns under noise, as many and as large as Fashion-MNIST's images."""
    random = np.random.default_rng(0)
    patterns = np.kron(random.uniform(108, 148, (10, 7, 7)), np.ones((4, 4)))
    made = {}
    for part, count in (("train", 60_000), ("test", 10_000)):
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


def turns(sides: list[str], pythons: dict[str, str]) -> Iterator[tuple[str, str, int, int]]:
    """Side, environment, processes and threads of each measurement; the loop runs in every environment."""
    cores = len(os.sched_getaffinity(0))
    if "edgesim" in sides:
        yield "edgesim", "edgesim", 0, 0  # decides by itself
    for environment in pythons:
        if "loop" in sides:
            yield from (("loop", environment, 1, threads) for threads in sorted({1, cores}))
        if environment in INSTALLED:
            shapes = sorted({(1, 1), (1, cores), (cores, 1)})
            yield from ((environment, environment, processes, threads) for processes, threads in shapes)


def measure(work: Work, side: str, environment: str, python: str, processes: int, threads: int) -> Measured:
    """Run one side in a process of its own."""
    command = [python, str(HERE / f"side_{side}.py"), str(work.folder), str(processes), str(threads)]
    quiet = {"CUDA_VISIBLE_DEVICES": "", "FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    paths = [str(HERE), os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else [str(HERE)]
    variables = os.environ | quiet | {"PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
    result = json.loads(done.stdout.splitlines()[-1])
    return Measured(work.folder.name, side, environment, processes, threads, **result)


def table(found: list[Measured]) -> str:
    """Best of each side at each work, in milliseconds and beside the loop of the same environment."""
    lines = [
        f"{platform.processor() or platform.machine()}, {len(os.sched_getaffinity(0))} cores, {date.today()}",
        "",
        "| work | side | processes x threads | ms per round | the loop there | times the loop | accuracy | versions |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for work in dict.fromkeys(measured.work for measured in found):
        mine = [measured for measured in found if measured.work == work]
        for side in dict.fromkeys(measured.side for measured in mine):
            best = min((measured for measured in mine if measured.side == side), key=lambda one: one.round_s)
            loops = [one.round_s for one in mine if one.side == "loop" and one.environment == best.environment]
            shape = f"{best.processes} x {best.threads}" if best.processes else "its own choice"
            beside = f"{1000 * min(loops):.1f} | {best.round_s / min(loops):.2f}" if loops else " | "
            versions = ", ".join(f"{name} {version}" for name, version in best.versions.items())
            round_ms = f"{1000 * best.round_s:.1f}"
            lines.append(f"| {work} | {side} | {shape} | {round_ms} | {beside} | {best.accuracy:.3f} | {versions} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
