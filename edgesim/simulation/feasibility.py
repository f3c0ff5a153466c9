"""Checks before a run begins: configs that could not work, or in which no update could ever arrive, are refused."""

import math

import numpy as np

from edgesim.base.arrays import Floats, Integers
from edgesim.base.content import find
from edgesim.base.errors import EdgesimError, OutOfReach
from edgesim.config import RoundConfig, RunConfig
from edgesim.devices.topology import load_topology
from edgesim.engine.check_in import change_at
from edgesim.engine.deadlines import Deadlines
from edgesim.engine.decision import Planner, Timeline, make_timeline
from edgesim.engine.world import World
from edgesim.radio.environment import load_environment
from edgesim.streams import Streams
from edgesim.traces.availability import Availability, KnownSlots
from edgesim.traces.models import make_availability
from edgesim.traces.slots import SLOT_LIMIT

ROUNDS_LOOKED_AT = 10
"""Number of rounds, from the first on, whose random draws are checked before a run begins."""

_LONGEST_S = 1e6

_NAMED = 8
"""Most columns of a file that a message names."""


def check_files(config: RunConfig) -> None:
    """Refuse names of files that do not exist, and check the small files; raises `EdgesimError`."""
    load_environment(config.radio.channel)
    if config.topology.file is not None:
        load_topology(config.topology.file)
    if config.devices.profile is not None:
        find("traces", config.devices.profile, ".parquet", "devices.profile", "s_per_sample")
    _check_availability_file(config)
    if config.data.partition == "listed" and "file" in config.data.partition_options:
        find("partitions", config.data.partition_options["file"], ".parquet", "data.partition_options.file")


def _check_availability_file(config: RunConfig) -> None:
    """Refuse a recording that does not exist, and a matrix that is bad or too small for the run."""
    model, options = config.availability.model, config.availability.options
    name = options.get("file") if model in ("table", "bernoulli") else None
    if name is None:
        return
    if model == "table" and options.get("slots") is None and options.get("slot_s") is None:
        find("traces", name, ".parquet", "availability.file", "start_s")
        return
    availability = make_availability(config.availability, config.devices.count, Streams(config.seed))
    rounds = config.resolved().rounds or 0
    if availability.known is not None:
        _check_columns(config, availability, availability.known, rounds if isinstance(rounds, int) else sum(rounds))


def check_count(world: World) -> None:
    """Refuse a ``round.count`` above the most devices that an availability table ever has at once.

    Raises `EdgesimError`.
    """
    count, availability = world.config.round.count, world.availability
    if count is None or availability.ever_has(count):
        return
    raise EdgesimError(
        f"round.count = {count}: never more than {availability.most_at_once()} of the {availability.device_count} "
        f"devices of {availability.name} are online at once; lower it or raise devices.count",
        "round.count",
        "devices.count",
    )


def check_changes(world: World) -> None:
    """Refuse slots of availability, or repeated recordings, that are far shorter than a round.

    A stay of more slots than `SLOT_LIMIT` is taken to last for ever, and work that is broken off as often never ends.
    Raises `EdgesimError`.
    """
    changes, tmax_s = world.availability.changes_every, world.config.round.tmax_s
    if changes is not None and tmax_s > SLOT_LIMIT * changes[1]:
        what, length_s = changes
        raise EdgesimError(
            f"availability: expected {what} no more than {SLOT_LIMIT:,} times in a round (got every {length_s:g} s, "
            f"with round.tmax_s = {tmax_s:g} s)",
            "round.tmax_s",
        )


def check_rounds(world: World, rounds: int) -> None:
    """Refuse more rounds than fit into the length of an availability table, if all rounds last to their deadline.

    A matrix of rounds needs a column for each, whenever they close. Slots in which the server waits for
    ``round.min_candidates`` count as well; batteries may make it wait longer. Raises `EdgesimError`. Rounds that may
    close before the deadline have no least length and are not checked otherwise, and no waits are counted in a run that
    ``stop_at_s`` may end before.
    """
    availability = world.availability
    if availability.known is not None:
        _check_columns(world.config, availability, availability.known, rounds)
    elif world.config.round.close == "deadline":
        _check_seconds(world.config.round, availability, rounds)


def _check_columns(config: RunConfig, availability: Availability, known: KnownSlots, rounds: int) -> None:
    known.need(rounds)
    few = _columns_with_few(availability, known.count, config.round.min_candidates)
    if known.count - len(few) < rounds and config.stop_at_s is None:
        raise EdgesimError(
            f"{known.file}: has columns for {known.count} rounds, but the run needs {rounds} and waits "
            f"{_in_columns(few, config.round.min_candidates)}; {known.remedy}"
        )


def _check_seconds(knobs: RoundConfig, availability: Availability, rounds: int) -> None:
    # The slack covers the rounding of the clock, which adds up the rounds.
    limit_s = availability.known_until_s * (1 + 1e-9)
    if math.isinf(limit_s):
        return
    least_s, each = rounds * knobs.tmax_s, f"{rounds} rounds of {knobs.tmax_s:g} s each"
    if least_s > limit_s:
        availability.refuse_time_beyond(f"{least_s:.10g} s ({each})")
    deadlines, end_s = Deadlines(knobs.tmax_s), 0.0
    for _ in range(rounds):
        begin_s = change_at(availability, end_s, knobs.tmax_s)
        end_s = deadlines.next_due_s(availability.next_time_with(knobs.min_candidates, begin_s))
    if end_s > limit_s:
        waits = f"waits for round.min_candidates = {knobs.min_candidates}"
        if (slots := availability.slots) is not None:
            few = _columns_with_few(slots, round(availability.known_until_s / slots.slot_s), knobs.min_candidates)
            waits = f"waits {_in_columns(few, knobs.min_candidates)}"
        availability.refuse_time_beyond(f"time for {each} and {waits}")


def _columns_with_few(availability: Availability, columns: int, at_least: int) -> list[int]:
    """Numbers, from 1, of the columns in which fewer than ``at_least`` devices are available."""
    return (np.flatnonzero(availability.counts_in(range(columns)) < at_least) + 1).tolist()


def _in_columns(columns: list[int], at_least: int) -> str:
    """Words for the columns in which fewer than ``at_least`` devices are available, and for the remedy."""
    named = ", ".join(map(str, columns[:_NAMED])) + (f" and {len(columns) - _NAMED} more" * (len(columns) > _NAMED))
    where = f"in column{'s'[: len(columns) > 1]} {named}, where"
    if at_least == 1:
        return f'{where} no device is available (availability.if_empty = "force" makes one available)'
    return f"{where} fewer than round.min_candidates = {at_least} devices are available (lower it)"


def check_paths(world: World, rounds: int) -> None:
    """Refuse more rounds than recorded paths last, if all rounds last to their deadline; raises `EdgesimError`.

    Runs that end at an instant are checked where their world is made.
    """
    knobs, least_s = world.config.round, rounds * world.config.round.tmax_s
    if world.moving is None or knobs.close != "deadline" or world.config.stop_at_s is not None:
        return
    # The slack covers the rounding of the clock, which adds up the rounds.
    if least_s * (1 - 1e-9) > world.moving.paths.known_until_s:
        world.moving.paths.need_known(least_s)


def check_reach(planner: Planner, samples: Floats) -> None:
    """Refuse a deadline or a band with which no device could upload in time in any of the first rounds.

    ``samples`` is the number of samples whose time each device takes in a round, [devices]. The draws are those of the
    run itself. Raises `OutOfReach`, which says which deadline or band would suffice.
    """
    world, knobs, band_hz = planner.world, planner.world.config.round, planner.world.config.radio.bandwidth_hz
    least_hz = _least_need_hz(planner, samples, knobs)
    if least_hz <= band_hz:
        return
    upload_bits = np.asarray(planner.accounts.plan(np.arange(world.config.devices.count), 1)[1])
    bits = " to ".join(f"{bits:,.0f}" for bits in dict.fromkeys((upload_bits.min(), upload_bits.max()))) + " bits"
    fields = ["round.tmax_s"]
    remedy = _deadline_that_would_do(planner, samples)
    if (wires_s := float(planner.backhaul.of_station_s(float(upload_bits.max())).max())) > 0:
        remedy += (
            f"; the wires of topology.file = {world.config.topology.file!r} take up to {wires_s:.3g} s of it each way"
        )
    upload = world.config.upload
    if upload is not None and upload.size == "stream" and upload.least is None:
        remedy += "; or set upload.least: with upload.size = 'stream' uploads are planned whole without it"
        fields.append("upload.least")
    if knobs.outage is not None:
        share = f"{world.outage_factor:.3g} of the average gain"
        remedy += f"; with round.outage = {knobs.outage:g} uploads are planned on {share}"
        fields.append("round.outage")
    if not world.environment.has_path_loss:
        over = f"over the recorded capacity {world.config.radio.channel!r}"
        problem = f"no device can upload {bits} by the deadline {over}"
    elif math.isinf(least_hz):
        problem = f"no device can compute and upload {bits} by the deadline, whatever the band"
    else:
        problem = (
            f"the band is too narrow for any device to upload by the deadline; give at least {_round_up(least_hz)} Hz"
        )
        message = f"radio.bandwidth_hz = {band_hz:g}: {problem}, or {remedy}"
        raise OutOfReach(message, "radio.bandwidth_hz", *fields)
    raise OutOfReach(f"round.tmax_s = {knobs.tmax_s:g}: {problem}; {remedy}", *fields)


def _least_need_hz(planner: Planner, samples: Floats, knobs: RoundConfig) -> float:
    """The least ``radio.bandwidth_hz`` with which any device is in time in any of the first rounds; inf if none is."""
    world, least_hz = planner.world, math.inf
    ids = np.arange(world.config.devices.count, dtype=np.int64)
    for number in range(1, ROUNDS_LOOKED_AT + 1):
        timeline = timeline_of_round(planner, ids, samples, number, knobs)
        if len(timeline.ids):
            share = world.topology.bandwidth_share[timeline.station]
            least_hz = min(least_hz, float((np.asarray(timeline.need_hz) / share).min()))
        if least_hz <= world.config.radio.bandwidth_hz:
            break
    return least_hz


def _deadline_that_would_do(planner: Planner, samples: Floats) -> str:
    """Remedy that names the least deadline, to 1 %, which a device can meet; ``report_by_s`` grows in proportion."""
    config, knobs = planner.world.config, planner.world.config.round
    report_share = (knobs.report_by_s or 0.0) / knobs.tmax_s

    def serves(tmax_s: float) -> bool:
        longer = knobs.model_copy(update={"tmax_s": tmax_s, "report_by_s": tmax_s * report_share})
        return _least_need_hz(planner, samples, longer) <= config.radio.bandwidth_hz

    short_s = knobs.tmax_s
    enough_s = 2 * short_s
    while not serves(enough_s):
        short_s, enough_s = enough_s, 2 * enough_s
        if enough_s > _LONGEST_S:
            return f"no deadline below {_LONGEST_S:g} s would suffice"
    while enough_s > 1.01 * short_s:
        middle_s = (short_s + enough_s) / 2
        short_s, enough_s = (short_s, middle_s) if serves(middle_s) else (middle_s, enough_s)
    remedy = f"set round.tmax_s to at least {_round_up(enough_s)} s (enough for one device in one of the first rounds)"
    if knobs.delay_knowledge == "reported":
        remedy += f" and round.report_by_s to {report_share:.3g} of it"
    return remedy


def timeline_of_round(planner: Planner, ids: Integers, samples: Floats, number: int, knobs: RoundConfig) -> Timeline:
    """Timeline that the scheduler would have of devices ``ids`` [n] with ``samples`` [n] in round ``number``."""
    world, times_s = planner.world, ((number - 1) * knobs.tmax_s, knobs.tmax_s)

    def timeline(rows: Integers | slice, delay_s: Floats, decided_s: float | None = None) -> Timeline:
        return make_timeline(planner, number, ids[rows], delay_s[rows], *times_s, decided_s)

    if knobs.delay_knowledge == "planned":
        assert knobs.plan_quantile is not None
        return timeline(slice(None), world.planned_compute_s(ids, samples, knobs.plan_quantile))
    compute_s = world.compute_s(ids, number, samples)
    known = timeline(slice(None), compute_s)
    if knobs.delay_knowledge == "known":
        return known
    assert knobs.report_by_s is not None
    done_s = np.asarray(known.ready_s)
    decided_s = min(float(np.max(done_s)), knobs.report_by_s)
    return timeline(np.flatnonzero(done_s <= decided_s), compute_s, decided_s)


def _round_up(value: float) -> str:
    """The value rounded up to three significant digits."""
    step = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{math.ceil(value / step) * step:.3g}"
