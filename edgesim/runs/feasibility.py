"""What is refused before a run begins because nothing could come of it."""

import math

import numpy as np

from edgesim.arrays import Integers
from edgesim.channels import RecordedEnvironment, load_environment
from edgesim.config import RoundConfig, RunConfig
from edgesim.devices.topology import Backhaul, load_topology
from edgesim.engine.decision import Timeline, needs_hz
from edgesim.engine.world import World
from edgesim.errors import EdgesimError
from edgesim.files.content import find
from edgesim.selection.view import Selector
from edgesim.traces.interval_table import IntervalTable

ROUNDS_LOOKED_AT = 10
"""First rounds whose draws are looked at before a run begins."""

_LONGEST_S = 1e6


def check_files(config: RunConfig) -> None:
    """Refuse names of files that are not there, and small files that are wrong; raises `EdgesimError`."""
    load_environment(config.radio.channel)
    if config.topology.file is not None:
        load_topology(config.topology.file)
    recorded = config.availability.options.get("file") if config.availability.model == "table" else None
    for name in (config.devices.profile, recorded):
        if name is not None:
            find("traces", name, ".parquet")


def check_policy(config: RunConfig, selector: Selector, class_count: int) -> None:
    """Refuse a policy that looks at what the run does not have; raises `EdgesimError`."""
    policy = f"selection.policy {config.selection.policy!r} looks at"
    trained = sorted(selector.looks_at - {"class_counts"})
    if config.learning.training == "none" and trained:
        raise EdgesimError(
            f"{policy} {', '.join(trained)}, which a timing-only run does not have; set learning.training = 'real'"
        )
    if class_count == 0 and "class_counts" in selector.looks_at:
        raise EdgesimError(f"{policy} class counts, which data.dataset = 'none' does not have; name a data set")
    if "gradient_deviations" in selector.looks_at and config.learning.batch_size < 2:
        raise EdgesimError(f"{policy} the spread of gradients in a batch: learning.batch_size must be at least 2")


def check_count(world: World) -> None:
    """Refuse a count of participants that a availability tables never has at once; raises `EdgesimError`."""
    count, availability = world.config.round.count, world.availability
    if count is None or not isinstance(availability, IntervalTable) or availability.ever_has(count):
        return
    raise EdgesimError(
        f"round.count = {count}: never more than {availability.most_at_once()} of the {availability.device_count} "
        f"devices of {availability.name} are online at once; lower it or raise devices.count"
    )


def check_rounds(world: World, rounds: int) -> None:
    """Refuse more rounds than a availability tables has time for, where all last to their deadline.

    Raises `EdgesimError`. Rounds that may close earlier have no least length.
    """
    knobs, availability = world.config.round, world.availability
    least_s = rounds * knobs.tmax_s
    if knobs.close != "deadline" or not isinstance(availability, IntervalTable):
        return
    # The clock's sum over very many rounds is off by less than this.
    if least_s > availability.known_until_s * (1 + 1e-9):
        availability.refuse_to_go_on(f"{least_s:.10g} s ({rounds} rounds of {knobs.tmax_s:g} s each)")


def check_reach(world: World, backhaul: Backhaul, payload_bits: float, samples: Integers) -> None:
    """Refuse a deadline or a band that serves nobody in any of the first rounds.

    ``samples`` are those that each device processes in a round, [devices]. The draws are those of the run itself.
    Raises `EdgesimError` that says which deadline or band would do.
    """
    knobs, band_hz = world.config.round, world.config.radio.bandwidth_hz
    least_hz = _least_need_hz(world, backhaul, payload_bits, samples, knobs)
    if least_hz <= band_hz:
        return
    remedy = _deadline_that_would_do(world, backhaul, payload_bits, samples)
    if (wires_s := float(backhaul.of_station_s.max())) > 0:
        remedy += (
            f"; the wires of topology.file = {world.config.topology.file!r} take up to {wires_s:.3g} s of it each way"
        )
    if knobs.outage is not None:
        share = f"{world.outage_factor:.3g} of the average gain"
        remedy += f"; with round.outage = {knobs.outage:g} uploads are planned on {share}"
    if isinstance(world.environment, RecordedEnvironment):
        raise EdgesimError(
            f"round.tmax_s = {knobs.tmax_s:g}: the recorded capacity {world.config.radio.channel!r} carries nobody's "
            f"{payload_bits:,.0f} bits by the deadline; {remedy}"
        )
    if math.isinf(least_hz):
        raise EdgesimError(
            f"round.tmax_s = {knobs.tmax_s:g}: no device can compute and upload {payload_bits:,.0f} bits by the "
            f"deadline, whatever the band; {remedy}"
        )
    raise EdgesimError(
        f"radio.bandwidth_hz = {band_hz:g}: the band serves nobody by the deadline; give at least "
        f"{_round_up(least_hz)} Hz, or {remedy}"
    )


def _least_need_hz(
    world: World, backhaul: Backhaul, payload_bits: float, samples: Integers, knobs: RoundConfig
) -> float:
    """The least ``radio.bandwidth_hz`` that serves any device in any of the first rounds; inf if none would do."""
    ids = np.arange(world.config.devices.count, dtype=np.int64)
    least_hz = math.inf
    for number in range(1, ROUNDS_LOOKED_AT + 1):
        timeline = timeline_of_round(world, backhaul, ids, samples, number, knobs, payload_bits)
        if len(timeline.ids):
            needs = needs_hz(world, timeline, number, np.arange(len(timeline.ids)))
            share = world.topology.bandwidth_share[world.population.station[timeline.ids]]
            least_hz = min(least_hz, float((needs / share).min()))
        if least_hz <= world.config.radio.bandwidth_hz:
            break
    return least_hz


def _deadline_that_would_do(world: World, backhaul: Backhaul, payload_bits: float, samples: Integers) -> str:
    """The least deadline, to 1 %, that serves somebody; the time to report by grows with it."""
    knobs = world.config.round
    report_share = (knobs.report_by_s or 0.0) / knobs.tmax_s

    def serves(tmax_s: float) -> bool:
        longer = knobs.model_copy(update={"tmax_s": tmax_s, "report_by_s": tmax_s * report_share})
        return _least_need_hz(world, backhaul, payload_bits, samples, longer) <= world.config.radio.bandwidth_hz

    short_s = knobs.tmax_s
    enough_s = 2 * short_s
    while not serves(enough_s):
        short_s, enough_s = enough_s, 2 * enough_s
        if enough_s > _LONGEST_S:
            return f"no deadline below {_LONGEST_S:g} s would do"
    while enough_s > 1.01 * short_s:
        middle_s = (short_s + enough_s) / 2
        short_s, enough_s = (short_s, middle_s) if serves(middle_s) else (middle_s, enough_s)
    remedy = f"set round.tmax_s to at least {_round_up(enough_s)} s (which serves somebody in some round)"
    if knobs.delay_knowledge == "reported":
        remedy += f" and round.report_by_s to {report_share:.3g} of it"
    return remedy


def timeline_of_round(
    world: World,
    backhaul: Backhaul,
    ids: Integers,
    samples: Integers,
    number: int,
    knobs: RoundConfig,
    payload_bits: float,
) -> Timeline:
    """What the scheduler would know of some devices, [n] and their ``samples``, in one of the first rounds."""
    t_start_s = (number - 1) * knobs.tmax_s
    broadcast_s = backhaul.broadcast_s(True)
    due_s = knobs.tmax_s - backhaul.of_station_s
    if knobs.delay_knowledge == "planned":
        assert knobs.plan_quantile is not None
        planned_s = world.planned_compute_s(ids, samples, knobs.plan_quantile)
        return Timeline(ids, planned_s, t_start_s, broadcast_s, payload_bits, due_s, None)
    compute_s = world.compute_s(ids, number, samples)
    if knobs.delay_knowledge == "known":
        return Timeline(ids, compute_s, t_start_s, broadcast_s, payload_bits, due_s, None)
    assert knobs.report_by_s is not None
    done_s = broadcast_s[world.population.station[ids]] + world.download_s(ids, payload_bits) + compute_s
    decided_s = min(float(np.max(done_s)), knobs.report_by_s)
    reporters = done_s <= decided_s
    return Timeline(ids[reporters], compute_s[reporters], t_start_s, broadcast_s, payload_bits, due_s, decided_s)


def _round_up(value: float) -> str:
    """Three significant digits, never below the value."""
    step = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{math.ceil(value / step) * step:.3g}"
