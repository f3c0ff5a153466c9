"""Agents that learn to schedule: how they play and train in episodes, and states of training that outlive a kill."""

import importlib.util
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

import numpy as np

from edgesim.analysis.products import digest_of
from edgesim.api.configs import Config, Overrides
from edgesim.api.episode import episode
from edgesim.base.on_disk import new_file
from edgesim.base.optional import needed
from edgesim.folder.records import write_whole
from edgesim.rl import Ages, Network, observe
from edgesim.rl.agent import ranked

__all__ = ["Network", "Training", "arrivals", "has_ppo", "linear", "train_ppo"]

_ROLLOUT, _ROLLOUTS = 256, 4
"""Steps between two updates of PPO, and updates between two of its saved states."""


@dataclass
class Training:
    """State of a training, of which its file always holds the last whole step."""

    path: Path
    inputs: str
    """Digest of what the training depends on."""
    memory: dict[str, list[float]] = field(default_factory=dict)
    """Numbers by name that the next step of the training needs."""
    steps: list[int] = field(default_factory=list)
    """Decisions made until the end of each step."""
    arrivals: list[float] = field(default_factory=list)
    """Mean arrivals a round while each step trained."""

    @classmethod
    def at(cls, path: Path, decisions: int, *inputs: Any, fresh: bool = False) -> Self:
        """The training of a file, or a new one.

        It is new where there is no file, where that is of other ``inputs`` or goes on for a whole step behind so many
        ``decisions``, and if ``fresh``.
        """
        digest = digest_of([], *inputs)
        if path.is_file() and not fresh:
            kept = json.loads(path.read_text())
            if kept.pop("inputs") == digest and not (len(kept["steps"]) > 1 and kept["steps"][-2] >= decisions):
                return cls(path, digest, **kept)
        return cls(path, digest)

    def save(self, steps: int, arrivals: float, **memory: Sequence[float]) -> None:
        """Note the end of a step that took so many decisions, whole or not at all."""
        self.steps.append(steps + (self.steps[-1] if self.steps else 0))
        self.arrivals.append(arrivals)
        self.memory = {name: [float(value) for value in values] for name, values in memory.items()}
        kept = {name: value for name, value in asdict(self).items() if name != "path"}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(self.path, json.dumps(kept) + "\n")


def linear(weights: Mapping[str, float]) -> Network:
    """Agent that ranks devices by a weighted sum of their features."""
    values = np.array([[*weights.values(), 0.0]], dtype=np.float32)
    return Network([(values, np.zeros(1, dtype=np.float32))], tuple(weights))


def arrivals(agent: Network, config: Config, set: Overrides | None, seed: int) -> float:
    """Mean arrivals a decision of an agent that ranks devices, in an episode of a config with a seed."""
    decisions = total = 0
    with episode(config, set) as played:
        turn = played.reset(seed)
        ages = Ages(np.zeros(played.device_count, dtype=np.int64))
        while turn is not None:
            scores = agent.scores(observe(turn.view, agent.features, ages))
            turn = played.decide(ranked(turn.view.ids, scores))
            decisions += 1
            for outcome in played.outcomes:
                ages.hear(outcome.report)
                total += len(outcome.report.arrived)
    return total / max(1, decisions)


def has_ppo() -> bool:
    """Whether Stable-Baselines3 is installed (``pip install 'edgesim[ppo]'``)."""
    return importlib.util.find_spec("stable_baselines3") is not None


def train_ppo(config: Config, set: Overrides | None, steps: int, training: Training, seed: int) -> Network:
    """Train an agent that ranks devices by PPO of Stable-Baselines3, for so many decisions or a few more.

    A state that was saved is resumed: whether a training was stopped changes nothing in its agent. The model's own file
    beside that of ``training``, named by the number of its steps, is Stable-Baselines3's, a pickle among other things,
    and only for this.
    """
    needed("stable_baselines3", "ppo")
    import torch
    from stable_baselines3 import PPO

    from edgesim.rl.scheduler import SchedulerEnv
    from edgesim.rl.stable_baselines import network_of_ppo

    # Layers are small: several threads take longer, and round otherwise.
    torch.set_num_threads(1)
    env = SchedulerEnv(config, set)
    if not training.steps or not _model_path(training).is_file():
        training.steps.clear()
        training.arrivals.clear()
        # A decision changes hardly more than ages for those that follow, so that only its own reward counts.
        how = {"n_steps": _ROLLOUT, "batch_size": 64, "gamma": 0.0, "stats_window_size": 50, "device": "cpu"}
        own = {"log_std_init": -1.0}
        _save_model(PPO("MultiInputPolicy", env, seed=seed, policy_kwargs=own, **how), _model_path(training))
    while not training.steps or training.steps[-1] < steps:
        # Always from the file, so that a step begins the same whether the one before ran in this process.
        model = PPO.load(_model_path(training), env, device="cpu")
        model.set_random_seed(seed + len(training.steps))
        model.learn(_ROLLOUT * _ROLLOUTS, reset_num_timesteps=False)
        # The model that the state counts is there before and after the state is written.
        _save_model(model, _model_path(training, len(training.steps) + 1))
        training.save(_ROLLOUT * _ROLLOUTS, float(np.mean([of["r"] / of["l"] for of in model.ep_info_buffer])))
        for file in training.path.parent.glob(f"{training.path.stem}.*.zip"):
            if file != _model_path(training):
                file.unlink()
    env.close()
    return network_of_ppo(PPO.load(_model_path(training), device="cpu"), env)


def _model_path(training: Training, steps: int | None = None) -> Path:
    """File of the model behind so many steps of a training, behind its last one if absent."""
    return training.path.with_suffix(f".{len(training.steps) if steps is None else steps}.zip")


def _save_model(model: Any, path: Path) -> None:
    with new_file(path) as part, part.open("wb") as file:
        model.save(file)
