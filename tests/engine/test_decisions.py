"""Decisions that are answered from outside of a run, step by step."""

import pytest

from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.engine.decisions import Decision
from edgesim.engine.server import RunEnd
from edgesim.folder.records import RunWriter
from edgesim.folder.run_schema import SCHEMAS
from edgesim.selection import make_selector
from edgesim.simulation import composition
from edgesim.simulation.complete import as_toml, complete
from edgesim.simulation.simulation import Simulation

ROUND = {"payload_bits": 4e6, "tmax_s": 0.8, "admission": "count", "count": 4}
PROTOCOLS = {
    "at once": ROUND | {"late": "keep", "over_commitment": 1.5, "allocator": "equal_share"},
    "by band": {"payload_bits": 4e6, "tmax_s": 0.8},
    "on reports": ROUND | {"delay_knowledge": "reported", "report_by_s": 0.3},
    "buffered": ROUND | {"protocol": "buffered", "protocol_options": {"buffer": 3}},
}


def settings(kind, policy):
    values = {
        "rounds": 6,
        "devices": {"count": 12},
        "round": PROTOCOLS[kind],
        "data": {"dataset": "none", "partition": "iid"},
        "learning": {"training": "none", "pretrain": False},
        "selection": {"policy": policy},
        "availability": {"model": "bernoulli", "probability": 0.8, "slot_s": 1.3},
    }
    return complete(parse(values, "test"))


class Outside:
    """Leaves all decisions open."""

    def __init__(self):
        self.heard = []

    def ask(self, decision):
        pass

    def hear(self, report):
        self.heard.append((report.round, report.arrived.tolist()))


def begun(config, folder):
    simulation = Simulation(config)
    writer = RunWriter(folder, as_toml(config), {})
    server = simulation.make_server(writer)
    outside = server.parts.answerer = Outside()
    simulation.learner.prepare(lambda _: None)
    simulation.begin()
    return simulation, writer, outside


def ids(offers):
    """Device ids of offers, which come one by one or as arrays."""
    return [int(device) for offer in offers for device in ([offer] if isinstance(offer, int) else offer)]


@pytest.mark.parametrize("policy", ["random", "best-channel"])
@pytest.mark.parametrize("kind", PROTOCOLS)
def test_answers_from_outside_have_the_bytes_of_the_policy_that_makes_the_same_offers(kind, policy, tmp_path):
    config = settings(kind, policy)
    composition.run(config, tmp_path / "policy")
    simulation, writer, outside = begun(config, tmp_path / "outside")
    chosen, decisions = make_selector(policy, config.selection.options, 12, 0), 0
    while not isinstance(state := simulation.advance(), RunEnd):
        if isinstance(state, Decision):
            offers = ids(chosen.choose(state.view))
            assert simulation.server.parts.clock.now >= state.view.t_s
            state.answer(device for device in offers)
            decisions += 1
    simulation.server.stop()
    writer.close("finished")
    assert decisions >= 6 - (kind == "buffered") * 3
    assert [round for round, _ in outside.heard] == [1, 2, 3, 4, 5, 6]
    for name in set(SCHEMAS) - {"timing"}:
        mine, theirs = ((tmp_path / folder / f"{name}.parquet").read_bytes() for folder in ("outside", "policy"))
        assert mine == theirs, name


@pytest.mark.parametrize("kind", ["at once", "buffered"])
def test_a_decision_stays_open_at_its_instant_until_the_offers_are_allowed(kind, tmp_path):
    simulation, _, _ = begun(settings(kind, "random"), tmp_path / "run")
    decision = simulation.advance()
    assert isinstance(decision, Decision)
    now_s = simulation.server.parts.clock.now
    for offers, said in (([99], "offered device 99"), ([1, 1], "offered device 1 twice")):
        with pytest.raises(EdgesimError, match=said):
            decision.answer(device for device in offers)
        assert simulation.advance() is decision
        assert simulation.server.parts.clock.now == now_s
    decision.answer(device for device in [3, 1])
    assert decision.view.ids[decision.taken].tolist() == [3, 1]
    assert simulation.advance() is not decision


def test_an_open_decision_may_be_looked_at_any_number_of_times(tmp_path):
    simulation, _, _ = begun(settings("at once", "random"), tmp_path / "run")
    decision = simulation.advance()
    for _ in range(100_200):
        assert simulation.advance() is decision
