"""What a study costs beside its runs; beside each number stands what the project aims at. Only on a quiet machine."""

import io
import time

from rich.console import Console

from edgesim import Study, grid, run_study, simulation
from edgesim.analysis.summary import write_summary
from edgesim.studies.ledger import read_ledger

RUNS = 400
BASE = {
    "rounds": 100,
    "learning": {"training": "none"},
    "data": {"dataset": "none"},
    "round": {"payload_bits": 1e7},
}


def study(count):
    return Study("s", grid(BASE, {"round.tmax_s": [0.8, 1.0]}, range(count // 2)))


def seconds(do):
    started_s = time.perf_counter()
    do()
    return time.perf_counter() - started_s


def test_the_ledger_of_four_hundred_runs_and_what_a_study_takes_beside_them(benchmark, tmp_path):
    """Aims: the ledger in less than 1 s; at most 5 % beside the runs' own time."""
    runs = study(RUNS)
    simulation.run(runs.runs[0].config, tmp_path / "warm")

    def alone():
        for run in runs.runs:
            simulation.run(run.config, tmp_path / "alone" / run.folder)

    own_s = seconds(alone)
    quiet = Console(file=io.StringIO())
    benchmark.pedantic(lambda: run_study(runs, tmp_path / "study", 1, quiet), rounds=1)
    study_s = benchmark.stats["mean"]
    again_s = seconds(lambda: run_study(runs, tmp_path / "study", 1, quiet))
    (tmp_path / "study/summary.csv").unlink()
    table_s = seconds(lambda: write_summary(tmp_path / "study"))
    ledger_s = min(seconds(lambda: read_ledger(tmp_path / "study")) for _ in range(3))
    assert {state.status for state in read_ledger(tmp_path / "study").values()} == {"finished"}
    info = {"own_s": own_s, "study_s": study_s, "overhead": study_s / own_s - 1, "ledger_s": ledger_s}
    info |= {"table_s": table_s, "overhead_without_table": (study_s - table_s) / own_s - 1}
    benchmark.extra_info |= {name: round(value, 4) for name, value in (info | {"reused_s": again_s}).items()}


def test_two_jobs_beside_one(benchmark, tmp_path):
    """Aim: 1.8 times as fast, with one thread each (OMP_NUM_THREADS=1)."""
    runs = study(RUNS // 4)
    quiet = Console(file=io.StringIO())
    one_s = seconds(lambda: run_study(runs, tmp_path / "one", 1, quiet))
    benchmark.pedantic(lambda: run_study(runs, tmp_path / "two", 2, quiet), rounds=1)
    benchmark.extra_info |= {"one_s": one_s, "times": one_s / benchmark.stats["mean"]}
