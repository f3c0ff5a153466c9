"""The figures of one folder, each drawn only when what it shows has changed, or it has."""

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from edgesim.analysis.made import Made, digest_of
from edgesim.analysis.runs import Run
from edgesim.plots.style import save


class Album:
    """Figures that are being put into a folder; ``files`` are the paths of all of them, drawn now or before."""

    def __init__(self, out: Path) -> None:
        self.files: list[Path] = []
        self._out = out
        self._made = Made(out)

    def add(self, stem: str, draw: Callable[[], Figure], runs: Sequence[Run], *facts: object) -> None:
        """The figure ``stem`` of these runs and of whatever else decides what it shows, as PNG and SVG."""
        digest = digest_of(runs, *facts)
        files = [self._out / f"{stem}.{kind}" for kind in ("png", "svg")]
        if self._made.current(stem, digest) is None:
            files = save(draw(), self._out / stem)
            self._made.note(stem, digest, files)
        self.files += files
