"""The protocols of ``scenarios/async_vs_sync.py``: what each is called is what it sets."""

import runpy
from pathlib import Path

from edgesim.config_file import parse
from edgesim.simulation.complete import complete

SCENARIO = runpy.run_path(str(Path(__file__).parents[2] / "scenarios/async_vs_sync.py"))


def test_each_protocol_has_the_rule_of_its_name():
    common = {"payload_bits": 1e6, "admission": "count", "count": 4}
    of = {
        name: complete(parse(sections | {"round": common | sections["round"]}, name))
        for name, sections in SCENARIO["protocols"](4, 60.0).items()
    }
    assert {name: (each.round.protocol, each.round.over_commitment, each.round.late) for name, each in of.items()} == {
        "synchronous": ("synchronous", 1.0, "drop"),
        "over-committed": ("synchronous", 1.3, "drop"),
        "refl": ("synchronous", 1.3, "keep"),
        "fedbuff": ("buffered", 1.0, "drop"),
        "fedasync": ("asynchronous", 1.0, "drop"),
    }
    assert of["fedbuff"].round.protocol_options["buffer"] == 2
    assert (of["refl"].staleness.weight, of["refl"].selection.policy) == ("refl", "refl")
    assert (of["refl"].selection.options["cool_down"], of["refl"].selection.options["window"]) == (5, "rounds")
    # With a deadline that follows the rounds' lengths it would fall at every round, and in the end all would be late.
    assert {each.round.tmax_s for each in of.values()} == {60.0}
