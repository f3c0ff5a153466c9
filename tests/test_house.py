"""The house: imports go in no circles, what is imported is declared, and the wheel carries all that a user needs."""

import ast
import os
import re
import runpy
import subprocess
import sys
import sysconfig
import tomllib
import warnings
from importlib import metadata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from packaging.requirements import Requirement

import edgesim

ROOT = Path(__file__).parents[1]


def test_the_top_level_has_what_the_card_of_the_project_names():
    """Of git's files where this is a clone: a folder that only this machine has does not count."""
    named = {"pyproject.toml", "edgesim", "channels", "traces", "scenarios", "tests", "plots", "README.md"}
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    assert named <= ({path.partition("/")[0] for path in listed.splitlines()} or {path.name for path in ROOT.iterdir()})
    assert {"README.md", "gallery.toml", "accuracy_rounds.png"} <= {path.name for path in (ROOT / "plots").iterdir()}


def test_every_public_name_can_be_had():
    assert [name for name in edgesim.__all__ if getattr(edgesim, name, None) is None] == []


@pytest.mark.slow
def test_no_packages_or_modules_go_in_circles():
    numbers = runpy.run_path(str(ROOT / "tests/house.py"))["numbers"](ROOT)
    assert numbers["circles of packages"] == numbers["circles of modules"] == []
    assert numbers["tests of a world's class"] == []
    assert numbers["protocol and a name compared"] == []
    assert max(numbers[f"answers of a {half} half"] for half in ("local", "server")) <= 15
    assert 500 < numbers["modules of edgesim"] < numbers["lines of code of edgesim"] / 10


THERE_ANYWAY = {"IPython", "pytest"}
"""Imported in notebooks alone, and by the tests that `edgesim new` writes."""


def declared(requirements):
    """Names of packages in lines such as ``simpy>=4.1,<5``, as package indexes spell them."""
    return {re.match(r"[\w.-]+", line)[0].lower().replace("_", "-") for line in requirements}


def imported_by(text):
    """The first parts of modules that a file imports from outside edgesim, by statements and by their names in text."""
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Import(names=names):
                yield from (name.name.partition(".")[0] for name in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.partition(".")[0]
            case ast.Call(func=ast.Attribute(attr="import_module"), args=[ast.Constant(value=str(module)), *_]):
                yield module.partition(".")[0]


@pytest.mark.slow
def test_every_package_that_edgesim_imports_is_declared_and_every_declared_one_is_imported():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = declared(project["dependencies"])
    known = needed | declared(line for name, lines in extras.items() if name != "dev" for line in lines)
    homes = metadata.packages_distributions()
    imported = {}
    for path in [*(ROOT / "edgesim").rglob("*.py"), *(ROOT / "scenarios").glob("*.py")]:
        for module in imported_by(path.read_text()):
            imported.setdefault(module, path.relative_to(ROOT))
    own = {"edgesim", *(path.stem for path in (ROOT / "scenarios").glob("*.py"))}
    others = {
        module: path for module, path in imported.items() if module not in sys.stdlib_module_names | own | THERE_ANYWAY
    }
    # A module of an extra that is not installed has no distribution: it is named as its package is.
    packages = {module: {one.lower().replace("_", "-") for one in homes.get(module, [module])} for module in others}
    undeclared = {module: str(others[module]) for module, names in packages.items() if not names & known}
    assert undeclared == {}
    assert needed - set().union(*packages.values()) == set(), "declared, but not imported"


def test_every_direct_dependency_has_a_lower_bound_and_what_is_installed_is_within_its_bounds():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for line in [*project["dependencies"], *(line for lines in extras.values() for line in lines)]:
        requirement = Requirement(line)
        assert any(one.operator == ">=" for one in requirement.specifier), line
        if line in project["dependencies"] or line in extras["dev"]:
            assert requirement.specifier.contains(metadata.version(requirement.name)), line


@pytest.mark.parametrize(
    "category", [DeprecationWarning, PendingDeprecationWarning, FutureWarning, np.exceptions.VisibleDeprecationWarning]
)
def test_a_call_that_a_library_will_refuse_is_an_error_in_our_modules_and_in_tests_but_not_within_the_library(category):
    def library():
        warnings.warn("will be removed", category, stacklevel=2)

    def call_from(module):
        exec("library()", {"__name__": module, "library": library})

    for module in ("edgesim", "edgesim.radio.environment", "<run_path>", __name__):
        with pytest.raises(category, match="will be removed"):
            call_from(module)
    with warnings.catch_warnings(record=True) as shown:
        call_from("scipy.stats")
    assert [one.category for one in shown] == [category]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Folder of an environment with the wheel, and variables of processes that use it."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "env")], check=True)
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(folder / "env/bin/python"), "install", "--quiet", "--no-deps",
         str(wheel)],
        check=True,
    )  # fmt: skip
    # The dependencies are those installed here; the editable copy is not among them: it hangs on a .pth file,
    # and .pth files are read in the environment's own folder only.
    (site,) = (folder / "env/lib").glob("python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    path = f"{folder / 'env/bin'}{os.pathsep}{environment['PATH']}"
    return folder / "env", environment | {"PATH": path}


def typed(command, folder, environment):
    """What a command prints in a folder; fails with what it says if it does."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        shell=isinstance(command, str),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment(tmp_path, installed):
    folder, environment = installed
    config = tmp_path / "run.toml"
    config.write_text("rounds = 2\n[learning]\ntraining = 'none'\n[radio]\nchannel = 'free-space'\n")
    typed(["edgesim", "run", "run.toml"], tmp_path, environment)
    assert "report.html" in typed(["edgesim", "report", "runs/run"], tmp_path, environment)
    where = typed(["python", "-c", "import edgesim; print(edgesim.__file__)"], tmp_path, environment)
    assert str(folder) in where
    (site,) = (folder / "lib").glob("python*/site-packages")
    assert (site / "edgesim/content/scenarios/fedteddi.py").is_file()
    assert (site / "edgesim/py.typed").is_file()
    assert "fading" in typed(["edgesim", "scenario"], tmp_path, environment)


PAGE = (ROOT / "docs/python.md").read_text().partition("## A policy of your own")[2].partition("## In a notebook")[0]
FILES = dict(re.findall(r"`(\w+\.py)`:[^`]*```python\n(.*?)```", PAGE, re.DOTALL))
COMMANDS = re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)[0].splitlines()


def test_an_own_policy_takes_at_most_25_lines_and_5_commands():
    lines = [line for text in FILES.values() for line in text.splitlines() if line.strip()]
    assert {*FILES} == {"my_policy.py", "compare.py"}
    assert f"of {sum(len(text.splitlines()) for text in FILES.values())} lines together" in PAGE
    assert len(lines) <= 25
    assert len(COMMANDS) + 1 <= 5, "with the installation"


@pytest.mark.slow
def test_an_own_policy_from_an_empty_folder_by_the_page_alone(tmp_path, installed):
    _, environment = installed
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    told = {command: typed(command, tmp_path, environment) for command in COMMANDS}
    assert "my_policy.LeastBand" in told["python compare.py"]
    assert (tmp_path / "runs/mine/plots/scheduled.png").stat().st_size > 10_000
    assert (tmp_path / "runs/mine/my_policy.LeastBand-s0/code/my_policy.py").read_text() == FILES["my_policy.py"]
    summary = pd.read_csv(tmp_path / "runs/mine/summary.csv").set_index("policy")["scheduled"]
    assert summary["my_policy.LeastBand"] > summary["random"]
