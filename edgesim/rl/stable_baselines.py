"""Agents trained by Stable-Baselines3, as networks of edgesim."""

from typing import Any

from edgesim.base.errors import EdgesimError
from edgesim.rl.network import Network
from edgesim.rl.scheduler import SchedulerEnv

_ACTIVATIONS = {"Tanh": "tanh", "ReLU": "relu"}


def network_of_ppo(model: Any, env: SchedulerEnv) -> Network:
    """The network behind the actions of a PPO or A2C model with ``MultiInputPolicy``, trained in an environment.

    Its answer is the mean of the actions, which ``model.predict(..., deterministic=True)`` clips to the range of the
    action. Raises `EdgesimError` for a policy of other parts than dense layers with one function between them, for
    observations that were normalised, and for an environment of other observations or actions.
    """
    env = env.unwrapped  # type: ignore[assignment]
    if not isinstance(env, SchedulerEnv):
        raise EdgesimError(f"env: expected one edgesim/Scheduler-v0 (got {type(env).__name__})")
    try:
        parts = [*model.policy.mlp_extractor.policy_net, model.policy.action_net]
        normalised = model.get_vec_normalize_env()
    except AttributeError:
        expected = "expected a PPO or A2C of Stable-Baselines3"
        raise EdgesimError(f"model: {expected} with MultiInputPolicy (got {type(model).__name__})") from None
    if normalised is not None:
        raise EdgesimError("model: was trained under VecNormalize, which an agent's file does not hold; train without")
    for name in ("observation_space", "action_space"):
        if (trained := getattr(model, name)) != (given := getattr(env, name)):
            raise EdgesimError(
                f"env: its {name} is {given}, that of the model is {trained}; give the one it trained in"
            )
    kinds = [type(part).__name__ for part in parts]
    between = {_ACTIVATIONS.get(kind, kind) for kind in kinds[1::2]}
    if any(kind != "Linear" for kind in kinds[::2]) or len(between) > 1 or not between <= {*_ACTIVATIONS.values()}:
        raise EdgesimError(f"model: expected dense layers with tanh or relu between them (got {', '.join(kinds)})")
    layers = [(part.weight, part.bias) for part in parts[::2]]
    arrays = [tuple(value.detach().cpu().numpy() for value in layer) for layer in layers]
    count = env.observation_space["candidates"].shape[0]  # type: ignore[index]
    return Network(arrays, env.features, env.action, count, *between)  # type: ignore[arg-type]
