"""Protocols of a user's own: one from the handbook, and bad ones, each refused in a line."""

import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest
from refusals import in_one_line
from whole_runs import config_of, play, stays

import edgesim
from edgesim.engine.protocols import PROTOCOLS
from edgesim.simulation import composition

PAGE = Path(__file__).parents[2] / "docs/writing-a-protocol.md"
TIMING = {
    "rounds": 6,
    "devices": {"count": 12},
    "round": {"payload_bits": 1e6, "tmax_s": 2.0, "admission": "count", "count": 5, "allocator": "equal_share"},
    "data": {"dataset": "none", "partition": "iid"},
    "learning": {"training": "none", "pretrain": False},
}
OWN = "own_protocol.EnoughArrived"

BAD = """
import simpy

from edgesim.base.needs import Rule
from edgesim.engine.protocols.protocol import Protocol
from edgesim.engine.ended_work import ended_work
from edgesim.engine.report import Origin, RoundRow
from edgesim.engine.synchronous import Rounds
from edgesim.engine.unsynchronised import Unsynchronised


def wanting(answer):
    return type("Wanting", (Protocol,), {"wanted": lambda self, taken, knobs: answer(taken)})


Nobody, Half, Yes = wanting(lambda taken: 0), wanting(lambda taken: taken / 2), wanting(lambda taken: True)


class Nameless(Protocol):
    has_rounds = False


def stepping(step):
    def begin(self, parts):
        rounds = Protocol.begin(self, parts)
        rounds.step = lambda number: step(parts, number)
        return rounds

    return type("Stepping", (Protocol,), {"begin": begin})


def no_step(parts, number):
    yield from ()
    return None


def spin(parts, number):
    while True:
        yield parts.clock.timeout(0)


def wait(parts, number):
    yield parts.clock.event()


def yield_three(parts, number):
    yield 3


def return_two(parts, number):
    yield parts.clock.timeout(1)
    return None, None


def merge_nothing(parts, number):
    yield from ()
    merged, now_s = parts.learner.merge([], parts.world.bands_hz[:0].astype(int)), parts.clock.now
    row = RoundRow(number.round, number.frame, now_s, now_s, 0, 0, 0, 0, 0, 0, 0.0)
    parts.report.round(row, ended_work([]), merged, Origin([], []), None, {})
    return None


Idle, Spins, Waits, Odd = map(stepping, (no_step, spin, wait, yield_three))
Ends, OfNothing = stepping(return_two), stepping(merge_nothing)


class Keeping(Rounds):
    again = []

    def _close(self, this):
        arrived, updates = super()._close(this)
        brought, self.again = self.again + updates, updates[:1]
        return arrived, brought


class Absent(Protocol):
    def begin(self, parts):
        pass


class BadOptions(Protocol):
    Options = dict


class BadRule(Protocol):
    merge_rule = int


class Fading(Protocol):
    stale_weight = "polynomial"

    def wanted(self, taken, knobs):
        return taken


class Demanding(Fading):
    rules = (Rule({}, {}, "it shows them", ("public images",)),)


class InTwoModels(Protocol):
    def begin(self, parts):
        return Keeping(parts, lambda taken, knobs: taken)
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    """A folder with the protocol that the handbook shows, and bad ones."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "own_protocol.py").write_text(PAGE.read_text().partition("```python\n")[2].partition("```")[0])
    (tmp_path / "bad_protocol.py").write_text(BAD)
    yield tmp_path
    for module in ("own_protocol", "bad_protocol"):
        sys.modules.pop(module, None)


def config(protocol, **sections):
    return config_of(TIMING, {"round": {"protocol": protocol}}, sections)


@pytest.mark.slow
def test_it_stands_in_a_study_beside_the_built_in_ones(own):
    axes = {"round.protocol": ["synchronous", OWN]}
    runs = edgesim.study(TIMING, axes, seeds=2, out="study", jobs=1, quiet=True).runs
    assert len(runs) == 4
    for run in runs.values():
        taken = run.rounds["selected"]
        expected = np.ceil(taken / 2) if run.config["round"]["protocol"] == OWN else taken
        assert run.rounds["arrived"].tolist() == expected.tolist()


def test_at_the_deadline_whatever_has_arrived_is_merged(own):
    """From 0.01 s on 9 of 12 devices are away, so that only 3 of the 6 arrive that would close the round."""
    there = stays(own, *((k, 0.0, 90.0 if k < 3 else 0.01) for k in range(12)), after_end="absent")
    devices = {"a_s_per_sample": 0.001, "mu_samples_per_s": 1e9}
    round = {"count": 12, "close": "arrivals", "protocol": OWN}
    first = play(own / "run", TIMING, there, round=round, devices=devices, rounds=1).rounds.iloc[0]
    assert (first["selected"], first["arrived"]) == (12, 3)
    assert first["t_end_s"] == 2.0


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        ("Nobody", "waits for 0 arrivals of 5 devices, expected a whole number from 1 on"),
        ("Half", r"waits for 2\.5 arrivals of 5 devices, expected a whole number"),
        ("Yes", "waits for True arrivals of 5 devices, expected a whole number from 1 on"),
        ("Nameless", "wants no number of arrivals, and has no rounds"),
        ("Idle", "round 1 ended with 0 models, expected one"),
        ("Spins", r"round 1: waited for 100121 events at 0 s and made no model"),
        ("Waits", r"waits for an event that never comes, at (0|50) s"),
        ("Absent", "begin returned None, expected an object with step, snapshot, restore and break_off"),
        ("Odd", "round 1: waits for 3, expected an event of the clock or a decision"),
        ("Ends", r"round 1: step returned \(None, None\), expected a reason or None"),
        ("OfNothing", "round 1: made a model without an arrival and without waiting, at 0 s"),
        ("InTwoModels", r"merges the update of device \d+ that began in round 1 twice"),
    ],
)
@pytest.mark.parametrize("end", [{}, {"rounds": None, "stop_at_s": 50.0}], ids=["rounds", "seconds"])
def test_a_bad_one_ends_the_run_in_a_line_that_names_it(own, protocol, said, end):
    name, round = f"bad_protocol.{protocol}", {"allocator": "least"} if protocol == "Nameless" else {}
    with in_one_line(rf"^round\.protocol '{name}': {said}"):
        composition.run(config(name, round=round, **end), own / "run")


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        ("BadOptions", "Options is <class 'dict'>, expected a subclass of edgesim.config.Section"),
        ("BadRule", "merge_rule is <class 'int'>, expected a subclass of edgesim.learning.algorithms.merge_rules"),
    ],
)
def test_attributes_of_another_kind_are_refused_before_the_run(own, protocol, said):
    with in_one_line(rf"^round\.protocol 'bad_protocol\.{protocol}': {said}"):
        composition.run(config(f"bad_protocol.{protocol}"), own / "run")
    assert not (own / "run").exists()


def test_a_default_of_stale_weights_is_no_choice_of_the_user_and_features_of_rules_are_asked_for(own):
    composition.run(config("bad_protocol.Fading"), own / "run")
    stored = tomllib.loads((own / "run/config.toml").read_text())["staleness"]
    assert stored == {"weight": "polynomial", "a": 0.5}
    with in_one_line(r"staleness\.weight = 'hinge' .*needs round\.late = 'keep'"):
        composition.run(config("bad_protocol.Fading", staleness={"weight": "hinge"}), own / "other")
    with in_one_line(r"round\.protocol = 'bad_protocol\.Demanding' .*: it shows them"):
        composition.run(config("bad_protocol.Demanding", data={"dataset": "digits"}), own / "third")


def test_what_is_no_protocol_is_refused(own):
    for name, said in (
        (
            "bad_protocol.Rounds",
            "is the class Rounds, expected a subclass of edgesim.engine.protocols.protocol.Protocol",
        ),
        ("synchronuos", "unknown protocol 'synchronuos', did you mean 'synchronous'?"),
    ):
        with in_one_line(rf"^round\.protocol: .*{said}"):
            composition.run(config(name), own / "run")
    assert list(PROTOCOLS) == ["synchronous", "buffered", "asynchronous"]
