"""The table beside the paper's, on made-up runs."""

import runpy
from pathlib import Path

import numpy as np
import pytest
from edited_runs import write_plan

from edgesim.folder.records import RunWriter

SCENARIO = runpy.run_path(str(Path(__file__).parents[2] / "scenarios/feddance.py"))
ACCURACY = {"random": [0.2, 0.4, 0.6, 0.8], "feddance": [0.4, 0.9, 0.9, 0.9], "fedcs": [0.2, 0.3, 0.3, 0.3]}


def write(folder, policy, seed):
    writer = RunWriter(folder, {"seed": seed, "selection": {"policy": policy}}, {})
    writer.write("stations", {"station": [0], "name": ["one"], "x_m": [0.0], "y_m": [0.0], "bandwidth_hz": [1.0]})
    writer.write("metrics", {"round": [0], "name": ["test_accuracy"], "key": [""], "value": [0.1]})
    writer.write("devices", {"device": range(4), "frame": [1] * 4, "class_counts": [[1]] * 4})
    for r, accuracy in enumerate(ACCURACY[policy], start=1):
        device = r % 4 if policy == "random" else 0
        update = {"round": r, "device": device, "task": r, "weight": 1.0, "staleness": 0}
        writer.write("updates", {name: [value] for name, value in update.items()})
        counts = {"frame": 1, "candidates": 4, "selected": 1, "arrived": 1, "late": 0, "dropped": 0, "bits_up": 1.0}
        row = counts | {"round": r, "t_start_s": r - 1.0, "t_end_s": float(r), "energy_j": 1.0}
        writer.write(
            "rounds", {name: [value] for name, value in row.items()} | {"test_accuracy": [accuracy + seed / 100]}
        )
    writer.close("finished")


@pytest.fixture
def study(tmp_path):
    runs = []
    for policy in ACCURACY:
        for seed in (0, 1):
            write(tmp_path / f"{policy}{seed}", policy, seed)
            knobs = {"trace": "week", "policy": policy}
            runs.append({"folder": f"{policy}{seed}", "knobs": knobs, "seed": seed, "status": "finished"})
    return write_plan(tmp_path, "s", runs, target=0.5)


def test_speed_ups_points_and_fairness_stand_beside_the_papers(study):
    table = SCENARIO["beside_the_paper"](study).set_index("policy")
    assert table["rounds"].tolist() == pytest.approx([3, 2, np.nan], nan_ok=True)
    assert table["rounds_bound"].tolist() == pytest.approx([np.nan, np.nan, 4], nan_ok=True)
    assert table["never"].to_dict() == {"random": 0, "feddance": 0, "fedcs": 2}
    assert table["speed_up"].tolist() == pytest.approx([1, 3 / 2, np.nan], nan_ok=True)
    assert table["accuracy"].tolist() == pytest.approx([50.5, 78.0, 28.0])
    assert table["sd"].tolist() == pytest.approx([np.std([0, 1], ddof=1)] * 3)
    assert table["points"].tolist() == pytest.approx([0, 27.5, -22.5])
    assert table["devices"].tolist() == pytest.approx([4, 1, 1])
    # Table 2 of the paper says 1.39, 1.20, 1.24 and 1.16.
    assert table["paper_speed_up"].to_dict() == {"random": "", "feddance": "1.39 1.20 1.24 1.16", "fedcs": ""}
    assert table["paper_points"]["feddance"] == "+1.7 +3.6 +2.0 +1.6"
