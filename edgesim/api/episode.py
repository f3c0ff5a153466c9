"""Episodes: runs in memory whose decisions somebody outside makes, such as an agent that learns to schedule."""

import json
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np

from edgesim.api.configs import Config, Overrides, completed, configured
from edgesim.api.episode_offers import GivenShares, checked_offers, checked_shares
from edgesim.api.lazy_parts import Access, Look, guarded_report, guarded_view
from edgesim.base.arrays import Floats, Integers
from edgesim.base.errors import EdgesimError
from edgesim.base.paths import as_path
from edgesim.base.registry import blamed, first_line, plug_ins_named
from edgesim.base.saved import pack, unpack
from edgesim.config import RunConfig
from edgesim.engine.decisions import Decision
from edgesim.engine.run_state import RunState
from edgesim.engine.run_state import snapshot as state_of
from edgesim.engine.server import RunEnd
from edgesim.folder.checkpoints import Packed
from edgesim.folder.records import NoTables
from edgesim.folder.run_progress import RunProgress
from edgesim.selection import SELECTORS
from edgesim.selection.stateless import walk
from edgesim.selection.view import Drafter, RoundReport, RoundView
from edgesim.simulation import named_code, needs
from edgesim.simulation.complete import as_toml
from edgesim.simulation.composition import Status
from edgesim.simulation.episode_folder import EpisodeFolder, check_folder
from edgesim.simulation.resumption import first_difference
from edgesim.simulation.simulation import Simulation


@dataclass(frozen=True)
class Outcome:
    """What became of the decisions before a model: the report that policies hear, and the run's progress."""

    report: RoundReport
    progress: RunProgress
    """Simulated seconds, accuracy, bits and joules at the round's end."""
    lasted_s: float
    """Simulated seconds since the end of the model before, or since the run began."""


@dataclass(frozen=True)
class Turn:
    """A decision that an episode waits for."""

    view: RoundView
    """Facts on the candidates, as policies see them; its lazy parts can be asked for until the decision is made."""
    outcomes: tuple[Outcome, ...]
    """Models made since the turn before. In rounds that is one, and one for each round since in which there was nobody
    to choose from; without rounds none or several."""
    station: Integers
    """Station of each candidate, [n]."""
    free_hz: Floats
    """Band of each station that can be shared now, in Hz, [M]."""
    must_take: bool
    """Whether a decision that takes nobody is refused: without rounds, while nobody is at work and nobody will come."""


@dataclass(frozen=True)
class _Answer:
    """A decision that was made."""

    offers: Integers
    shares_hz: Floats | None


@dataclass(frozen=True)
class _Heard:
    """A report that was heard, and whose lazy parts the questions behind it were put to."""


_Step = _Answer | _Heard | Look


@dataclass(frozen=True)
class Snapshot:
    """An episode at an open decision, in memory: its run behind the last model that was recorded, and what came since.

    An episode that starts there restores that state and replays the decisions made since.
    """

    config: RunConfig
    """The complete config, with the seed of the run."""
    looks_at: frozenset[str]
    record: Packed | None
    """Packed `RunState`; None for the start of the run."""
    model_s: float
    """Simulated instant of the model that was recorded, in s; 0 for the start."""
    steps: tuple[_Step, ...]
    """Decisions made since, reports heard, and questions to lazy parts of views and reports, in their order."""
    outcomes: tuple[Outcome, ...]
    """Outcomes of the open decision's turn."""


@plug_ins_named()
def episode(
    config: Config,
    set: Overrides | None = None,
    *,
    looks_at: Collection[str] = (),
    on_report: Callable[[RoundReport], None] = lambda _: None,
    start: Snapshot | None = None,
    out: str | Path | None = None,
) -> "Episode":
    """Make an episode: a run in memory that stops at each decision, so that somebody outside may make it.

    ``config`` and ``set`` are those of `edgesim.run`; the config's policy is not asked. ``looks_at`` names what the
    decisions look at beyond the view's arrays, as a policy's ``looks_at`` does. ``on_report`` is called when a model is
    made, while the lazy parts of its report can be asked for. With ``start``, a snapshot of an episode of the same
    config, the episode has the same past and is free to have another future. ``out`` is the folder that gets the run
    of the last `reset`, as `edgesim.run` writes one; without it nothing is written. Raises `EdgesimError` for a config
    that is refused.
    """
    settings = completed(configured(config, set), set)
    needs.check_outside(settings, looks_at)
    looks = frozenset(looks_at)
    if issubclass(SELECTORS[settings.selection.policy], Drafter):
        raise EdgesimError(
            f"selection.policy {settings.selection.policy!r}: picks among arrivals, which no episode does; name another"
        )
    folder = None if out is None else as_path(out, "out")
    if folder is not None:
        check_folder(folder)
    if start is not None:
        if not isinstance(start, Snapshot):
            raise EdgesimError(f"start: expected the snapshot of an episode (got {start!r:.60})")
        if folder is not None:
            raise EdgesimError("out: an episode that begins with a snapshot lacks the rows of its past; leave one out")
        mine, theirs = (as_toml(of.model_copy(update={"seed": 0})) for of in (settings, start.config))
        if key := first_difference(mine, theirs):
            raise EdgesimError(f"start: is a snapshot of another config ({key} differs); give that of its episode", key)
        settings, looks = start.config, looks | start.looks_at
    return Episode(settings, looks, on_report, start, folder)


class Episode:
    """A run in memory that stops at each decision, as `edgesim.episode` makes it.

    It handles no signals. Several episodes may be advanced in turns in one process. `close`, or
    the end of a ``with`` block, frees what the last one holds.
    """

    def __init__(
        self,
        config: RunConfig,
        looks_at: frozenset[str],
        on_report: Callable[[RoundReport], None],
        start: Snapshot | None,
        out: Path | None,
    ) -> None:
        self._config, self._looks_at, self._on_report, self._start = config, looks_at, on_report, start
        self._out = out
        self._folder: EpisodeFolder | None = None
        self._simulation: Simulation | None = None
        self._open: Decision | None = None
        self._access: Access | None = None
        self._report: RoundReport | None = None
        self._is_busy = False
        self._keeps_records = False
        """Whether the state behind each model is recorded, from the first snapshot on: it takes as long as a round."""
        self._record: Packed | None = None
        self._record_s = self._model_s = 0.0
        self._steps: list[_Step] = []
        self._replayed: deque[_Step] = deque()
        self.outcomes: list[Outcome] = []
        """Outcomes since the last decision; behind the end of the run its last ones."""
        self.reason = "it has not begun"
        """Why there is no decision to make."""

    @property
    def device_count(self) -> int:
        """Number of devices of the run."""
        return self._config.devices.count

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes that train and free memory; `reset` begins again."""
        self._refuse_while_busy("close")
        self._end("interrupted", "the episode was closed")
        if self._access is not None:
            self._access.close()
        if self._simulation is not None:
            self._simulation.close()
        self._simulation = self._open = self._report = None
        self.reason = "it is closed"

    @plug_ins_named()
    def reset(self, seed: int | None = None) -> Turn | None:
        """Begin the run, with another ``seed`` than the config's if one is given; returns the first decision.

        An episode with a start begins at the decision of its snapshot. None if the run ends before there is a decision.
        Raises `EdgesimError`.
        """
        self._refuse_while_busy("reset")
        self.close()
        start, config = self._start, self._config
        if seed is not None:
            if start is not None and seed != config.seed:
                raise EdgesimError(f"reset: seed {seed}: the snapshot is of a run with seed {config.seed}")
            if not isinstance(seed, int | np.integer) or not 0 <= seed < 2**63:
                raise EdgesimError(f"reset: seed: expected a whole number from 0 to 2^63 - 1 (got {seed!r})")
            config = config.model_copy(update={"seed": int(seed)})
        self._simulation = simulation = Simulation(config, looks_at=self._looks_at)
        if self._out is not None:
            self._folder = EpisodeFolder(self._out, simulation)
        server = simulation.make_server(NoTables() if self._folder is None else self._folder.writer)
        server.parts.answerer = self
        self._steps, self._replayed = [], deque(() if start is None else start.steps)
        self._record = None if start is None else start.record
        self._record_s = self._model_s = 0.0 if start is None else start.model_s
        with self._at_work():
            if self._record is None:
                simulation.learner.prepare(lambda _: None)
                simulation.begin()
            else:
                arrays = {name: array.copy() for name, array in self._record.arrays.items()}
                modules = named_code.own_files(config)
                simulation.resume(unpack(RunState, json.loads(self._record.json), arrays, modules))
        turn = self._advance()
        while self._replayed and turn is not None:
            turn = self._replay(turn)
        if start is not None and turn is not None:
            self.outcomes = [*start.outcomes]
            turn = replace(turn, outcomes=start.outcomes)
        return turn

    @plug_ins_named()
    def decide(
        self, offers: Iterable[int] | Integers, shares_hz: Sequence[float] | Floats | None = None
    ) -> Turn | None:
        """Offer devices in order, and simulate to the next decision; None at the end of the run.

        Admission takes or skips each, as it does for a policy. ``shares_hz`` are the bandwidths of the devices offered,
        [n], in place of those of the config's allocator; those of devices that admission skips go unused. Raises
        `EdgesimError` for a device that is no candidate or is offered twice, for shares that are no numbers of 0 or
        more, for those of devices taken that exceed the band and where somebody has to be taken, with the decision left
        open, and if there is none.
        """
        self._refuse_while_busy("decide")
        decision = self._open
        if decision is None:
            raise EdgesimError(f"decide: there is no decision to make: {self.reason}; reset the episode")
        view, policy = decision.view, self._config.selection.policy
        shares = None
        try:
            offered = checked_offers(offers, view, policy)
            if shares_hz is not None:
                shares = checked_shares(shares_hz, len(offered), self._config)
            decision.answer(walk(offered), None if shares is None else GivenShares(offered, shares))
        except EdgesimError as error:
            why = str(error).removeprefix(f"selection.policy {policy!r}, round {view.round}: ")
            raise EdgesimError(f"decide in round {view.round}: {why}") from None
        self._steps.append(_Answer(offered, shares))
        return self._advance()

    def snapshot(self) -> Snapshot:
        """Snapshot of the episode at its open decision, for the ``start`` of other episodes of the same config.

        From the first call on, the state behind each model is recorded, so that later snapshots replay less. Raises
        `EdgesimError` if no decision is open.
        """
        self._refuse_while_busy("snapshot")
        if self._open is None or self._simulation is None:
            raise EdgesimError(f"snapshot: there is no decision to make: {self.reason}; reset the episode")
        self._keeps_records = True
        past = self._record, self._record_s, tuple(self._steps), tuple(self.outcomes)
        return Snapshot(self._simulation.config, self._looks_at, *past)

    def _advance(self) -> Turn | None:
        """Simulate to the next decision."""
        if self._access is not None:
            self._access.close()
        self._open, self.outcomes = None, []
        assert self._simulation is not None
        with self._at_work():
            while not isinstance(state := self._simulation.advance(), Decision):
                if isinstance(state, RunEnd):
                    self.reason = state.reason
                    self._simulation.server.stop()
                    self._end("finished", state.reason)
                    return None
                assert self._report is not None
                self.outcomes.append(Outcome(self._report, state, state.t_s - self._model_s))
                self._model_s = state.t_s
                if self._keeps_records and not self._replayed:
                    self._keep_record(state.round)
        self._open = state
        view, self._access = guarded_view(state.view, self._steps.append)
        return Turn(view, tuple(self.outcomes), state.station, state.free_hz, bool(state.refusal_of_none))

    @contextmanager
    def _at_work(self) -> Iterator[None]:
        """Simulate; an error ends the run, whose folder says why, and is raised again."""
        self._is_busy = True
        try:
            yield
        except BaseException as error:
            why = f"{type(error).__name__}: {first_line(error)}"
            why = str(error) if isinstance(error, EdgesimError) else blamed(error) or why
            self.reason = f"the run failed: {why}"
            self._end("failed" if isinstance(error, Exception) else "interrupted", why)
            raise
        finally:
            self._is_busy = False

    def _refuse_while_busy(self, method: str) -> None:
        """Raise `EdgesimError` if a method is called while the run is simulated."""
        if self._is_busy:
            raise EdgesimError(f"{method}: the run goes on while on_report is called; do so when decide has returned")

    def _end(self, status: Status, reason: str) -> None:
        """Close the folder of the run, if it has one."""
        folder, self._folder = self._folder, None
        if folder is not None:
            folder.close(status, reason)

    def _keep_record(self, round: int) -> None:
        """Record the state of the run behind a model, where it can be recorded."""
        assert self._simulation is not None
        server = self._simulation.server
        if not server.parts.clock.is_between_events:
            return
        try:
            packed, arrays = pack(state_of(server, round))
        except EdgesimError:
            # A policy's or an algorithm's memory that cannot be packed: snapshots replay more.
            return
        copied = {name: array.copy(order="K") for name, array in arrays.items()}
        self._record, self._record_s = Packed(json.dumps(packed).encode(), copied), self._model_s
        self._steps.clear()

    def _replay(self, turn: Turn) -> Turn | None:
        """Repeat the next question or decision of a snapshot's past."""
        step = self._replayed.popleft()
        if isinstance(step, _Answer):
            return self.decide(step.offers, step.shares_hz)
        assert isinstance(step, Look), "reports are heard between decisions"
        step.repeat(turn.view)
        return turn

    def ask(self, decision: Decision) -> None:
        """Leave a decision of the run open, for `decide`."""

    def hear(self, report: RoundReport) -> None:
        """Keep the report of a model that the run has made."""
        self._report, access = guarded_report(report, self._steps.append)
        self._steps.append(_Heard())
        if self._replayed:
            self._replayed.popleft()
            while self._replayed and isinstance(step := self._replayed[0], Look) and step.part == "gradients":
                self._replayed.popleft()
                step.repeat(self._report)
        else:
            self._on_report(self._report)
        # They would be worked out with what comes later.
        access.close()
