"""Tests of the global model: their instants, and the rows of ``rounds`` with their results."""

import math
from dataclasses import dataclass
from typing import ClassVar

from edgesim.config import RunConfig
from edgesim.engine.clock import drift_s
from edgesim.engine.process import RoundNumber
from edgesim.engine.report import Report
from edgesim.learning.interface import Evaluation, Learner


def tests_by_time(config: RunConfig) -> bool:
    """Whether a resolved config tests at instants of simulated time, not at the ends of rounds."""
    return config.evaluation.every_s is not None and config.learning.training == "real"


@dataclass
class Evaluations:
    """Tests of one run: at every so many models, or of the model in force at each multiple of ``every_s``.

    A model is in force from the merge that made it until the next merge. It is tested when it is about to be replaced,
    if an instant has passed in the meantime: the server still has it then, and no event of the simulation is needed for
    it. The last model of a frame is always tested, at its row's end; until the next merge it counts as in force.
    """

    SAVED: ClassVar = ("_passed", "_frame", "_untested", "best", "_row", "_longest_row")

    config: RunConfig
    learner: Learner
    report: Report
    _passed: int = 0
    """Multiples of ``every_s`` whose test has been written."""
    _frame: int = 1
    _untested: bool = False
    """Whether the model in force has not been tested; the start model is, before the first round."""
    best: float = 0.0
    """The greatest accuracy of all tests, that of the start model among them."""
    accuracy: float | None = None
    """Accuracy of the last test, of which the start model's is the first; None before it."""
    _row: int = 0
    """Tests at ``stop_at_accuracy`` or above since the last one below it; counted with ``stop_after_tests`` alone."""
    _longest_row: int = 0
    """The greatest value of ``_row`` so far."""

    def evaluate(self, frame: int) -> Evaluation | None:
        """Test the model as it is on the classes of a frame; None where nothing is trained."""
        evaluation = self.learner.evaluate(frame)
        if evaluation is not None:
            self.best, self.accuracy = max(self.best, evaluation.accuracy), evaluation.accuracy
            if self.config.stop_after_tests is not None:
                self._row = self._row + 1 if evaluation.accuracy >= (self.config.stop_at_accuracy or 0) else 0
                self._longest_row = max(self._longest_row, self._row)
        return evaluation

    def why_enough(self, goal: float) -> str:
        """Why the run ends with the accuracy of its tests, as one line; empty while they are not good enough."""
        in_row = self.config.stop_after_tests
        if in_row is None:
            return f"stop_at_accuracy = {goal:g}, a test has {self.best:.4g}" if self.best >= goal else ""
        return f"stop_at_accuracy = {goal:g}, {in_row} tests in a row have it" if self._longest_row >= in_row else ""

    def of_row(self, number: RoundNumber, now_s: float) -> Evaluation | None:
        """Test the model that a round, or a merge without rounds, has just made, if it is due at once."""
        every, every_s = self.config.evaluation.every, self.config.evaluation.every_s
        due = number.last_of_frame or (every is not None and number.round % every == 0)
        if due and every_s is not None:
            # An instant at the row's end is written with the row.
            self._passed = max(self._passed, math.floor((now_s + self._slack_s) / every_s))
        self._frame, self._untested = number.frame, not due
        return self.evaluate(number.frame) if due else None

    def before_merge(self, replaced_s: float) -> None:
        """Test the model that a merge replaces at an instant, if another instant has passed while it was in force.

        An instant at the very time of the merge falls to the model that the merge makes; none lies after the run's end.
        """
        stop_at_s = self.config.stop_at_s
        end_s = math.inf if stop_at_s is None else stop_at_s + self._slack_s
        self._look_back(min(replaced_s - self._slack_s, end_s))

    def end(self, now_s: float) -> None:
        """Test the last model of a run, if an instant has passed while it was in force."""
        self._look_back(now_s + self._slack_s)

    def _look_back(self, until_s: float) -> None:
        every_s = self.config.evaluation.every_s
        if every_s is None or not tests_by_time(self.config):
            return
        instants_s = []
        while (instant_s := (self._passed + 1) * every_s) < until_s:
            instants_s.append(instant_s)
            self._passed += 1
        evaluation = self.evaluate(self._frame) if instants_s and self._untested else None
        self._untested = self._untested and evaluation is None
        self.report.write_row(evaluation, instants_s)

    @property
    def _slack_s(self) -> float:
        """Distance from an instant of evaluation, in s, up to which a time counts as that instant."""
        return drift_s(self.config.round.tmax_s)
