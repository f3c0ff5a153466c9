"""The pages of the Python interface name everything public, and every field of what plug-ins are given."""

import ast
import re
import runpy
from importlib import import_module
from types import ModuleType

from quoted import DOCS, ROOT, examples

import edgesim

FIELDS = runpy.run_path(str(DOCS / "fields.py"))
SHOWN = ["plug-ins", "algorithms", "writing-a-protocol", "policies", "mobility", "agents", "python", "studies"]
"""Pages with programs that users begin with."""
DIRECTIVE = re.compile(r"^::: ([\w.]+)\n(?: +options:\n +members: \[([^\]]*)\])?", re.MULTILINE)


def documented() -> dict[str, set[str] | None]:
    """Members that the page shows of each module; None where it shows all."""
    page = (DOCS / "api.md").read_text()
    return {name: set(re.findall(r"\w+", members)) or None for name, members in DIRECTIVE.findall(page)}


def imported(source: str) -> set[tuple[str, str]]:
    """What a program imports from edgesim's modules, as (module, name)."""
    froms = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom)]
    return {
        (node.module, alias.name)
        for node in froms
        if (node.module or "").startswith("edgesim.") and not (node.module or "").startswith("edgesim.templates")
        for alias in node.names
    }


def programs() -> list[str]:
    """What users begin with: the templates of plug-ins, and the programs that the handbook shows."""
    templates = [file for file in (ROOT / "edgesim/templates").glob("*.py") if not file.stem.startswith("test_")]
    return [file.read_text() for file in templates] + [
        block for name in SHOWN for block in examples(DOCS / f"{name}.md", "python")
    ]


def is_shown(module: str, name: str) -> bool:
    pages = documented()
    if isinstance(getattr(import_module(module), name), ModuleType):
        return f"{module}.{name}" in pages
    # A package may have it from one of its modules.
    homes = [home for home in pages if home == module or home.startswith(f"{module}.")]
    return any(pages[home] is None or name in pages[home] for home in homes if hasattr(import_module(home), name))


def test_every_public_name_appears():
    stub = (ROOT / "edgesim/__init__.pyi").read_text()
    origins = {name: f"edgesim.{module}" for module, name in re.findall(r"from \.([\w.]+) import (\w+) as", stub)}
    assert sorted(origins) == sorted(edgesim.__all__)
    homes = {"EdgesimError": "edgesim.errors"}
    assert [name for name, module in origins.items() if not is_shown(homes.get(name, module), name)] == []


def test_everything_that_templates_and_the_handbook_import_appears():
    names = sorted({each for program in programs() for each in imported(program)})
    assert len(names) > 40
    # Torch's own, which the page names in a sentence.
    assert [each for each in names if not is_shown(*each)] == [("edgesim.learning.torch_types", "Tensor")]


def test_the_page_of_fields_is_what_the_classes_say():
    assert (DOCS / "fields.md").read_text() == FIELDS["page"]()


def test_every_field_has_a_meaning_and_an_array_its_shape():
    numeric = re.compile(r"Integers|Floats|Booleans|Tensor\b|float|int\b")
    for record in (record for records in FIELDS["classes"]().values() for record in records):
        for entry in FIELDS["entries"](record):
            assert entry.meaning, (record, entry)
            assert entry.shape or not numeric.search(entry.kind.partition("[")[0]), (record, entry)
