"""KPFL: a plug-in for dynamic participation, around any algorithm whose server averages models (DPFL's paper).

The server keeps the last model of every device that ever took part. Instead of what arrived it averages this pool, each
model by its device's data and by how long the device has been here or away, and then distils the pool's knowledge into
the average with images that a generator makes. Where paper and program leave a question open: weights are normalised
and exponents bounded (`edgesim.learning.algorithms.knowledge_pool`), gradients reach the generator through the frozen
models, the centre of a class is the mean of its images' features, and logits are compared without a temperature.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Floats, Integers
from edgesim.base.needs import GIVEN, Except, Rule
from edgesim.config import RunConfig
from edgesim.learning.algorithms.algorithm import Wrapper
from edgesim.learning.algorithms.data_free import distilled, ensemble, objective
from edgesim.learning.algorithms.knowledge_pool import (
    MOST,
    Entries,
    Entry,
    Member,
    age_weights,
    class_counts,
    of_arrivals,
    renewed,
    shares,
    shares_by_class,
)
from edgesim.learning.algorithms.kpfl_settings import LAWS, KpflOptions, options_of, tuned, tuned_on
from edgesim.learning.algorithms.records import (
    Arrivals,
    Device,
    Devices,
    Sizes,
    State,
    UpdatePool,
    Workbench,
)
from edgesim.learning.algorithms.server_half import Around, ServerHalf, TrainingBytes
from edgesim.learning.algorithms.staleness import without_age
from edgesim.learning.torch_types import Tensor, torch
from edgesim.streams import Streams

if TYPE_CHECKING:
    from edgesim.learning.flat import FlatModel
    from edgesim.learning.generator import TrainedGenerator
    from edgesim.learning.tensors import DeviceData


_BY_DATA_AND_AGE = "the models of all devices are weighed by their data and ages"


@dataclass(kw_only=True)
class Pooled(State):
    """The model, the state of the half inside, the pool, and the generator once there is one."""

    inner: State
    pool: Entries = field(default_factory=dict)
    shares: Floats = field(default_factory=lambda: np.empty(0))
    """W of the pool's devices, [S]."""
    generator: TrainedGenerator | None = None


@dataclass
class Members(Around):
    """The ledger of the half inside, and data and ages of the pool's devices."""

    pool: dict[int, Member] = field(default_factory=dict)


@dataclass(frozen=True)
class Improvement:
    """What the steps on generator and model take."""

    options: KpflOptions
    classes: int

    def server_s(self, updates: int) -> float:
        """Simulated seconds of the steps on generator and model, if there are any."""
        options = self.options
        steps = (options.generator_steps + options.distil_steps) * (options.keep == "improved" and updates > 0)
        return float(options.server_s_per_step * steps)

    def memory(self, config: RunConfig, model: FlatModel, data: DeviceData, models: int) -> TrainingBytes:
        """Memory for the images, if there are any; refuses a model without features, and data without brightness."""
        from edgesim.learning.generator import ImageGenerator
        from edgesim.learning.model_pool import pass_bytes, refuse_without_brightness
        from edgesim.learning.objective import refuse_without_features

        options = self.options
        if options.keep == "first":
            return TrainingBytes()
        who = "algorithm.kpfl.keep", options.keep
        refuse_without_features(model, config, data.image_shape, *who)
        refuse_without_brightness(data, config, *who, "set it to 'first'")
        maker = ImageGenerator(data.image_shape, self.classes, model.weights)
        image_bytes = math.prod(data.image_shape) * model.weights.itemsize
        making = maker.bytes_to_train(options.batch) + options.batch * options.distil_steps * image_bytes
        # The model before and after its steps, and its gradient with the decay of weights.
        making += 3 * model.weights.nbytes
        return TrainingBytes(making, *pass_bytes(model, data.image_shape, options.batch, models))


class Kpfl(ServerHalf):
    """KPFL's server half around another one: it owns the pool, and all that it does not say itself that one says."""

    weighs_by = "by the data and ages of all devices of the pool (KPFL)"

    def __init__(self, inner: ServerHalf, options: KpflOptions, sizes: Sizes, streams: Streams) -> None:
        super().__init__(options, sizes, streams)
        self.inner = inner
        self.stored = (*inner.stored, "model", *inner.pooled_up.values())
        self.training = Improvement(options, sizes.classes)

    @override
    def ledger(self, round: int, last: Members | None) -> Members:
        """That of the half inside for the frame; the pool persists."""
        inner = self.inner.ledger(round, None if last is None else last.inner)
        return Members(inner, {} if last is None else last.pool)

    @override
    def download_bits(self, devices: Devices, round: int, ledger: Members) -> Floats:
        return self.inner.download_bits(devices, round, ledger.inner)

    @override
    def weigh(self, arrived: Arrivals) -> Floats:
        """NaN: the weights of updates are known once they are in the pool (`note`)."""
        return np.full(len(arrived.ids), np.nan)

    @override
    def report(self, ledger: Members, arrived: Arrivals) -> dict[tuple[str, str], float]:
        return self.inner.report(ledger.inner, arrived)

    @override
    def note(self, ledger: Members, arrived: Arrivals) -> Floats:
        """W of the devices whose updates arrived, [S]: those that are away have the rest. NaN without a data set."""

        def member(row: int, active: int) -> Member:
            return Member(class_counts=arrived.class_counts[row], active=active)

        if not len(arrived.ids):
            return self.inner.note(ledger.inner, arrived)
        ledger.pool = renewed(ledger.pool, arrived, member)
        counts = class_counts(ledger.pool)
        pool = UpdatePool(_ids(ledger.pool), counts, self._shares(ledger.pool))
        alpha = self.weigh(arrived)
        if counts.shape[1]:
            alpha = of_arrivals(arrived, dict(zip(ledger.pool, pool.shares.tolist(), strict=True)))
        return self.inner.note(ledger.inner, replace(arrived, alpha=alpha, pool=pool))

    @override
    def start(self, weights: Tensor, bench: Workbench) -> Pooled:
        """The pool is empty."""
        inner = self.inner.start(weights, bench)
        return Pooled(inner.weights, inner.shared, inner=inner)

    @override
    def prepare(self, state: Pooled, bench: Workbench) -> Pooled:
        return _with(state, self.inner.prepare(_inner(state), bench))

    @override
    def given(self, state: Pooled, device: Device, ledger: Members) -> dict[str, Tensor]:
        return self.inner.given(_inner(state), device, ledger.inner)

    @override
    def merge(self, state: Pooled, arrived: Arrivals, alpha: Floats, ledger: Members) -> Pooled:
        """The pool with the arrivals, and Theta = sum_i W_i theta_i over all of it, buffers included (eq. 4).

        The rest of the state, such as SCAFFOLD's control, the half inside makes of the arrivals.
        """

        def entry_of(row: int, active: int) -> Entry:
            up = {name: arrived.up[name][row] for name in self.inner.pooled_up}
            model = arrived.starts[row] + arrived.separate[row]
            return Entry(class_counts=arrived.class_counts[row], active=active, model=model, up=up)

        state = replace(state, pool=renewed(state.pool, arrived, entry_of))
        state = replace(state, shares=self._shares(state.pool))
        alike = np.full(len(arrived.ids), 1 / max(1, len(arrived.ids)))
        merged = self.inner.merge(_inner(state), self._of_pool(arrived, state), alike, ledger.inner)
        mean = state.weights.new_zeros(len(state.weights))
        for share, entry in zip(state.shares.tolist(), state.pool.values(), strict=True):
            mean.add_(entry.model, alpha=share)
        return _with(state, replace(merged, weights=mean))

    @override
    def refine(self, state: Pooled, arrived: Arrivals, ledger: Members, bench: Workbench) -> Pooled:
        """The state after `refine` of the half inside, then improved by distillation (eqs. 5-8)."""
        arrived = self._of_pool(arrived, state)
        state = _with(state, self.inner.refine(_inner(state), arrived, ledger.inner, bench))
        return self._improved(state, bench) if self.options.keep == "improved" else state

    def _of_pool(self, arrived: Arrivals, state: Pooled) -> Arrivals:
        """The arrivals, with the pool that they are part of."""
        entries = state.pool.values()
        up = {name: [entry.up[name] for entry in entries] for name in self.inner.pooled_up}
        models = [entry.model for entry in entries]
        pool = UpdatePool(_ids(state.pool), class_counts(state.pool), state.shares, models, up)
        return replace(arrived, pool=pool)

    def _improved(self, state: Pooled, bench: Workbench) -> Pooled:
        """The state with a generator that has learned from the pool, and the model that has learned from both."""
        from edgesim.learning.generator import NOISE, ImageGenerator

        options, theta = self.options, state.weights
        counts = class_counts(state.pool)
        by_class, held = theta.new_tensor(shares_by_class(self._aged(state.pool), counts)), counts.sum(0)
        random = self.streams.generator("kpfl", round=bench.round)

        def batches(steps: int) -> Iterator[tuple[Tensor, Tensor]]:
            for _ in range(steps):
                labels = random.choice(len(held), options.batch, p=held / held.sum())
                noise = random.standard_normal((options.batch, NOISE))
                yield theta.new_tensor(noise), torch.from_numpy(labels).to(theta.device)

        maker = ImageGenerator(bench.image_shape, len(held), theta)
        generator = state.generator or maker.new(self.streams.generator("kpfl-generator"))
        strengths = options.ce, options.contrast, options.diversity
        models = bench.frozen([entry.model for entry in state.pool.values()])
        loss = objective(bench.inputs, models, by_class, bench.frozen([theta]), options.T, strengths)
        generator = maker.trained(generator, batches(options.generator_steps), loss)
        asked = list(batches(options.distil_steps))
        images = [bench.inputs(maker.images(generator, *batch)) for batch in asked]
        taught = [ensemble(models, by_class, some, labels) for some, (_, labels) in zip(images, asked, strict=True)]
        weights = distilled(bench, theta, images, taught)
        if options.validation_accept and _hits(bench, weights) <= _hits(bench, theta):
            weights = theta
        return replace(state, weights=weights, generator=generator)

    def _aged(self, pool: Mapping[int, Member]) -> Floats:
        """aw of the pool's devices, [S]."""
        active, idle = (np.array([getattr(entry, name) for entry in pool.values()]) for name in ("active", "idle"))
        return age_weights(active, idle, self.options.age_active, self.options.age_idle)

    def _shares(self, pool: Mapping[int, Member]) -> Floats:
        """W of the pool's devices, [S]; NaN without a data set."""
        counts = class_counts(pool)
        return shares(self._aged(pool), counts) if counts.shape[1] else np.full(len(counts), np.nan)


def _resolved(config: RunConfig, given: Mapping[str, Any]) -> KpflOptions:
    options = options_of(given)
    if options.settings != "paper":
        return options
    return options_of(tuned(config.algorithm.name, config.data.dataset, config.availability.model) | dict(given))


def _effective(options: Mapping[str, Any]) -> dict[str, Any]:
    """All options, or without distillation those of the weights alone."""
    if options.get("keep") != "first":
        return dict(options)
    return {name: options[name] for name in ("keep", "settings", "age_active", "age_idle") if name in options}


def _note(options: KpflOptions, config: RunConfig, rounds: float) -> str:
    """Messages on the origin of options that the paper tuned, and on age exponents that may reach their bound."""
    return "; ".join(note for note in (_origin_of_settings(options, config), _bound(options, rounds)) if note)


def _origin_of_settings(options: KpflOptions, config: RunConfig) -> str:
    if options.settings != "paper":
        return ""
    name, presence = config.algorithm.name, config.availability.model
    own = tuned_on(name, config.data.dataset, presence)
    settings = f"has none for {name!r} under availability.model = {presence!r}: its program's defaults are used"
    if own is not None:
        settings = f"tuned them for {name!r} under {LAWS[presence]} participation, on {own}"
    return f"algorithm.kpfl.settings = 'paper': the paper {settings}"


def _bound(options: KpflOptions, rounds: float) -> str:
    far = {f"age_{name}": abs(getattr(options, f"age_{name}")) for name in ("active", "idle")}
    reached = [f"{name} after {MOST / rate:.0f} rounds" for name, rate in far.items() if rate * rounds > MOST]
    if not reached:
        return ""
    return f"algorithm.kpfl: exponents are bounded at {MOST:g}, which is reached by {' and '.join(reached)}"


def _ids(pool: Mapping[int, Member]) -> Integers:
    return np.array(list(pool), dtype=np.int64)


def _hits(bench: Workbench, weights: Tensor) -> int:
    """Number of the server's own images that a model classifies correctly."""
    batches = bench.batches(bench.validation)
    pairs = zip(bench.outputs(weights, batches), batches, strict=True)
    return sum(int((outputs.logits.argmax(1) == bench.labels(batch)).sum()) for outputs, batch in pairs)


def _inner(state: Pooled) -> State:
    """The state of the half inside, with the model as it is now."""
    return replace(state.inner, weights=state.weights, shared=state.shared)


def _with(state: Pooled, inner: State) -> Pooled:
    """The state with another state of the half inside, and the model of that."""
    return replace(state, inner=inner, weights=inner.weights, shared=inner.shared)


KPFL = Wrapper(
    KpflOptions,
    Kpfl,
    _resolved,
    tuned,
    _effective,
    _note,
    needs=frozenset({"joint merges", "frames from the last model", "updates without residuals"}),
    rules=(
        Rule(
            {},
            {
                "algorithm.weights": (None, "samples"),
                "algorithm.proto_weights": (None, "equal"),
                "algorithm.stale_prototypes": (None, False),
                "round.protocol_options.server_lr": (None, 1),
            },
            _BY_DATA_AND_AGE,
        ),
        without_age({}, _BY_DATA_AND_AGE),
        Rule(
            {"algorithm.kpfl.keep": "first"},
            {"algorithm.kpfl.validation_accept": False, "algorithm.kpfl.server_s_per_step": 0},
            "the server trains nothing",
        ),
        Rule({"algorithm.kpfl.validation_accept": True}, {"data.validation_per_class": GIVEN}),
        Rule(
            {"algorithm.kpfl.server_s_per_step": Except([0])},
            {},
            "without rounds devices work on while the server computes",
            ("rounds",),
        ),
    ),
    excluded=(
        ({"merging.rule": "stagnation"}, "KPFL's pool ages with every round"),
        ({"upload.feedback": "residual"}, "its pool uses updates again; set upload.feedback = 'ef21' or 'none'"),
        ({"algorithm.server_passes": Except([0, None])}, "its server distils a pool instead"),
        ({"algorithm.average_weights": False}, "no models are averaged"),
    ),
)
"""KPFL around an algorithm whose server averages models."""
