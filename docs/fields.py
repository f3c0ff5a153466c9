"""Makes the page of what plug-ins are given, field by field, from the classes themselves: ``docs/fields.md``.

A field's shape is what stands in brackets in its docstring, its unit the last or the first part of its name.
"""

import ast
import inspect
import textwrap
from importlib import import_module
from typing import NamedTuple

from edgesim.base.quantities import UNITS

RECORDS = {
    "A policy": "edgesim.selection.view: RoundView Estimates Knowledge RoundReport Feedback Spending ClassGradients",
    "A joining law": "edgesim.joining.law: Fleet Asked",
    "An allocator": "edgesim.radio.allocators.allocator: Request",
    "A drift law": "edgesim.learning.drift.law: Setting When",
    "A motion model": "edgesim.mobility.paths: Ground",
    "A predictor": "edgesim.prediction.check_in_log: CheckInLog",
    "A metric": "edgesim.learning.measures: Tested",
    "An algorithm": "edgesim.learning.algorithms.records: Sizes Devices Device Samples Phase Step Outputs Trained "
    "Arrivals",
}
"""Modules and classes by the plug-in that is given them."""
ALONE = {"int", "float", "bool", "str", "None"}

_INTRODUCTION = """# What plug-ins are given, field by field

Written by `python docs/build.py` from the classes; [the Python interface](api.md) has their signatures. What has no
unit is a count, an id, a share, a ratio or a loss; seconds are simulated, and instants count from the beginning of the
run unless the meaning says otherwise. Arrays of devices have one row each. Shapes are made of these numbers, and of
words that name what they count:

| in a shape | number of |
| --- | --- |
| n | devices that are asked about (of a `RoundView` the candidates, by id); in records of a metric or job, samples |
| N | all devices of the run |
| c, s, a, b | devices of a round that checked in; that were selected; whose updates arrived; that began to work |
| S | uploads that share a band, or updates that are merged |
| C | classes |
| P, L | numbers of a model; its trainable tensors |
| F | inputs of a model's last layer |
| m | public images |
| k | numbers that describe the augmentation of an image |
"""


class Entry(NamedTuple):
    """A field, a property or a method of a record."""

    name: str
    kind: str
    """Type as it is declared."""
    meaning: str

    @property
    def shape(self) -> str:
        """Shape of an array, ``one`` for a single number or text; empty for what is neither."""
        if {part.strip() for part in self.kind.split("|")} <= ALONE:
            return "one"
        begin = self.meaning.find("[")
        return self.meaning[begin : self.meaning.find("]", begin) + 1] if begin >= 0 else ""

    @property
    def unit(self) -> str:
        """Unit by the last part of the name, or else by its first; empty where there is none."""
        first, *_, last = self.name.partition("(")[0].split("_") * 2
        return UNITS.get(last, UNITS.get(first, ""))


def entries(record: type) -> list[Entry]:
    """All public fields, properties and methods of a class, in the order of its source."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(record))).body
    assert isinstance(body, ast.ClassDef)
    found = []
    for node, after in zip(body.body, [*body.body[1:], ast.Pass()], strict=True):
        match node, after:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind), _:
                text = after.value.value if _is_text(after) else ""
            case ast.FunctionDef(name=name, returns=kind) as function, _:
                text = ast.get_docstring(function) or ""
                if not any(ast.unparse(mark).endswith("property") for mark in function.decorator_list):
                    taken = [argument.arg for argument in function.args.args if argument.arg not in ("self", "cls")]
                    name += f"({', '.join(taken)})"
            case _:
                continue
        if not name.startswith("_"):
            found.append(Entry(name, ast.unparse(kind) if kind else "", " ".join(text.split())))
    return found


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def classes() -> dict[str, list[type]]:
    """The classes of the page, by the plug-in that is given them."""
    listed = {}
    for plug_in, names in RECORDS.items():
        module, _, members = names.partition(": ")
        listed[plug_in] = [getattr(import_module(module), member) for member in members.split()]
    return listed


def page() -> str:
    """The page in Markdown."""
    parts = [_INTRODUCTION]
    for plug_in, records in classes().items():
        parts.append(f"## {plug_in}\n")
        for record in records:
            parts += [f"### {record.__name__}\n", " ".join((inspect.getdoc(record) or "").split()) + "\n"]
            parts += ["| name | type | shape | unit | meaning |", "| --- | --- | --- | --- | --- |"]
            parts += [_row(entry) for entry in entries(record)]
            parts.append("")
    return "\n".join(parts)


def _row(entry: Entry) -> str:
    shape = entry.shape if entry.shape in ("", "one") else f"`{entry.shape}`"
    meaning = entry.meaning.replace("``", "`").replace("|", "\\|")
    kind = entry.kind.replace(" | ", " or ")
    return f"| `{entry.name}` | `{kind}` | {shape} | {entry.unit} | {meaning} |"
