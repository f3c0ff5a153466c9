"""Notes on runs that are compared by seconds without equal time, or whose times cannot differ."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from typing_extensions import override

from edgesim.analysis.metrics import simulated_s
from edgesim.analysis.runs import RunFolder
from edgesim.folder.records import read_run

_REMEDY = "One that ends before it reaches the target may still be the sooner; give all runs the same stop_at_s."


class _Time(NamedTuple):
    """Limit that a config sets to the time of a run."""

    stop_at_s: float | None
    tmax_s: float | None
    """The deadline, which sets the time of a run that its rounds have ended; None for others."""

    @override
    def __str__(self) -> str:
        return f"stop_at_s = {self.stop_at_s:g}" if self.tmax_s is None else f"a Tmax of {self.tmax_s:g} s"


def unequal_time(runs: Sequence[RunFolder]) -> list[str]:
    """A note where runs have different ``stop_at_s``, or ended by their rounds at different deadlines; else empty.

    A run with a short deadline may make its last round before it reaches a target that it would reach first, and so may
    one that is stopped early.
    """
    by_rounds = any(_made_all_rounds(run) for run in runs)
    ends_s: dict[_Time, float] = {}
    for run in runs:
        time = _Time(run.config.get("stop_at_s"), run.tmax_s if by_rounds else None)
        ends_s[time] = max(ends_s.get(time, 0.0), simulated_s(run.rounds))
    if len(ends_s) < 2:
        return []
    short, long = (find(ends_s, key=ends_s.__getitem__) for find in (min, max))
    what = "over different deadlines at fixed rounds" if by_rounds else "over different times"
    return [
        f"Seconds are compared {what}: runs with {short} end by {ends_s[short]:.4g} s, those with {long} by "
        f"{ends_s[long]:.4g} s. {_REMEDY}"
    ]


def _made_all_rounds(run: RunFolder) -> bool:
    """Whether a run was ended by its number of rounds, not by ``stop_at_s`` or an accuracy."""
    rounds = run.config.get("rounds")
    if rounds is None:
        return "stop_at_s" not in run.config
    return int(run.rounds["round"].max()) >= int(np.sum(rounds))


def stretched_payloads(runs: Sequence[RunFolder]) -> list[str]:
    """A note if runs with different payloads stretch every upload to the deadline; else empty."""
    payloads = {_payload(run) for run in runs if _is_stretched(run)}
    if len(payloads) < 2:
        return []
    return [
        "Runs of different payloads: with round.allocator = 'least' and round.leftover = 'idle' each upload gets "
        "the least bandwidth that ends it at the deadline, so that a smaller payload ends no round earlier. "
        "round.leftover = 'equal_finish' shares the whole band, and shows the gain in seconds."
    ]


def _payload(run: RunFolder) -> object:
    """Bits of an update by the config, or the parameters of the model; None if neither is known."""
    bits = run.config.get("round", {}).get("payload_bits", "model")
    return read_run(run.folder).get("parameters") if bits == "model" else bits


def _is_stretched(run: RunFolder) -> bool:
    """Whether each upload in time ends at the deadline, since it has the least bandwidth to its end."""
    knobs, radio = run.config.get("round", {}), run.config.get("radio", {})
    sharing = knobs.get("allocator"), knobs.get("leftover"), radio.get("sharing")
    return sharing == ("least", "idle", "reserved") and read_run(run.folder).get("has_rounds") is True
