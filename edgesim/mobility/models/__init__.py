"""The registry of models of motion: drawn at random or recorded."""

from collections.abc import Mapping
from typing import Any

from edgesim.base.errors import EdgesimError
from edgesim.base.registry import Registry
from edgesim.base.validation import entry_of
from edgesim.mobility.checked_law import CheckedLaw
from edgesim.mobility.models.direction import Direction
from edgesim.mobility.models.manhattan import Manhattan
from edgesim.mobility.models.motion import Motion
from edgesim.mobility.models.recorded import Recorded
from edgesim.mobility.models.waypoint import Waypoint
from edgesim.mobility.paths import Ground, Paths
from edgesim.mobility.walk import Walk
from edgesim.streams import Streams

_OWN: dict[str, type[Motion]] = {
    "waypoint": Waypoint,
    "direction": Direction,
    "manhattan": Manhattan,
    "recorded": Recorded,
}
MODELS = Registry("mobility.model", "motion", Motion, _OWN)
"""Every model that ``mobility.model`` may name."""


def make_paths(model: str, options: Mapping[str, Any], ground: Ground, streams: Streams) -> Paths:
    """The paths of all devices of a run by a model with some of its options.

    Raises `EdgesimError` for an unknown name, a bad option, an option of another model or a bad file.
    """
    paths = entry_of(MODELS, model, options).make(ground, streams)
    if not isinstance(paths, Paths):
        returned = f"make returned {type(paths).__name__}, expected a subclass of {Paths.__module__}.Paths"
        raise EdgesimError(f"mobility.model {model!r}: {returned}", "mobility.model")
    if isinstance(paths, Walk) and model not in _OWN:
        paths.law = CheckedLaw(paths.law, model)
    return paths
