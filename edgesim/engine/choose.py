"""Choice among the candidates of one round, under every protocol."""

from edgesim.base.arrays import Floats, Integers
from edgesim.engine.decision import Timeline, admit, share
from edgesim.engine.decisions import Decision, answered
from edgesim.engine.estimates import PlannedEstimates
from edgesim.engine.process import RoundNumber, Steps
from edgesim.engine.run_parts import RunParts
from edgesim.selection.view import Knowledge, RoundView


def choose(
    parts: RunParts,
    number: RoundNumber,
    timeline: Timeline,
    times_selected: Integers,
    knowledge: Knowledge,
    bands_hz: Floats,
    count: int | None,
    refusal_of_none: str = "",
) -> Steps[tuple[Integers, Floats | None]]:
    """Ask which of the candidates [n] of a ``timeline`` are taken; returns positions as from `admit`.

    Returns also their bandwidths in Hz, [S], None where the config's allocator shares the band.
    ``times_selected`` counts the rounds in which each was taken, [n]; ``bands_hz`` are the free bands of the stations,
    [M]; ``count`` is the most candidates that the admission takes, None where it goes by band; ``refusal_of_none`` is
    the error if it takes nobody, empty where that is allowed.
    """
    world, ids = parts.world, timeline.ids
    sizes, work = parts.learner.accounts.held.sizes[ids], parts.learner.accounts.work
    view = RoundView(
        round=number.round,
        frame=number.frame,
        round_in_frame=number.round_in_frame,
        rounds_in_frame=number.rounds_in_frame,
        t_s=timeline.t_start_s,
        tmax_s=timeline.tmax_s,
        batch_size=work.mean_batch(ids),
        ids=ids,
        gain=timeline.gain,
        delay_s=timeline.delay_s,
        need_hz=timeline.need_hz,
        samples=sizes,
        work_samples=work.samples_per_job(ids, sizes),
        times_selected=times_selected,
        streams=world.streams,
        knowledge=knowledge,
        estimates=PlannedEstimates(timeline, bands_hz, count),
    )
    policy, station = world.config.selection.policy, timeline.station
    decision = Decision(
        view,
        station,
        bands_hz,
        lambda choice: admit(policy, choice, view, station, bands_hz, count),
        lambda taken, allocator: share(timeline, taken, bands_hz, allocator),
        refusal_of_none,
    )
    return (yield from answered(parts.answerer, decision))
