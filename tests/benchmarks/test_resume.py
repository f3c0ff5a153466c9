"""What checkpoints cost, and how long a run takes to go on; beside each number stands what the project aims at."""

import os
import time
from contextlib import suppress

import numpy as np
import pytest
from sizes import size
from whole_runs import TIMED

from edgesim.config_file import parse
from edgesim.folder import checkpoints
from edgesim.folder.records import RunWriter, read_run
from edgesim.folder.run_progress import RunProgress
from edgesim.simulation import composition as simulation

CNN = {
    "rounds": size(8, 2),
    "learning": {"model": "fedteddi-cnn", "steps": 2, "pretrain": False, "back_end": "loop"},
    "data": {"dataset": "cifar-like.npz", "partition": "iid", "samples_per_device": 20},
    "round": {"admission": "count", "count": 10, "payload_bits": 17_881_664.0, "tmax_s": 6.0},
    "evaluation": {"samples": 100, "every": 4},
}
TIMING = TIMED | {
    "rounds": size(60, 2),
    "devices": {"count": size(10_000, 100)},
    "round": {"tmax_s": 6.0, "payload_bits": 17_881_664.0, "admission": "count", "count": 30, "computes": "selected"},
}


@pytest.mark.parametrize("values", [CNN, TIMING], ids=["fedteddi's cnn", "10,000 devices"])
def test_a_checkpoint_beside_a_bare_write_of_its_bytes(benchmark, tmp_path, monkeypatch, values):
    """Aims: every 10 s, at most 2 % of the wall time; after every round, at most twice a write, fsync and rename."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    images, labels = random.integers(0, 255, (700, 32, 32, 3), dtype=np.uint8), np.arange(700) % 10
    named = {"train_images": images, "train_labels": labels, "test_images": images[:100], "test_labels": labels[:100]}
    np.savez("cifar-like.npz", **named)
    ours, bare, sizes = [], [], []
    save, call = RunWriter.save, simulation.resumption.Saver.if_due

    def timed(self, about, record, keep):
        save(self, about, record, keep)
        sizes.append(checkpoints.files(self.folder)[0].stat().st_size)

    def beside(self):
        started_s = time.perf_counter()
        call(self)
        ours.append(time.perf_counter() - started_s)
        content = checkpoints.files(tmp_path / "run")[0].read_bytes()
        started_s = time.perf_counter()
        with (tmp_path / "bare.part").open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        (tmp_path / "bare.part").replace(tmp_path / "bare")
        bare.append(time.perf_counter() - started_s)

    monkeypatch.setattr(RunWriter, "save", timed)
    monkeypatch.setattr(simulation.resumption.Saver, "if_due", beside)
    config = parse(values, "benchmark")
    benchmark.pedantic(lambda: simulation.run(config, tmp_path / "run", checkpoint_s=0.0), rounds=1)
    info = {"bytes": sizes[-1], "ms": 1e3 * np.median(ours), "bare_ms": 1e3 * np.median(bare)}
    info |= {"times_bare": np.median(ours) / np.median(bare), "share_at_10_s": np.median(ours) / 10}
    benchmark.extra_info |= {name: round(float(value), 5) for name, value in info.items()}
    assert len(ours) == config.rounds


def test_how_long_a_run_of_ten_thousand_devices_takes_to_go_on(benchmark, tmp_path):
    """Aim: at most 2 s more than a fresh start before the first new round of 1,000."""

    class Enough(KeyboardInterrupt):
        pass

    last = size(1000, 5)
    config = parse(TIMING | {"rounds": last}, "benchmark")

    def until(round: int) -> float:
        started_s = time.perf_counter()

        def on_round(done: RunProgress) -> None:
            if done.round == round:
                raise Enough

        with suppress(Enough):
            simulation.run(config, tmp_path, on_round, checkpoint_s=size(0.5, 0.0) if round == last - 1 else 1e9)
        return time.perf_counter() - started_s

    fresh_s = until(1)
    until(last - 1)
    went_on_from = int(checkpoints.files(tmp_path)[0].name.split("-")[1])
    resumed_s = benchmark.pedantic(lambda: until(went_on_from + 1), rounds=1)
    assert read_run(tmp_path)["resumed"] == [{"went_on_from": went_on_from}]
    benchmark.extra_info |= {"fresh_s": fresh_s, "resumed_s": resumed_s, "behind_round": went_on_from}
