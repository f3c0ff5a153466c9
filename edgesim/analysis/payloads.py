"""Whether runs of different payloads can differ in time."""

from collections.abc import Mapping, Sequence
from typing import Any

from edgesim.analysis.runs import Run
from edgesim.folder.records import read_run


def stretched_payloads(runs: Sequence[Run]) -> list[str]:
    """A note that payloads make no difference in time, where runs of several stretch every upload to the deadline."""
    payloads = {_payload(run) for run in runs if _is_stretched(run.config)}
    if len(payloads) < 2:
        return []
    return [
        "Runs of different payloads: with round.allocator = 'least' and round.leftover = 'idle' each upload gets "
        "the least bandwidth that ends it at the deadline, so that a smaller payload ends no round earlier. "
        "round.leftover = 'equal_finish' shares the whole band, and shows what it is worth in seconds."
    ]


def _payload(run: Run) -> object:
    """Bits of an update as far as config and model tell them."""
    bits = run.config.get("round", {}).get("payload_bits", "model")
    return read_run(run.folder).get("parameters") if bits == "model" else bits


def _is_stretched(config: Mapping[str, Any]) -> bool:
    """Whether least bandwidths that are kept to the end make each upload in time end at the deadline."""
    knobs, radio = config.get("round", {}), config.get("radio", {})
    given = knobs.get("protocol"), knobs.get("allocator"), knobs.get("leftover"), radio.get("sharing")
    return given == ("synchronous", "least", "idle", "reserved")
