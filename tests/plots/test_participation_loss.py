import math
from pathlib import Path

import pytest
from matplotlib.container import BarContainer

from edgesim.analysis.runs import RunFolder
from edgesim.analysis.static_pairs import Pair
from edgesim.plots.gallery import draw
from edgesim.plots.participation_loss import draw_participation_loss, panels_of_pairs


def run(algorithm: str, availability: str, seed: int, **knobs: float) -> RunFolder:
    named = {"policy": "random", "algorithm": algorithm, "availability": availability, **knobs}
    return RunFolder(Path(f"{algorithm}-{availability}-{sorted(knobs.items())}-{seed}"), named, seed)


def pairs(algorithm: str, availability: str, lost: list[float], **knobs: float) -> list[Pair]:
    return [
        Pair(run(algorithm, availability, seed, **knobs), run(algorithm, "always", seed), points)
        for seed, points in enumerate(lost)
    ]


def bars(axes):
    """Place and length of each bar."""
    groups = [group for group in axes.containers if isinstance(group, BarContainer)]
    return [(bar.get_y() + bar.get_height() / 2, bar.get_width()) for group in groups for bar in group]


def test_a_panel_per_law_has_a_bar_per_algorithm_of_the_mean_idp_over_seeds():
    found = pairs("fedavg", "markov", [8, 9, 10]) + pairs("mifa", "markov", [-2, 0, -1])
    found += pairs("mifa", "bernoulli", [3, 3, 3])
    figure = draw_participation_loss(found)
    markov, bernoulli = figure.axes
    assert [axes.get_title() for axes in figure.axes] == ["(a) markov", "(b) bernoulli"]
    assert [text.get_text() for text in markov.get_yticklabels()] == ["fedavg", "mifa"]
    assert bars(markov) == [(pytest.approx(0), pytest.approx(9)), (pytest.approx(1), pytest.approx(-1))]
    assert bars(bernoulli) == [(pytest.approx(1), pytest.approx(3))]
    assert "percentage points" in markov.get_xlabel()
    assert "95 % interval" in markov.get_xlabel()
    (axes,) = draw_participation_loss(pairs("fedavg", "markov", [8, 9, 10])).axes
    ((low, _), (high, _)) = axes.containers[-1].errorbar.lines[2][0].get_segments()[0]
    half = 4.302652730 / math.sqrt(3)  # t(0.975, 2 degrees of freedom), standard deviation 1
    assert (low, high) == (pytest.approx(9 - half), pytest.approx(9 + half))
    assert axes.get_xlim()[1] > high


def test_the_knobs_in_which_a_run_differs_from_its_static_run_name_its_panel():
    found = pairs("fedavg", "markov", [1], join=0.2) + pairs("mifa", "markov", [2], join=0.4)
    found += pairs("mifa", "markov", [2], join=0.2)
    panels = panels_of_pairs(found)
    assert [panel.title for panel in panels] == ["markov, join = 0.2", "markov, join = 0.4"]
    assert [[series.label for series in panel.series] for panel in panels] == [["fedavg", "mifa"], ["mifa"]]


@pytest.mark.usefixtures("figures_as_text")
def test_the_gallery_draws_the_loss_where_static_runs_are_among_the_runs(tmp_path, run_writer):
    laws = {"always": {"model": "always"}, "markov": {"model": "markov"}}
    static, markov = (run_writer(tmp_path / name, rounds=2, extra={"availability": law}) for name, law in laws.items())
    other = run_writer(tmp_path / "other", rounds=2, extra={"availability": laws["markov"], "learning": {"lr": 1.0}})
    assert "participation_loss" in {path.stem for path in draw([static, markov], tmp_path / "figures")}
    assert "participation_loss" not in {path.stem for path in draw([static, other], tmp_path / "none")}
