"""What is refused before a run begins because nothing could come of it."""

import math

import numpy as np
from numpy.typing import NDArray

from edgesim.channels import min_bandwidth_hz, rate_bps
from edgesim.config import RunConfig
from edgesim.engine.decision import Timeline, foresee, hear_reports
from edgesim.engine.world import World
from edgesim.errors import EdgesimError
from edgesim.selection.view import Selector

_ROUNDS_LOOKED_AT = 10


def check_policy(config: RunConfig, selector: Selector) -> None:
    """Refuse a policy that looks at training in a run that does not train; raises `EdgesimError`."""
    if config.learning.training == "none" and selector.looks_at:
        raise EdgesimError(
            f"selection.policy {config.selection.policy!r} looks at {', '.join(sorted(selector.looks_at))}, "
            "which a timing-only run does not have; set learning.training = 'real'"
        )


def check_reach(world: World, payload_bits: float, samples: NDArray[np.int64]) -> None:
    """Refuse a deadline or a band that serves nobody in any of the first rounds, with ``samples`` to process each.

    The draws are those of the run itself. Raises `EdgesimError` that says which deadline or band would do.
    """
    config = world.config
    ids = np.arange(config.devices.count, dtype=np.int64)
    noise_w_per_hz = world.environment.noise_w_per_hz
    least_hz, enough_s, wide_band_s = math.inf, math.inf, math.inf
    for number in range(1, _ROUNDS_LOOKED_AT + 1):
        timeline = _timeline(world, ids, samples, number)
        if len(timeline.ids) == 0:
            continue
        rx_power_w = world.rx_power_w(timeline.ids, number)
        left_s = config.round.tmax_s - timeline.ready_s
        least_hz = min(least_hz, float(np.min(min_bandwidth_hz(payload_bits, left_s, rx_power_w, noise_w_per_hz))))
        if least_hz <= config.radio.bandwidth_hz:
            return
        alone_s = timeline.ready_s + payload_bits / rate_bps(config.radio.bandwidth_hz, rx_power_w, noise_w_per_hz)
        enough_s = min(enough_s, float(np.min(alone_s)))
        limit_bps = rx_power_w / (noise_w_per_hz * math.log(2))
        wide_band_s = min(wide_band_s, float(np.min(timeline.ready_s + payload_bits / limit_bps)))
    if math.isinf(enough_s):
        raise EdgesimError(
            f"round.report_by_s = {config.round.report_by_s:g}: no device has computed by then; allow more time"
        )
    remedy = f"set round.tmax_s to at least {_round_up(enough_s)} s"
    if wide_band_s >= config.round.tmax_s:
        raise EdgesimError(
            f"round.tmax_s = {config.round.tmax_s:g}: no device can compute and upload {payload_bits:,.0f} bits "
            f"by the deadline, whatever the band; {remedy}"
        )
    raise EdgesimError(
        f"radio.bandwidth_hz = {config.radio.bandwidth_hz:g}: the band serves nobody by the deadline; give at least "
        f"{_round_up(least_hz)} Hz, or {remedy}"
    )


def _timeline(world: World, ids: NDArray[np.int64], samples: NDArray[np.int64], number: int) -> Timeline:
    knobs = world.config.round
    compute_s = world.compute_s(ids, number, samples)
    if knobs.delay_knowledge == "reported":
        assert knobs.report_by_s is not None
        decided_s = min(float(np.max(compute_s)) + knobs.download_s, knobs.report_by_s)
        reporters = compute_s + knobs.download_s <= decided_s
        return hear_reports(ids[reporters], compute_s[reporters], decided_s)
    planned = knobs.delay_knowledge == "planned"
    planned_s = world.planned_compute_s(ids, samples, knobs.plan_quantile) if planned else None
    return foresee(knobs, ids, compute_s, planned_s)


def _round_up(value: float) -> str:
    """Three significant digits, never below the value."""
    step = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{math.ceil(value / step) * step:.3g}"
