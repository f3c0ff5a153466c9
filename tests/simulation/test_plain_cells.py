"""Runs whose devices are handed over beside `plain_cells`, case by case."""

from pathlib import Path

import numpy as np
import pytest
from cell_files import plain_channel, write_cells
from plain_cells import WAY_S, Cells, Device, simulate
from whole_runs import play, write_rows

BLOCK = 6


def draw(case: int) -> tuple[Cells, list[Device]]:
    """Two to four stations near the centre, and three to nine devices that cross their cells."""
    random = np.random.default_rng(case)
    stations = [tuple(place) for place in random.uniform(-250, 250, (int(random.integers(2, 5)), 2)).tolist()]
    cells = Cells(
        stations,
        band_hz=float(random.choice([2e6, 5e6])),
        is_reshared=bool(random.integers(2)),
        upload=str(random.choice(["continue", "restart", "lost"], p=[0.5, 0.3, 0.2])),
        interruption_s=float(random.choice([0.0, 0.05, 0.7])),
        trigger_s=float(random.choice([0.0, 0.1, 0.256])),
        hysteresis_db=float(random.choice([0.0, 1.0, 3.0])),
        bits=float(random.uniform(5e6, 60e6)),
        compute_s=float(random.uniform(0.5, 4.0)),
        due_s=12.0,
    )
    devices = [
        Device(number, *random.uniform(-250, 250, 2).tolist(), *random.uniform(-40, 40, 2).tolist())
        for number in range(int(random.integers(3, 10)))
    ]
    return cells, devices


def config(folder: Path, cells: Cells, devices: list[Device]) -> dict[str, object]:
    places = {f"s{number}": place for number, place in enumerate(cells.stations_m)}
    links = [(name, "cloud", 1e15, 0.0) for name in places]
    rows = [
        (device.number, t_s, device.x_m + device.vx_mps * t_s, device.y_m + device.vy_mps * t_s)
        for device in devices
        for t_s in (0.0, WAY_S)
    ]
    file = write_rows(folder / "ways.csv", "device,t_s,x_m,y_m", rows)
    speed = {"a_s_per_sample": cells.compute_s / 160, "mu_samples_per_s": 1e15}
    return {
        "seed": 1,
        "rounds": 1,
        "devices": {"count": len(devices), "radius_m": 1000.0, **speed},
        "round": {"payload_bits": cells.bits, "tmax_s": cells.due_s, "close": "deadline"}
        | {"admission": "count", "count": len(devices), "allocator": "equal_share"},
        "data": {"dataset": "none"},
        "learning": {"training": "none"},
        "topology": {"file": write_cells(folder, places, links, cloud="cloud")},
        "mobility": {"model": "recorded", "file": file, "after_end": "hold"},
        "radio": {"channel": plain_channel(folder), "bandwidth_hz": cells.band_hz}
        | {"sharing": "reshared" if cells.is_reshared else "reserved"},
        "handover": {"trigger_s": cells.trigger_s, "hysteresis_db": cells.hysteresis_db, "upload": cells.upload}
        | {"interruption_s": cells.interruption_s},
    }


def compare(case: int, folder: Path) -> int:
    """Assert that a case has the handovers and uploads of the plain replay; returns how many handovers it has."""
    folder.mkdir()
    cells, devices = draw(case)
    played = play(folder / "run", config(folder, cells, devices))
    rows, told = played.uploads.sort_values("t_start_s"), played.handovers
    simulate(cells, devices)
    for device in devices:
        seen = told[told["device"] == device.number].to_dict("records")
        stations = [(row["from_station"], row["to_station"], row["phase"]) for row in seen]
        assert stations == [row[1:] for row in device.handovers], (case, device.number)
        assert [row["t_s"] for row in seen] == pytest.approx([row[0] for row in device.handovers], abs=1e-6), case
        own = rows[rows["device"] == device.number]
        assert own["outcome"].tolist() == [row[3] for row in device.uploads], (case, device.number)
        # The broadcast takes the wires some 1e-7 s, in which a few bits could be sent.
        for name, place, close in (("t_start_s", 0, 1e-6), ("t_end_s", 1, 1e-6), ("bits", 2, 20.0)):
            expected = [row[place] for row in device.uploads]
            assert own[name].tolist() == pytest.approx(expected, rel=1e-7, abs=close), (case, device.number)
    return sum(len(device.handovers) for device in devices)


def test_random_rounds_in_several_cells_are_those_of_a_plain_replay(tmp_path):
    assert sum(compare(case, tmp_path / str(case)) for case in range(BLOCK)) > BLOCK


@pytest.mark.slow
@pytest.mark.parametrize("first", range(BLOCK, 300, 58))
def test_further_random_rounds_in_several_cells_are_those_of_a_plain_replay(first, tmp_path):
    assert sum(compare(case, tmp_path / str(case)) for case in range(first, first + 58)) > 58
