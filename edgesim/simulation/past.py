"""Past rounds of a run that a longer run or a fork continues."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

from edgesim.base.errors import EdgesimError
from edgesim.base.sources import mentions
from edgesim.config import RunConfig
from edgesim.folder import checkpoints
from edgesim.folder.checkpoints import Checkpoint
from edgesim.folder.records import copy_rows
from edgesim.selection import SELECTORS
from edgesim.simulation.resumption import first_difference, without_ends


def is_longer(then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether a config is that of the same run with more rounds (in its last frame), or a later ``stop_at_s``."""
    if first_difference(without_ends(then), without_ends(now)) is not None or then == now:
        return False
    old, new = then.get("rounds", inf), now.get("rounds", inf)
    if isinstance(old, list) and isinstance(new, list) and old[:-1] == new[:-1]:
        old, new = old[-1], new[-1]
    if isinstance(old, list) or isinstance(new, list):
        return False
    return bool(old <= new and then.get("stop_at_s", inf) <= now.get("stop_at_s", inf))


def refuse_other_end(config: RunConfig, what: str) -> None:
    """Raise `EdgesimError`, whose message begins with ``what``, if rounds of a config depend on how many there are.

    They do under a policy that looks at ``rounds_in_frame``, and under laws of joining and of drift.
    """
    key = "joining.law" if config.joining is not None else "drift.law" if config.drift.law != "frames" else None
    policy = config.selection.policy
    if mentions(SELECTORS[policy].__module__, ".rounds_in_frame"):
        key = f"selection.policy = {policy!r}"
    if key is not None:
        raise EdgesimError(f"{what}; it cannot be extended, since its rounds depend on how many there are ({key})")


def extend(folder: Path, then: Mapping[str, Any], now: Mapping[str, Any]) -> int:
    """Prepare a run to resume with a later end; returns the round after which it resumes, 0 if it restarts."""
    for saved in checkpoints.whole(folder, lambda _: None):
        # In a frame's last round, and after it, all work ends.
        if not saved.about.place[2] and first_difference(saved.about.config, then) is None:
            hand_over(saved, folder, folder, config=now)
            return saved.about.round
    return 0


def hand_over(saved: Checkpoint, source: Path, folder: Path, **changes: Any) -> None:
    """Write a checkpoint and the rows before it into another folder or the same one; ``changes`` are of its About.

    Raises `EdgesimError` if rows are missing, and OSError.
    """
    sizes, digests = copy_rows(source, folder, saved.about.rows)
    about = replace(saved.about, streams=sizes, on_disk=sizes, digests=digests, **changes)
    checkpoints.remove(folder, *checkpoints.KINDS, after=about.round)
    streams = [folder / f"{name}.arrow" for name in sizes]
    checkpoints.write(folder, about, saved.record, beside=streams)
