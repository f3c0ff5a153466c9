"""Saves checkpoints of a run, and checks whether a run may resume from one."""

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from edgesim.base.errors import EdgesimError
from edgesim.base.processes import AGAIN, Stopped, StopRequest
from edgesim.base.registry import blamed, first_line
from edgesim.base.saved import pack, unpack
from edgesim.engine.run_state import RunState, snapshot
from edgesim.engine.server import Server
from edgesim.folder import checkpoints
from edgesim.folder.records import ENDS, MOST_REST_BYTES, RunWriter, read_run

_SHARE = 0.02
"""Share of a run's wall time that checkpoints take at most, where they are written now and then."""

_MUCH_BYTES = 100 * 2**20
"""Size in bytes of a checkpoint from which on the user gets a note."""

_MACHINE = ("platform", "cpu", "torch", "device_kind", "back_end", "actor_kind")
"""Facts of ``run.json`` by which the last bits of results may differ, beside the versions of packages."""


@dataclass(frozen=True)
class Resumption:
    """A checkpoint from which a run resumes, and the state in it."""

    checkpoint: checkpoints.Checkpoint
    """The checkpoint without its record."""
    state: RunState
    facts: dict[str, Any]
    """Facts on the resumption for ``run.json``."""


def about(config: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Config, inputs and machine of a run, on which its checkpoints depend, as fields of `checkpoints.About`."""
    machine = {name: str(facts[name]) for name in _MACHINE if name in facts}
    versions = {name: str(version) for name, version in facts["versions"].items()}
    # As it comes back: JSON has no tuples.
    return {"config": json.loads(json.dumps(config)), "inputs": facts["inputs"], "machine": versions | machine}


def find(
    folder: Path,
    wanted: Mapping[str, Any],
    modules: Collection[str],
    on_note: Callable[[str, str], None],
    strict: bool,
    other_machine: bool,
    place_of: Callable[[int], Sequence[Any]],
) -> Resumption | None:
    """Find the newest checkpoint from which an unfinished run may resume; None if it has to restart.

    Records may be of edgesim and of the user's own ``modules``. ``on_note`` is called with the reason if an older one
    or none is taken; with ``strict`` a whole one of another config, code or machine is an `EdgesimError`. With
    ``other_machine`` it may be of another machine. ``place_of`` gives `checkpoints.About.place` of a round.
    """

    def warn(what: str) -> None:
        # A study shows a subject once.
        on_note(f"checkpoint of {folder}", f"{folder}: {what}")

    before = read_run(folder) if (folder / "run.json").is_file() else {}
    saved = checkpoints.newest(folder, lambda damage: warn(f"{damage}; the one before is taken, or else the start"))
    if saved is None:
        refuse_without_past(folder, before)
        return None
    then, state = saved.about, None
    other = {name: old for name, old in then.machine.items() if wanted["machine"].get(name) != old}
    difference = _difference(then, wanted, {} if other_machine else other)
    if difference is None and list(then.place) != list(place_of(then.round)):
        difference = "is of a run whose frames have other rounds"
    if difference is None:
        try:
            state = unpacked(saved, modules)
        except EdgesimError as error:
            difference = f"cannot be read ({str(error).removeprefix(f'{saved.path}: ')})"
    if state is not None:
        entry = {"went_on_from": then.round} | ({"began_on": other} if other else {})
        on_note("resume", f"{folder}: resumes after round {then.round}")
        facts = {"resumed": [*before.get("resumed", []), entry]}
        without = replace(saved, record=checkpoints.Packed(b"", {}))
        return Resumption(without, state, facts | ({"fork": before["fork"]} if "fork" in before else {}))
    if strict:
        raise EdgesimError(f"{saved.path}: {difference}; edgesim run --fresh restarts the run")
    refuse_without_past(folder, before)
    warn(f"the run restarts, since its checkpoint {difference}")
    return None


def unpacked(saved: checkpoints.Checkpoint, modules: Collection[str]) -> RunState:
    """Unpack the record of a checkpoint; records may be of edgesim and of the user's own ``modules``.

    Raises `EdgesimError` that names the file.
    """
    try:
        return unpack(RunState, json.loads(saved.record.json), dict(saved.record.arrays), modules)
    except (EdgesimError, ValueError, RecursionError) as error:
        raise EdgesimError(f"{saved.path}: {error}") from None


@contextmanager
def names_checkpoint(path: Path | None) -> Iterator[None]:
    """Turn errors in the program within this context into an `EdgesimError` that names the checkpoint of a resumed run.

    A record may be well formed and yet be none that a run could have: what of it does not fit is known only where it is
    used. Errors of users' plug-ins stay as they are.
    """
    try:
        yield
    except Exception as error:
        if path is None or isinstance(error, (EdgesimError, BrokenPipeError)) or blamed(error):
            raise
        what = f"{type(error).__name__}: {first_line(error)}"
        raise EdgesimError(
            f"{path}: the run cannot resume from it ({what}); edgesim run --fresh restarts it"
        ) from error


def refuse_without_past(folder: Path, run: Mapping[str, Any]) -> None:
    """Raise `EdgesimError` for a fork that would restart, and so lose the past of its parent."""
    if "fork" in run:
        raise EdgesimError(f"{folder}: is a fork of {run['fork']['parent']} that has lost its past; fork it again")


def _difference(then: checkpoints.About, now: Mapping[str, Any], machine: Mapping[str, str]) -> str | None:
    """Reason why a run may not resume from a checkpoint; None if it may."""
    if then.format != checkpoints.FORMAT:
        return f"has format {then.format} (edgesim reads {checkpoints.FORMAT})"
    if (key := other_setting(then.config, now["config"])) is not None:
        return f"is of another config ({key} differs)"
    if (key := first_difference(then.inputs, now["inputs"])) is not None:
        return f"is of other files, code or version of edgesim ({key} differs)"
    if machine:
        name, old = next(iter(machine.items()))
        new = now["machine"].get(name)
        return f"is of another machine ({name} was {old}, is {new}; edgesim resume --allow-other-machine resumes it)"
    return None


def other_setting(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> str | None:
    """The first key in which two configs differ, but for what changes no result; None if there is none.

    A key that ends the run is named only where no other key differs.
    """
    first, second = ({key: value for key, value in of.items() if key != "checkpoint_at"} for of in (mine, theirs))
    return first_difference(without_ends(first), without_ends(second)) or first_difference(first, second)


def without_ends(config: Mapping[str, Any]) -> dict[str, Any]:
    """Config without the keys that end the run (`ENDS`)."""
    return {key: value for key, value in config.items() if key not in ENDS}


def first_difference(first: Mapping[str, Any], second: Mapping[str, Any]) -> str | None:
    """The first key, as ``section.key``, in which two nested mappings differ; None if they are equal."""
    for key in sorted({*first, *second}):
        mine, theirs = first.get(key), second.get(key)
        if isinstance(mine, dict) and isinstance(theirs, dict):
            inner = first_difference(mine, theirs)
            if inner is not None:
                return f"{key}.{inner}"
        elif mine != theirs:
            return key
    return None


def stopped(folder: Path, status: int = AGAIN) -> Stopped:
    """Exception that ends a run that was asked to end, with the exit status of its process."""
    how = f"edgesim resume {folder} continues"
    if not (saved := checkpoints.saved_round(folder)):
        return Stopped(f"stopped before a checkpoint was written; {how} from the start", status)
    return Stopped(f"stopped; {how} after round {saved}", status)


@dataclass
class Saver:
    """Saves a run at the ends of rounds, where that is due, and ends it where it was asked to."""

    server: Server
    writer: RunWriter
    folder: Path
    """The run's folder as the user names it."""
    about: Mapping[str, Any]
    every_s: float
    """Least wall time between two checkpoints; 0 for one at the end of each round."""
    asked: StopRequest
    started_s: float
    """Start of the run, by the performance counter."""
    on_note: Callable[[str, str], None]
    """Called for large checkpoints, and for a run that cannot be saved."""
    keep_at: Collection[int]
    """Rounds whose checkpoints stay."""
    until: int | None
    """Round behind which the run ends as if it was asked to."""
    _can_save: bool = True

    def __post_init__(self) -> None:
        self._due_s = time.perf_counter() + self.every_s
        record, learner = self._packed(0), self.server.parts.learner
        beside = MOST_REST_BYTES + len(json.dumps(self.about))
        size = learner.most_remembered_bytes + beside + (0 if record is None else record.size)
        self.writer.note(checkpoint_bytes_at_most=size)
        if size > _MUCH_BYTES:
            self.on_note(
                "checkpoints", f"each of three checkpoint files takes up to {size / 2**20:,.0f} MiB beside the tables"
            )

    def if_due(self) -> None:
        """Save the run at the end of its last round if that is due and can be, and end it if it was asked to."""
        number = self.server.number
        if number is None or not self.server.parts.clock.is_between_events:
            return
        begun_s = time.perf_counter()
        ends = self.asked.signal is not None or number.round == self.until
        is_kept = number.round in self.keep_at
        # A run with more rounds resumes from here. A short one is repeated as fast.
        is_end = number.round_in_frame == number.rounds_in_frame - 1 and begun_s - self.started_s >= self.every_s
        if not (ends or is_kept or is_end) and (begun_s < self._due_s or not self._can_save):
            return
        record = self._packed(number.round) if self._can_save else None
        if record is not None:
            about = {**self.about, "round": number.round, "place": number.place}
            about["wall_s"] = begun_s - self.started_s
            self.writer.save(about, record, is_kept)
        if ends:
            raise stopped(self.folder, self.asked.status)
        now_s = time.perf_counter()
        pause_s = max(self.every_s, (now_s - begun_s) / _SHARE) if self.every_s else 0.0
        self._due_s = now_s + pause_s

    def _packed(self, round: int) -> checkpoints.Packed | None:
        """Packed state of the run; None, now and from then on, if something cannot be saved."""
        try:
            packed, arrays = pack(snapshot(self.server, round))
        except EdgesimError as error:
            self._can_save = False
            self.on_note("checkpoints", f"the run has no checkpoints: {error}")
            return None
        return checkpoints.Packed(json.dumps(packed, allow_nan=False).encode(), arrays)
