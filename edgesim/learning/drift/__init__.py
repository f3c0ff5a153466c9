"""Which data devices hold as rounds or seconds pass: the drift laws and their registry."""

from edgesim.config import DriftConfig
from edgesim.learning.drift.frames import Frames
from edgesim.learning.drift.law import Law
from edgesim.validation import options_of

LAWS: dict[str, type[Law]] = {
    "frames": Frames,
}


def make_law(drift: DriftConfig) -> Law:
    """The law that a config names, with its options; raises `EdgesimError` for an unknown name or option."""
    return options_of(LAWS, drift.law, drift.options, "drift.law", "drift")


def resolve(drift: DriftConfig) -> DriftConfig:
    """The same section with the law's defaults written out; raises as `make_law` does."""
    return drift.with_options(make_law(drift).model_dump(exclude_none=True))
