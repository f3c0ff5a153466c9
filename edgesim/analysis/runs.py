"""Run folders and the plan of a study (``plan.json``), as the analysis reads them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from edgesim.analysis.metrics import new_class_devices, scheduled_by_class, tests
from edgesim.analysis.waste import work_by_kind
from edgesim.base.errors import EdgesimError
from edgesim.base.paths import check_path
from edgesim.base.text_file import read_json
from edgesim.folder.digests import KEY
from edgesim.folder.records import OUTSIDE, is_episode, read_config, read_rows, read_run, read_table, setting
from edgesim.folder.state import state_of

Knob = str | int | float | bool


def value_text(value: Knob | None) -> str:
    """A knob's value as text, empty for None."""
    if isinstance(value, float):
        return f"{value:g}"
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


MORE_ROUNDS = (
    "give it more time (stop_at_s), or a world where enough devices are available (devices, availability, "
    "round.min_candidates)"
)
"""Remedy for a run that ends before its first round does."""

KNOB_NAMES = {
    "algorithm.name": "algorithm",
    "availability.file": "trace",
    "availability.model": "availability",
    "devices.count": "devices",
    "download.codec": "codec_down",
    "drift.law": "drift",
    "joining.law": "joining",
    "devices.links.file": "links",
    "round.count": "participants",
    "topology.file": "topology",
    "upload.codec": "codec",
}
"""Names of knobs for keys whose last part is not clear by itself."""

_CHOICES = {
    "algorithm.": ("algorithm.name", "algorithm.server"),
    "availability.": ("availability.model",),
    "data.partition_options.": ("data.partition",),
    "drift.": ("drift.law",),
    "joining.": ("joining.law",),
    "learning.model_options.": ("learning.model",),
    "round.protocol_options.": ("round.protocol",),
    "selection.": ("selection.policy",),
    "download.": ("download.codec",),
    "upload.": ("upload.codec",),
}
"""Beginnings of keys that are options, and the keys that say whose."""
NEUTRAL = ("checkpoint_at", "data.download", "learning.workers", "learning.cpus_per_actor")
"""Settings that change no result, and distinguish no runs."""
_NO_OPTIONS = ("algorithm.compute_cost", "availability.interruption", "upload.lost", "upload.beside")


@dataclass(frozen=True)
class Fork:
    """A past in common with another run."""

    parent: str
    """The other run's folder where it was then."""
    round: int
    """The last round of the common past."""


@dataclass(frozen=True, eq=False)
class RunFolder:
    """One run folder with the knobs that tell it apart from other runs; tables are read when first asked for.

    Every property raises `EdgesimError` when the folder lacks what it reads.
    """

    folder: Path
    knobs: Mapping[str, Knob]
    seed: int

    @cached_property
    def config(self) -> dict[str, Any]:
        """The resolved configuration."""
        return read_config(self.folder)

    @cached_property
    def rounds(self) -> pd.DataFrame:
        """Table ``rounds``, at least one row."""
        rounds = read_table(self.folder, "rounds")
        if rounds.empty:
            reason = read_run(self.folder).get("reason")
            why = f" ({reason})" if reason else ""
            raise EdgesimError(f"{self.folder}: the run has no finished round{why}; {MORE_ROUNDS}")
        return rounds

    @property
    def activities(self) -> pd.DataFrame:
        """Table ``activities``; by far the largest, so it is not kept."""
        return read_table(self.folder, "activities")

    @property
    def updates(self) -> pd.DataFrame:
        """Table ``updates``."""
        return read_table(self.folder, "updates")

    @cached_property
    def work_by_kind(self) -> pd.DataFrame:
        """Seconds, bits and joules by round and kind, as from `edgesim.analysis.waste.work_by_kind`."""
        return work_by_kind(self.activities, self.updates)

    @property
    def devices(self) -> pd.DataFrame:
        """Table ``devices``, at least one row."""
        return read_rows(self.folder, "devices")

    @property
    def stations(self) -> pd.DataFrame:
        """Table ``stations``, at least one row."""
        return read_rows(self.folder, "stations")

    @cached_property
    def metrics(self) -> pd.DataFrame:
        """Table ``metrics``."""
        return read_table(self.folder, "metrics")

    @cached_property
    def handovers(self) -> pd.DataFrame:
        """Table ``handovers``, by device and then time."""
        return read_table(self.folder, "handovers").sort_values(["device", "t_s"], kind="stable", ignore_index=True)

    @property
    def timing(self) -> pd.DataFrame:
        """Table ``timing``."""
        return read_table(self.folder, "timing")

    @cached_property
    def tests(self) -> pd.DataFrame:
        """Rounds, instants and accuracies of the models tested, as `edgesim.analysis.metrics.tests`."""
        return tests(self.rounds, self.metrics)

    @property
    def scheduled_by_class(self) -> pd.DataFrame:
        """Scheduled devices of each round, as `edgesim.analysis.metrics.scheduled_by_class`."""
        return scheduled_by_class(self.rounds, self.activities, self.devices)

    @property
    def has_newcomers(self) -> bool | None:
        """Whether some device gets a class in a frame that it did not hold in the frame before; None without classes.

        None also where the run has one frame of data.
        """
        table = new_class_devices(self.devices)
        return None if table.empty else bool(table["has_new_class"].any())

    @property
    def bandwidth_hz(self) -> float:
        """Sum of the bands of all stations, in Hz."""
        return float(self.stations["bandwidth_hz"].sum())

    @property
    def device_count(self) -> int:
        """Number of devices of the run."""
        return int(self._number("devices.count"))

    @property
    def tmax_s(self) -> float:
        """The deadline of a round, in seconds after its start."""
        return self._number("round.tmax_s")

    @property
    def sharing(self) -> str:
        """Sharing of the band, ``radio.sharing`` of the run's config."""
        return str(setting(self.folder, self.config, "radio.sharing", str))

    @property
    def battery(self) -> tuple[float, float]:
        """Capacity of a battery in J, and the share of it that a device needs to check in."""
        return self._number("devices.battery_j"), self._number("devices.battery_reserve")

    @property
    def fork(self) -> "Fork | None":
        """Run and round that the run was forked from; None if it is no fork."""
        fork = read_run(self.folder).get("fork")
        return Fork(str(fork.get("parent")), int(fork.get("round", 0))) if isinstance(fork, dict) else None

    @property
    def digests(self) -> Mapping[str, str]:
        """Digests of the run's files by name, as `edgesim.folder.digests`; empty where it has none."""
        digests = read_run(self.folder).get(KEY)
        return digests if isinstance(digests, dict) else {}

    @property
    def why_without_roc_auc(self) -> str:
        """Reason why the run has no ROC-AUC though it was asked for; empty otherwise."""
        return str(read_run(self.folder).get("roc_auc_notice", ""))

    @property
    def test_images(self) -> int:
        """Images of the last test; 0 where the run does not record them."""
        images = read_run(self.folder).get("test_images", 0)
        return images if isinstance(images, int) else 0

    @property
    def own_metrics(self) -> list[str]:
        """Names of the metrics that the run's config adds to each test (``evaluation.metrics``)."""
        return own_metrics_of(self.config)

    def why_without_metric(self, name: str) -> str:
        """Why the last model tested has no value of one of `own_metrics`; empty if it has one, and for other names."""
        if name not in self.own_metrics:
            return ""
        notices = read_run(self.folder).get("metric_notices")
        why = notices.get(name, "") if isinstance(notices, dict) else ""
        return str(why) or ("no model was tested" if self.tests.empty else "")

    @property
    def epsilon(self) -> float:
        """Epsilon of the privacy of updates; NaN where the run has none."""
        privacy = read_run(self.folder).get("privacy")
        epsilon = privacy.get("epsilon") if isinstance(privacy, dict) else None
        return float(epsilon) if isinstance(epsilon, int | float) else math.nan

    def _number(self, key: str) -> float:
        return float(setting(self.folder, self.config, key, int, float))


def own_metrics_of(config: Mapping[str, Any]) -> list[str]:
    """Names of the metrics that a complete config adds to each test (``evaluation.metrics``)."""
    evaluation = config.get("evaluation")
    asked = evaluation.get("metrics") if isinstance(evaluation, dict) else None
    return sorted(asked) if isinstance(asked, dict) else []


@dataclass(frozen=True)
class StudyEntry:
    """One entry of a study's plan; only those with status ``finished`` have a folder worth reading."""

    run: RunFolder
    config: Mapping[str, Any]
    """The complete config."""

    @cached_property
    def status(self) -> str:
        """Status of the run (`edgesim.folder.state.FolderState`), read when first asked for.

        A finished run counts as one also while a process holds its folder, which may be just leaving it.
        """
        held = state_of(self.run.folder, self.config, is_mine=True)
        return "finished" if held.status == "finished" else state_of(self.run.folder, self.config).status


@dataclass(frozen=True)
class StudyFolder:
    """A grid of runs: seeds x policies x knobs."""

    folder: Path
    name: str
    target: float | None
    """Accuracy to be reached; None for a study without a target (such as a timing-only one)."""
    reference: str
    """The policy that the others are compared with."""
    planned: tuple[StudyEntry, ...]

    @property
    def finished(self) -> list[RunFolder]:
        """Runs whose results count, in the plan's order."""
        return [entry.run for entry in self.planned if entry.status == "finished"]

    @property
    def knob_names(self) -> list[str]:
        """Names of all knobs, in order of first appearance."""
        return list(dict.fromkeys(name for entry in self.planned for name in entry.run.knobs))

    @property
    def compared_knob(self) -> tuple[str, Knob] | None:
        """The policy with the study's reference, or the first knob whose values are texts with the first of these."""
        values = {name: [run.knobs[name] for run in self.finished if name in run.knobs] for name in self.knob_names}
        if self.reference in values.get("policy", []) and len(set(values["policy"])) > 1:
            return "policy", self.reference
        texts = [name for name, of in values.items() if len(set(of)) > 1 and isinstance(of[0], str)]
        return (texts[0], values[texts[0]][0]) if texts else None


PLAN = "plan.json"
"""Name of a study's plan."""


def is_study(folder: Path) -> bool:
    """Whether a folder is a study's."""
    return (folder / PLAN).is_file()


def run_folders(folder: Path) -> list[Path]:
    """The run folders that lie in a folder, by name."""
    return sorted(path.parent for path in folder.glob("*/run.json"))


def studies_in(folder: Path) -> list[str]:
    """Names of the studies that lie in a folder, which are no part of its own."""
    return sorted(path.parent.name for path in folder.glob(f"*/{PLAN}"))


def has_runs(folder: Path) -> bool:
    """Whether `read_study` can read a folder: a study's, or another one that run folders lie in."""
    return is_study(folder) or bool(run_folders(folder))


def read_study(folder: Path) -> StudyFolder:
    """Read a study as `read_planned` does.

    A folder without a plan, in which run folders lie, is a study of these without a target; their knobs are those of
    `runs_of`. Raises `EdgesimError` as `read_planned`, and for two runs that have the same config and seed.
    """
    if not (folder / PLAN).exists() and (folders := run_folders(folder)):
        return _study_of(folder, folders)
    return read_planned(folder)


def read_planned(folder: Path) -> StudyFolder:
    """Read a study's plan; how far its runs are is read when it is asked for.

    Raises `EdgesimError` that names the field where the plan is missing or malformed.
    """
    path = folder / PLAN
    lacking = f"not a study folder: {PLAN} is missing" if folder.exists() else "no such folder"
    plan = read_json(path, missing=f"{folder}: {lacking}")
    target = plan.get("target")
    if target is not None and not (_is_number(target) and 0 < target <= 1):
        raise EdgesimError(f"{path}: target: expected null or an accuracy in (0, 1] (got {target!r})")
    entries = _field(plan, "runs", list, str(path))
    planned = tuple(_planned_run(folder, entry, f"{path}: runs[{i}]") for i, entry in enumerate(entries))
    seen: set[tuple[object, ...]] = set()
    for i, entry in enumerate(planned):
        identity = (*sorted(entry.run.knobs.items()), entry.run.seed)
        if identity in seen:
            raise EdgesimError(f"{path}: runs[{i}]: these knobs and seed are in the plan already; expected them once")
        seen.add(identity)
    name, reference = (_field(plan, field, str, str(path)) for field in ("name", "reference"))
    return StudyFolder(folder, name, None if target is None else float(target), reference, planned)


def _study_of(folder: Path, folders: Sequence[Path]) -> StudyFolder:
    """The study of the run folders in a folder."""
    runs = runs_of(folders)
    refuse_same(runs)
    policies = [str(run.knobs["policy"]) for run in runs]
    reference = "random" if "random" in policies else policies[0]
    planned = tuple(StudyEntry(run, run.config) for run in runs)
    return StudyFolder(folder, folder.resolve().name, None, reference, planned)


def refuse_same(runs: Sequence[RunFolder]) -> None:
    """Raises `EdgesimError` for two runs with the same config and seed."""
    seen: dict[tuple[object, ...], RunFolder] = {}
    for run in runs:
        same = seen.setdefault((*sorted(run.knobs.items()), run.seed), run)
        if same is not run:
            raise EdgesimError(f"{same.folder} and {run.folder} have the same config and seed; give one of them")


def runs_of(folders: Sequence[Path]) -> list[RunFolder]:
    """Runs given by their folders alone; their knobs are the policy, the deadline and every setting that differs, but
    for `NEUTRAL`.

    Options of a policy, of an algorithm, of a model of availability, of a partition or of a protocol are knobs only
    where they differ between runs that have the same one. The policy of an episode is "outside". A knob is named as
    `KNOB_NAMES` says or by the last part of its key (``delay_knowledge`` for ``round.delay_knowledge``), or by the
    whole key where two names would be equal. Raises `EdgesimError` for a folder that is not a run's.
    """
    configs = [read_config(folder) for folder in folders]
    flat = [_settings_of(folder, config) for folder, config in zip(folders, configs, strict=True)]
    keys = list(dict.fromkeys(key for settings in flat for key in settings))
    differing = [key for key in keys if key not in ("seed", *NEUTRAL) and _differs(key, flat)]
    short = [KNOB_NAMES.get(key, key.rpartition(".")[2]) for key in differing]
    names = {key: name if short.count(name) == 1 else key for key, name in zip(differing, short, strict=True)}
    names |= {"selection.policy": "policy", "round.tmax_s": "tmax_s"}
    runs = []
    for folder, config, settings in zip(folders, configs, flat, strict=True):
        knobs = {name: settings[key] for key, name in names.items() if key in settings}
        run = RunFolder(folder, knobs, setting(folder, settings, "seed", int) if "seed" in settings else 0)
        vars(run)["config"] = config  # as if the property had read it
        runs.append(run)
    return runs


def _settings_of(folder: Path, config: Mapping[str, Any]) -> dict[str, Knob]:
    """Settings of a run's config; those of its policy only where it made the decisions."""
    settings = flat_settings(config)
    if is_episode(folder):
        settings = {key: value for key, value in settings.items() if not key.startswith("selection.")}
        settings["selection.policy"] = OUTSIDE
    return settings


def _differs(key: str, flat: Sequence[Mapping[str, Knob]]) -> bool:
    """Whether runs differ in a setting; in an option, whether runs that chose the same differ in it."""
    chosen = next(
        (by for start, by in _CHOICES.items() if key.startswith(start) and key not in (*by, *_NO_OPTIONS)), ()
    )
    values: dict[tuple[Knob | None, ...], set[str]] = {}
    for settings in flat:
        values.setdefault(tuple(settings.get(by) for by in chosen), set()).add(repr(settings.get(key)))
    return any(len(texts) > 1 for texts in values.values())


def flat_settings(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Knob]:
    """A config as one mapping of ``section.key`` to a text or a number; lists as text."""
    flat: dict[str, Knob] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            flat |= flat_settings(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value if isinstance(value, int | float) else str(value)
    return flat


def _planned_run(folder: Path, entry: Any, where: str) -> StudyEntry:
    if not isinstance(entry, dict):
        raise EdgesimError(f"{where}: expected an object with folder, knobs, seed and config")
    knobs, place = _field(entry, "knobs", dict, where), _field(entry, "folder", str, where)
    check_name(place, f"{where}: folder")
    for name, value in knobs.items():
        if not isinstance(value, str | int | float):
            raise EdgesimError(f"{where}: knobs.{name}: expected a text, a number, true or false (got {value!r})")
    run = RunFolder(folder / place, knobs, _field(entry, "seed", int, where))
    return StudyEntry(run, _field(entry, "config", dict, where))


def check_name(name: str, where: str) -> None:
    """Raises `EdgesimError`, with ``where`` it stands, unless a text is the name that a run's folder may have."""
    if name != Path(name).name or name in ("", ".."):
        raise EdgesimError(f"{where}: expected the name of a folder in the study's (got {name!r})")
    check_path(name, where)


def _field(mapping: Mapping[str, Any], name: str, kind: type, where: str) -> Any:
    value = mapping.get(name)
    if not isinstance(value, kind):
        got = "it is missing" if name not in mapping else f"got {value!r}"
        raise EdgesimError(f"{where}: {name}: expected {_JSON_NAMES[kind]} ({got})")
    return value


_JSON_NAMES = {str: "a text", int: "an integer", list: "a list", dict: "an object"}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
