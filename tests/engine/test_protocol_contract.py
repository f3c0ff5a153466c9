"""What every protocol of the registry must do: a new one is held to it by its line there."""

import numpy as np
import pandas as pd
import pytest
from refusals import in_one_line
from whole_runs import play as simulate
from whole_runs import stays

from edgesim.engine.protocols import PROTOCOLS

BITS = 2e6
ROUND = {"admission": "count", "count": 4, "payload_bits": BITS, "tmax_s": 3.0}
TABLES = ("rounds", "updates", "activities", "devices")

pytestmark = pytest.mark.parametrize("protocol", PROTOCOLS)


BASE = {
    "rounds": 8,
    "devices": {"count": 8},
    "data": {"partition": "quantity", "samples_per_device": 12},
    "learning": {"pretrain": False, "steps": 2, "batch_size": 8, "back_end": "loop"},
    "evaluation": {"samples": 20, "every": 2},
}


@pytest.fixture
def play(tmp_path):
    """Runs a config."""

    def play(protocol, seed=0, **sections):
        folder = tmp_path / f"run-{len(list(tmp_path.iterdir()))}"
        return simulate(folder, BASE, {"seed": seed, "round": ROUND | {"protocol": protocol}}, sections)

    return play


AWAY = {"availability": {"model": "bernoulli", "probability": 0.5, "slot_s": 2.0}}


def test_the_same_seed_has_the_same_bytes_and_another_one_has_not(protocol, play):
    def read(played):
        names = [*(f"{name}.parquet" for name in TABLES), "model.safetensors"]
        return [(played.folder / name).read_bytes() for name in names]

    found = read(play(protocol, **AWAY))
    assert found == read(play(protocol, **AWAY))
    other = read(play(protocol, 7, **AWAY))
    assert all(one != another for one, another in zip(found, other, strict=True))


def test_a_timing_only_run_has_the_rows_of_the_run_that_trains(protocol, play):
    trained = play(protocol, **AWAY)
    timed = play(protocol, **AWAY, learning={"training": "none"})
    learnt = {"jobs_trained", "accuracy", "loss", "train_loss", "macro_f1", "model_held", "update_norm"} | {
        column for column in trained.rounds if column.startswith("test_")
    }
    for name in TABLES:
        table = getattr(trained, name)
        kept = [column for column in table if column not in learnt and not table[column].isna().all()]
        pd.testing.assert_frame_equal(table[kept], getattr(timed, name)[kept], check_dtype=False)


def test_what_is_merged_was_trained_and_sent_whole_before_the_models_row_ends(protocol, play):
    found = play(protocol, **AWAY)
    rounds, updates, acts = found.rounds, found.updates, found.activities
    assert rounds["round"].tolist() == list(range(1, 9))
    assert (np.diff(rounds["t_end_s"]) >= 0).all()
    assert len(updates) > 0
    sent = acts[acts["activity"] == "upload"].groupby(["device", "task"])
    bits, end_s = sent["bits"].sum(), sent["t_end_s"].max()
    ends_s = rounds.set_index("round")["t_end_s"]
    for row in updates[updates["weight"] > 0].itertuples():
        task = (row.device, row.task)
        assert bits[task] == pytest.approx(BITS)
        assert end_s[task] <= ends_s[row.round] + 1e-9
    assert (updates["staleness"] >= 0).all()


def test_a_device_is_at_one_task_at_a_time_and_only_while_it_is_there(protocol, play, tmp_path):
    there = stays(tmp_path, *((k, 0.5 * k, 0.5 * k + 6.0) for k in range(8)), after_end="absent")
    acts = play(protocol, **there, rounds=300, stop_at_s=12.0, learning={"training": "none"}).activities
    acts = acts[acts["t_end_s"] > acts["t_start_s"]].sort_values(["device", "t_start_s"])
    assert set(acts["device"]) == set(range(8))
    for device, rows in acts.groupby("device"):
        assert (rows["t_start_s"].to_numpy()[1:] >= rows["t_end_s"].to_numpy()[:-1] - 1e-9).all()
        assert rows["t_start_s"].min() >= 0.5 * device
        assert rows["t_end_s"].max() <= 0.5 * device + 6.0 + 1e-9


def test_a_run_whose_devices_have_all_left_ends_and_says_why(protocol, play, tmp_path):
    there = stays(tmp_path, *((k, 0.0, 0.9) for k in range(8)), after_end="absent")
    run = play(protocol, rounds=500, **there).facts
    assert run["status"] == "finished"
    assert "ever available" in run["reason"]


def test_an_option_of_no_protocol_is_one_line(protocol, play):
    with in_one_line(r"round\.protocol_options.*bufer"):
        play(protocol, round={"protocol_options": {"bufer": 3}})
