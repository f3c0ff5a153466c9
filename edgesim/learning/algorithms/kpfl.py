"""KPFL: a plug-in for dynamic participation, around any algorithm whose server averages models (DPFL's paper).

The server keeps the last model of every device that ever took part. Instead of what arrived it averages this pool, each
model by its device's data and by how long the device has been here or away, and then distils the pool's knowledge into
the average with images that a generator makes. Where paper and program leave a question open: weights are normalised
and exponents bounded (`edgesim.learning.algorithms.knowledge_pool`), gradients reach the generator through the frozen
models, the centre of a class is the mean of its images' features, and logits are compared without a temperature.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from typing_extensions import override

from edgesim.base.arrays import Floats
from edgesim.base.needs import GIVEN, Except, Rule
from edgesim.config import RunConfig
from edgesim.learning.algorithms.algorithm import (
    Algorithm,
    Arrivals,
    Device,
    MadeImages,
    Outputs,
    Sizes,
    State,
    UpdatePool,
    Workbench,
    has_own,
)
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
from edgesim.learning.algorithms.kpfl_settings import LAWS, KpflOptions, tuned_on
from edgesim.learning.algorithms.staleness import without_age
from edgesim.learning.torch_types import Tensor
from edgesim.streams import Streams

if TYPE_CHECKING:
    from edgesim.learning.generator import TrainedGenerator


METHODS = (
    *("start", "in_new_frame", "prepare", "given", "weigh", "merge", "counted", "counted_untrained", "refine"),
    *("server_s", "start_note"),
)
"""Methods of the wrapped algorithm that KPFL replaces."""


@dataclass(kw_only=True)
class Pooled(State):
    """The model, the state of the algorithm inside, the pool, and the generator once there is one."""

    inner: State
    pool: Entries = field(default_factory=dict)
    shares: Floats = field(default_factory=lambda: np.empty(0))
    """W of the pool's devices, [S]."""
    generator: TrainedGenerator | None = None


_BY_DATA_AND_AGE = "the models of all devices are weighed by their data and ages"


class Kpfl(Algorithm):
    """KPFL's methods, which replace those of the wrapped algorithm."""

    Options = KpflOptions
    needs: ClassVar[frozenset[str]] = frozenset({"joint merges"})
    rules: ClassVar[tuple[Rule, ...]] = (
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
    )
    keeps_state: ClassVar[bool] = True

    def __init__(self, base: Algorithm, options: KpflOptions, sizes: Sizes, streams: Streams) -> None:
        super().__init__(options, sizes, streams)
        self.base = copy.copy(base)
        self.base.has_model_pool = True

    def around(self) -> Algorithm:
        """The algorithm inside, with the server's part of KPFL."""
        whole = copy.copy(self.base)
        # A run judges by logits, and needs no state for it, where no method of the algorithm says otherwise.
        own_scores = has_own(self.base, "scores")
        for name in (*METHODS, *["scores"] * own_scores):
            setattr(whole, name, getattr(self, name))
        whole.tables = self.base.tables + 1
        whole.equal_weights = False
        whole.update_weights = "by the data and ages of all devices of the pool (KPFL)"
        if self.options.keep == "improved":
            batch, steps = self.options.batch, self.options.distil_steps
            whole.made_images = MadeImages(
                batch, batch * steps, "algorithm.kpfl.keep", self.options.keep, "set it to 'first'"
            )
        return whole

    @override
    def start(self, weights: Tensor) -> Pooled:
        """The pool is empty."""
        inner = self.base.start(weights)
        return Pooled(inner.weights, inner.shared, inner=inner)

    @override
    def in_new_frame(self, state: Pooled) -> Pooled:
        """The state of a new frame: that of the algorithm inside starts anew, pool and generator persist."""
        return _with(state, self.base.in_new_frame(_inner(state)))

    @override
    def prepare(self, state: Pooled, bench: Workbench) -> Pooled:
        return _with(state, self.base.prepare(_inner(state), bench))

    @override
    def given(self, state: Pooled, kept: Mapping[str, Tensor], device: Device, ledger: Any) -> dict[str, Tensor]:
        return self.base.given(_inner(state), kept, device, ledger)

    @override
    def scores(self, outputs: Outputs, state: Pooled) -> Tensor:
        return self.base.scores(outputs, _inner(state))

    @override
    def weigh(self, arrived: Arrivals) -> Floats:
        """NaN: the weights of updates are known once they are in the pool (`counted`)."""
        return np.full(len(arrived.ids), np.nan)

    @override
    def counted(self, state: Pooled, arrived: Arrivals, alpha: Floats) -> Floats:
        """W of the devices whose updates arrived, [S]; those that are away have the rest."""
        return of_arrivals(arrived, dict(zip(state.pool, state.shares.tolist(), strict=True)))

    @override
    def counted_untrained(
        self, record: dict[int, Member] | None, arrived: Arrivals, alpha: Floats
    ) -> tuple[dict[int, Member], Floats]:
        """W as in `counted`, which depends on data and ages alone; NaN without a data set. The record is the pool."""

        def member(row: int, active: int) -> Member:
            return Member(class_counts=arrived.class_counts[row], active=active)

        pool = renewed(record or {}, arrived, member)
        if not arrived.class_counts.shape[1]:
            return pool, self.weigh(arrived)
        return pool, of_arrivals(arrived, dict(zip(pool, self._shares(pool).tolist(), strict=True)))

    @override
    def merge(self, state: Pooled, arrived: Arrivals, alpha: Floats, ledger: Any) -> Pooled:
        """The pool with the arrivals, and Theta = sum_i W_i theta_i over all of it, buffers included (eq. 4).

        The rest of the state, such as SCAFFOLD's control, the algorithm inside makes of the arrivals.
        """
        alike = np.full(len(arrived.ids), 1 / max(1, len(arrived.ids)))
        merged = self.base.merge(_inner(state), arrived, alike, ledger)

        def entry_of(row: int, active: int) -> Entry:
            up = {name: arrived.up[name][row] for name in self.base.pooled_up}
            model = arrived.starts[row] + arrived.separate[row]
            return Entry(class_counts=arrived.class_counts[row], active=active, model=model, up=up)

        pool = renewed(state.pool, arrived, entry_of)
        counts, mean = self._shares(pool), state.weights.new_zeros(len(state.weights))
        for share, entry in zip(counts.tolist(), pool.values(), strict=True):
            mean.add_(entry.model, alpha=share)
        return _with(replace(state, pool=pool, shares=counts), replace(merged, weights=mean))

    @override
    def refine(self, state: Pooled, arrived: Arrivals, ledger: Any, bench: Workbench) -> Pooled:
        """The state after `refine` and `pooled` of the algorithm inside, then improved by distillation (eqs. 5-8)."""
        pool = state.pool
        last = UpdatePool(
            state.shares,
            [entry.model for entry in pool.values()],
            {name: [entry.up[name] for entry in pool.values()] for name in self.base.pooled_up},
        )
        inner = self.base.pooled(self.base.refine(_inner(state), arrived, ledger, bench), last, ledger, bench)
        state = _with(state, inner)
        return self._improved(state, last, bench) if self.options.keep == "improved" else state

    def _improved(self, state: Pooled, pool: UpdatePool, bench: Workbench) -> Pooled:
        """The state with a generator that has learned from the pool, and the model that has learned from both."""
        import torch

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
        models = bench.frozen(pool.models)
        loss = objective(bench.inputs, models, by_class, bench.frozen([theta]), options.T, strengths)
        generator = maker.trained(generator, batches(options.generator_steps), loss)
        asked = list(batches(options.distil_steps))
        images = [bench.inputs(maker.images(generator, *batch)) for batch in asked]
        taught = [ensemble(models, by_class, some, labels) for some, (_, labels) in zip(images, asked, strict=True)]
        weights = distilled(bench, theta, images, taught)
        if options.validation_accept and _hits(bench, weights) <= _hits(bench, theta):
            weights = theta
        return replace(state, weights=weights, generator=generator)

    @override
    def start_note(self, config: RunConfig, rounds: float) -> str:
        """Messages on the origin of options that the paper tuned, and on age exponents that may reach their bound."""
        notes = [self._origin_of_settings(config), self._bound_of_exponents(rounds)]
        return "; ".join(note for note in notes if note)

    def _origin_of_settings(self, config: RunConfig) -> str:
        if self.options.settings != "paper":
            return ""
        name, presence = config.algorithm.name, config.availability.model
        own = tuned_on(name, config.data.dataset, presence)
        settings = f"has none for {name!r} under availability.model = {presence!r}: its program's defaults are used"
        if own is not None:
            settings = f"tuned them for {name!r} under {LAWS[presence]} participation, on {own}"
        return f"algorithm.kpfl.settings = 'paper': the paper {settings}"

    def _bound_of_exponents(self, rounds: float) -> str:
        far = {f"age_{name}": abs(getattr(self.options, f"age_{name}")) for name in ("active", "idle")}
        reached = [f"{name} after {MOST / rate:.0f} rounds" for name, rate in far.items() if rate * rounds > MOST]
        if not reached:
            return ""
        return f"algorithm.kpfl: exponents are bounded at {MOST:g}, which is reached by {' and '.join(reached)}"

    @override
    def server_s(self, updates: int) -> float:
        """Simulated seconds of the steps on generator and model, if there are any."""
        options = self.options
        steps = (options.generator_steps + options.distil_steps) * (options.keep == "improved" and updates > 0)
        return float(options.server_s_per_step * steps)

    def _aged(self, pool: Mapping[int, Member]) -> Floats:
        """aw of the pool's devices, [S]."""
        active, idle = (np.array([getattr(entry, name) for entry in pool.values()]) for name in ("active", "idle"))
        return age_weights(active, idle, self.options.age_active, self.options.age_idle)

    def _shares(self, pool: Mapping[int, Member]) -> Floats:
        """W of the pool's devices, [S]."""
        return shares(self._aged(pool), class_counts(pool))


def _hits(bench: Workbench, weights: Tensor) -> int:
    """Number of the server's own images that a model classifies correctly."""
    batches = bench.batches(bench.validation)
    pairs = zip(bench.outputs(weights, batches), batches, strict=True)
    return sum(int((outputs.logits.argmax(1) == bench.labels(batch)).sum()) for outputs, batch in pairs)


def _inner(state: Pooled) -> State:
    """The state of the algorithm inside, with the model as it is now."""
    return replace(state.inner, weights=state.weights, shared=state.shared)


def _with(state: Pooled, inner: State) -> Pooled:
    """The state with another state of the algorithm inside, and the model of that."""
    return replace(state, inner=inner, weights=inner.weights, shared=inner.shared)
