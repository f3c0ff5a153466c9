"""What to take at equal simulated seconds, bits sent up and joules: the tables and the figures of a study."""

from collections.abc import Sequence
from functools import partial

import pandas as pd

from edgesim.analysis.recommendation import UNDISTINGUISHED
from edgesim.api.study import StudyResult
from edgesim.folder.records import setting
from edgesim.scenario import figures, tables

__all__ = ["map_winners", "name_silent", "recommend"]


def recommend(study: StudyResult, place: str, choice: str, foremost: Sequence[str], formats: figures.Formats) -> None:
    """Print, write and draw which value of the knob ``choice`` to take at each value of the knob ``place``.

    The tables are those of `tables.recommendation`; the figure is ``plots/cost_curves``, in which values ``foremost``
    are thick.
    """
    tables.recommendation(study.folder, place, choice)
    finished = study.plan.finished
    draws = partial(figures.draw_cost_curves, finished, place, choice, foremost)
    figures.Album(study.folder / "plots", formats).add("cost_curves", draws, finished, foremost)


def name_silent(study: StudyResult, silent: pd.DataFrame, place: str, choice: str) -> None:
    """Print, and write into ``cannot_send.csv``, at which places no device can send with which choices, if at any.

    ``silent`` as from `edgesim.scenario.reach.leave_out_silent` with the knobs ``place`` and ``choice``.
    """
    path = study.folder / "cannot_send.csv"
    path.unlink(missing_ok=True)
    if len(silent):
        tables.save(silent, path)
        title = f"With these values of {choice} no device can send by the deadline: they lose there without a run"
        tables.show_texts(silent, title, [place, choice])


def map_winners(study: StudyResult, place: str, knobs: tuple[str, str], formats: figures.Formats) -> None:
    """Draw ``plots/winner_map``: what `recommend` says to take at each value of the knob ``place``, by cost.

    Each place lies where its runs have the two ``knobs`` of the config, numbers such as ``round.tmax_s``; it is grey
    where nothing is shown to be better than all others.
    """
    finished, (x, y) = study.plan.finished, [knob.rpartition(".")[2] for knob in knobs]
    lies = pd.DataFrame(
        {place: run.knobs[place]}
        | {to: float(setting(run.folder, run.config, of, int, float)) for of, to in zip(knobs, (x, y), strict=True)}
        for run in finished
    ).drop_duplicates()
    winners = pd.read_csv(study.folder / "recommendation.csv").merge(lies, on=place)
    winners["winner"] = winners["take"].where(winners["take"] != UNDISTINGUISHED, "")
    winners["cost"] = "equal " + winners["cost"]
    draw = partial(figures.draw_winner_map, winners, x, y, "winner", "cost")
    figures.Album(study.folder / "plots", formats).add("winner_map", draw, finished, place, knobs)
