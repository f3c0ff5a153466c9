"""Warnings about a run that do not stop it: shown at its start or at its end, and kept in ``run.json``."""

import math

import numpy as np

from edgesim.activities import COMPUTE, UPLOAD
from edgesim.base.arrays import Floats
from edgesim.config import RunConfig
from edgesim.engine.decision import Planner, exceed
from edgesim.engine.protocols import has_rounds
from edgesim.engine.report import Totals
from edgesim.engine.world import World
from edgesim.learning import algorithms
from edgesim.learning.partitions import make_partition
from edgesim.learning.partitions.listed import Listed
from edgesim.simulation.feasibility import ROUNDS_LOOKED_AT, timeline_of_round
from edgesim.traces.search import Search

Notes = dict[str, str]
"""One or two sentences by subject; a study shows each subject once."""

_MUCH = 10.0
"""Ratio of upload to computing energy above which a run gets a note: such uploads are rarely what a study intends."""


def start_notes(planner: Planner, samples: Floats) -> Notes:
    """Notes that can be made before the first round.

    ``samples`` is the number of samples whose time each device takes in a round, [devices]. The draws are those of the
    run itself.
    """
    world, accounts = planner.world, planner.accounts
    notes = {
        "two ends": _two_ends(world.config),
        "range": _beyond_the_law(world),
        "positions": _beyond_the_recording(world),
        "overfull": _overfull(planner, samples),
        "outage": _exceeded(world.config),
        "in step": _in_step(world.config),
        "listed": _left_out(world.config),
        "algorithm": algorithms.start_note(
            world.config, world.config.expected_rounds if world.config.rounds else math.inf
        ),
        "drift": accounts.drift_note,
    }
    return {about: note for about, note in notes.items() if note}


def end_notes(world: World, before: Notes, totals: Totals, empty_slots: int) -> Notes:
    """Notes after the last round: those of ``before``, with ``overfull`` now counted in the rounds that were run.

    ``empty_slots`` is the number of slots of availability in which no device would have been available.
    """
    earlier, config = {about: note for about, note in before.items() if about != "overfull"}, world.config
    notes = {
        "overfull": _was_overfull(config, totals),
        "upload energy": _stretched(config, totals),
        "no choice": _no_choice(config, totals),
        "no arrivals": _no_arrivals(totals),
        "empty slots": _empty(config, empty_slots),
        "search": _given_up(world.search),
    }
    return earlier | {about: note for about, note in notes.items() if note}


def _two_ends(config: RunConfig) -> str:
    if config.rounds is None or config.stop_at_s is None:
        return ""
    both = f"rounds = {config.rounds} and stop_at_s = {config.stop_at_s:g}"
    return f"{both} are both given: whichever comes first ends the run"


def _given_up(search: Search) -> str:
    if not search.given_up:
        return ""
    return (
        "devices for which the search for the next time that they are available was given up count as never available "
        f"again; the last search went {search.given_up}"
    )


def _left_out(config: RunConfig) -> str:
    partition = make_partition(config.data)
    further = partition.further_devices(config.devices.count) if isinstance(partition, Listed) else 0
    if not further:
        return ""
    return (
        f"data.partition_options.file lists samples of {further} device{'s'[: further > 1]} beyond devices.count "
        f"({config.devices.count}), which the run leaves out: raise devices.count to have them"
    )


def _exceeded(config: RunConfig) -> str:
    outage, upload = config.round.outage, config.upload
    if outage is None or upload is None:
        return ""
    if upload.size in ("dadaquant", "share"):
        why = (
            f"with upload.size = {upload.size!r} where devices differ in weight: they are admitted with the bits of "
            "upload.levels, and what they then send by their weights may need more than the band"
        )
    elif upload.plan == "last":
        why = "with upload.plan = 'last': an upload that has more bits than the last one was planned with takes longer"
    else:
        return ""
    return f"round.outage = {outage:g} may not be kept {why}; more uploads may miss the deadline than it says"


def _in_step(config: RunConfig) -> str:
    if config.upload is None or config.upload.size != "fit" or has_rounds(config.round):
        return ""
    return (
        f"with upload.size = 'fit' every upload fills the round.tmax_s = {config.round.tmax_s:g} s of its task, so "
        f"that devices that begin together arrive together, quick and slow ones alike: {config.round.protocol!r} then "
        "merges as in rounds of that length; upload.size = 'fixed' lets quick devices arrive first"
    )


def _beyond_the_law(world: World) -> str:
    distance_m = world.places.distances_m(np.arange(len(world.population)), 0.0)
    beyond = int(np.count_nonzero(world.environment.beyond_fit(distance_m)))
    if world.own_links is not None or not beyond:
        return ""
    return (
        f"{beyond} of {len(distance_m)} devices are at distances that the law of {world.config.radio.channel!r} was "
        f"not fitted for ({world.environment.fitted_for}): set devices.radius_m and devices.min_distance_m within them"
    )


def _beyond_the_recording(world: World) -> str:
    """Note on a run that may go on when positions are known no longer; one that must is refused."""
    config, known_s = world.config, math.inf if world.moving is None else world.moving.paths.known_until_s
    if math.isinf(known_s) or config.stop_at_s is not None:
        return ""
    rounds, tmax_s, lasts = config.expected_rounds, config.round.tmax_s, "how long the run lasts is not known"
    if has_rounds(config.round):
        if rounds * tmax_s <= known_s:
            return ""
        lasts = f"{rounds} rounds of up to {tmax_s:g} s each may last longer"
    return (
        f"positions are known up to {known_s:.10g} s, and {lasts}: the run would end with an error there; "
        'set stop_at_s, or mobility.after_end = "wrap" or "hold"'
    )


def _takes_by_count_on_least(config: RunConfig) -> bool:
    """Whether devices are taken by count although their reservations may exceed the band, which makes all late."""
    knobs = config.round
    by_count = has_rounds(knobs) and knobs.admission == "count"
    return by_count and knobs.allocator == "least" and knobs.late == "drop" and config.radio.sharing != "own"


def _overfull(planner: Planner, samples: Floats) -> str:
    config, knobs = planner.world.config, planner.world.config.round
    if not _takes_by_count_on_least(config):
        return ""
    assert knobs.count is not None
    # Devices are placed at random, so the first ones are as good a sample as any.
    ids = np.arange(min(config.devices.count, math.ceil(knobs.over_commitment * knobs.count)), dtype=np.int64)
    overfull = 0
    for number in range(1, ROUNDS_LOOKED_AT + 1):
        timeline = timeline_of_round(planner, ids, samples[ids], number, knobs)
        overfull += exceed(np.asarray(timeline.need_hz), timeline.station, timeline.world.bands_hz)
    if 2 * overfull <= ROUNDS_LOOKED_AT:
        return ""
    return (
        f"{len(ids)} devices picked at random need more than the band to be in time in {overfull} of the first "
        f"{ROUNDS_LOOKED_AT} rounds: {_ALL_LATE}"
    )


_ALL_LATE = (
    "round.admission = 'count' takes them all the same, and all of them are late; lower round.count, widen "
    "radio.bandwidth_hz, raise round.tmax_s, or set round.admission = 'band'"
)


def _was_overfull(config: RunConfig, totals: Totals) -> str:
    if not totals.overfull or not _takes_by_count_on_least(config):
        return ""
    return (
        f"in {totals.overfull} of {totals.rounds} rounds the devices taken needed more than the band to be in time: "
        f"{_ALL_LATE}"
    )


def _stretched(config: RunConfig, totals: Totals) -> str:
    upload_j, compute_j = totals.joules.get(UPLOAD, 0.0), totals.joules.get(COMPUTE, 0.0)
    # Computing of 0 J is a choice of the user (devices.compute_power_w = 0), and every ratio to it is infinite.
    if compute_j == 0 or upload_j <= _MUCH * compute_j:
        return ""
    note = f"uploads drew {upload_j:,.0f} J, more than ten times the {compute_j:,.0f} J of computing"
    knobs = config.round
    stretched = has_rounds(knobs) and knobs.allocator == "least" and knobs.leftover == "idle"
    if stretched and config.radio.sharing == "reserved":
        note += (
            ": least bandwidths stretch every upload to the deadline (round.allocator = 'least', round.leftover = "
            "'idle'); round.leftover = 'equal_finish' or a shorter round.tmax_s ends them earlier"
        )
    return note


def _empty(config: RunConfig, slots: int) -> str:
    if not slots:
        return ""
    force = config.availability.options.get("if_empty") == "force"
    became = "one device, drawn at random, was made available" if force else "the server waited, and no round was run"
    return f"in {slots} slot{'' if slots == 1 else 's'} nobody was available by availability.model: {became}"


def _no_arrivals(totals: Totals) -> str:
    if not totals.rounds or totals.arrived:
        return ""
    if totals.selected == 0:
        why = "no candidate was selected, since none could send its update by the deadline"
    else:
        why = f"of {totals.selected} selected devices each was late or lost its work (edgesim show has the outcomes)"
    rounds = f"{totals.rounds} round{'' if totals.rounds == 1 else 's'}"
    return (
        f"no update arrived in {rounds}, so the model never changed: {why}; "
        "raise round.tmax_s or radio.bandwidth_hz, or lower round.payload_bits or round.count"
    )


def _no_choice(config: RunConfig, totals: Totals) -> str:
    # In protocols without rounds ``candidates`` counts devices at work, among which no policy chooses.
    if not has_rounds(config.round) or totals.selected == 0 or totals.selected < totals.candidates:
        return ""
    # By count all devices are taken where the config says so.
    if config.round.count == config.devices.count:
        return ""
    return (
        "every candidate was taken in every round, so the policy never had a choice: lower round.tmax_s, "
        "radio.bandwidth_hz or round.count, or raise round.payload_bits or devices.count, to compare policies"
    )
