"""The hash of a module's source: it changes with all user code that the module imports, and none of that is run."""

import subprocess
import sys
from pathlib import Path
from shutil import copytree

import pytest

from edgesim.base import sources
from edgesim.base.sources import source_digest

FILES = {
    "mine/__init__.py": "raise SystemExit('this package was run')",
    "mine/nets.py": "from . import layers\nfrom .deep.blocks import block\nimport flat_helper\nimport torch, json\n",
    "mine/layers.py": "def layer():\n    import lazy_helper\n",
    "mine/deep/__init__.py": "",
    "mine/deep/blocks.py": "from ..sizes import *\ntry:\n    import absent_module\nexcept ImportError:\n    pass\n",
    "mine/sizes.py": "",
    "mine/unused.py": "",
    "flat_helper.py": "from spread.far import thing",
    "lazy_helper.py": "import mine.nets",
    "spread/far/thing.py": "",
    "site-packages/installed_one.py": "import behind_installed",
    "site-packages/spread/part.py": "",
    "behind_installed.py": "",
    "alone/__init__.py": "",
    "alone/inner/__init__.py": "",
    "alone/inner/net.py": "",
}
BEHIND = {
    "mine/__init__.py",
    "mine/nets.py",
    "mine/layers.py",
    "mine/deep/__init__.py",
    "mine/deep/blocks.py",
    "mine/sizes.py",
    "flat_helper.py",
    "lazy_helper.py",
    "spread/far/thing.py",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path / "site-packages")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_a_module_counts_with_the_packages_around_it(folder):
    found = {source_digest("alone.inner.net")}
    for name in ("alone/__init__.py", "alone/inner/__init__.py", "alone/inner/net.py"):
        (folder / name).write_text("# edited")
        found.add(source_digest("alone.inner.net"))
    assert len(found) == 4


def test_a_hash_changes_with_every_module_of_the_users_own_behind_it_and_with_no_other(folder):
    with (folder / "mine/nets.py").open("a") as file:
        file.write("import installed_one\nimport spread.part\n")
    before = source_digest("mine.nets")
    assert before is not None
    changed = set()
    for name in FILES:
        with (folder / name).open("a") as file:
            file.write("\n# edited\n")
        after = source_digest("mine.nets")
        changed |= {name} if after != before else set()
        before = after
    assert changed == BEHIND
    assert not {"mine", "flat_helper", "lazy_helper", "spread", "installed_one"} & set(sys.modules)


def test_a_module_that_does_not_parse_counts_by_its_bytes_and_one_that_is_not_there_has_no_hash(folder):
    (folder / "flat_helper.py").write_text("def half(:")
    before = source_digest("mine.nets")
    (folder / "flat_helper.py").write_text("def whole(:")
    assert source_digest("mine.nets") != before
    assert source_digest("nowhere_at_all.nets") is None
    assert source_digest("mine.nowhere") is None


def test_a_process_notes_the_code_as_it_first_saw_it(folder):
    first = sources.digest_when_loaded("mine.layers")
    (folder / "lazy_helper.py").write_text("import mine.nets  # edited")
    assert sources.digest_when_loaded("mine.layers") == first
    assert source_digest("mine.layers") != first


OF_PARTS = """
import sys
from pathlib import Path
from edgesim.base.sources import source_digest
root, edited = Path(sys.argv[1]), sys.argv[2:]
named = ["selection.fedteddi", "selection.feddance", "learning.partitions.dirichlet", "learning.models.plain"]
digests = lambda: {name: source_digest("edgesim." + name) for name in named}
before = digests()
assert None not in before.values()
for file in edited:
    with (root / "edgesim" / file).open("a") as code:
        code.write("# edited")
    after = digests()
    print(file, *(name for name in named if after[name] != before[name]))
    before = after
assert "torch" not in sys.modules
"""


def test_a_part_of_edgesim_changes_with_what_it_imports_of_its_own_kind(tmp_path):
    copytree(Path(sources.__file__).parents[1], tmp_path / "edgesim", ignore=lambda *_: ["__pycache__"])
    expected = {
        "selection/greedy.py": ["selection.fedteddi"],
        "selection/fedteddi.py": ["selection.fedteddi"],
        "selection/view.py": ["selection.fedteddi", "selection.feddance"],
        "prediction/poisson.py": ["selection.feddance"],
        "learning/partitions/dealing.py": ["learning.partitions.dirichlet"],
        "learning/models/plain.py": ["learning.models.plain"],
        "selection/__init__.py": [],
        "learning/models/resnet.py": [],
        "config.py": [],
    }
    command = [sys.executable, "-c", OF_PARTS, str(tmp_path), *expected]
    done = subprocess.run(
        command, env={"PYTHONPATH": str(tmp_path)}, cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert {file: names for file, *names in lines} == expected
