"""Figures by name that are made on demand, and the figures of a folder, redrawn only if something has changed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from edgesim.analysis.products import Products, digest_of
from edgesim.analysis.runs import RunFolder
from edgesim.plots.formats import USUAL_FORMATS, Formats, known_formats
from edgesim.plots.style import save


@dataclass(frozen=True)
class Picture:
    """The function that makes a figure, and what the figure depends on."""

    make: Callable[[], Figure]
    runs: Sequence[RunFolder]
    facts: tuple[object, ...]
    """Further values on which the figure depends."""


class Pictures(dict[str, Picture]):
    """Figures by name, in the order in which they are drawn; a name that is added again stands for the last."""

    def add(self, name: str, make: Callable[[], Figure], runs: Sequence[RunFolder], *facts: object) -> None:
        """Add a figure that depends on the runs and on further ``facts``."""
        self[name] = Picture(make, runs, facts)


class Album:
    """The figures of a folder; ``files`` are the paths of all that were added, whether drawn now or kept.

    Raises `EdgesimError` for unknown formats.
    """

    def __init__(self, out: Path, formats: Formats = USUAL_FORMATS) -> None:
        self.files: list[Path] = []
        self._out = out
        self._formats = known_formats(formats)
        self._products = Products(out)

    def add(self, stem: str, draw: Callable[[], Figure], runs: Sequence[RunFolder], *facts: object) -> None:
        """Add the figure ``stem`` in every format; it depends on the runs and on further ``facts``."""
        digest = digest_of(runs, *facts)
        names = {kind: f"{stem}.{kind}" for kind in self._formats}
        stale = [kind for kind in self._formats if self._products.current(names[kind], digest) is None]
        if stale:
            for kind, file in zip(stale, save(draw(), self._out / stem, stale), strict=True):
                self._products.note(names[kind], digest, [file])
        self.files += [self._out / name for name in names.values()]

    def add_all(self, pictures: Pictures) -> None:
        """Add every figure of a catalogue."""
        for name, picture in pictures.items():
            self.add(name, picture.make, picture.runs, *picture.facts)
