"""Forks: runs that share the past of another run until the end of a round."""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import tomli_w

from edgesim.analysis.runs import flat_settings
from edgesim.base.errors import EdgesimError
from edgesim.base.paths import system_errors
from edgesim.base.processes import Stopped
from edgesim.base.saved import pack, saved_attributes
from edgesim.config import RunConfig
from edgesim.config_file import Change, changed, parse
from edgesim.engine.clock import drift_s
from edgesim.engine.deadlines import Deadlines
from edgesim.engine.evaluations import tests_by_time
from edgesim.folder import checkpoints
from edgesim.folder.checkpoints import Checkpoint, Packed
from edgesim.folder.records import ENDS, SCHEMA_VERSION, read_config, read_run, read_table, write_whole
from edgesim.learning.algorithms import WRAPPERS
from edgesim.simulation import named_code
from edgesim.simulation.complete import as_toml, complete
from edgesim.simulation.inputs import input_digests
from edgesim.simulation.past import hand_over, refuse_other_end
from edgesim.simulation.resumption import names_checkpoint, unpacked

_MAY_CHANGE = ("selection.", "round.", "evaluation.", *ENDS, "checkpoint_at")
_ALLOWED = "selection, round (but for its protocol), options of algorithm, evaluation, rounds, stop_at_s"
_FIXED = ("round.protocol", "algorithm.name", "algorithm.server", "algorithm.compute_cost")

_TIED = {
    "round.admission": ("count",),
    "round.delay_knowledge": ("plan_quantile", "report_by_s"),
    "evaluation.every": ("every_s",),
    "evaluation.every_s": ("every",),
}
"""Keys, and those beside them in their tables that do not go with other values of theirs."""


def prepare(
    run: Path,
    round: int,
    changes: Mapping[str, Change],
    out: Path,
    on_note: Callable[[str, str], None],
    replay: Callable[[RunConfig, Path, int], None],
) -> RunConfig:
    """Write the folder of a fork, which resumes another run after a round; returns its complete config.

    ``changes`` of its config stand by the ``section.key=value`` that errors call them. Where the run has no checkpoint
    of that round, ``replay(config, folder, round)`` repeats its past in a folder, from the nearest checkpoint before
    it or from the start, and ``on_note`` is called. A folder that is this fork already is left as it is.
    Raises `EdgesimError`.
    """
    old, new = _configs(run, changes)
    changed = _changed(old, new)
    # From the root, since the fork may be compared or made again in another working folder.
    fork = {"parent": str(run.resolve()), "round": round, "changed": changed}
    if (out / "run.json").is_file() and read_run(out).get("fork") == fork:
        return new
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise EdgesimError(f"{out}: is there already, and not this fork; choose another folder")
    if any(key in ENDS for key in changed):
        refuse_other_end(old, f"{run}: set {next(key for key in changed if key in ENDS)}")
    _check_past(run, old, round)
    part = out.with_name(out.name + ".past")
    with system_errors(f"{out}: cannot be written", "; choose another folder"):
        past = _past(run, old, round, part, on_note, replay)
        source = run if not part.exists() else part
        draft = out.with_name(f"{out.name}.{os.getpid()}.part")
        draft.mkdir(parents=True)
        try:
            with names_checkpoint(past.path):
                record = _record_of_fork(past, old, new)
            about = {"config": json.loads(json.dumps(as_toml(new))), "inputs": input_digests(new)}
            hand_over(replace(past, record=record), source, draft, **about)
            for path in checkpoints.files(draft):
                checkpoints.keep(path, "kept")
            facts = {"schema_version": SCHEMA_VERSION, "status": "interrupted", "reason": "forked", "fork": fork}
            write_whole(draft / "run.json", json.dumps(facts, indent=2) + "\n")
            write_whole(draft / "config.toml", tomli_w.dumps(as_toml(new)))
            if out.exists():
                out.rmdir()
            draft.rename(out)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        shutil.rmtree(part, ignore_errors=True)
    return new


def _configs(run: Path, changes: Mapping[str, Change]) -> tuple[RunConfig, RunConfig]:
    """The complete configs of a run and of its fork."""
    old = complete(parse(read_config(run), str(run / "config.toml")))
    nested: dict[str, Any] = json.loads(json.dumps(as_toml(old)))
    keys = [(text.partition("=")[0] if pair is None else pair[0]).strip() for text, pair in changes.items()]
    for key in keys:
        for other in _TIED.get(key, ()):
            if other not in keys:
                nested.get(key.partition(".")[0], {}).pop(other, None)
    if "selection.policy" in keys:
        # Options are a policy's own.
        nested["selection"] = {}
    nested = changed(nested, changes)
    # Before the config is checked: another algorithm, say, has other options than those that stand there.
    then, now = flat_settings(as_toml(old)), flat_settings(nested)
    for key in keys:
        if then.get(key) != now.get(key):
            _check_may_change(key)
    where = f"set {' '.join(changes)}" if changes else str(run)
    return old, complete(parse(nested, where))


def _changed(old: RunConfig, new: RunConfig) -> dict[str, Any]:
    """Keys in which a fork differs from its run, with its values; raises `EdgesimError` for one that must not."""
    then, now = (flat_settings(as_toml(config)) for config in (old, new))
    changed = {key: now.get(key) for key in sorted({*then, *now}) if then.get(key) != now.get(key)}
    for key in changed:
        _check_may_change(key)
    if not changed:
        raise EdgesimError("set: nothing differs from the run; give a setting that the fork is to change")
    return changed


def _check_may_change(key: str) -> None:
    """Raise `EdgesimError` for a key on which the past of a run depends."""
    section, _, option = key.partition(".")
    is_option = section == "algorithm" and option.partition(".")[0] not in WRAPPERS
    if key in _FIXED or not (key.startswith(_MAY_CHANGE) or is_option):
        raise EdgesimError(f"set {key}: a fork has the past of its run, so only {_ALLOWED} may change", key)


def _check_past(run: Path, config: RunConfig, round: int) -> None:
    """Raise `EdgesimError` if a run has no such round followed by others, or if its past cannot be repeated."""
    facts = read_run(run)
    rounds = read_table(run, "rounds")["round"]
    last = int(rounds.max()) if len(rounds) else 0
    if round < 1 or round >= last + (facts["status"] != "finished"):
        raise EdgesimError(f"at_round {round}: expected a round from 1 on, before the last one of {run} ({last})")
    then, now = facts.get("inputs", {}), input_digests(config)
    if key := next((key for key in now if then.get(key) != now[key]), None):
        raise EdgesimError(f"{run}: {key} has changed since it ran, so its past cannot be repeated; run it again first")


def _past(
    run: Path,
    config: RunConfig,
    round: int,
    part: Path,
    on_note: Callable[[str, str], None],
    replay: Callable[[RunConfig, Path, int], None],
) -> Checkpoint:
    """Read the checkpoint of a run at a round; if there is none, repeat its past in another folder."""

    def warn(what: str) -> None:
        on_note("checkpoint", f"{run}: {what}")

    saved = next(checkpoints.whole(run, warn, round), None)
    if saved is not None and saved.about.round == round and not part.exists():
        return saved
    if not part.exists():
        if saved is None and "fork" in read_run(run):
            raise EdgesimError(f"{run}: is a fork itself and has no checkpoint of round {round} or before")
        where = "from the start" if saved is None else f"after round {saved.about.round}"
        on_note("past", f"{run}: has no checkpoint of round {round}; its past is repeated {where}")
        if saved is not None:
            draft = part.with_name(part.name + ".part")
            shutil.rmtree(draft, ignore_errors=True)
            draft.mkdir(parents=True)
            hand_over(saved, run, draft)
            shutil.copyfile(run / "config.toml", draft / "config.toml")
            write_whole(draft / "run.json", json.dumps(read_run(run) | {"status": "interrupted"}))
            draft.rename(part)
    try:
        replay(config, part, round)
    except Stopped as stopped:
        again = next(checkpoints.whole(part, warn, round), None)
        if again is None or again.about.round != round:
            raise stopped from None
        _check_same(run, part, round)
        return again
    raise EdgesimError(f"{run}: its repeated past ended before round {round}")


def _check_same(run: Path, part: Path, round: int) -> None:
    """Raise `EdgesimError` if the repeated rounds differ from those of the run."""
    tables = (read_table(folder, "rounds") for folder in (run, part))
    then, now = (table[table["round"] <= round].reset_index(drop=True) for table in tables)
    if not then.equals(now):
        raise EdgesimError(f"{run}: its repeated past differs (on another machine?); see {part}")


def _record_of_fork(saved: Checkpoint, old: RunConfig, new: RunConfig) -> Packed:
    """Record of a run's checkpoint, changed for a fork with another config."""
    modules = named_code.own_files(old)
    state = unpacked(saved, modules)
    if old.selection.policy != new.selection.policy:
        # The other policy begins to remember now.
        state = replace(state, selector=None)
    if old.round.tmax_s != new.round.tmax_s and "deadlines" in state.protocol:
        deadlines = saved_attributes(Deadlines(new.round.tmax_s, state.t_s))
        state = replace(state, protocol={**state.protocol, "deadlines": deadlines})
    every_s = new.evaluation.every_s
    if every_s is not None and every_s != old.evaluation.every_s:
        if old.evaluation.every_s is None and tests_by_time(new) and state.evaluations["_untested"]:
            what = f"set evaluation.every_s: the first instants fall to the model of round {state.round}"
            raise EdgesimError(f"{what}, whose row is written without a test; fork behind a round that was tested")
        passed = int((state.t_s + drift_s(new.round.tmax_s)) / every_s)
        state = replace(state, evaluations={**state.evaluations, "_passed": passed})
    packed, arrays = pack(state)
    return Packed(json.dumps(packed, allow_nan=False).encode(), arrays)
