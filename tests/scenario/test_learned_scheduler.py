"""Training of agents in the scenario of learnt schedulers: what it learns, and that stopping it changes nothing."""

import runpy
from pathlib import Path

import numpy as np
import pytest

import edgesim
from edgesim.scenario import Runs, agents

SCRIPT = Path(__file__).parents[2] / "scenarios/learned_scheduler.py"
CONFIG = {
    "rounds": 6,
    "devices": {"count": 12, "radius_m": 250.0},
    "radio": {"bandwidth_hz": 5e6},
    "round": {"tmax_s": 0.8, "payload_bits": 17_881_664.0},
    "data": {"dataset": "none", "partition": "fedteddi"},
    "learning": {"training": "none", "pretrain": False},
}


def test_arrivals_of_an_agent_are_those_of_the_run_in_which_it_is_the_policy(tmp_path):
    agent = agents.linear({"need": -2.0, "delay": -0.5, "age": 0.5})
    agent.save(tmp_path / "agent.safetensors")
    selection = {"selection": {"policy": "edgesim.rl.Agent", "file": str(tmp_path / "agent.safetensors")}, "seed": 3}
    run = edgesim.run(CONFIG | selection, tmp_path / "run", {"round.tmax_s": 1.0}, quiet=True)
    assert agents.arrivals(agent, CONFIG, {"round.tmax_s": 1.0}, 3) == run.rounds["arrived"].mean() > 1


def test_a_training_is_kept_and_begins_anew_where_it_is_another_or_too_long(tmp_path):
    path, inputs = tmp_path / "training/x.json", (CONFIG, 3)
    training = agents.Training.at(path, 20, *inputs)
    assert training.steps == []
    for number in range(3):
        training.save(10, number / 3, mean=np.array([number + 1 / 3]))
    again = agents.Training.at(path, 30, *inputs)
    assert again == training
    assert again.steps == [10, 20, 30]
    assert again.memory == {"mean": [2 + 1 / 3]}
    assert agents.Training.at(path, 25, *inputs).steps == [10, 20, 30]
    assert agents.Training.at(path, 20, *inputs).steps == []
    assert agents.Training.at(path, 30, CONFIG, 4).steps == []
    assert agents.Training.at(path, 30, *inputs, fresh=True).steps == []


def by_cem(folder, name):
    train = runpy.run_path(str(SCRIPT))["cross_entropy"]
    return np.array(train(CONFIG, 3, 6, 1, Runs(typed_out=folder / name)).memory["mean"])


def by_ppo(folder, name):
    pytest.importorskip("stable_baselines3")
    training = agents.Training.at(folder / f"{name}.json", 192, CONFIG)
    network = agents.train_ppo(CONFIG, None, 192, training, 7)
    return np.concatenate([part.ravel() for layer in network.layers for part in layer])


@pytest.mark.slow
@pytest.mark.parametrize("train", [by_cem, by_ppo])
def test_a_training_that_is_killed_before_it_saves_a_step_goes_on_to_the_same_agent(tmp_path, monkeypatch, train):
    monkeypatch.setattr(agents, "_ROLLOUT", 64)
    monkeypatch.setattr(agents, "_ROLLOUTS", 1)
    kept = agents.Training.save

    def killed_at(step):
        def save(self, *how, **memory):
            if len(self.steps) == step:
                raise KeyboardInterrupt
            kept(self, *how, **memory)

        return save

    for step in (0, 1):
        with monkeypatch.context() as patched:
            patched.setattr(agents.Training, "save", killed_at(step))
            with pytest.raises(KeyboardInterrupt):
                train(tmp_path, "killed")
    assert np.array_equal(train(tmp_path, "whole"), train(tmp_path, "killed"))
    if train is by_ppo:
        assert sorted(path.name for path in tmp_path.glob("*.zip")) == ["killed.3.zip", "whole.3.zip"]
