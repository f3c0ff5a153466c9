"""Declarations of algorithms, each of which names its two halves; and the options of both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from typing_extensions import override

from edgesim.base.arrays import Integers
from edgesim.base.needs import Condition, Rule
from edgesim.config import RunConfig, Section
from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.algorithms.records import Sizes
from edgesim.learning.algorithms.server_half import ServerHalf
from edgesim.streams import Streams

Half = Literal["local", "server"]


class Options(Section):
    """Base of an algorithm's options: typed, bounded, unknown names refused."""

    @property
    def sends_models(self) -> bool:
        """Whether models and updates travel; else each device trains, stores and is tested by a model of its own."""
        return True


class AveragingOptions(Options):
    """Options of algorithms that average updates."""

    weights: Literal["samples", "equal"] = "samples"
    """Weights of updates: by their devices' samples (FedAvg), or all equal (FedDance, SoCC 2025). Without rounds the
    protocol alone weighs updates."""


class Algorithm:
    """An algorithm: its two halves, its options, and what it needs of a run. By default it is FedAvg."""

    Options: ClassVar[type[Options]] = AveragingOptions
    """Options of both halves."""
    Local: ClassVar[type[LocalHalf]] = LocalHalf
    Server: ClassVar[type[ServerHalf]] = ServerHalf
    halves: ClassVar[frozenset[Half]] = frozenset()
    """Halves that may be combined with another algorithm's: the local objective, or the server's merge."""
    needs: ClassVar[frozenset[str]] = frozenset()
    """Features that a run must offer (`edgesim.simulation.needs.FEATURES`), such as ``rounds`` or ``public images``."""
    rules: ClassVar[tuple[Rule, ...]] = ()
    """Values of other keys that the algorithm's options need or rule out."""

    @override
    def __init_subclass__(cls) -> None:
        if foreign := [name for name in vars(cls) if not name.startswith("_") and not hasattr(Algorithm, name)]:
            raise TypeError(
                f"{cls.__name__}.{foreign[0]} is not asked of an algorithm; say what it needs in `needs` and `rules`, "
                "and what devices and server do in the classes that `Local` and `Server` name"
            )

    @classmethod
    def check(cls, options: Any, sizes: Sizes) -> None:
        """Refuse a run whose data or fleet are too small or too large for the algorithm; raises `EdgesimError`."""

    @classmethod
    def epochs_over(cls, options: Any, sizes: Sizes, held: Integers) -> list[tuple[int, int | None]]:
        """Sets on which devices or the server train by epochs, beside what the config asks for: their sizes, and the
        samples of a batch, None for the run's own. ``held`` are the sizes of the devices' data sets, [n].
        """
        return []


@dataclass(frozen=True)
class Wrapper:
    """A server half around that of any algorithm whose model is a weighted mean of models.

    Its options are the table ``algorithm.NAME`` of a config, under its name in the registry of wrappers.
    """

    Options: type[Options]
    around: Callable[[ServerHalf, Any, Sizes, Streams], ServerHalf]
    """Makes the half around another one, of options, sizes and streams."""
    resolved: Callable[[RunConfig, Mapping[str, Any]], Any]
    """The checked options of a run, of those that its config gives; raises `EdgesimError`."""
    published: Callable[[str, str, str], dict[str, Any]]
    """Options that its paper has for an algorithm, a data set and a model of presence; empty where it has none."""
    effective: Callable[[Mapping[str, Any]], dict[str, Any]]
    """Options of a run that have an effect."""
    note: Callable[[Any, RunConfig, float], str]
    """Messages on a run's options shown before the first of so many rounds; empty where there are none."""
    needs: frozenset[str]
    rules: tuple[Rule, ...]
    """Rules, and needs, as an `Algorithm` has them."""
    excluded: tuple[tuple[Mapping[str, Condition], str], ...]
    """Values of other keys that it does not go with, and why."""
