"""Agents that learn to schedule: the environment ``edgesim/Scheduler-v0`` of Gymnasium, and agents as policies.

`Agent` is a policy, ``selection.policy = "edgesim.rl.Agent"``, and `Network` the content of its file; both need no
further library. The environment needs ``pip install 'edgesim[rl]'``; it is registered when this package is imported.
"""

from typing import TYPE_CHECKING, Any

from edgesim.base.optional import needed
from edgesim.rl.agent import Agent
from edgesim.rl.network import Network, load
from edgesim.rl.observation import FEATURES, Ages, Observation, observe

if TYPE_CHECKING:
    from edgesim.rl.scheduler import SchedulerEnv

__all__ = ["FEATURES", "Agent", "Ages", "Network", "Observation", "SchedulerEnv", "load", "network_of_ppo", "observe"]

try:
    import gymnasium
except ImportError:
    pass
else:
    gymnasium.register(id="edgesim/Scheduler-v0", entry_point="edgesim.rl.scheduler:SchedulerEnv")


def __getattr__(name: str) -> Any:
    """What needs Gymnasium, loaded when it is first used."""
    if name in ("SchedulerEnv", "network_of_ppo"):
        needed("gymnasium", "rl" if name == "SchedulerEnv" else "ppo")
        from edgesim.rl import scheduler, stable_baselines

        return scheduler.SchedulerEnv if name == "SchedulerEnv" else stable_baselines.network_of_ppo
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
