"""What every scenario script needs: lists from the command line, plain errors, the table and the figures at the end."""

from pathlib import Path

from rich.console import Console

from edgesim.cli import plain_errors
from edgesim.errors import EdgesimError
from edgesim.plots.gallery import draw
from edgesim.show import print_study

__all__ = ["conclude", "names", "numbers", "plain_errors"]


def names(text: str) -> list[str]:
    """A list of names separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def numbers(text: str) -> list[float]:
    """A list of numbers separated by commas; raises `EdgesimError`."""
    try:
        return [float(number) for number in names(text)]
    except ValueError:
        raise EdgesimError(f"{text!r}: expected numbers separated by commas, such as 0.8,1.0,1.2") from None


def conclude(study_folder: Path) -> None:
    """Print a study's table and draw its figures into ``plots/`` of its folder."""
    console = Console()
    print_study(study_folder, console)
    figures = draw([study_folder], study_folder / "plots")
    console.print(f"{len(figures)} figures in {study_folder / 'plots'}; table in {study_folder / 'summary.csv'}")
