"""The environment ``edgesim/Scheduler-v0`` of Gymnasium: an agent schedules the devices of a run."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from edgesim.api.configs import Config, Overrides, configured
from edgesim.api.episode import Outcome, Turn, episode
from edgesim.api.episode_offers import refuse_shares
from edgesim.base.errors import EdgesimError
from edgesim.base.optional import needed
from edgesim.base.registry import look_up
from edgesim.rl.agent import chosen, ranked
from edgesim.rl.network import ACTIONS
from edgesim.rl.observation import DEFAULT, Ages, Observation, checked_features, looks_at, observe
from edgesim.rl.rewards import REWARDS, Reward, accuracy_per_j, accuracy_per_s

try:
    import gymnasium
    from gymnasium import spaces
except ImportError:
    needed("gymnasium", "rl")
    raise

Seen = dict[str, NDArray[Any]]
"""An `Observation` as a dict."""


class SchedulerEnv(gymnasium.Env[Any, NDArray[Any]]):
    """An episode of a run, one decision a step; it ends with the run.

    The observation is a dict: ``devices`` [N, F], the features of each device of the run from 0 to 1, 0 for those that
    are no candidates; ``candidates`` [N], 1 for those that can be taken; ``time`` [1], the share of the rounds of
    the frame that is over. The action is a number for each device, [N], those of no candidates are not looked at:

    - ``rank``: scores from -1 to 1; the candidates are offered by falling score, and admission takes or skips each.
    - ``subset``: 0 or 1; the candidates with 1 are offered by their ids, and all of them where there is none with 1 but
      somebody has to be taken (`Turn.must_take`).
    - ``shares``: numbers from 0 to 1; the candidates above 0 are offered by falling number, and each gets that share of
      its station's free band, divided by the sum of the shares at the station where that exceeds 1. The sum is over
      all that are above 0, so by count no more of them should be than are taken.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - so the base class declares it

    def __init__(
        self,
        config: Config,
        set: Overrides | None = None,
        *,
        features: Sequence[str] = DEFAULT,
        action: str = "rank",
        reward: str | Reward = "arrivals",
    ) -> None:
        """``config`` and ``set`` are those of `edgesim.run`; the config's policy is not asked.

        ``features`` are names of `edgesim.rl.FEATURES`. ``reward`` is ``arrivals``, ``accuracy_per_s``,
        ``accuracy_per_j`` or a function of the `Outcome` of each model made since the step before. Raises
        `EdgesimError`.
        """
        settings = configured(config, set).resolved()
        look_up(dict.fromkeys(ACTIONS), action, "action")
        if action == "shares":
            refuse_shares(settings)
        self.features, self.action = checked_features(features, "features"), action
        self._reward = reward if callable(reward) else look_up(REWARDS, reward, "reward")
        if settings.learning.training == "none" and self._reward in (accuracy_per_s, accuracy_per_j):
            raise EdgesimError(f"reward: {reward!r} needs learning.training = 'real'")
        self._episode = episode(settings, looks_at=looks_at(self.features))
        count = settings.devices.count
        parts: dict[str, spaces.Space[Any]] = {
            "candidates": spaces.MultiBinary(count),
            "devices": spaces.Box(0.0, 1.0, (count, len(self.features)), np.float32),
            "time": spaces.Box(0.0, 1.0, (1,), np.float32),
        }
        self.observation_space = spaces.Dict(parts)
        actions: dict[str, spaces.Space[NDArray[Any]]] = {
            "rank": spaces.Box(-1.0, 1.0, (count,), np.float32),
            "subset": spaces.MultiBinary(count),
            "shares": spaces.Box(0.0, 1.0, (count,), np.float32),
        }
        self.action_space = actions[action]
        self._ages = Ages(np.zeros(count, dtype=np.int64))
        self._turn: Turn | None = None
        self._progress: dict[str, Any] = {}

    @override
    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Seen, dict[str, Any]]:
        """Begin a run, with ``seed`` as its seed; without it, with one that is drawn from the seed given last.

        Raises `EdgesimError` for a run without a decision.
        """
        super().reset(seed=seed)
        run_seed = int(self.np_random.integers(2**31)) if seed is None else seed
        self._ages.last[:], self._progress = 0, {}
        self._turn = self._episode.reset(run_seed)
        if self._turn is None:
            raise EdgesimError(f"reset: the run ends before a decision: {self._episode.reason}")
        return self._observed(), self._about(run_seed)

    @override
    def step(self, action: NDArray[Any]) -> tuple[Seen, float, bool, bool, dict[str, Any]]:
        """Decide, and simulate to the next decision; raises `EdgesimError` behind the end of the run."""
        if self._turn is None:
            raise EdgesimError(f"step: there is no decision to make: {self._episode.reason}; reset the environment")
        self._turn = self._decided(self._turn, self._checked(action))
        outcomes = self._episode.outcomes
        for outcome in outcomes:
            self._ages.hear(outcome.report)
        return self._observed(), float(self._reward(outcomes)), self._turn is None, False, self._about()

    @override
    def close(self) -> None:
        """End the processes that train and free memory."""
        self._episode.close()

    def _checked(self, action: NDArray[Any]) -> NDArray[Any]:
        """An action as an array, [N]; raises `EdgesimError` if it is not a finite number for each device."""
        count = len(self._ages.last)
        try:
            numbers = np.asarray(action)
        except ValueError:  # rows of several lengths
            numbers = np.array(None)
        if numbers.shape != (count,) or numbers.dtype.kind not in "biuf" or not np.isfinite(numbers).all():
            raise EdgesimError(
                f"step: expected a finite number for each of {count} devices (got {str(action)[:60]!r} of shape "
                f"{numbers.shape})"
            )
        return numbers

    def _decided(self, turn: Turn, action: NDArray[Any]) -> Turn | None:
        """The turn after an action."""
        ids = turn.view.ids
        if self.action == "rank":
            return self._episode.decide(ranked(ids, action))
        if self.action == "subset":
            subset = chosen(ids, action)
            # Not even the empty subset may end the run, since it is an action like any other.
            return self._episode.decide(ids if turn.must_take and not len(subset) else subset)
        action = np.clip(action, 0.0, 1.0)
        offers = ranked(ids, action)[: len(chosen(ids, action))]
        wanted, station = action[offers].astype(np.float64), turn.station[np.searchsorted(ids, offers)]
        whole = np.maximum(1.0, np.bincount(station, weights=wanted, minlength=len(turn.free_hz)))
        return self._episode.decide(offers, wanted / whole[station] * turn.free_hz[station])

    def _observed(self) -> Seen:
        if self._turn is None:
            nobody = np.zeros(len(self._ages.last), dtype=np.int8)
            devices = np.zeros((len(nobody), len(self.features)), dtype=np.float32)
            return vars(Observation(devices, nobody, np.ones(1, dtype=np.float32)))
        return vars(observe(self._turn.view, self.features, self._ages))

    def _about(self, run_seed: int | None = None) -> dict[str, Any]:
        """Number of models made since the step before, and facts on the last; the seed of the run where it begins."""
        if run_seed is not None:
            return {"run_seed": run_seed}
        outcomes: list[Outcome] = self._episode.outcomes
        if outcomes:
            self._progress = vars(outcomes[-1].progress)
        return {"models": len(outcomes), **self._progress}
