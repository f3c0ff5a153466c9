"""edgesim: a whole run, with everything that it does (radio, energy, tables on disk, checkpoints).

Rounds are timed from the end of each to the end of the next, as on the other sides: the run folder's `timing` leaves
out what lies between two rounds.
"""

import tempfile
import time
from importlib import metadata
from pathlib import Path

from work import Work, asked, report

from edgesim.config import RunConfig
from edgesim.config_file import parse
from edgesim.folder.records import read_run, read_table
from edgesim.simulation import composition as simulation


def config_of(work: Work, clients: int, samples: int) -> RunConfig:
    """All clients take part in every round and are in time; the model is tested before the first and after the last."""
    return parse(
        {
            "rounds": work.all_rounds,
            "devices": {"count": clients},
            "radio": {"bandwidth_hz": 1e9},
            "round": {
                "tmax_s": 1e4,
                "computes": "selected",
                "admission": "count",
                "count": clients,
                "allocator": "equal_share",
            },
            "data": {
                "dataset": str(work.folder.absolute() / "data.npz"),
                "partition": "iid",
                "samples_per_device": samples,
            },
            "learning": {
                "model": work.network,
                "lr": work.lr,
                "lr_decay": 1.0,
                "momentum": 0.0,
                "batch_size": work.batch,
                "epochs": 1,
                "pretrain": False,
            },
            "evaluation": {"every": work.all_rounds},
        },
        "peers",
    )


if __name__ == "__main__":
    work, _, _ = asked()
    samples = len(work.clients[0][1])
    ends_s: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        settings = config_of(work, len(work.clients), samples)
        simulation.run(settings, out, lambda _: ends_s.append(time.perf_counter()))
        rounds = read_table(out, "rounds")
        assert (rounds["arrived"] == len(work.clients)).all()
        back_end = read_run(out)["back_end"]
    report(work, ends_s, float(rounds["test_accuracy"].iloc[-1]), back_end, edgesim=metadata.version("edgesim"))
