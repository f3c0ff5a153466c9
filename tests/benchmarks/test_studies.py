"""What a study costs beside its runs; beside each number stands what the project aims at. Only on a quiet machine."""

import io
from multiprocessing import get_context

from rich.console import Console
from sizes import IS_LEAST, processor_s, size, wall_s
from small_runs import TIMING

from edgesim import Study, grid, run_study
from edgesim.analysis.summary import write_summary
from edgesim.simulation import composition as simulation
from edgesim.studies.ledger import read_ledger

RUNS = size(400, 4)
BASE = TIMING | {"rounds": size(100, 2)}


def study(count):
    return Study("s", grid(BASE, {"round.tmax_s": [0.8, 1.0]}, range(count // 2)))


def both_s(work):
    """Wall and processor seconds."""
    spent_s = []
    return wall_s(lambda: spent_s.append(processor_s(work))), spent_s[0]


def test_the_ledger_of_four_hundred_runs_and_what_a_study_takes_beside_them(benchmark, tmp_path):
    """Aims: the ledger in less than 1 s; at most 5 % beside the runs' own time.

    All that a study takes counts: starting its process, handing out, the closing table. The measures of a run are
    worked out while the next one runs, on a core that one job leaves free: ``cpu_overhead`` is that of processor time.
    """
    runs = study(RUNS)
    simulation.run(runs.runs[0].config, tmp_path / "warm")

    def alone():
        for run in runs.runs:
            simulation.run(run.config, tmp_path / "alone" / run.folder)

    def whole():
        benchmark.pedantic(run_study, (runs, tmp_path / "study", 1, quiet))

    quiet = Console(file=io.StringIO())
    (own_s, own_cpu_s), (study_s, study_cpu_s) = (both_s(work) for work in (alone, whole))
    again_s = wall_s(lambda: run_study(runs, tmp_path / "study", 1, quiet))
    (tmp_path / "study/summary.csv").unlink()
    table_s = wall_s(lambda: write_summary(tmp_path / "study"))
    for name in ("summary.csv", "measures.json"):
        (tmp_path / "study" / name).unlink()
    anew_s = wall_s(lambda: write_summary(tmp_path / "study"))
    ledger_s = min(wall_s(lambda: read_ledger(tmp_path / "study")) for _ in range(3))
    assert {state.status for state in read_ledger(tmp_path / "study").values()} == {"finished"}
    info = {"own_s": own_s, "study_s": study_s, "overhead": study_s / own_s - 1, "ledger_s": ledger_s}
    info |= {"table_s": table_s, "table_anew_s": anew_s, "cpu_overhead": study_cpu_s / own_cpu_s - 1}
    benchmark.extra_info |= {name: round(value, 4) for name, value in (info | {"reused_s": again_s}).items()}


def carry_out(begin, runs, folder):
    simulation.run(runs[0].config, folder / "warm")
    begin.wait()
    for run in runs:
        simulation.run(run.config, folder / run.folder)


def bare_s(runs, folder, count):
    """How long so many processes take for the runs, which have loaded their libraries before, without a study."""
    context = get_context("spawn")
    begin = context.Barrier(count + 1)
    shares = [(begin, runs[number::count], folder / str(number)) for number in range(count)]
    processes = [context.Process(target=carry_out, args=share) for share in shares]
    for process in processes:
        process.start()
    begin.wait(60)
    took_s = wall_s(lambda: [process.join() for process in processes])
    assert [process.exitcode for process in processes] == [0] * count
    return took_s


def test_two_jobs_beside_one(benchmark, tmp_path):
    """Aim: 1.8 times as fast, with one thread each (OMP_NUM_THREADS=1).

    ``bare_times`` is what two processes without a study gain on this machine.
    """
    runs, quiet = study(RUNS), Console(file=io.StringIO())
    two_s = wall_s(lambda: benchmark.pedantic(run_study, (runs, tmp_path / "two", 2, quiet)))
    bare = {count: bare_s(runs.runs, tmp_path / f"bare-{count}", count) for count in size((1, 2), (2,))}
    if IS_LEAST:
        return
    one_s = wall_s(lambda: run_study(runs, tmp_path / "one", 1, quiet))
    times, bare_times = one_s / two_s, bare[1] / bare[2]
    benchmark.extra_info |= {"one_s": one_s, "times": times, "bare_times": bare_times, "of_bare": times / bare_times}
