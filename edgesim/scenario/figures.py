"""Figures that scenarios draw beside those of every study, and the album that keeps what is current.

Each function refuses runs that lack what it shows: `EdgesimError` names the first one.
"""

from edgesim.plots.accuracy import draw_accuracy
from edgesim.plots.album import Album
from edgesim.plots.cost_curves import draw_cost_curves
from edgesim.plots.formats import Formats
from edgesim.plots.groups import Panel, Series, panels_of
from edgesim.plots.heat_map import draw_heat_map
from edgesim.plots.learning_curve import draw_learning_curve
from edgesim.plots.missed_deadlines import draw_missed_deadlines
from edgesim.plots.noise import draw_noise
from edgesim.plots.partition import draw_partition
from edgesim.plots.prediction import Score, draw_costs, draw_over_time, draw_sensitivity
from edgesim.plots.radar import draw_radar
from edgesim.plots.rounds_to_target import draw_rounds_to_target, levels_around
from edgesim.plots.scaling import draw_scaling
from edgesim.plots.scheduled import draw_scheduled
from edgesim.plots.spread import draw_spread
from edgesim.plots.style import save
from edgesim.plots.throughput import draw_throughput
from edgesim.plots.trace import draw_anatomy
from edgesim.plots.training_loss import draw_training_loss
from edgesim.plots.winner_map import draw_winner_map

__all__ = [
    "Album",
    "Formats",
    "Panel",
    "Score",
    "Series",
    "draw_accuracy",
    "draw_anatomy",
    "draw_cost_curves",
    "draw_costs",
    "draw_heat_map",
    "draw_learning_curve",
    "draw_missed_deadlines",
    "draw_noise",
    "draw_over_time",
    "draw_partition",
    "draw_radar",
    "draw_rounds_to_target",
    "draw_scaling",
    "draw_scheduled",
    "draw_sensitivity",
    "draw_spread",
    "draw_throughput",
    "draw_training_loss",
    "draw_winner_map",
    "levels_around",
    "panels_of",
    "save",
]
