"""Sections of small runs that several tests play."""

from typing import Any

TIMING: dict[str, Any] = {
    "rounds": 3,
    "learning": {"training": "none", "pretrain": True},
    "data": {"dataset": "none", "partition": "fedteddi"},
    "round": {"payload_bits": 1e7},
}
"""Three rounds of 30 devices without training, in milliseconds."""
SIZED: dict[str, Any] = {
    "seed": 3,
    "rounds": 6,
    "devices": {"count": 8},
    "data": {"partition": "iid", "samples_per_device": 40},
    "radio": {"bandwidth_hz": 4e6, "fading": "rayleigh"},
    "round": {"tmax_s": 0.8, "payload_bits": 32 * 558_802, "allocator": "equal_bits"},
    "learning": {"training": "none", "steps": 2},
}
"""Runs on a fading band without training, whose updates of 558,802 numbers may be as large as it carries."""
LOW, HIGH = ([0.2] * 5 + [0.0] * 5), ([0.0] * 5 + [0.2] * 5)
DRIFTS: dict[str, dict[str, Any]] = {
    "rotation": {"law": "rotation", "classes": [2, 3]},
    "swap": {"law": "swap", "t_s": 4.1, "before": [LOW], "after": [HIGH]},
    "gradual": {"law": "gradual", "start_s": 1.0, "end_s": 6.0, "before": [LOW, HIGH], "after": [HIGH, LOW]},
    "recurring": {"law": "recurring", "mixes": [[LOW], [HIGH]], "durations_s": [1.7, 2.1]},
    "arrival": {"law": "arrival", "rate_per_s": 1.5, "pool": "iid_partition"},
}
"""Data that move within some seconds, by each law but that of frames."""
TRAINED: dict[str, Any] = {
    "seed": 5,
    "devices": {"count": 6},
    "round": {"payload_bits": 1e6, "tmax_s": 1.0},
    "data": {"samples_per_device": 8, "partition": "fedteddi"},
    "learning": {"pretrain": False, "steps": 1, "back_end": "loop"},
}
"""Six devices that train for a step, in some hundredths of a second."""
