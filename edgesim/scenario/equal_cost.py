"""What to take at equal simulated seconds, bits sent up and joules: the tables and the figure of a study."""

from collections.abc import Sequence
from functools import partial

from edgesim.api.study import StudyResult
from edgesim.scenario import figures, tables


def recommend(study: StudyResult, place: str, choice: str, foremost: Sequence[str], formats: figures.Formats) -> None:
    """Print, write and draw which value of the knob ``choice`` to take at each value of the knob ``place``.

    The tables are those of `tables.recommendation`; the figure is ``plots/cost_curves``, in which values ``foremost``
    are thick.
    """
    tables.recommendation(study.folder, place, choice)
    finished = study.plan.finished
    draws = partial(figures.draw_cost_curves, finished, place, choice, foremost)
    figures.Album(study.folder / "plots", formats).add("cost_curves", draws, finished, foremost)
