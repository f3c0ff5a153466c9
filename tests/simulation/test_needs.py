"""What goes with what: every entry of a registry with every need of its own that a config does not offer."""

from typing import Any

import pytest
from refusals import in_one_line

from edgesim.base.errors import EdgesimError
from edgesim.base.needs import GIVEN, Except, Rule, refuse
from edgesim.config import RunConfig
from edgesim.config_file import parse
from edgesim.joining import LAWS
from edgesim.learning.algorithms import ALGORITHMS
from edgesim.learning.algorithms.algorithm import Algorithm
from edgesim.selection import SELECTORS, make_selector
from edgesim.simulation import composition as simulation
from edgesim.simulation import needs

UNSYNCHRONISED = {"admission": "count", "count": 5}
WITHOUT: dict[str, dict[str, Any]] = {
    "rounds": {"round": {"protocol": "buffered", **UNSYNCHRONISED}},
    "joint merges": {"round": {"protocol": "asynchronous", **UNSYNCHRONISED}},
    "punctual updates": {"round": {"late": "keep"}},
    "merges in all rounds": {"merging": {"signal": "test"}},
    "updates without residuals": {"upload": {"codec": "half", "feedback": "residual"}},
    "public images": {"data": {"public": "none"}},
    "data set": {"data": {"dataset": "none"}, "learning": {"training": "none"}},
    "known downloads": {"learning": {"training": "none"}, "round": {"download_s": 0.1}},
    "class_counts": {"data": {"dataset": "none"}, "learning": {"training": "none"}},
}
"""A config for each feature that does not offer it; those without an entry are not to be had without training."""
TIMING = {"learning": {"training": "none"}}


def config(*sections: dict[str, Any]) -> RunConfig:
    made: dict[str, Any] = {}
    for one in sections:
        for name, section in one.items():
            made.setdefault(name, {}).update(section)
    return parse(made, "test")


PAIRS = [
    (name, need)
    for name, kind in ALGORITHMS.items()
    for need in sorted(kind.needs)
    # It depends on the data's frames; `check_frames` is tested with the contract of algorithms.
    if need != "frames from the last model"
]


@pytest.mark.parametrize(("name", "need"), PAIRS)
def test_an_algorithm_is_refused_without_each_need_in_a_line_that_names_it(name, need):
    public = {"data": {"public": "carved"}} if need != "data set" else {}
    offered = config(public, {"algorithm": {"name": name}})
    assert need == "data set" or simulation.complete(offered).algorithm.name == name
    with in_one_line(rf"algorithm\.name = '{name}'.* it needs {need}") as refusal:
        simulation.complete(config(public, {"algorithm": {"name": name}}, WITHOUT[need]))
    assert "algorithm.name" in refusal.value.fields


@pytest.mark.parametrize("name", LAWS)
def test_a_joining_law_is_refused_without_rounds(name):
    with in_one_line(rf"joining\.law = '{name}'.* it needs rounds"):
        simulation.complete(config({"joining": {"law": name}}, WITHOUT["rounds"]))


@pytest.mark.parametrize(
    ("policy", "need"), [(name, n) for name, kind in SELECTORS.items() for n in sorted(kind.looks_at)]
)
def test_a_policy_is_refused_without_what_it_looks_at(policy, need):
    complete = simulation.complete(config({"selection": {"policy": policy}}, WITHOUT.get(need, TIMING)))
    selector = make_selector(policy, complete.selection.options, 30, 0)
    needs.check_policy(simulation.complete(config({"selection": {"policy": policy}})), selector.looks_at)
    with in_one_line(rf"selection\.policy = '{policy}'.* it needs "):
        needs.check_policy(complete, selector.looks_at)


@pytest.mark.parametrize("number", range(len(RunConfig.goes_with)))
def test_every_rule_of_the_config_is_about_keys_that_there_are(number):
    rule = RunConfig.goes_with[number]
    for key in (*rule.when, *rule.needs):
        section, _, name = key.rpartition(".")
        fields = RunConfig.model_fields
        if section:
            annotation = fields[section].annotation
            kinds = getattr(annotation, "__args__", (annotation,))
            fields = next(kind for kind in kinds if kind is not type(None)).model_fields
        assert name in fields, key


@pytest.mark.parametrize("name", ["protocols", "late_updates", "merge", "keeps_state", "pull"])
def test_an_algorithm_written_as_one_class_is_refused_by_what_it_answers(name):
    with pytest.raises(TypeError, match=rf"Old\.{name} is not asked of an algorithm; .* `Local` and `Server` name"):
        type("Old", (Algorithm,), {name: None})


def test_a_need_that_nobody_knows_is_refused_with_the_nearest_name():
    with in_one_line(r"policy\.needs: unknown needs 'loses', did you mean 'losses'"):
        refuse(None, needs._of("selection.policy", ["loses"], ()))


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (Rule({"a.b": 1}, {"c": "x"}), "a.b = 1 needs c = 'x', not 'y'"),
        (Rule({"a.b": (1, 2)}, {"c": ("x", "z")}, "why"), "a.b = 1 needs c = 'x' or 'z', not 'y': why"),
        (Rule({"a.b": Except([2])}, {"d": GIVEN}), "a.b = 1 needs d"),
        (Rule({"a.b": 1, "c": GIVEN}, {"e.f": None}), "a.b = 1 with c = 'y' does not go with e.f = true"),
        (Rule({"a": GIVEN}, {"c": Except(["y"])}), "a does not go with c = 'y'"),
        (Rule({"d": None}, {"a.b": lambda value: value > 1}), "does not go with a.b = 1"),
        (Rule({"a.b": 2}, {"c": "x"}), None),
        (Rule({"a.b": 1}, {"d": None, "c": "y"}), None),
    ],
)
def test_a_rule_names_both_keys_and_their_values(rule, said):
    values = {"a": {"b": 1}, "c": "y", "e": {"f": True}}
    if said is None:
        refuse(values, [rule])
        return
    with pytest.raises(EdgesimError) as refusal:
        refuse(values, [rule])
    assert str(refusal.value) == said
    assert refusal.value.fields[: len(rule.when)] == tuple(rule.when)
