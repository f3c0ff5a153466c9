"""KPFL in whole runs: what updates count, what it costs and what it tells."""

import json

import numpy as np
import pytest
import torch
from contract import make_config, new_learner
from kpfl_plays import config_of

from edgesim.config_file import parse
from edgesim.folder.records import read_table
from edgesim.learning.algorithms.kpfl import Kpfl
from edgesim.simulation import composition as simulation


def test_server_seconds_are_charged_where_they_are_wanted_and_wall_time_is_told(tmp_path):
    folders = []
    for number, seconds in enumerate((0.0, 0.25)):
        config = config_of({"server_s_per_step": seconds})
        assert simulation.run(config, tmp_path / str(number)).status == "finished"
        folders.append(tmp_path / str(number))
    plain, charged = (read_table(folder, "rounds") for folder in folders)
    lengths = [(table["t_end_s"] - table["t_start_s"]).iloc[0] for table in (plain, charged)]
    # Two steps on the generator and one on the model.
    assert lengths[1] - lengths[0] == pytest.approx(0.75)
    timing = read_table(folders[0], "timing")
    assert (timing[timing["part"] == "server"]["wall_s"] > 0).sum() == len(plain)
    assert (timing["wall_s"] >= 0).all()
    updates = read_table(folders[0], "updates").groupby("round")["weight"].sum()
    assert (updates <= 1 + 1e-6).all()
    assert updates.iloc[-1] < 0.999


@pytest.mark.parametrize("setting", ["late", "buffered"])
def test_late_and_buffered_updates_enter_the_pool_as_the_models_that_their_devices_had(setting, tmp_path, monkeypatch):
    """In every merge of a run; ages are counted here by the devices of each merge, a flush being a round."""
    merges, plain = [], Kpfl.refine

    def seen(self, state, arrived, ledger, bench):
        merges.append((state.pool, arrived))
        return plain(self, state, arrived, ledger, bench)

    monkeypatch.setattr(Kpfl, "refine", seen)
    result = simulation.run(config_of(setting=setting), tmp_path / "run")
    assert result.status == "finished", result.reason
    active, idle, last = {}, {}, {}
    for pool, arrived in merges:
        here = set(arrived.ids.tolist())
        active = {device: active.get(device, 0) + 1 if device in here else 0 for device in {*active, *here}}
        idle = {device: 0 if device in here else idle[device] + 1 for device in active}
        began = sorted(range(len(arrived.ids)), key=lambda row: arrived.began_in[row])
        last |= {int(arrived.ids[row]): arrived.starts[row] + arrived.separate[row] for row in began}
        assert list(pool) == sorted(active)
        for device, entry in pool.items():
            assert (entry.active, entry.idle) == (active[device], idle[device])
            assert torch.equal(entry.model, last[device])
    assert sum(entry.idle > 1 for pool, _ in merges for entry in pool.values()) > 2
    updates = read_table(tmp_path / "run", "updates")
    assert updates["staleness"].max() > 0
    assert len(updates) == sum(len(arrived.ids) for _, arrived in merges)


def test_updates_count_the_same_without_training(tmp_path):
    """W hangs on data and ages alone; contract tests hold it in rounds."""
    found = []
    for training in ("real", "none"):
        config = config_of(pair=("cfed", "own"), setting="buffered", training=training)
        assert simulation.run(config, tmp_path / training).status == "finished"
        found.append(read_table(tmp_path / training, "updates")["weight"])
    assert found[0].tolist() == found[1].tolist()
    assert found[0].between(0, 1).all()
    assert found[0].nunique() > 5


def test_without_a_data_set_what_updates_count_is_unknown(tmp_path):
    config = parse(
        {
            "rounds": 2,
            "devices": {"count": 3},
            "round": {"payload_bits": 1e5, "protocol": "buffered", "admission": "count", "count": 2},
            "data": {"dataset": "none", "partition": "fedteddi"},
            "learning": {"training": "none", "pretrain": True},
            "algorithm": {"kpfl": {"keep": "first"}},
        },
        "run.toml",
    )
    assert simulation.run(simulation.complete(config), tmp_path / "run").status == "finished"
    assert read_table(tmp_path / "run", "updates")["weight"].isna().all()


def test_a_first_round_without_an_arrival_leaves_the_pool_empty():
    learner = new_learner(config_of())
    before = learner.global_weights
    learner.open_round(1, 1).start(np.arange(2))
    assert len(learner.merge([], np.arange(2)).weight) == 0
    assert learner.states[0].pool == {}
    assert torch.equal(learner.global_weights, before)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fedavg", "the paper tuned them for 'fedavg' under timed-random participation, on Office-Caltech-10"),
        (
            "fedcl",
            "the paper has none for 'fedcl' under availability.model = 'bernoulli': its program's defaults are used",
        ),
    ],
)
def test_where_settings_of_the_paper_come_from_is_told_before_the_first_round(name, said, tmp_path):
    notes = []
    config = make_config((name, "own"), options={"kpfl": {"settings": "paper", "keep": "first", "age_idle": -5.0}})
    simulation.run(config, tmp_path / "run", on_note=lambda about, note: notes.append(note))
    bound = "algorithm.kpfl: exponents are bounded at 20, which is reached by age_idle after 4 rounds"
    line = f"algorithm.kpfl.settings = 'paper': {said}; {bound}"
    assert line in notes
    assert line in json.loads((tmp_path / "run" / "run.json").read_text())["notes"].values()
    tuned = config.algorithm.kpfl
    assert (tuned["age_active"], tuned["age_idle"]) == (0.02 if name == "fedavg" else 0.16, -5.0)
