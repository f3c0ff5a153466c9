"""The task of a tuning (config, knobs, objectives), and the cells of it that a study has run already."""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edgesim.analysis.measures import TO_TARGET
from edgesim.analysis.runs import RunFolder
from edgesim.api.configs import Config, Overrides, changes_of, values_of, with_set
from edgesim.base.errors import EdgesimError
from edgesim.config import RunConfig
from edgesim.config_file import parse
from edgesim.simulation import composition as simulation
from edgesim.simulation import named_code
from edgesim.simulation.complete import as_toml, complete
from edgesim.simulation.inputs import input_digests
from edgesim.simulation.resumption import other_setting
from edgesim.studies.plan import Knob as Value
from edgesim.studies.plan import PlannedRun, grid, names_of_knobs
from edgesim.studies.plan_file import read_plan
from edgesim.tuning.knobs import Knob, Spec, check_knobs
from edgesim.tuning.objectives import Seen, TuningObjective, find_objectives, seen


@dataclass(frozen=True)
class TuningTask:
    """The config, knobs and objectives of a tuning."""

    base: Mapping[str, Any]
    """The config, nested as in a file."""
    knobs: Sequence[Knob]
    objectives: Sequence[TuningObjective]
    target: float | None
    seeds: int
    """Runs of a trial."""
    seed: int
    """Seed of the optimiser."""
    equal_time: str = ""
    """Line on how runs have equal time for an objective in seconds; empty for other objectives."""

    @property
    def names(self) -> dict[str, str]:
        """Names of the knobs in tables, by key."""
        keys = [knob.key for knob in self.knobs]
        return dict(zip(keys, names_of_knobs(keys), strict=True))

    @property
    def reference(self) -> str:
        """The policy that others are compared with: the knob's first one, or random if it is no knob."""
        choices = next((knob.choices for knob in self.knobs if knob.key == "selection.policy"), ("random",))
        return str(choices[0])

    def runs(self, values: Mapping[str, Value], seeds: Sequence[int] = ()) -> list[PlannedRun]:
        """Plan a cell's runs, by default over the study's seeds; raises `EdgesimError` if its config is refused."""
        return grid(self.base, {key: [value] for key, value in values.items()}, seeds or range(self.seeds))

    def a_cell(self) -> list[PlannedRun]:
        """Plan a valid cell's runs at the knobs' ends; raises `EdgesimError` if the config refuses all of them."""
        return self.runs(self._values_of_a_cell())

    def _values_of_a_cell(self) -> dict[str, Value]:
        refusal = None
        for ends in itertools.product(*(knob.ends for knob in self.knobs)):
            values = {knob.key: value for knob, value in zip(self.knobs, ends, strict=True)}
            try:
                self.runs(values)
                return values
            except EdgesimError as error:
                refusal = refusal or error
        assert refusal is not None
        raise refusal

    def inputs(self) -> dict[str, list[str]]:
        """Hashes of the files and the code that cells name, by ``section.key`` as `input_digests` has them."""
        digests_of: dict[str, set[str]] = {}
        some = self._values_of_a_cell()
        for knob in self.knobs:
            for value in knob.choices or knob.ends:
                try:
                    (run,) = self.runs(some | {knob.key: value}, [0])
                except EdgesimError:
                    # A failed trial, which reads no file.
                    continue
                for key, digest in input_digests(run.config).items():
                    digests_of.setdefault(key, set()).add(digest)
        return {key: sorted(digests) for key, digests in digests_of.items()}

    def facts(self) -> dict[str, Any]:
        """The task as plain values, by which the journal recognises it."""
        return {
            "config": self.base,
            "inputs": self.inputs(),
            "knobs": {knob.key: list(knob.choices) or [knob.low, knob.high] for knob in self.knobs},
            "objectives": [objective.name for objective in self.objectives],
            "target": self.target,
            "seeds": self.seeds,
            "seed": self.seed,
        }


def base_of(config: Config, knobs: Mapping[str, Spec], set: Overrides | None) -> tuple[dict[str, Any], str]:
    """Read a config and set keys of it; returns it nested, and its name in errors. Raises `EdgesimError`."""
    values, where = values_of(config)
    changed = [text.partition("=")[0].strip() for text in changes_of(set or ())]
    if varied := [key for key in changed if key in knobs]:
        raise EdgesimError(f"set {varied[0]}: the tuning itself varies it", varied[0])
    base: dict[str, Any] = json.loads(json.dumps(with_set(values, set or ())))
    return base, where


def named_of(base: Mapping[str, Any], knobs: Mapping[str, Spec], where: str) -> list[RunConfig]:
    """Configs of trials that together name all code outside edgesim, none of which has been imported."""
    by_code: dict[str, RunConfig] = {}
    firsts = {key: values[0] for key, values in knobs.items() if len(values)}
    for key, values in knobs.items():
        for value in values:
            try:
                settings = parse(with_set(base, firsts | {key: value}), where)
            except EdgesimError:
                # Refused when the knobs are checked; a config that cannot be read imports nothing.
                continue
            by_code[str(named_code.foreign(settings))] = settings
    return list(by_code.values())


def make_task(
    base: Mapping[str, Any],
    knobs: Mapping[str, Spec],
    objectives: Sequence[str],
    target: float | None,
    seeds: int,
    seed: int,
) -> TuningTask:
    """A checked task; raises `EdgesimError` for what is wrong with any of it."""
    if seeds < 1:
        raise EdgesimError(f"seeds {seeds}: expected 1 or more")
    if target is not None and not 0 < target <= 1:
        raise EdgesimError(f"target {target}: expected an accuracy above 0 and at most 1")
    sought = find_objectives(objectives, target)
    checked = check_knobs(base, knobs)
    base, equal_time = _with_equal_time(base, checked, sought, target)
    task = TuningTask(base, checked, sought, target, seeds, seed, equal_time)
    trains = task.a_cell()[0].config.learning.training != "none"
    for objective in sought:
        if not trains and (objective.needs_target or objective.measure in ("final_accuracy", "best_accuracy")):
            what = 'the config trains nothing (learning.training = "none")'
            raise EdgesimError(f"objective {objective.name}: {what}, so that no run has it")
    return task


def _with_equal_time(
    base: Mapping[str, Any], knobs: Sequence[Knob], objectives: Sequence[TuningObjective], target: float | None
) -> tuple[Mapping[str, Any], str]:
    """Replace rounds by ``stop_at_s`` if seconds are an objective; returns the config, and a line about the changes.

    The same number of rounds lasts differently long in different cells: by their deadlines and, since a round closes
    with its last arrival, by nearly every other key. A cell with short rounds would end before it reaches a target that
    it would reach first; the line warns of this if the time is a knob or set by frames. Runs end at the target if no
    objective needs more.
    """
    measures = {objective.measure for objective in objectives}
    if not measures & {"seconds_to_target", "seconds_to_stay"}:
        return base, ""
    settings = complete(parse(base, "the config"))
    tuned = {knob.key: knob for knob in knobs}
    changed, changes = dict(base), []
    if varied := " and ".join(key for key in ("rounds", "stop_at_s") if key in tuned):
        changes.append(f"{varied} is tuned: cells with less of it have less time to reach the target")
    elif isinstance(settings.rounds, list) or (
        settings.data.partition == "fedteddi" and settings.drift.law == "frames" and settings.rounds is not None
    ):
        changes.append("the data have frames of fixed rounds: cells with short rounds have less time")
    elif settings.rounds is not None:
        deadlines = tuned["round.tmax_s"].ends if "round.tmax_s" in tuned else (settings.round.tmax_s,)
        longest_s = max(float(value) for value in deadlines)
        has_stop = settings.stop_at_s is not None
        changed.pop("rounds", None)
        changed["stop_at_s"] = settings.stop_at_s if has_stop else settings.rounds * longest_s
        why = "as given" if has_stop else f"{settings.rounds} rounds x {longest_s:g} s, the longest deadline"
        changes.append(f"all runs have the same time, stop_at_s = {changed['stop_at_s']:g} ({why}), in place of rounds")
    if measures <= {*TO_TARGET} and settings.learning.training != "none":
        changed["stop_at_accuracy"] = target
        changes.append("runs end when they reach the target")
    return changed, f"an objective in s: {'; '.join(changes)}" if changes else ""


def cells_planned(task: TuningTask, out: Path) -> list[dict[str, Value]]:
    """Cells of the plan in a study's folder; raises `EdgesimError` if the study has other knobs or configs."""
    plan = read_plan(out)
    names = task.names
    cells: dict[str, dict[str, Value]] = {}
    for run in plan.runs:
        if {*run.knobs} != {*names.values()}:
            over = ", ".join(sorted(run.knobs)) or "no knobs"
            raise EdgesimError(f"{out}: holds another study, over {over}; choose another folder")
        values = {key: run.knobs[name] for key, name in names.items()}
        (mine,) = task.runs(values, [run.seed])
        if key := other_setting(as_toml(mine.config), as_toml(run.config)):
            what = f"holds a study of other runs ({key} differs in {run.folder})"
            raise EdgesimError(f"{out}: {what}; choose another folder")
        cells[json.dumps(values)] = values
    return [*cells.values()]


def finished_cells(
    task: TuningTask, out: Path, planned: Sequence[dict[str, Value]]
) -> list[tuple[dict[str, Value], Seen]]:
    """Cells of a plan all of whose runs are finished, with their values of the objectives.

    Raises `EdgesimError` if a run cannot be read.
    """
    cells = []
    for values in planned:
        parameters = [knob.parameter(values[knob.key]) for knob in task.knobs]
        runs = [(run, out / run.folder) for run in task.runs(values)]
        if None not in parameters and all(simulation.why_run(folder, run.config) is None for run, folder in runs):
            read = [RunFolder(folder, run.knobs, run.seed) for run, folder in runs]
            cells.append((values, seen(read, task.objectives, task.target)))
    return cells
