"""A past that another future follows: a longer run, or a fork."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

from edgesim.base.errors import EdgesimError
from edgesim.base.sources import mentions
from edgesim.config import RunConfig
from edgesim.folder import checkpoints
from edgesim.folder.checkpoints import Checkpoint
from edgesim.folder.records import ENDS, copy_rows
from edgesim.selection import SELECTORS
from edgesim.simulation.resumption import first_difference


def is_longer(then: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether a config is that of the same run with more rounds (in its last frame), or a later ``stop_at_s``."""
    if first_difference(without_ends(then), without_ends(now)) is not None or then == now:
        return False
    old, new = then.get("rounds", inf), now.get("rounds", inf)
    if isinstance(old, list) and isinstance(new, list):
        if old[:-1] != new[:-1] or len(old) != len(new):
            return False
        old, new = old[-1], new[-1]
    elif isinstance(old, list) or isinstance(new, list):
        return False
    return bool(old <= new and then.get("stop_at_s", inf) <= now.get("stop_at_s", inf))


def without_ends(config: Mapping[str, Any]) -> dict[str, Any]:
    """A config but for when the run ends."""
    return {key: value for key, value in config.items() if key not in ENDS}


def refuse_other_end(config: RunConfig, what: str) -> None:
    """Raises `EdgesimError` if rounds of a complete config depend on how many follow; ``what`` would not be the same.

    A policy does that looks at ``rounds_in_frame``; laws of joining and of drift know the rounds of the run.
    """
    key = "joining.law" if config.joining is not None else "drift.law" if config.drift.law != "frames" else None
    policy = config.selection.policy
    if mentions(SELECTORS[policy].__module__, ".rounds_in_frame"):
        key = f"selection.policy = {policy!r}"
    if key is not None:
        raise EdgesimError(f"{what}; it cannot go on, since its rounds depend on how many there are ({key})")


def go_on_longer(folder: Path, then: Mapping[str, Any], config: RunConfig, now: Mapping[str, Any]) -> int:
    """Let the run of a folder go on with a later end; the round behind which it does, 0 where it begins again.

    Raises `EdgesimError` where it would not have the same past.
    """
    refuse_other_end(config, f"{folder}: holds a shorter run; choose another folder, or fresh to begin again")
    for path in checkpoints.files(folder, *checkpoints.KINDS):
        found = checkpoints.read(path, lambda _: None)
        # In a frame's last round, and behind it, all work ends.
        if found is None or found.about.format != checkpoints.FORMAT or found.about.place[2]:
            continue
        if first_difference(found.about.config, then) is None:
            hand_over(found, folder, folder, config=now)
            return found.about.round
    return 0


def hand_over(found: Checkpoint, source: Path, folder: Path, **changes: Any) -> None:
    """Write a checkpoint of one folder, and the rows before it, into another one, or into the same; ``changes`` are of
    what it hangs on.

    Raises `EdgesimError` where rows are lacking, and OSError.
    """
    sizes, digests = copy_rows(source, folder, found.about.rows)
    about = replace(found.about, streams=sizes, on_disk=sizes, digests=digests, **changes)
    checkpoints.remove(folder, *checkpoints.KINDS, after=about.round)
    streams = [folder / f"{name}.arrow" for name in sizes]
    checkpoints.write(folder, about, found.record, beside=streams)


def first_whole(folder: Path, round: int, tell: Callable[[str], None]) -> Checkpoint | None:
    """The newest whole checkpoint of a run at a round or before; None if there is none."""
    for path in checkpoints.files(folder, *checkpoints.KINDS):
        if checkpoints.round_of(path) <= round:
            found = checkpoints.read(path, tell)
            if found is not None and found.about.format == checkpoints.FORMAT:
                return found
    return None
