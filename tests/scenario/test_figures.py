"""What the figures of scenarios say of runs that lack what they show."""

import re

import pandas as pd
import pytest
from refusals import in_one_line

from edgesim.analysis.runs import RunFolder
from edgesim.config_file import parse
from edgesim.scenario import figures
from edgesim.simulation import composition as simulation

OF_NUMBERS = {"draw_anatomy", "draw_costs", "draw_learning_curve", "draw_over_time", "draw_sensitivity"}
"""Functions that are given numbers, and no runs."""
SUMMARY = pd.DataFrame({"skew": ["iid"], "method": ["afl"], "seeds": [1]})
LACKING = {
    "draw_accuracy": (lambda runs: figures.draw_accuracy(figures.panels_of(runs), "rounds"), "no model was tested"),
    "draw_cost_curves": (lambda runs: figures.draw_cost_curves(runs, "band", "policy"), "has no knob 'band'"),
    "draw_heat_map": (lambda runs: figures.draw_heat_map(SUMMARY, "skew", "method", "arrived"), "no column 'arrived'"),
    "draw_missed_deadlines": (
        lambda runs: figures.draw_missed_deadlines(runs, "speed_mps", "path_knowledge", "policy"),
        "has no knob 'speed_mps'",
    ),
    "draw_noise": (figures.draw_noise, "has no knob 'mechanism'"),
    "draw_partition": (lambda runs: figures.draw_partition(runs[0]), "its devices have no classes"),
    "draw_radar": (lambda runs: figures.draw_radar(SUMMARY, "skew", "method"), "no measure for a radar"),
    "draw_rounds_to_target": (
        lambda runs: figures.draw_rounds_to_target(figures.panels_of(runs), [0.8]),
        "no model was tested",
    ),
    "draw_scaling": (lambda runs: figures.draw_scaling(runs, "policy"), "runs of two numbers of devices or more"),
    "draw_scheduled": (lambda runs: figures.draw_scheduled([]), "there is no finished run"),
    "draw_spread": (lambda runs: figures.draw_spread(figures.panels_of(runs)), "no model was tested"),
    "draw_throughput": (lambda runs: figures.draw_throughput(figures.panels_of([])), "there is no finished run"),
    "draw_training_loss": (lambda runs: figures.draw_training_loss(figures.panels_of(runs)), "nothing was trained"),
    "draw_winner_map": (
        lambda runs: figures.draw_winner_map(SUMMARY, "skew", "method", "winner", "seeds"),
        "no column 'winner'",
    ),
    "levels_around": (lambda runs: figures.levels_around(0.8, runs), "no model was tested"),
}
"""A call with runs, or a summary, that cannot have the figure, and what is said."""


@pytest.fixture(scope="module")
def timed(tmp_path_factory):
    """A run of two rounds that trains nothing, on data without classes."""
    folder = tmp_path_factory.mktemp("figures") / "run"
    values = {"rounds": 2, "devices": {"count": 3}, "learning": {"training": "none"}}
    values |= {"data": {"dataset": "none"}, "round": {"payload_bits": 1e6}}
    simulation.run(parse(values, "test"), folder)
    return RunFolder(folder, {"policy": "random"}, 0)


@pytest.mark.parametrize("name", LACKING)
def test_a_run_that_lacks_what_a_figure_shows_is_refused_in_one_line(name, timed):
    call, message = LACKING[name]
    with in_one_line(re.escape(message)):
        call([timed])


def test_every_figure_of_runs_is_in_that_list():
    assert {name for name in figures.__all__ if name.startswith("draw_")} == {*LACKING, *OF_NUMBERS} - {"levels_around"}
