"""The figures of one folder; each is drawn only if its file or the data that it shows have changed."""

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from edgesim.analysis.made import Made, digest_of
from edgesim.analysis.runs import Run
from edgesim.plots.style import save


class Album:
    """The figures of a folder; ``files`` are the paths of all that were added, whether drawn now or kept."""

    def __init__(self, out: Path) -> None:
        self.files: list[Path] = []
        self._out = out
        self._made = Made(out)

    def add(self, stem: str, draw: Callable[[], Figure], runs: Sequence[Run], *facts: object) -> None:
        """Add the figure ``stem`` as PNG and SVG; it depends on the runs and on further ``facts``."""
        digest = digest_of(runs, *facts)
        files = [self._out / f"{stem}.{kind}" for kind in ("png", "svg")]
        if self._made.current(stem, digest) is None:
            files = save(draw(), self._out / stem)
            self._made.note(stem, digest, files)
        self.files += files
