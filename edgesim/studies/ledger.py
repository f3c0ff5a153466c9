"""Progress of a study's runs in rounds and simulated seconds, read from their folders."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from edgesim.analysis.runs import has_runs, read_study
from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.folder.records import read_config, read_run, read_table
from edgesim.folder.state import FolderState, state_of


def fingerprint(folder: Path) -> tuple[int, ...]:
    """Fingerprint of a run folder's ``run.json``, another one whenever that is written; empty when there is none."""
    try:
        stat = os.stat(folder / "run.json")
    except OSError:
        return ()
    return stat.st_ino, stat.st_mtime_ns


def read_ledger(folder: Path, *, rounds: bool = False) -> dict[str, FolderState]:
    """Read the state of each run of a study, by the name of its folder, in the plan's order.

    With ``rounds`` the states have the numbers of rounds too, which takes longer; no table of a finished run is read.

    Raises `EdgesimError` where the plan is missing or malformed.
    """
    state = partial(_with_rounds, of_finished=False) if rounds else state_of
    return {entry.run.folder.name: state(entry.run.folder, entry.config) for entry in read_study(folder).planned}


def read_any_ledger(folder: Path) -> dict[str, FolderState]:
    """Read the states, with rounds, of the runs of a study's folder, or of the one run of a run folder.

    Raises `EdgesimError` for a folder that is neither, and for a damaged plan.
    """
    if has_runs(folder):
        planned = read_study(folder).planned
        return {entry.run.folder.name: _with_rounds(entry.run.folder, entry.config) for entry in planned}
    read_run(folder)
    return {folder.resolve().name: _with_rounds(folder, None)}


def _with_rounds(folder: Path, planned: Mapping[str, Any] | None, of_finished: bool = True) -> FolderState:
    state = state_of(folder, planned)
    try:
        config = parse(read_config(folder) if planned is None else planned, folder.name)
        last = _last_round(folder) if of_finished or state.status != "finished" else None
    except EdgesimError:
        # A folder of a planned run may not exist yet, and the state says what is wrong with a damaged one.
        return state
    by_seconds = config.rounds is None
    state = replace(
        state, of=None if by_seconds else config.expected_rounds or None, of_s=config.stop_at_s if by_seconds else None
    )
    if last is None:
        return state
    number, t_s, accuracy = last
    return replace(state, done=number, accuracy=accuracy, t_s=t_s)


def _last_round(folder: Path) -> tuple[int, float, float | None] | None:
    """Number, end and last tested accuracy of the last round on disk; None before the first."""
    for path in (folder / "rounds.parquet", folder / "rounds.arrow"):
        # Asked for at once, since a run that ends removes the one when it has the other.
        with suppress(FileNotFoundError, NotADirectoryError):
            facts = path.stat()
            return _last_row(path, facts.st_mtime_ns, facts.st_size)
    return None


@lru_cache(maxsize=2**14)
def _last_row(path: Path, _mtime_ns: int, _size: int) -> tuple[int, float, float | None] | None:
    """Number, end and last tested accuracy of a table's last round; cached, for a caller that looks repeatedly."""
    rounds = read_table(path.parent, "rounds")
    if rounds.empty:
        return None
    tested = rounds["test_accuracy"].dropna()
    accuracy = float(tested.iloc[-1]) if len(tested) else None
    return int(rounds["round"].iloc[-1]), float(rounds["t_end_s"].iloc[-1]), accuracy
