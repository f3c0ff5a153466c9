"""What runs have of the objectives of a tuning."""

import pytest
from small_runs import TIMING

from edgesim.analysis.measures import measure
from edgesim.analysis.runs import runs_of
from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.simulation import composition as simulation
from edgesim.tuning.objectives import find_objectives, seen


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two seeds of a timing-only run."""
    folders = [tmp_path_factory.mktemp("runs") / str(seed) for seed in (0, 1)]
    for seed, folder in enumerate(folders):
        simulation.run(parse(TIMING | {"seed": seed}, "test"), folder)
    return runs_of(folders)


def test_each_objective_is_the_mean_of_its_measure_over_the_seeds(runs):
    names = ("energy-j", "simulated-s", "bits-up", "arrived")
    of = [measure(run, None) for run in runs]
    expected = [(of[0][name] + of[1][name]) / 2 for name in ("energy_j", "simulated_s", "bits_up", "arrived")]
    assert seen(runs, find_objectives(names, None), None).values == pytest.approx(expected)


def test_a_run_that_has_nothing_of_an_objective_is_named(runs):
    with pytest.raises(EdgesimError, match=r"0: has no final_accuracy"):
        seen(runs, find_objectives(("energy-j", "final-accuracy"), None), None)
