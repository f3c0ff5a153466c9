"""Training without rounds, timing only; beside the number stands what the project aims at."""

import time

import pytest
from sizes import size

from edgesim.config_file import parse
from edgesim.folder.records import read_table
from edgesim.simulation import composition as simulation


@pytest.mark.parametrize("buffer", [10, 100])
def test_finished_tasks_per_second_of_fedbuff(benchmark, tmp_path, buffer):
    """Aim: 10,000 per second of wall time, 1,000 devices at work of 100,000."""
    tasks, devices, at_work = size((20_000, 100_000, 1000), (200, 1000, 100))
    settings = parse(
        {
            "rounds": tasks // buffer,
            "devices": {"count": devices},
            "round": {
                "protocol": "buffered",
                "admission": "count",
                "count": at_work,
                "protocol_options": {"buffer": buffer},
                "payload_bits": 1e6,
                "tmax_s": 10.0,
            },
            "data": {"dataset": "none", "partition": "fedteddi"},
            "learning": {"training": "none", "pretrain": True},
        },
        "benchmark",
    )
    wall_s, cpu_s = -time.perf_counter(), -time.process_time()
    benchmark.pedantic(lambda: simulation.run(settings, tmp_path), rounds=1)
    wall_s, cpu_s = wall_s + time.perf_counter(), cpu_s + time.process_time()
    benchmark.extra_info |= {"tasks_per_s": tasks / wall_s, "tasks_per_cpu_s": tasks / cpu_s}
    assert read_table(tmp_path, "rounds")["arrived"].sum() == tasks
