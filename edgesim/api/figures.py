"""Figures of several folders, saved as files."""

from collections.abc import Sequence
from pathlib import Path

from edgesim.analysis.runs import has_runs, read_study, runs_of
from edgesim.api.configs import paths_of
from edgesim.base.paths import as_path
from edgesim.plots.formats import USUAL, known_formats
from edgesim.screen.console import PlainConsole

_MOST_DIFFERENT = 3
"""Runs of one world differ in few settings beside those that figures name."""


def draw(
    folders: str | Path | Sequence[str | Path],
    out: str | Path | None = None,
    round: int | None = None,
    format: str = USUAL,
) -> list[Path]:
    """Save every figure that run folders, or one study folder, support; returns the files.

    They go to ``plots`` of the one folder, or to ``comparison`` beside several, unless ``out`` says otherwise.
    ``round`` is that of one run's Gantt chart; ``format`` one or several of png, svg and pdf, separated by commas. A
    figure that is current is kept. Raises `EdgesimError`.
    """
    from edgesim.plots import gallery
    from edgesim.plots.groups import beyond_labels

    formats = known_formats(format, "format")
    paths = paths_of(folders)
    if out is None and paths:
        out = paths[0] / "plots" if len(paths) == 1 else paths[0].parent / "comparison"
    console = PlainConsole(stderr=True)
    with console.status("drawing the figures"):
        files = gallery.draw(paths, as_path(out or "plots", "out"), round, formats)
    runs = [entry.run for entry in read_study(paths[0]).planned] if has_runs(paths[0]) else runs_of(paths)
    if unlabelled := beyond_labels(runs):
        what = "the runs are of different worlds: they" if len(unlabelled) > _MOST_DIFFERENT else "the runs"
        console.print(f"note: {what} also differ in {', '.join(unlabelled)}, which no label says", style="yellow")
    return files
