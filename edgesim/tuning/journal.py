"""The trials of a tuning in Optuna's journal, a file in the study's folder that several processes share.

A running trial names the folder whose lease its process holds. A trial whose lease nobody holds any more is closed, and
its cell is asked again; the runs of the cell resume from their checkpoints.
"""

import itertools
import json
import math
import os
import secrets
import shutil
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from edgesim.base.errors import EdgesimError
from edgesim.base.late import Late
from edgesim.base.lease import LEASE_S, Lease, leased, standing
from edgesim.base.paths import own_folder, system_errors
from edgesim.simulation.resumption import first_difference
from edgesim.streams import Streams
from edgesim.studies.plan import Knob as Value
from edgesim.tuning.knobs import Knob
from edgesim.tuning.objectives import Seen, TuningObjective
from edgesim.tuning.trial import Outcome

if TYPE_CHECKING:
    import optuna
    import optuna.storages.journal
    from optuna.trial import FrozenTrial, Trial
else:
    optuna = Late("optuna")

FOLDER = "tuning"
"""Name of the journal's folder in the study's folder."""
_FILE = "journal.log"
_WHAT = "the folder of a tuning"
_LEFT_OUT = "left_out"
_NAME = "edgesim"
_STREAM, _UNTRIED = "tuning.sampler", "tuning.untried"
_SEEDS = 1 << 31
"""Optuna takes seeds below this."""
_MOST_CELLS = 100_000
"""Greatest number of combinations of values that are listed, to know when all are tried."""
_STARTUP = 4
"""Trials drawn at random before the first one is proposed, two for each knob if there are more of these."""
_LEAST_TRIALS = 8
"""Least number of trials with different values for the importance of knobs."""
_INSTALL = "tuning needs Optuna: pip install 'edgesim[optuna]'"


def need_optuna() -> None:
    """Raises `EdgesimError` where Optuna is not installed, or older than version 5."""
    try:
        version = metadata.version("optuna")
    except metadata.PackageNotFoundError:
        raise EdgesimError(_INSTALL) from None
    if int(version.partition(".")[0]) < 5:
        raise EdgesimError(f"{_INSTALL}; version {version} is too old, 5 or later is needed")


@dataclass(frozen=True)
class JournalTrial:
    """A trial of the journal: its values, its status and what its runs measured."""

    number: int
    """Place among all trials, from 0; Optuna also counts those that were closed without a result."""
    of_optuna: int
    """Optuna's number."""
    values: Mapping[str, Value]
    """By key of the config."""
    status: str
    """``complete``, ``pruned``, ``failed`` or ``running``."""
    seen: Seen | None
    reason: str
    is_imported: bool

    @property
    def counts(self) -> bool:
        """Whether the trial is complete and all of its runs reached the target."""
        return self.status == "complete" and self.seen is not None and self.seen.short <= 0


@dataclass(frozen=True)
class Journal:
    """The trials of a tuning; `opened` opens it."""

    folder: Path
    knobs: Sequence[Knob]
    objectives: Sequence[TuningObjective]
    seed: int
    study: "optuna.Study"
    worker: str
    """Name of the folder whose lease this process holds."""
    mine: "dict[int, Trial]" = field(default_factory=dict)
    """Trials that this process works on."""

    def trials(self) -> list[JournalTrial]:
        """All trials but those that were closed without a result, or wait for a process."""
        trials: list[JournalTrial] = []
        for trial in self.study.get_trials(deepcopy=False):
            running = trial.state.name == "RUNNING" and len(trial.params) == len(self.knobs)
            if not running and "status" not in trial.user_attrs:
                continue
            status = "running" if running else trial.user_attrs["status"]
            seen = None
            if trial.values is not None and not running:
                seen = Seen(tuple(trial.values), trial.constraints.get("target", -math.inf))
            reason, imported = trial.user_attrs.get("reason", ""), trial.user_attrs.get("imported", False)
            values = self._values(trial.params)
            trials.append(JournalTrial(len(trials), trial.number, values, status, seen, reason, imported))
        return trials

    def ask(self, most: int) -> tuple[int, dict[str, Value]] | None:
        """Begin a trial of this process; returns Optuna's number of it and its values.

        None if ``most`` trials run or have ended, not counting imported ones, or no combination of values is untried.
        A combination that Optuna proposes a second time is replaced by one that is drawn at random.
        """
        with self._locked():
            self._close_lost()
            trials = self.trials()
            if sum(not trial.is_imported for trial in trials) >= most:
                return None
            known = {_key(trial.values) for trial in trials}
            while True:
                number = len(self.study.get_trials(deepcopy=False))
                untried = self._untried(known)
                if untried is not None and not untried:
                    return None
                self.study.sampler = _sampler(self.seed, number, len(self.knobs))
                asked = self.study.ask({knob.key: knob.distribution() for knob in self.knobs})
                asked.set_user_attr("worker", self.worker)
                values = self._values(asked.params)
                if _key(values) not in known:
                    self.mine[asked.number] = asked
                    return asked.number, values
                self._fail(asked)
                self.study.enqueue_trial(self._drawn(untried, number))

    def tell(self, number: int, outcome: Outcome) -> None:
        """Note the outcome of a trial of this process."""
        trial = self.mine[number]
        with self._locked():
            trial.set_user_attr("status", outcome.status)
            trial.set_user_attr("reason", outcome.reason)
            if outcome.seen is None:
                self._fail(trial)
            else:
                if math.isfinite(outcome.seen.short):
                    trial.set_constraint("target", outcome.seen.short)
                self.study.tell(trial, list(outcome.seen.values))
        del self.mine[number]

    def is_below_median(self, number: int, rung: int, value: float) -> bool:
        """Whether a trial's value after a rung is worse than the median of the others; for one objective only."""
        trial = self.mine[number]
        trial.report(value, rung)
        return bool(trial.should_prune())

    def leave_out(self, cells: Iterable[Mapping[str, Value]]) -> None:
        """Exclude cells from `add`, also in processes that open the journal later."""
        self.study.set_user_attr(_LEFT_OUT, sorted(map(_key, cells)))

    def add(self, values: Mapping[str, Value], seen: Seen) -> None:
        """Add a complete trial for a cell whose runs were finished before, unless the cell is excluded or has one."""
        short = {"target": seen.short} if math.isfinite(seen.short) else {}
        parameters = {knob.key: knob.parameter(values[knob.key]) for knob in self.knobs}
        with self._locked():
            left_out = self.study.user_attrs.get(_LEFT_OUT, [])
            if _key(values) in {*left_out, *(_key(trial.values) for trial in self.trials())}:
                return
            self.study.add_trial(
                optuna.trial.create_trial(
                    values=list(seen.values),
                    params=parameters,
                    distributions={knob.key: knob.distribution() for knob in self.knobs},
                    user_attrs={"status": "complete", "imported": True},
                    constraints=short,
                )
            )

    def hand_back(self) -> None:
        """Close the running trials of this process, so that other processes or a later one may ask their cells."""
        with self._locked():
            for trial in self.mine.values():
                self._close(self.study.get_trials(deepcopy=False)[trial.number])
        self.mine.clear()

    def importances(self) -> dict[str, dict[str, float]]:
        """Importance of each knob for each measure (PED-ANOVA): share in what sets the best tenth of trials apart.

        By measure and by key; empty for fewer than two knobs, or too few trials that count.
        """
        counted = {trial.of_optuna for trial in self.trials() if trial.counts}
        trials = [trial for trial in self.study.get_trials(deepcopy=False) if trial.number in counted]
        shares: dict[str, dict[str, float]] = {objective.measure: {} for objective in self.objectives}
        for place, objective in enumerate(self.objectives):
            if len(self.knobs) < 2 or len({trial.values[place] for trial in trials}) < _LEAST_TRIALS:
                continue
            with _quiet():
                alone = optuna.create_study(direction=_direction(objective))
                for trial in trials:
                    alone.add_trial(
                        optuna.trial.create_trial(
                            value=trial.values[place], params=trial.params, distributions=trial.distributions
                        )
                    )
                shares[objective.measure] = dict(optuna.importance.get_param_importances(alone))
        return shares

    def elsewhere(self) -> int:
        """Number of trials that other processes work on, after closing those whose processes have gone."""
        with self._locked():
            self._close_lost()
            return sum(trial.status == "running" and trial.of_optuna not in self.mine for trial in self.trials())

    def _close_lost(self) -> None:
        for trial in self.study.get_trials(deepcopy=False):
            if trial.state.name != "RUNNING" or trial.number in self.mine:
                continue
            folder = self.folder / str(trial.user_attrs.get("worker", "worker"))
            lease = standing(folder)
            if lease is None or not lease.is_held:
                self._close(trial)
                shutil.rmtree(folder, ignore_errors=True)

    def _close(self, trial: "FrozenTrial") -> None:
        """Close a running trial without a result, and queue its cell to be asked before any other."""
        self._fail(trial)
        if len(trial.params) == len(self.knobs):
            self.study.enqueue_trial(trial.params)

    def _fail(self, trial: "Trial | FrozenTrial") -> None:
        """End a trial without values."""
        self.study.tell(trial.number, state=optuna.trial.TrialState.FAIL)

    def _values(self, parameters: Mapping[str, Any]) -> dict[str, Value]:
        return {knob.key: knob.value(parameters[knob.key]) for knob in self.knobs}

    def _untried(self, known: set[str]) -> list[dict[str, Value]] | None:
        """Combinations of values without a trial; None if the combinations are infinite or too many to list."""
        cells = [cells for knob in self.knobs if (cells := knob.cells)]
        if len(cells) < len(self.knobs) or math.prod(map(len, cells)) > _MOST_CELLS:
            return None
        every = itertools.product(*cells)
        named = ({knob.key: value for knob, value in zip(self.knobs, values, strict=True)} for values in every)
        return [values for values in named if _key(values) not in known]

    def _drawn(self, untried: Sequence[Mapping[str, Value]] | None, number: int) -> dict[str, Any]:
        """Parameters drawn at random from the untried combinations, or from the knobs' ranges if that is None."""
        random = Streams(self.seed).generator(_UNTRIED, number)
        if untried is not None:
            values = untried[int(random.integers(len(untried)))]
            return {knob.key: knob.parameter(values[knob.key]) for knob in self.knobs}
        drawn: dict[str, Any] = {}
        for knob in self.knobs:
            match knob.distribution():
                case optuna.distributions.IntDistribution(low=low, high=high):
                    drawn[knob.key] = int(random.integers(low, high + 1))
                case optuna.distributions.FloatDistribution(low=low, high=high):
                    ends = np.log([low, high]) if knob.is_log else np.array([low, high])
                    at = random.uniform(*ends)
                    drawn[knob.key] = min(max(float(np.exp(at)) if knob.is_log else at, low), high)
                case _:
                    drawn[knob.key] = knob.choices[int(random.integers(len(knob.choices)))]
        return drawn

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with _leased(self.folder), _quiet():
            yield


def _leased(folder: Path) -> AbstractContextManager[Lease]:
    """Context that holds the lease of a journal's folder."""
    return leased(folder, _WHAT, 2 * LEASE_S)


def forget(out: Path) -> None:
    """Remove the journal of a study's folder, if it has one; its runs stay.

    Raises `EdgesimError` while another process works on the tuning.
    """
    folder = out / FOLDER
    if not folder.is_dir():
        return
    with _leased(folder):
        for worker in folder.glob("worker-*"):
            lease = standing(worker)
            if lease is not None and lease.is_held:
                who = "" if lease.holder is None else f" (process {lease.holder.pid} on {lease.holder.host})"
                raise EdgesimError(f"{out}: another process works on its tuning{who}; wait for it, or leave fresh out")
        for file in folder.glob(f"{_FILE}*"):
            file.unlink()


@contextmanager
def opened(
    out: Path, facts: Mapping[str, Any], knobs: Sequence[Knob], objectives: Sequence[TuningObjective], seed: int
) -> Iterator[Journal]:
    """Context with the journal of a study's folder, in which this process holds the lease of a worker.

    ``facts`` describe the task. Raises `EdgesimError` if the folder has a tuning of another task, or one that cannot
    be read.
    """
    folder = out / FOLDER
    path = folder / _FILE
    with system_errors(f"{folder}: cannot be {_WHAT}", "; choose another folder"):
        own_folder(folder)
    facts = json.loads(json.dumps(facts))
    with _leased(folder), _quiet():
        try:
            # Not by a link, as is the default: links are refused in a study's folder.
            files = optuna.storages.journal
            storage = files.JournalStorage(files.JournalFileBackend(str(path), files.JournalFileOpenLock(str(path))))
            study = optuna.create_study(
                storage=storage,
                study_name=_NAME,
                directions=[_direction(objective) for objective in objectives],
                pruner=optuna.pruners.MedianPruner(n_startup_trials=5),
                load_if_exists=True,
            )
            before = study.user_attrs.get("tuning")
            study.get_trials(deepcopy=False)
        except OSError:
            raise
        except Exception as error:
            raise EdgesimError(
                f"{path}: cannot be read ({type(error).__name__}); remove it: finished runs count again"
            ) from None
        if before is None:
            study.set_user_attr("tuning", facts)
        elif (key := first_difference(before, facts)) is not None:
            changed = key.removeprefix("inputs.")
            of_inputs = key.partition(".")[0] == "inputs"
            reason = "its trials ran with other files or code" if of_inputs else "holds a tuning of something else"
            raise EdgesimError(f"{out}: {reason} ({changed} differs); choose another folder, or fresh to restart it")
    worker = f"worker-{os.getpid()}-{secrets.token_hex(4)}"
    lease = Lease(folder / worker, _WHAT)
    journal = Journal(folder, knobs, objectives, seed, study, worker)
    try:
        yield journal
    finally:
        if journal.mine:
            journal.hand_back()
        lease.release()


def _sampler(seed: int, number: int, knobs: int) -> "optuna.samplers.BaseSampler":
    """The optimiser for one trial, whose draws depend on the trial's number alone, so that a stop changes nothing.

    Of Optuna's samplers the Gaussian process does best with few trials, and a trial costs minutes.
    """
    drawn = int(Streams(seed).seeds(_STREAM, number)) % _SEEDS
    return optuna.samplers.GPSampler(
        seed=drawn,
        n_startup_trials=max(_STARTUP, 2 * knobs),
        # The same cell over the same seeds gives the same value.
        deterministic_objective=True,
        warn_independent_sampling=False,
    )


def _direction(objective: TuningObjective) -> Literal["maximize", "minimize"]:
    return "maximize" if objective.is_maximised else "minimize"


def _key(values: Mapping[str, Value]) -> str:
    return json.dumps(values, sort_keys=True)


@contextmanager
def _quiet() -> Iterator[None]:
    """Context in which Optuna prints nothing."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)
