"""Prints how large the project is and how its packages depend on each other: ``python tests/house.py``.

The rules: a package is a folder of ``edgesim/``, or a module beside the folders. An arrow is a pair of packages of
which one imports the other, anywhere in its code. A circle is a set of packages, or of modules, that import each
other, directly or not; imports for type checkers alone count among packages, not among modules. A line of code is one
that holds anything beside blanks, comments and docstrings. A test of a world's class is an ``isinstance`` on a class of
``radio``, ``devices``, ``traces`` or of the engine's bands in another package; the records of which recordings consist
are data, not a world. A comparison of the protocol with a name is one that holds the name of a protocol outside the
registry, or a mapping that does, such as the conditions of a rule. An answer of a half is a public method or attribute
that its base class states in its body. Calls of a round are those of edgesim's Python functions, generators each time
they resume, in the mean of rounds 2 to 8 of FedTeddi on digits with 30 devices, tested in each. Words are those of
``docs/words.py``; that no import runs up is what ``lint-imports`` sees to.
"""

import ast
import io
import runpy
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import networkx as nx

HALVES = "edgesim.learning.algorithms"
LAYOUT_TOKENS = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def modules(root: Path) -> dict[str, Path]:
    """File of each module of the package ``edgesim`` by its dotted name."""
    named = {".".join(path.relative_to(root).with_suffix("").parts): path for path in (root / "edgesim").rglob("*.py")}
    return {name.removesuffix(".__init__"): path for name, path in named.items()}


def imports(files: dict[str, Path]) -> Iterator[tuple[str, str, bool]]:
    """Importer, imported module and whether type checkers alone see it, for each import of edgesim by edgesim."""
    for name, path in files.items():
        tree = ast.parse(path.read_text())
        typed = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
                targets = [f"{node.module}.{alias.name}" for alias in node.names]
            else:
                continue
            for target in targets:
                if target.partition(".")[0] == "edgesim":
                    while target not in files:
                        target = target.rpartition(".")[0]
                    if target != name:
                        yield name, target, id(node) in typed


def package(module: str) -> str:
    """The package of a module: the second part of its name."""
    return (module + ".").split(".")[1] or "edgesim"


def circles(arrows: set[tuple[str, str]]) -> list[list[str]]:
    """The sets of names that point at each other, directly or not."""
    return [sorted(part) for part in nx.strongly_connected_components(nx.DiGraph(arrows)) if len(part) > 1]


def code_lines(text: str) -> int:
    """Lines of a module without blanks, comments and docstrings (of attributes, too)."""
    texts = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT_TOKENS:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - texts)


BANDS = ("edgesim.engine.uplink", "edgesim.engine.shared_band")
RECORDINGS = {"Capacity", "Intervals", "LinkRows", "Profile", "RecordedAvailability"}


def world_tests(files: dict[str, Path]) -> list[str]:
    """Places outside their packages where the class of a part of the world is tested."""
    trees = {name: ast.parse(path.read_text()) for name, path in files.items()}
    homes = {
        node.name: "engine" if name in BANDS else package(name)
        for name, tree in trees.items()
        if name in BANDS or package(name) in ("radio", "devices", "traces")
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name not in RECORDINGS
    }
    return [
        f"{name}:{node.lineno} {kind.id}"
        for name, tree in trees.items()
        if not name.rpartition(".")[2].startswith("test_")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance"
        for kind in ast.walk(node.args[1])
        if isinstance(kind, ast.Name) and homes.get(kind.id, package(name)) != package(name)
    ]


def protocol_names(files: dict[str, Path]) -> list[str]:
    """Places outside the registry of protocols that compare with the name of one, or map it to something."""
    home = "edgesim.engine.protocols"
    keys = [node.keys for node in ast.walk(ast.parse(files[home].read_text())) if isinstance(node, ast.Dict)]
    names = {key.value for each in keys for key in each if isinstance(key, ast.Constant)}
    return [
        f"{name}:{node.lineno} {leaf.value}"
        for name, path in files.items()
        if name != home
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Compare | ast.Dict)
        for leaf in ast.walk(node)
        if isinstance(leaf, ast.Constant) and leaf.value in names
    ]


ROUND = {
    "rounds": 8,
    "selection": {"policy": "fedteddi"},
    "data": {"dataset": "digits", "partition": "fedteddi"},
    "learning": {"pretrain": True},
    "round": {"payload_bits": 17_881_664},
}


def calls_of_a_round(root: Path) -> int:
    """Python functions of edgesim that a round of FedTeddi calls."""
    sys.path.insert(0, str(root))
    from edgesim.config_file import parse
    from edgesim.simulation import composition

    here, calls, at = str(root / "edgesim"), 0, list[int]()

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename.startswith(here)

    with tempfile.TemporaryDirectory() as folder:
        sys.setprofile(count)
        composition.run(parse(ROUND, "round"), Path(folder) / "run", on_round=lambda _: at.append(calls))
        sys.setprofile(None)
    return round((at[-1] - at[0]) / (len(at) - 1))


def answers(text: str, name: str) -> int:
    """Answers of a class of a module: methods and attributes in its body whose names begin with a letter."""
    (base,) = (node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.name == name)
    named = [node.name for node in base.body if isinstance(node, ast.FunctionDef)]
    named += [ast.unparse(node.target) for node in base.body if isinstance(node, ast.AnnAssign)]
    named += [ast.unparse(target) for node in base.body if isinstance(node, ast.Assign) for target in node.targets]
    return sum(not name.startswith("_") for name in named)


def numbers(root: Path) -> dict[str, object]:
    """What the page of the architecture says of the project, by the words in which it says it."""
    files = modules(root)
    words = runpy.run_path(str(Path(__file__).parents[1] / "docs/words.py"))
    found = sorted(set(imports(files)))
    arrows = {(package(importer), package(imported)) for importer, imported, _ in found}
    arrows = {(importer, imported) for importer, imported in arrows if importer != imported}
    return {
        "modules of edgesim": len(files),
        "lines of code of edgesim": sum(code_lines(path.read_text()) for path in files.values()),
        "lines of scenarios": sum(len(path.read_text().splitlines()) for path in (root / "scenarios").glob("*.py")),
        "lines of tests": sum(len(path.read_text().splitlines()) for path in (root / "tests").rglob("*.py")),
        "words of the handbook": sum(words["by_page"](root).values()),
        "packages": len({package(name) for name in files}),
        "arrows between packages": len(arrows),
        "circles of packages": circles(arrows),
        "circles of modules": circles({(importer, imported) for importer, imported, typed in found if not typed}),
        "tests of a world's class": world_tests(files),
        "protocol and a name compared": protocol_names(files),
        "answers of a local half": answers(files[f"{HALVES}.local_half"].read_text(), "LocalHalf"),
        "answers of a server half": answers(files[f"{HALVES}.server_half"].read_text(), "ServerHalf"),
    }


def main(root: Path) -> None:
    """Print each number; of what should not be there each case, too."""
    for words, value in (numbers(root) | {"Python calls of a round": calls_of_a_round(root)}).items():
        print(f"{words:28} {len(value) if isinstance(value, list) else value:>7,}")
        for case in value if isinstance(value, list) else ():
            print(f"    {case}")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]))
