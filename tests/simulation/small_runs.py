"""The small world of tests of what surrounds runs: three rounds of 30 devices without training, in milliseconds."""

from typing import Any

TIMING: dict[str, Any] = {
    "rounds": 3,
    "learning": {"training": "none", "pretrain": True},
    "data": {"dataset": "none", "partition": "fedteddi"},
    "round": {"payload_bits": 1e7},
}
