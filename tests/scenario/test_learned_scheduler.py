"""Training of agents in the scenario of learnt schedulers: what it learns, and that stopping it changes nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import edgesim
from edgesim.scenario import agents

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


def trained(folder, *more):
    """The script, started with a small training and no more than it needs to judge."""
    options = ["--rounds", "4", "--population", "6", "--episodes", "1", "--generations", "5", "--seeds", "2"]
    command = [sys.executable, str(SCRIPT), *options, "--ppo-steps", "0", "--out", str(folder), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.slow
def test_a_training_that_is_killed_goes_on_to_the_same_agent(tmp_path):
    state = tmp_path / "killed/training/cem.json"
    with trained(tmp_path / "killed") as killed:
        while not state.exists():
            assert killed.poll() is None, killed.stdout.read()
            time.sleep(0.01)
        os.kill(killed.pid, signal.SIGKILL)
    done = len(json.loads(state.read_text())["steps"])
    assert 1 <= done < 5
    for folder in ("killed", "whole"):
        with trained(tmp_path / folder) as process:
            said = process.stdout.read()
        assert process.returncode == 0, said
    for file in ("cem.json", "cem.safetensors"):
        assert len({(tmp_path / folder / "training" / file).read_bytes() for folder in ("killed", "whole")}) == 1
    assert "least-band" in said


@pytest.mark.slow
def test_ppo_that_is_killed_between_two_files_goes_on_to_the_same_agent(tmp_path, monkeypatch):
    pytest.importorskip("stable_baselines3")
    monkeypatch.setattr(agents, "_ROLLOUT", 64)
    monkeypatch.setattr(agents, "_ROLLOUTS", 1)

    def agent(name):
        training = agents.Training.at(tmp_path / f"{name}.json", 192, CONFIG)
        return agents.train_ppo(CONFIG, None, 192, training, 7)

    def killed(step):
        def save(self, *how, **memory):
            if len(self.steps) == step:
                raise KeyboardInterrupt
            kept(self, *how, **memory)

        kept = agents.Training.save
        with monkeypatch.context() as patched:
            patched.setattr(agents.Training, "save", save)
            with pytest.raises(KeyboardInterrupt):
                agent("killed")

    for step in (0, 1):
        killed(step)
    for layer, other in zip(agent("whole").layers, agent("killed").layers, strict=True):
        assert np.array_equal(layer[0], other[0])
        assert np.array_equal(layer[1], other[1])
    assert sorted(path.name for path in tmp_path.glob("*.zip")) == ["killed.3.zip", "whole.3.zip"]


@pytest.mark.slow
def test_ppo_that_is_stopped_goes_on_to_the_same_agent(tmp_path):
    pytest.importorskip("stable_baselines3")
    networks = {}
    for name, parts in (("whole", [2048]), ("stopped", [1024, 2048])):
        for decisions in parts:
            training = agents.Training.at(tmp_path / f"{name}.json", decisions, CONFIG)
            networks[name] = agents.train_ppo(CONFIG, None, decisions, training, 7)
        assert training.steps == [1024, 2048]
        assert len(set(training.arrivals)) == 2
    for (weights, biases), (others, other) in zip(networks["whole"].layers, networks["stopped"].layers, strict=True):
        assert np.array_equal(weights, others)
        assert np.array_equal(biases, other)
