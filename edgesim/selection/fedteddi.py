"""FedTeddi: temporal-drift and divergence aware scheduling for federated learning at the wireless edge.

Each round the greedy of `edgesim.selection.greedy` picks a set that together looks like the global label mix,
is large enough to keep gradient noise low and, early in a frame, holds devices whose label mix just changed.
"""

import math
from typing import ClassVar, Literal

from pydantic import Field

from edgesim.base.quantities import Factor
from edgesim.selection import view
from edgesim.selection.class_weights import ClassWeights, Mode
from edgesim.selection.greedy import greedy, objective_terms
from edgesim.selection.shares import class_shares, share_changes
from edgesim.selection.view import Choice, RoundReport, RoundView, Source


class GreedyOptions(view.Options):
    """Knobs of the greedy, with and without drift."""

    p_source: Source = "batch"
    """Whether label shares are those of the round's mini-batches or of the data sets."""
    L_mode: Mode = "eq18"
    """How class weights are estimated, see `edgesim.selection.class_weights`; ``ones`` does without."""
    on_bw_fail: Literal["skip", "stop"] = "skip"
    """Reaction to a best candidate that does not fit the band."""


class FedTeddiOptions(GreedyOptions):
    """Knobs of FedTeddi."""

    lambda_0: Factor = Field(2.0, ge=0)
    """Drift weight at the start of a frame."""


def drift_weight(lambda_0: float, round_in_frame: int, rounds_in_frame: int) -> float:
    """lambda_k = lambda_0 (1 - k / K_l): 0 in a frame's last round, and in rounds beyond the horizon K_l."""
    return lambda_0 * max(0.0, 1 - round_in_frame / rounds_in_frame)


class FedTeddi:
    """Algorithm 1; it remembers the class weights L^(c), learnt from the devices that arrived."""

    Options: ClassVar[type[view.Options]] = FedTeddiOptions
    looks_at: frozenset[str] = frozenset({"class_counts", "gradient_deviations", "class_gradients"})

    def __init__(self, options: FedTeddiOptions, device_count: int, class_count: int) -> None:
        self.options = options
        self.state = ClassWeights.unknown(class_count)

    def choose(self, view: RoundView) -> Choice:
        """Yield devices in the greedy's order until the objective would rise."""
        source, know = self.options.p_source, view.knowledge
        class_weights = self.state.current(view.frame)
        # Over the candidates: of a device that is absent, or has not reported, no gradient is known.
        alpha = view.samples / view.samples.sum()
        sigma = float(alpha @ know.gradient_deviations(view.ids))
        terms = objective_terms(
            samples=view.samples,
            shares=class_shares(know.class_counts(view.ids, source)),
            global_shares=know.global_shares(source),
            drift=share_changes(view) @ class_weights,
            class_weights=class_weights,
            drift_weight=drift_weight(self.options.lambda_0, view.round_in_frame, view.rounds_in_frame),
            noise=sigma / math.sqrt(view.batch_size),
        )
        return greedy(terms, view.ids, self.options.on_bw_fail)

    def hear(self, report: RoundReport) -> None:
        """Estimate L^(c) at the new global model for the next round (eq. 18)."""
        mode = self.options.L_mode
        if mode == "ones" or len(report.arrived) == 0:
            return
        part: Literal["all", "last_linear"] = "last_linear" if mode == "lastlayer" else "all"
        self.state.learn(report.gradients.class_gradient_distances(report.arrived, part), mode)
