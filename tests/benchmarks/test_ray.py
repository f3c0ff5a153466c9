"""Studies by Ray on one node beside the local pool, the start of Ray apart. Only on a quiet machine."""

import io

import pytest
from rich.console import Console
from sizes import size, wall_s
from small_runs import TIMING

import edgesim
from edgesim import Study, grid, run_study
from edgesim.analysis.summary import write_summary
from edgesim.simulation import composition as simulation

pytest.importorskip("ray", reason="Ray is not installed")

SHORT = TIMING | {"rounds": size(100, 2)}
LONG = {
    "rounds": size(250, 1),
    "round": {"payload_bits": 1e7},
    "learning": {"model": "mlp", "pretrain": False, "back_end": "loop", "steps": 20},
    "data": {"partition": "fedteddi"},
}


@pytest.fixture(scope="module")
def ray_here():
    """An executor whose Ray has started, and whose processes have loaded edgesim."""
    executor = edgesim.Ray()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        patch.delenv("RAY_ADDRESS", raising=False)
        # Ray's processes give way to all others (nice 15), which those of the pool do not.
        patch.setenv("RAY_worker_niceness", "0")
        with executor.connected():
            yield executor


def study(executor, runs, out, jobs):
    return wall_s(lambda: run_study(runs, out, jobs, Console(file=io.StringIO()), executor=executor))


def test_runs_of_ten_seconds_by_ray_and_by_the_local_pool(benchmark, ray_here, tmp_path):
    """Aim: Ray on one node at most 5 % slower for runs of 10 s or more.

    Two runs at a time, three times each in turn, since what else the machine does changes over minutes.
    """
    runs = Study("s", grid(LONG, {}, range(2)))
    own_s = wall_s(lambda: simulation.run(runs.runs[0].config, tmp_path / "alone"))
    took = {"pool": [], "ray": []}

    def both():
        for number in range(size(3, 1)):
            for name, executor in (("pool", None), ("ray", ray_here)):
                took[name].append(study(executor, runs, tmp_path / f"{name}-{number}", 2))

    benchmark.pedantic(both, rounds=1)
    ratios = sorted(ray_s / pool_s for ray_s, pool_s in zip(took["ray"], took["pool"], strict=True))
    benchmark.extra_info |= {"one_run_s": own_s, **took, "median_ratio": ratios[len(ratios) // 2]}


def test_what_ray_takes_beside_four_hundred_short_runs(benchmark, ray_here, tmp_path):
    """Aim: at most 20 ms for each run beside its own time, one at a time."""
    runs = Study("s", grid(SHORT, {"round.tmax_s": [0.8, 1.0]}, range(size(200, 2))))
    study(ray_here, Study("warm", runs.runs[:2]), tmp_path / "warm", 1)
    half = len(runs.runs) // 2

    def alone(some, name):
        return wall_s(lambda: [simulation.run(run.config, tmp_path / name / run.folder) for run in some])

    # Before and after, since the machine may do something else at one of the times.
    own_s = alone(runs.runs[:half], "before")
    study_s = benchmark.pedantic(lambda: study(ray_here, runs, tmp_path / "study", 1), rounds=1)
    own_s += alone(runs.runs[half:], "after")
    (tmp_path / "study/summary.csv").unlink()
    table_s = wall_s(lambda: write_summary(tmp_path / "study"))
    beside_ms = [1000 * (took - own_s) / len(runs.runs) for took in (study_s, study_s - table_s)]
    info = {"own_s": own_s, "study_s": study_s, "table_s": table_s}
    info |= {"beside_ms_a_run": beside_ms[0], "beside_ms_a_run_without_table": beside_ms[1]}
    benchmark.extra_info |= {name: round(value, 3) for name, value in info.items()}
