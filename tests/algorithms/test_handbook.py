"""What `docs/algorithms.md` shows is what works."""

import importlib
import re
from pathlib import Path

import pytest
from quadratics import Play, Quadratic

from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.learning.algorithms import ALGORITHMS
from edgesim.learning.algorithms.algorithm import Algorithm
from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.algorithms.server_half import ServerHalf
from edgesim.simulation import composition as simulation

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/algorithms.md").read_text()


@pytest.fixture
def mine(tmp_path, monkeypatch):
    skeleton, _ = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "handbook_skeleton.py").write_text(skeleton)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(ALGORITHMS, "mine", importlib.import_module("handbook_skeleton").Mine)
    return ALGORITHMS["mine"]


def test_the_skeleton_does_what_its_docstrings_say(mine):
    """Two steps of 0.1 on (w - 1)^2 / 2, held to their start by mu = 1, go (1 - 0.8^2) / 2 = 0.18 of the way."""
    play = Play(mine, [Quadratic(1.0)], {"mu": 1.0})
    assert play.round(0) == pytest.approx(0.09, abs=1e-12)
    change = 0.18 * (1 - 0.09)
    assert play.round(0) == pytest.approx(0.09 + (change + 0.18) / 2, abs=1e-12)


@pytest.mark.parametrize("protocol", ["synchronous", "buffered", "asynchronous"])
def test_the_skeleton_runs_under_the_protocols_that_it_allows(mine, protocol, tmp_path):
    values = {
        "rounds": 2,
        "devices": {"count": 4},
        "round": {"protocol": protocol, "admission": "count", "count": 2, "tmax_s": 1.0},
        "data": {"partition": "iid", "samples_per_device": 20},
        "learning": {"pretrain": False, "steps": 1, "back_end": "loop"},
        "algorithm": {"name": "mine", "mu": 0.5},
        "evaluation": {"samples": 20},
    }
    if protocol == "asynchronous":
        with pytest.raises(
            EdgesimError, match=r"^algorithm.name = 'mine' needs round.protocol = 'synchronous' or 'buffered'"
        ):
            simulation.run(parse(values, "test"), tmp_path / "run")
    else:
        assert simulation.run(parse(values, "test"), tmp_path / "run").status == "finished"


@pytest.mark.parametrize("base", [LocalHalf, ServerHalf, Algorithm])
def test_the_page_names_every_answer_of_a_half_and_of_an_algorithm(base):
    answers = {name for name in {**vars(base), **base.__annotations__} if not name.startswith("_")}
    assert answers <= set(re.findall(r"`(\w+)", PAGE))


def test_the_files_and_the_tests_that_the_page_names_are_there():
    for name in re.findall(r"`(\w+\.py)`", PAGE):
        assert any(
            (ROOT / folder / name).is_file() for folder in ("edgesim/learning/algorithms", "tests/algorithms")
        ), name
    for path in re.findall(r"(?:edgesim|tests)/[\w/]+\.py", PAGE):
        assert (ROOT / path).is_file(), path


def test_halves_that_may_be_combined_share_no_option_but_what_updates_count():
    for local in (kind for kind in ALGORITHMS.values() if "local" in kind.halves):
        for server in (kind for kind in ALGORITHMS.values() if "server" in kind.halves and kind is not local):
            assert local.Options.model_fields.keys() & server.Options.model_fields.keys() <= {"weights"}
