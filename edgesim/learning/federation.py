"""The data of one run: a dataset, its spread over devices, and the public images."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from edgesim import joining
from edgesim.base.arrays import Integers
from edgesim.base.errors import EdgesimError
from edgesim.config import RunConfig
from edgesim.learning import drift
from edgesim.learning.datasets import Dataset, load_shared
from edgesim.learning.drift.frames import blank
from edgesim.learning.drift.holdings import Holdings
from edgesim.learning.drift.law import Drift, Setting
from edgesim.streams import Streams


@dataclass(frozen=True, eq=False)
class Federation:
    """A dataset and its spread over devices."""

    dataset: Dataset | None
    drift: Drift
    public: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Indices into the training set that no device holds and all know, [m], in the order of `Shared.public`."""
    validation: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """Indices into the training set that the server alone has, ascending, [v]."""

    @property
    def frames(self) -> Sequence[Holdings]:
        """Data sets before the first round (frame 0), and at the start of each frame."""
        return self.drift.frames

    @property
    def class_count(self) -> int:
        """Number of classes C; 0 without a dataset."""
        return int(self.frames[0].class_counts.shape[1])

    @property
    def old_classes(self) -> Integers:
        """Classes of frame 0, ascending."""
        return self.frames[0].classes_seen


def make_federation(config: RunConfig, streams: Streams) -> Federation:
    """Load the dataset and spread it over the devices; raises `EdgesimError`.

    Without a dataset (``none``) every device has ``samples_per_device`` samples of no class, in as many
    frames as ``rounds`` lists.
    """
    config = config.model_copy(update={"data": drift.resolve_data(config)})
    law, data = drift.make_law(config.drift), config.data
    if data.dataset == "none":
        assert data.samples_per_device is not None
        frames = len(config.rounds) if isinstance(config.rounds, list) else 1
        return Federation(None, blank(config.devices.count, data.samples_per_device, frames))
    shared = load_shared(data)
    dataset, private = shared.dataset, shared.private
    if data.permute_labels:
        order = streams.generator("permute-labels").permutation(len(dataset.train_labels))
        dataset = replace(dataset, train_labels=dataset.train_labels[order])
    holds_out = joining.measured(config.joining) == "held_out"
    data_of_run = law.make(Setting(config, dataset, private, streams, holds_out))
    if holds_out and not data_of_run.held_out.parts:
        raise EdgesimError(
            f"joining.performance: 'measured' needs samples that devices hold out, and drift.law = "
            f"{config.drift.law!r} has none; give a number, or pass held_out=fleet.held_out to its Moving",
            "joining.performance",
            "drift.law",
        )
    return Federation(dataset, data_of_run, shared.public, shared.validation)
