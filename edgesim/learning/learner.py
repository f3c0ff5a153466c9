"""Real training: the global model over a run."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from edgesim.base.arrays import Floats, Integers
from edgesim.base.errors import Diverged, EdgesimError
from edgesim.base.on_disk import in_place_of
from edgesim.base.saved import restore_attributes, saved_attributes
from edgesim.config import RunConfig
from edgesim.learning import measures
from edgesim.learning.accounts import Accounts
from edgesim.learning.algorithms import Halves, epochs_over, hierarchical
from edgesim.learning.algorithms.local_half import has_own
from edgesim.learning.algorithms.merge_rules import IN_ROUNDS, MergeRule
from edgesim.learning.algorithms.records import Arrivals, State
from edgesim.learning.algorithms.server_half import BY_NORMS, ServerHalf, counts, rebased
from edgesim.learning.algorithms.staleness import relative_change
from edgesim.learning.back_ends import make_back_end
from edgesim.learning.determinism import refuse_nondeterminism
from edgesim.learning.drift.law import When
from edgesim.learning.evaluation import evaluation_of, predictions, worked_out
from edgesim.learning.federation import Federation
from edgesim.learning.flat import FlatModel
from edgesim.learning.interface import MODEL_FILE, Evaluation, Merged, Signal
from edgesim.learning.jobs import Arrived, JobResult, Promise, devices_and_tasks, known, wanted
from edgesim.learning.judging import Judge
from edgesim.learning.lone_samples import refuse_lone_samples
from edgesim.learning.loss_passes import loss_drops
from edgesim.learning.models import new_model
from edgesim.learning.norms import norm
from edgesim.learning.objective import refuse_without_features
from edgesim.learning.pretrain import StartModel, refuse_untestable, start_model
from edgesim.learning.public_copy import PublicCopy
from edgesim.learning.ranking import roc_auc, why_without_roc_auc
from edgesim.learning.server_memory import server_memory
from edgesim.learning.tensors import DeviceData
from edgesim.learning.torch_settings import device_kind, memory_lasts, pick_device, reproducible
from edgesim.learning.training_round import TorchRound
from edgesim.learning.transforms import make_beside, make_transforms
from edgesim.learning.transforms.noise import noise_on_mean, noise_to_update
from edgesim.learning.transforms.transform import Metrics, Updates
from edgesim.learning.workbench import Workbench
from edgesim.streams import Streams

_BEST_MODEL_SAMPLES = 2000


class TorchLearner:
    """A `Learner` that trains; raises `EdgesimError` for a model that does not fit the images.

    ``own_files()`` are the files of the user's own modules by name, for a back end on machines that lack them.
    """

    SAVED: ClassVar = (
        "global_weights", "states", "kept", "first_kept", "velocities", "carried", "jobs_trained", "_counted",
        "_merged", "_start", "_in_frame", "_round", "_made_in", "_last_merged", "_best", "_without_auc", "_undefined",
        "_last_change",
    )  # fmt: skip

    def __init__(
        self,
        config: RunConfig,
        federation: Federation,
        streams: Streams,
        cores: int = 1,
        own_files: Callable[[], Mapping[str, Path]] = dict,
        rule: MergeRule = IN_ROUNDS,
    ) -> None:
        dataset = federation.dataset
        assert dataset is not None, "the config refuses real training without a dataset"
        self.config = config
        self._metrics = measures.make(config.evaluation)
        self.federation = federation
        self.streams = streams
        self.dataset = dataset
        self.cores = cores
        learning = config.learning
        self.torch_device = pick_device(learning.device)
        seed = int(streams.seeds("initial-weights", 0))
        double = learning.precision == "float64"
        shape, classes = dataset.image_shape, dataset.class_count
        build = partial(new_model, learning.model, shape, classes, seed, double, learning.model_options)
        elsewhere = "" if self.torch_device.type == "cpu" else ", or set learning.device = 'cpu'"
        with (
            reproducible(self.torch_device),
            memory_lasts(
                f"loading model and images onto the {self.torch_device.type}",
                f"choose a smaller learning.model or data.dataset{elsewhere}",
                "learning.model",
                "data.dataset",
            ),
        ):
            module = build()
            self.model = FlatModel(module, self.torch_device, learning.precision == "mixed")
            refuse_nondeterminism(self.model, learning.model, dataset.image_shape)
            self.data = DeviceData(dataset, self.torch_device, self.model.dtype)
            self.accounts = Accounts(config, federation, streams, self.model.network, rule)
            local, server = self.accounts.local, self.accounts.server
            epochs = partial(epochs_over, config.algorithm, local.sizes)
            refuse_lone_samples(module, federation, learning, self.accounts.work, epochs)
            if learning.pretrain:
                refuse_untestable(federation)
            if local.features:
                who = "algorithm.name", config.algorithm.name
                refuse_without_features(self.model, config, dataset.image_shape, *who)
            if config.data.augment == "fedstg" and (darkest := float(self.data.train_images.min())) < 0:
                raise EdgesimError(
                    f"data.augment: 'fedstg' is for pixels from 0 on, and data.dataset = {config.data.dataset!r} has "
                    f"pixels of {darkest:g}; use 'crop-flip'",
                    "data.augment",
                    "data.dataset",
                )
            self.transforms = make_transforms(config, streams, self.model.trainable)
            self.beside = make_beside(config, streams, self.model.trainable, local.vectors_up)
            frames = len(federation.frames) - 1
            halves = Halves(local, server)
            self.memory = server_memory(
                config, halves, self.transforms, self.accounts.rule, frames, self.model, self.data
            )
            self.back_end, self._notice = make_back_end(learning, self.model, self.data, build, cores, local, own_files)
        self.global_weights: Tensor = self.model.snapshot()
        self.public: PublicCopy | None = None
        """The model that devices know where changes of models are coded; None where they are sent the model."""
        if config.download is not None:
            self.public = PublicCopy(config.download, streams, self.global_weights, self.model.trainable)
        self.server_of: Callable[[Integers, float], Integers] = lambda ids, t_s: np.zeros_like(ids)
        """Number of the server of each of some devices at an instant in s, [n]."""
        self._counted = np.zeros(1)
        """Weight of the updates that each server merged since the last average, [E]."""
        self.states: list[State] = []
        """State of each server, [E]; empty until the run is prepared or a round opens."""
        self.kept: dict[int, Mapping[str, Tensor]] = {}
        """Tensors that each device stored after its last job that was merged."""
        self.first_kept: Mapping[str, Tensor] = {}
        """Tensors that each device has before that, of the model with which the first round opened."""
        self.velocities: dict[int, Tensor] = {}
        """Velocity of each device after its last job that was merged; with ``learning.persist_momentum``."""
        self.carried: dict[int, Tensor] = {}
        """Weights, [P], of devices that trained since the last merge; with ``merging.skip = "carry"``."""
        self._merged: set[int] = set()
        """Devices whose updates were ever merged."""
        self._start: StartModel | None = None
        self._in_frame = False
        self._round = 0
        self._made_in = 0
        """Round that made the global model."""
        self._server_wall_s = 0.0
        """Wall time of the last merge where servers train after it, and of that training."""
        self._last_merged: list[int] = []
        """Devices whose updates the last merge merged."""
        self.jobs_trained = 0
        """Jobs that ran so far, over the whole run."""
        self._best: tuple[float, Tensor] | None = None
        self._tested_on: dict[tuple[int, ...], Integers] = {}
        """Test images of the last test, by the classes seen then."""
        self._without_auc: str | None = None
        """Reason why the last model tested has no ROC-AUC."""
        self._undefined: dict[str, str] = {}
        """Reasons why metrics have no value for the last model tested, by name."""
        self._last_change: Tensor | None = None
        """Change of the model's trainable part by the last merge, [trainable]; for ``update_cosine`` alone."""

    def serve(self, count: int, server_of: Callable[[Integers, float], Integers]) -> None:
        """Set the number of servers and which of them serves each device, as `Learner` says."""
        self.server_of, self._counted = server_of, np.zeros(count)

    def average_in_cloud(self) -> None:
        """Average the servers' models, weighted by the updates that each has merged since the last average."""
        self._hand_out(self.global_weights)

    def _hand_out(self, weights: Tensor) -> None:
        """Make one model, [P], that of all servers."""
        self._made_in = self._round
        self.carried.clear()
        self.global_weights = weights
        self.states = [replace(state, weights=weights) for state in self.states]
        self._counted = np.zeros(len(self._counted))

    def prepare(self, notice: Callable[[str], None]) -> None:
        """Pre-train the start model on the old classes, or read it from the cache, if the config says so.

        ``notice`` is also called with a warning about a back end that the model does not allow.
        """
        if self._notice:
            notice(self._notice)
        if self.accounts.server.training is not None:
            notice(self.memory.message())
        if self.config.learning.pretrain:
            with reproducible(self.torch_device):
                self._start = start_model(self.model, self.data, self.federation, self.config, self.streams, notice)
            self._hand_out(self._start.weights)
        self._start_servers()

    def _start_servers(self) -> None:
        """Make the state of each server and, by it, the first model."""
        bench = self._bench()
        with reproducible(self.torch_device):
            self.states = [self.accounts.server.start(self.global_weights, bench) for _ in self._counted]
        self.global_weights = self.states[0].weights
        if self.public is not None:
            self.public.weights = self.global_weights

    def snapshot(self) -> dict[str, Any]:
        """Snapshot between two rounds, by name."""
        states = [transform.state for transform in self.transforms]
        public = {} if self.public is None else {"public": saved_attributes(self.public)}
        return saved_attributes(self) | {"accounts": self.accounts.snapshot(), "transforms": states} | public

    def restore(self, remembered: dict[str, Any]) -> None:
        """Restore the result of `snapshot`."""
        self.accounts.restore(remembered.pop("accounts"))
        for transform, state in zip(self.transforms, remembered.pop("transforms"), strict=True):
            transform.state = state
        if self.public is not None:
            restore_attributes(self.public, remembered.pop("public"))
        restore_attributes(self, remembered)

    @property
    def most_remembered_bytes(self) -> int:
        """Bytes of the servers' models, of the best model, the last change and the public copy, and of the devices'."""
        models, memory = len(self._counted) + 3 + (self.public is not None), self.memory
        return models * self.global_weights.nbytes + memory.device * memory.devices + memory.making

    def open_round(self, round: int, frame: int, tasks: Integers | None = None, t_s: float = 0.0) -> "TorchRound":
        """Open a round (counted over the run, from 1) of a frame (from 1); ``tasks`` and ``t_s`` as in `Learner`."""
        if not self.states:
            self._start_servers()
        if not self.first_kept:
            self.first_kept = self.accounts.local.first_kept(self.global_weights)
        self._round = round
        self.accounts.open_round(When(round, frame, t_s))
        bench = self._bench()
        with reproducible(self.torch_device):
            self.states = [self.accounts.server.prepare(state, bench) for state in self.states]
        self._in_frame = True
        return TorchRound(self, tasks)

    def _bench(self) -> Workbench:
        federation = self.federation
        return Workbench(
            self.model,
            self.data,
            federation.public,
            federation.validation,
            self.accounts.held,
            self.streams,
            self.config.learning,
            self._round,
            self.memory.room,
            opens_frame=not self._in_frame,
        )

    def merge(
        self, arrived: Sequence[Arrived], began: Integers, sending: Callable[[], Sequence[Promise]] = tuple
    ) -> Merged:
        """Run the due jobs of updates that arrived and make the next model of them, as `Learner` says.

        Raises `Diverged`, and ValueError for a device whose job is not due.
        """
        accounts, privacy = self.accounts, self.config.privacy
        used = accounts.used(arrived)
        promises = [update.promise for update in used]
        self._refuse_early(promises)
        if accounts.rule.one_by_one:
            self._run_along(promises, sending())
        results, self._server_wall_s = self.results(promises), 0.0
        with reproducible(self.torch_device):
            drops = self._loss_drops(promises, results) if "loss_drops" in accounts.looked_at else None
            results, reports, memories = self._transformed(promises, results)
            rows = accounts.arrivals(used, began, self._change(used, results))
            if accounts.server.weighs_by == BY_NORMS:
                rows = replace(
                    rows, norms=np.array([norm(result.update[: self.model.trainable]) for result in results])
                )
            weight, metrics = accounts.weigh(rows), accounts.report(rows)
            for report in reports:
                metrics |= report(weight)
            metrics |= self._over_plan(promises)
            if privacy.mechanism == "central":
                updates = [result.update for result in results]
                metrics |= noise_to_update(privacy, self.model.trainable, updates, rows.ids, weight)
            before = self.global_weights
            order = np.arange(len(used)) if accounts.rule.in_order_of_arrival else np.argsort(rows.ids, kind="stable")
            server = np.array([at.promise.server if at.server is None else at.server for at in used], dtype=np.int64)
            numbers = [0] if accounts.server.merges == "all arrivals" else np.unique(server).tolist()
            for number in numbers:
                self._merge_at(number, order[server[order] == number], rows, promises, results)
        if self.config.evaluation.measures == "all":
            metrics = {**metrics, **self._cosine(before)}
        weight = accounts.note(rows, weight)
        self._merged.update(rows.ids.tolist())
        for promise, result in zip(promises, results, strict=True):
            self._keep(promise, result)
        for transform, of_devices in zip(self.transforms, memories, strict=True):
            transform.state.update(of_devices)
        self._last_merged = rows.ids.tolist() or self._last_merged
        if len(rows.ids):
            self.carried.clear()
        if not bool(self.global_weights.isfinite().all()):
            raise Diverged(f"round {self._round}: the merged model is not finite; lower learning.lr")
        if self.public is not None and len(rows.ids):
            with reproducible(self.torch_device):
                self.public.follow(self.global_weights, accounts.models)
        if accounts.up is not None and accounts.up.rule.known == "as the round opens" and results:
            accounts.up.rule.hear(float(np.average([result.loss for result in results], weights=weight)))
            accounts.up.plan()
        return Merged(
            rows.ids,
            weight,
            np.array([result.loss for result in results]),
            np.array([result.accuracy for result in results]),
            np.array([result.update_norm for result in results]),
            np.array([result.loss_rms for result in results]),
            drops,
            metrics,
            self._server_wall_s,
        )

    def _merge_at(
        self, server: int, places: Integers, arrived: Arrivals, promises: list[Promise], results: list[JobResult]
    ) -> None:
        """Merge the updates at some places among all that arrived, in the order given, into the model of a server."""
        jobs = [promises[place].job for place in places.tolist()]
        own_results = [results[place] for place in places.tolist()]
        updates = [result.update for result in own_results]
        starts = [start for place in places.tolist() if (start := promises[place].origin) is not None]
        accounts = self.accounts
        pairs = zip(jobs, own_results, strict=True)
        trained = [known(job, result) for job, result in pairs if job is not None]
        ups = [result.up for result in own_results]
        rows = replace(
            arrived.rows(places),
            updates=rebased(updates, starts, self.states[server].weights, self.model.trainable),
            separate=updates,
            starts=starts,
            up={name: [tensors[name] for tensors in ups] for name in (ups[0] if ups else ())},
            trained=trained,
        )
        alpha = accounts.weigh(rows)
        if (privacy := self.config.privacy).mechanism == "central":
            asked = self.streams, self.model.trainable, alpha, rows.ids, self._round, self.global_weights
            rows = replace(rows, mean_noise=noise_on_mean(privacy, *asked))
        started = time.perf_counter()
        # Replaced at once: the state before the merge takes no memory while the server trains.
        self.states[server] = accounts.rule.merge(accounts.server, self.states[server], rows, alpha, accounts.ledger)
        if type(accounts.server).refine is not ServerHalf.refine:
            bench = self._bench()
            self.states[server] = accounts.server.refine(self.states[server], rows, accounts.ledger, bench)
            self._server_wall_s += time.perf_counter() - started
        self._made_in = self._round
        if len(self.states) > 1:
            self._counted[server] += float((counts(accounts.server, rows.samples) * rows.age_weight).sum())
        self.global_weights = hierarchical.average([state.weights for state in self.states], self._counted)

    def _keep(self, promise: Promise, result: JobResult) -> None:
        """Store a device's tensors after its job; raises `Diverged` for a model of its own that is not finite.

        The last step may make it so, after the last loss; no merge checks such a model.
        """
        device = promise.device
        if result.keeps:
            if not self._sends_models and not bool(result.keeps["start"].isfinite().all()):
                where = f"device {device}, round {promise.round}"
                raise Diverged(f"{where}: the device's own model is not finite; lower learning.lr")
            self.kept[device] = result.keeps
        if result.velocity is not None:
            self.velocities[device] = result.velocity

    def _cosine(self, before: Tensor) -> dict[tuple[str, str], float]:
        """A row of ``metrics``: cosine of the last two changes of the model, unless a change is zero or missing."""
        change = (self.global_weights - before)[: self.model.trainable].double()
        last, self._last_change = self._last_change, change
        lengths = 0.0 if last is None else float(last.norm() * change.norm())
        return {("update_cosine", ""): float(last @ change) / lengths} if last is not None and lengths else {}

    def _transformed(
        self, promises: list[Promise], results: list[JobResult]
    ) -> tuple[list[JobResult], list[Callable[[Floats], Metrics]], list[Mapping[int, Tensor]]]:
        """Results with the tensors as the server receives them, in order of arrival.

        Returns also what transforms report, and what each is to remember of devices once the results are merged.
        """
        reports, memories, settings = [], [], None
        if (charges := self.accounts.up) is not None:
            settings = [charges.coded_setting(promise.grant, self.model.trainable) for promise in promises]
        updates = _updates(promises, results, settings)
        for transform in self.transforms:
            passed = transform.apply(updates)
            updates = updates.having(passed.received)
            reports.append(passed.report)
            memories.append(passed.memories)
        results = [replace(result, update=to) for result, to in zip(results, updates.vectors, strict=True)]
        for name, coding in self.beside.items():
            given = [_given(promise, name) for promise in promises]
            changes = [result.up[name] - known for result, known in zip(results, given, strict=True)]
            decoded = [known + to for known, to in zip(given, coding.received(updates.having(changes)), strict=True)]
            results = [replace(result, up={**result.up, name: to}) for result, to in zip(results, decoded, strict=True)]
        return results, reports, memories

    def _over_plan(self, promises: list[Promise]) -> Metrics:
        """A row of ``metrics``: how many bits more than planned updates took in the mean, where values decide."""
        charges = self.accounts.up
        if charges is None or charges.rule.known != "by the values" or not promises:
            return {}
        over = [promise.grant.over_plan_bits for promise in promises if promise.grant is not None]
        return {("codec", "bits_over_plan"): float(np.mean(over))}

    def sent_norms(self, promises: list[Promise], room_bits: Callable[[], Floats] | None) -> Floats:
        """Norm of the trainable part of each promised update as it would be received if it were sent, [n].

        ``room_bits`` answers with the bits for which each upload has time and rate, [n].
        """
        results = self.results(promises)
        if (charges := self.accounts.up) is None:
            return np.array([result.update_norm for result in results])
        settings: list[int] | None = None
        if room_bits is not None and charges.rule.follows_channel:
            settings = charges.settings_of_room(room_bits(), self.model.trainable)
        with reproducible(self.torch_device):
            each = [None] * len(promises) if settings is None else [[setting] for setting in settings]
            return np.array([self._sent_norm(*row) for row in zip(promises, results, each, strict=True)])

    def _sent_norm(self, promise: Promise, result: JobResult, settings: list[int] | None) -> float:
        """Norm as `sent_norms` has it; one update at a time, so that candidates' updates are not there twice."""
        updates = _updates([promise], [result], settings)
        for transform in self.transforms:
            updates = updates.having(transform.received(updates))
        return norm(updates.vectors[0][: self.model.trainable])

    def write(self, promises: Sequence[Promise]) -> None:
        """Set the bits of the messages of promised updates, whose jobs run; raises `Diverged`."""
        updates, charges = _updates(promises, self.results(list(promises))), self.accounts.up
        assert charges is not None
        with reproducible(self.torch_device):
            for transform in self.transforms:
                if (bits := transform.written_bits(updates, charges.rule.d)) is not None:
                    for promise, written in zip(promises, bits, strict=True):
                        assert promise.grant is not None
                        promise.grant.written_bits = written
                    return
                updates = updates.having(transform.received(updates))

    def lose(self, promises: Sequence[Promise]) -> None:
        """Let devices remember updates that were lost on their way, whose jobs run; raises `Diverged`."""
        if not promises:
            return
        updates = _updates(promises, self.results(list(promises)))
        with reproducible(self.torch_device):
            for transform in self.transforms:
                if transform.stored:
                    transform.state.update(transform.of_lost(updates))
                    return
                updates = updates.having(transform.received(updates))

    def _loss_drops(self, promises: list[Promise], results: list[JobResult]) -> Floats:
        """Decrease of each device's loss by its training, on its whole present data set, [S]."""
        held = self.accounts.held
        starts = [promise.origin for promise in promises if promise.origin is not None]
        own = [held.samples_of(promise.device) for promise in promises]
        return loss_drops(self.model, self.data, starts, [result.update for result in results], own, self.cores)

    def _change(self, used: list[Arrived], results: list[JobResult]) -> Floats | None:
        """Relative change of the mean of fresh updates by each update, [S]; None unless its weight needs it."""
        if self.config.staleness.weight != "refl":
            return None
        fresh = torch.tensor([update.staleness == 0 for update in used])
        if fresh.all():
            return np.ones(len(used))
        trained = torch.stack([result.update[: self.model.trainable] for result in results])
        return relative_change(trained, trained[fresh])

    def _run_along(self, promises: list[Promise], others: Sequence[Promise]) -> None:
        """Run open promises and ``others`` in one batch, unless all promises have results.

        The others' updates are on their way to the server; most of them will be merged. Jobs that run one at a time
        would leave cores idle and could not be stacked.
        """
        if others and any(promise.result is None for promise in promises):
            # A job that diverges is an error only where its own update is merged, which may never be.
            with suppress(Diverged):
                self.results([*promises, *others])

    def results(self, promises: list[Promise]) -> list[JobResult]:
        """Results of promises; those without one run first, which `jobs_trained` counts. Raises `Diverged`."""
        waiting = [promise for promise, _ in wanted(promises)]
        try:
            with reproducible(self.torch_device):
                self.back_end.run(waiting)
        finally:
            # Where a job fails, those before it have run.
            self.jobs_trained += sum([promise.result is not None for promise in waiting])
        for promise in waiting:
            self._add_kept(promise)
        return [promise.result for promise in promises if promise.result is not None]

    def epoch_accuracies(self, promises: Sequence[Promise]) -> list[tuple[float, ...]]:
        """Accuracies after each local epoch of due jobs, which run if they have not; raises `Diverged`."""
        return [result.epoch_accuracies for result in self.results(list(promises))]

    def _add_kept(self, promise: Promise) -> None:
        """Add to the update of a job that started from stored weights their difference from the model sent."""
        if promise.sent is None or promise.job is None or promise.result is None:
            return
        update = promise.result.update + (promise.job.start - promise.sent)
        promise.result = replace(promise.result, update=update, update_norm=norm(update[: self.model.trainable]))

    def skip(self, trained: Sequence[Arrived]) -> Merged:
        """End a round that makes no model; with ``merging.skip = "carry"`` jobs run and devices keep their weights.

        Raises ValueError for a device whose job is not due.
        """
        if self.config.merging is not None and self.config.merging.skip == "carry":
            promises = [update.promise for update in trained]
            self._refuse_early(promises)
            for promise, result in zip(promises, self.results(promises), strict=True):
                assert promise.origin is not None
                self.carried[promise.device] = promise.origin + result.update
        nothing = np.empty(0)
        return Merged(np.empty(0, dtype=np.int64), nothing, nothing, nothing, nothing, nothing)

    def _refuse_early(self, promises: Sequence[Promise]) -> None:
        if early := [promise.device for promise in promises if not promise.due]:
            raise ValueError(f"jobs of devices {early} are not due: their simulated work is not finished")

    def signal(self, of: Signal) -> float:
        """Accuracy of the global model on test or validation images of the classes seen."""
        samples = self._test_samples()
        if of == "validation":
            samples, seen = self.federation.validation, self.accounts.held.classes_seen
            samples = samples[np.isin(self.dataset.train_labels[samples], seen)]
        with reproducible(self.torch_device):
            self.model.load(self.global_weights)
            if of == "test":
                return self._evaluation(samples).accuracy
            _, predicted = predictions(self.model, self.data, samples, False, self.cores)
        return float((predicted == self.dataset.train_labels[samples]).mean())

    def evaluate(self, frame: int) -> Evaluation:
        """Test the global model of a frame on the classes seen until the last round was opened.

        After a round of a frame that another one follows, the model is also considered for `end_frame`.
        Raises `Diverged` when the loss is not finite.
        """
        with reproducible(self.torch_device):
            self.model.load(self.global_weights)
            samples = self._test_samples()
            evaluation = self._evaluation(samples)
            self._undefined = evaluation.undefined
            if self.config.evaluation.measures == "all":
                evaluation = replace(evaluation, roc_auc=self._roc_auc(samples))
            else:
                evaluation = replace(evaluation, class_f1={})
            if not np.isfinite(evaluation.loss):
                raise Diverged(f"round {self._made_in}: the test loss is not finite; lower learning.lr")
            keeps_best = self.config.learning.keep_best and frame + 1 < len(self.federation.frames)
            if self._in_frame and keeps_best:
                self._consider(frame)
        return evaluation

    def _evaluation(self, samples: Integers) -> Evaluation:
        """Test of the models that the algorithm makes, on test samples [n]; the global model is loaded."""
        local = self.accounts.local
        tested = self.dataset.test_labels[samples], self.dataset.in_domains(samples), self._metrics
        models = self._own_models()
        if not self._round or not (models or has_own(local, "scores")):
            losses, predicted = predictions(self.model, self.data, samples, True, self.cores)
            return evaluation_of(losses, predicted, *tested)
        judge = Judge(local, self.states[0].shared, self.model, self.data, samples, *tested)
        if models:
            return judge.test_models(models, self._last_merged, self.accounts.held.class_counts)
        return judge.test_loaded()

    @property
    def _sends_models(self) -> bool:
        return bool(self.accounts.local.options.sends_models)

    def _own_models(self) -> dict[int, Tensor]:
        """Models of devices that were ever merged, [P] by device; empty where models travel."""
        return {} if self._sends_models else {device: kept["start"] for device, kept in self.kept.items()}

    def _roc_auc(self, samples: Integers) -> float | None:
        """ROC-AUC of the global model over the classes seen; None where it is undefined, for the reason in `facts`."""
        labels, classes = self.dataset.test_labels[samples], self.accounts.held.classes_seen
        own = None if self._sends_models else "each device has a model of its own"
        self._without_auc = own or why_without_roc_auc(labels, classes)
        if self._without_auc is not None:
            return None
        self.model.load(self.global_weights)

        def softmax(images: Tensor, _: Tensor) -> tuple[Tensor, ...]:
            return (self.model.module(images).double().softmax(1),)

        (scores,) = worked_out(softmax, self.model, self.data, samples, test=True, cores=self.cores)
        return roc_auc(scores.numpy(), labels, classes)

    def end_frame(self) -> None:
        """Restore the best model of the frame, with ``learning.keep_best`` and another frame to come.

        Best is the least mean loss on a fixed sample of the devices' training images, among the rounds
        evaluated (FedTeddi, Algorithm 1).
        """
        if self._best is not None:
            self._hand_out(self._best[1])
        self._best = None
        self.accounts.end_frame()
        self._in_frame = False

    def save(self, folder: Path) -> None:
        """Write the global model as `MODEL_FILE`, whole or not at all; raises `EdgesimError`.

        Where each device has a model of its own, that of the lowest id is written.
        """
        models = self._own_models()
        self.model.load(models[min(models)] if models else self.global_weights)
        path = folder / MODEL_FILE
        try:
            with in_place_of(path, on_disk=True) as part:
                save_file(self.model.state(), part)
        except (OSError, SafetensorError) as error:
            raise EdgesimError(f"{path}: cannot be written: {error}") from None

    def facts(self) -> dict[str, Any]:
        """Entries of ``run.json`` about learning, with the present device state."""
        facts: dict[str, Any] = {
            "back_end": self.back_end.name,
            **self.back_end.facts,
            "device_kind": device_kind(self.torch_device),
            "torch": torch.__version__,
            "parameters": self.model.trainable,
            "test_images": len(self._test_samples()),
            **self.accounts.facts(),
        }
        if self.memory.device:
            facts["bytes_per_merged_device"] = self.memory.device
            stored = self._merged.union(*(transform.state for transform in self.transforms))
            facts["bytes_of_device_state"] = self.memory.device * len(stored)
        if self.memory.passes:
            facts["bytes_of_made_images"] = self.memory.making
            facts["bytes_of_passes_over_the_pool"] = self.memory.passes
        if not self._sends_models:
            facts["saved_model"] = "of the device with the lowest id among those merged"
        if has_own(self.accounts.local, "scores"):
            facts["test_loss"] = "cross-entropy of the logits, which do not decide the class that is predicted"
        if self._without_auc is not None:
            facts["roc_auc_notice"] = self._without_auc
        if self._undefined:
            facts["metric_notices"] = self._undefined
        if self._notice is not None:
            facts["back_end_notice"] = self._notice
        if self._start is not None:
            facts |= {"pretrain_epochs": self._start.epochs, "pretrain_accuracy": self._start.accuracy}
        return facts

    def privacy(self, uploads: Mapping[int, int]) -> dict[str, Any]:
        """Entries of ``run.json`` on privacy, for a number of uploads by device."""
        return self.accounts.privacy(uploads, has_buffers=len(self.model.weights) > self.model.trainable)

    def close(self) -> None:
        """End the processes that train."""
        self.back_end.close()

    def _test_samples(self) -> Integers:
        """Test images of the classes seen: the first of a permutation that is the same for the whole run."""
        classes = tuple(self.accounts.held.classes_seen.tolist())
        if classes not in self._tested_on:
            order = self.streams.generator("test-sample").permutation(len(self.dataset.test_labels))
            seen = np.isin(self.dataset.test_labels[order], classes)
            self._tested_on = {classes: np.sort(order[seen][: self.config.evaluation.samples])}
        return self._tested_on[classes]

    def _consider(self, frame: int) -> None:
        held = self.accounts.held
        samples = np.concatenate([held.samples_of(device) for device in range(len(held.sizes))])
        random = self.streams.generator("best-model-sample", round=frame)
        sample = random.choice(samples, min(_BEST_MODEL_SAMPLES, len(samples)), replace=False)
        loss = float(predictions(self.model, self.data, sample, False, self.cores)[0].mean())
        if self._best is None or loss < self._best[0]:
            self._best = (loss, self.global_weights)


def _updates(promises: Sequence[Promise], results: Sequence[JobResult], settings: list[int] | None = None) -> Updates:
    """Updates of promises as they were trained, in the same order, with ``settings`` [S] of their coding."""
    return Updates(*devices_and_tasks(promises), [result.update for result in results], settings)


def _given(promise: Promise, name: str) -> Tensor | float:
    """The tensor of a name that a promise's job was given; 0 where it was given none."""
    assert promise.job is not None
    return promise.job.given.get(name, 0.0)
