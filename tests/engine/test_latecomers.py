"""Uploads that go on after the deadline, worked by hand on the golden round (planned, order 2, 0, 1).

Device 2 uploads from 0.7 s on 420,815.506 Hz and would end at 1.000853545 s, after the deadline of 1 s.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from edgesim import simulation
from edgesim.config import parse
from edgesim.records import read_table

_spec = importlib.util.spec_from_file_location("golden", Path(__file__).with_name("test_golden_round.py"))
golden = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(golden)


def test_a_latecomer_arrives_in_the_next_round_whose_band_lacks_its_reservation(tmp_path):
    golden.play_rounds(tmp_path, 3, [2, 0, 1], delay_knowledge="planned", late="keep")
    rounds, acts, updates = (read_table(tmp_path, name) for name in ("rounds", "activities", "updates"))
    # Round 2: 79,184.494 Hz are left, and the two others need 420,815.506 Hz each, so nobody is taken.
    assert rounds["selected"].tolist() == [1, 0, 1]
    assert rounds["candidates"].tolist() == [3, 2, 3]
    assert rounds["late"].tolist() == [1, 0, 1]
    assert rounds["t_end_s"].tolist() == [1.0, 2.0, 3.0]
    upload = acts[(acts["device"] == 2) & (acts["activity"] == "upload")].iloc[0]
    assert upload["round"] == 2
    assert list(upload[["t_start_s", "t_end_s", "bits"]]) == pytest.approx([0.7, 1.000853545, 1e6])
    assert upload["outcome"] == "done"
    assert updates[["round", "device", "staleness"]].to_numpy().tolist() == [[2, 2, 1]]
    # The last round breaks off whoever is still on the air: device 2 once more, as in the golden round.
    last = acts[(acts["round"] == 3) & (acts["activity"] == "upload")].iloc[0]
    assert last["outcome"] == "late"
    assert last["bits"] == pytest.approx(997_162.921, abs=1e-3)


@pytest.mark.parametrize(("limit", "merged"), [(0, []), (1, [[2, 2, 1]])])
def test_a_latecomer_that_is_staler_than_the_limit_arrives_but_is_not_merged(tmp_path, limit, merged):
    golden.play_rounds(tmp_path, 3, [2, 0, 1], delay_knowledge="planned", late="keep", staleness={"limit": limit})
    upload = read_table(tmp_path, "activities").query("activity == 'upload' and round == 2").iloc[0]
    # Device 2 of round 1, one round late, as above: the limit changes nothing on the air.
    assert list(upload[["device", "t_end_s", "bits"]]) == pytest.approx([2, 1.000853545, 1e6])
    assert upload["outcome"] == "done"
    assert read_table(tmp_path, "updates")[["round", "device", "staleness"]].to_numpy().tolist() == merged


def test_a_latecomer_that_leaves_is_dropped_then_and_merged_nowhere(tmp_path):
    golden.play_rounds(tmp_path, 2, [2], golden.Leaves(2, 1.0004), delay_knowledge="planned", late="keep")
    upload = read_table(tmp_path, "activities").query("activity == 'upload' and round == 2").iloc[0]
    assert (upload["outcome"], upload["t_end_s"]) == ("dropped", 1.0004)
    assert read_table(tmp_path, "updates").empty


@pytest.mark.parametrize(
    "way", [{}, {"leftover": "equal_finish"}, {"allocator": "equal_share"}, {"allocator": "proportional"}], ids=str
)
def test_nobody_is_taken_while_latecomers_hold_the_whole_band(tmp_path, way):
    knobs = {"tmax_s": 0.3, "late": "keep", "admission": "count", "count": 4, **way}
    config = parse(
        {
            "rounds": 12,
            "learning": {"training": "none"},
            "round": {"payload_bits": 17_881_664.0, **knobs},
        },
        "test",
    )
    simulation.run(config, tmp_path)
    rounds = read_table(tmp_path, "rounds")
    assert set(rounds["selected"]) == {0, 4}
    assert rounds["late"].sum() > 0
    assert rounds["bandwidth_hz"].max() <= 20e6 * (1 + 1e-9)


@pytest.mark.parametrize("sharing", ["reserved", "reshared"])
def test_kept_latecomers_are_merged_once_and_learn(tmp_path, sharing):
    config = parse(
        {
            "seed": 1,
            "rounds": 30,
            "radio": {"fading": "rayleigh", "sharing": sharing},
            "round": {"payload_bits": 17_881_664.0, "late": "keep"},
            "selection": {"policy": "fed-cbs"},
        },
        "test",
    )
    simulation.run(config, tmp_path)
    rounds, acts, updates = (read_table(tmp_path, name) for name in ("rounds", "activities", "updates"))
    done = acts[(acts["activity"] == "upload") & (acts["outcome"] == "done")]
    assert sorted(zip(done["round"], done["device"], strict=True)) == sorted(
        zip(updates["round"], updates["device"], strict=True)
    )
    assert (updates["staleness"] > 0).sum() > 10
    assert rounds["jobs_trained"].tolist() == [int((updates["round"] == k).sum()) for k in rounds["round"]]
    assert updates.groupby("round")["weight"].sum().to_numpy() == pytest.approx(1.0)
    assert rounds["bandwidth_hz"].max() <= 20e6 * (1 + 1e-9)
    # Nobody is at work twice at a time.
    for _, rows in acts.sort_values("t_start_s").groupby("device"):
        assert (rows["t_start_s"].to_numpy()[1:] >= rows["t_end_s"].to_numpy()[:-1] - 1e-9).all()
    assert np.isfinite(rounds["test_loss"]).all()
    assert rounds["test_accuracy"].iloc[-1] > 0.7
