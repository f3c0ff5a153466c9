"""A run as an object, which is advanced from round to round."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from itertools import count, islice
from typing import Any, Self

import numpy as np

from edgesim import joining
from edgesim.base import processes
from edgesim.base.errors import EdgesimError
from edgesim.base.loading import uncollected
from edgesim.cluster.connection import check_reachable
from edgesim.config import RunConfig
from edgesim.devices.topology import make_backhaul
from edgesim.engine.decision import Planner
from edgesim.engine.decisions import Decision
from edgesim.engine.make_world import make_world
from edgesim.engine.process import Process, RoundNumber
from edgesim.engine.protocols import make_protocol
from edgesim.engine.report import write_devices, write_stations
from edgesim.engine.run_parts import RunParts
from edgesim.engine.run_state import RunState, restore
from edgesim.engine.server import RunEnd, Server
from edgesim.engine.watched import refuse
from edgesim.engine.world import World
from edgesim.folder.records import TableWriter
from edgesim.folder.run_progress import RunProgress
from edgesim.learning.algorithms.merge_rules import MergeRule
from edgesim.learning.federation import Federation, make_federation
from edgesim.learning.interface import Evaluation, Learner
from edgesim.selection import make_selector
from edgesim.simulation import feasibility, named_code, needs
from edgesim.simulation.notes import start_notes
from edgesim.streams import Streams


class Simulation:
    """A run of a complete config, from its data and its world to its last round.

    Made, it has read its data and checked all that a run would be refused for. `begin` or `resume` puts it at the start
    of a round; each `advance` simulates to the end of the next one. It writes rows to the tables that it is given, and
    no file. ``learner.prepare`` makes the start model before `begin`; `close`, or the end of a ``with`` block, ends the
    processes that train.
    """

    def __init__(
        self,
        config: RunConfig,
        on_start: Callable[[str], None] = lambda _: None,
        cores: int | None = None,
        looks_at: frozenset[str] | None = None,
    ) -> None:
        """``on_start`` is called with what is being prepared; ``cores`` are the processor's, all when absent.

        ``looks_at`` are inputs of decisions made outside of the run, those of the policy when absent.
        Raises `EdgesimError` for what a run of the config would be refused for.
        """
        if config.learning.back_end == "ray" and config.learning.training != "none":
            check_reachable(None, "learning.back_end = 'ray'")
        self.config = config
        streams = Streams(config.seed)
        self._federation = federation = make_federation(config, streams)
        needs.check_frames(config, len(federation.frames) - 1)
        self._frames = frames = list(_frame_lengths(config, len(federation.frames) - 1))
        world = make_world(config, streams, on_start)
        feasibility.check_count(world)
        feasibility.check_changes(world)
        feasibility.check_rounds(world, sum(length or 0 for _, length in frames))
        feasibility.check_paths(world, sum(length or 0 for _, length in frames))
        rounds = sum(horizon for horizon, _ in frames)
        self._joiners = joining.make_joiners(config.joining, world.population, rounds, streams)
        self._selector = make_selector(
            config.selection.policy, config.selection.options, config.devices.count, federation.class_count
        )
        looks_at = self._selector.looks_at if looks_at is None else looks_at
        needs.check_policy(config, looks_at)
        self.protocol = make_protocol(config.round)
        cores = cores or processes.cores()
        self.learner = _make_learner(config, federation, streams, cores, self.protocol.rule)
        with ExitStack() as made:
            made.enter_context(closing(self.learner))
            accounts = self.learner.accounts
            accounts.looked_at = looks_at
            backhaul = make_backhaul(world.topology, accounts.model_bits, config.topology.aggregation == "hierarchical")
            self.learner.serve(len(backhaul.servers), lambda ids, t_s: backhaul.edge[world.places.stations(ids, t_s)])
            self.charged = accounts.charged_samples(np.arange(config.devices.count), 1)
            """Samples whose time each device takes in a round, [devices]."""
            self.planner = Planner(world, accounts, backhaul)
            feasibility.check_reach(self.planner, self.charged)
            self.notes = start_notes(self.planner, self.charged)
            # All went well: it is closed with the run.
            made.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the processes that train."""
        self.learner.close()

    @property
    def world(self) -> World:
        """The world in which the run takes place."""
        return self.planner.world

    def make_server(self, writer: TableWriter) -> Server:
        """Make the server of the run, which writes its rows to ``writer``."""
        parts = RunParts(self.world, self._selector, self.learner, writer, self.planner.backhaul, self._joiners)
        if self.config.privacy.mechanism != "none":
            parts.report.totals.uploads = {}
        if not isinstance(process := self.protocol.begin(parts), Process):
            needed = "step, snapshot, restore and break_off"
            refuse(self.config.round, f"begin returned {process!r}, expected an object with {needed}")
        self.server = Server(parts, process)
        return self.server

    def begin(self) -> Evaluation | None:
        """Stand before the first round, with stations and devices written; returns the test of the start model."""
        parts = self.server.parts
        write_stations(parts.writer, self.world, self.planner.backhaul)
        write_devices(parts.writer, self.world, self._federation)
        start = parts.evaluations.evaluate(1)
        parts.report.write_test(0, start)
        self.server.begin(_round_numbers(self._frames))
        return start

    def resume(self, state: RunState) -> None:
        """Stand behind the round of a snapshot, whose memory the run takes over; the rows until then are written."""
        restore(self.server, state)
        self.server.begin(islice(_round_numbers(self._frames), state.round, None))

    def advance(self) -> RunProgress | RunEnd | Decision:
        """Simulate to the end of the next round, or of the run, or to an open decision; raises `EdgesimError`."""
        return self.server.advance()

    def place(self, round: int) -> list[Any]:
        """Position of a round, as in `edgesim.folder.checkpoints.About.place`; empty if there is no such round."""
        return next((number.place for number in islice(_round_numbers(self._frames), round - 1, round)), [])


def _frame_lengths(config: RunConfig, frames: int) -> list[tuple[int, int | None]]:
    """(K_l, rounds to run) of every frame; None runs until ``stop_at_s``."""
    if config.rounds is None:
        if frames > 1:
            raise EdgesimError(f"rounds: give one number per frame; the data have {frames} frames")
        return [(max(1, config.expected_rounds), None)]
    counts = config.rounds if isinstance(config.rounds, list) else [config.rounds] * frames
    if len(counts) != frames:
        raise EdgesimError(f"rounds: {len(counts)} numbers were given, but the data have {frames} frame(s)")
    return [(count, count) for count in counts]


def _round_numbers(frames: list[tuple[int, int | None]]) -> Iterator[RoundNumber]:
    numbers = count(1)
    for frame, (horizon, length) in enumerate(frames, start=1):
        for k in count(1) if length is None else range(1, length + 1):
            yield RoundNumber(next(numbers), frame, k, horizon, k == length)


def _make_learner(config: RunConfig, federation: Federation, streams: Streams, cores: int, rule: MergeRule) -> Learner:
    # Timing-only runs import no torch.
    if config.learning.training == "none":
        from edgesim.learning.timing_only import TimingOnlyLearner

        return TimingOnlyLearner(config, federation, streams, rule)
    # Torch, interrupted while it loads, would stay in pieces for the rest of this process.
    with processes.uninterrupted(), uncollected():
        from edgesim.learning.learner import TorchLearner

    return TorchLearner(config, federation, streams, cores, partial(named_code.own_files, config), rule)
