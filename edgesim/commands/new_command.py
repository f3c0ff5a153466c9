"""``edgesim new`` and ``edgesim init``: plug-ins, or a whole folder, to start from, as `edgesim.templates` has them."""

import keyword
import site
import sys
from importlib import resources
from importlib.machinery import PathFinder
from pathlib import Path

from edgesim.base.errors import EdgesimError
from edgesim.base.paths import system_errors
from edgesim.base.registry import did_you_mean, look_up
from edgesim.folder.records import write_whole

TEMPLATES = {
    "policy": ("LongestWait", 'selection.policy = "{path}"'),
    "algorithm": ("Mine", 'algorithm.name = "{path}"'),
    "allocator": ("LeastAndEqual", 'round.allocator = "{path}"'),
    "partition": ("Halves", 'data.partition = "{path}"'),
    "channel": ("TwoSlopes", 'radio.channel = "{stem}.toml"'),
    "drift": ("Seasons", 'drift.law = "{path}"'),
    "joining": ("SlowOnesRest", 'joining.law = "{path}"'),
    "presence": ("Shifts", 'availability.model = "{path}"'),
    "motion": ("Visits", 'mobility.model = "{path}"'),
    "predictor": ("SameHour", 'selection.predictor = "{path}"'),
    "metric": ("TopLosses", 'evaluation.metrics = {{ "{path}" = {{}} }}'),
    "codec": ("FewDigits", 'upload.codec = "{path}"'),
    "protocol": ("EnoughArrived", 'round.protocol = "{path}"'),
    "scenario": ("", "python {stem}.py --quick"),
}
"""Class of each template, empty for one without; and the line of a config that names the class by its dotted path, or a
file; of a scenario its command."""


def write(kind: str, name: str, folder: Path) -> tuple[list[Path], str]:
    """Write the files of a new plug-in; returns them, and the line of a config that uses it.

    Raises `EdgesimError` for an unknown kind, a name that is none of a module, and files that are there already.
    """
    shipped, use = look_up(TEMPLATES, kind, "kind")
    if not name.isidentifier() or keyword.iskeyword(name) or name != name.lower():
        raise EdgesimError(
            f"{name!r}: expected a module name of small letters, digits and underscores, such as my_{kind}"
        )
    if name in sys.stdlib_module_names or PathFinder.find_spec(name, site.getsitepackages()):
        raise EdgesimError(f"{name!r}: is the name of an installed module, which yours would hide; choose another name")
    own = "".join(part.capitalize() for part in name.split("_"))
    files = {folder / f"{name}.py": f"{kind}.py", folder / f"test_{name}.py": f"test_{kind}.py"}
    if kind == "channel":
        files[folder / f"{name}.toml"] = "channel.toml"
    if kind == "scenario":
        del files[folder / f"test_{name}.py"]
    for file in files:
        if file.exists() or file.is_symlink():
            raise EdgesimError(f"{file}: is there already; choose another name")
    with system_errors(f"{folder}: cannot be written"):
        folder.mkdir(parents=True, exist_ok=True)
        for file, template in files.items():
            text = _text(template).replace(f"edgesim.templates.{kind}", name).replace("runs/mine", f"runs/{name}")
            text = text.replace(f"{kind}.toml", f"{name}.toml")
            write_whole(file, text.replace(shipped, own) if shipped else text)
    return [*files], use.format(path=f"{name}.{own}", stem=folder / name)


def write_study(file: Path) -> Path:
    """Write a study's file to start from, return its path; raises `EdgesimError` for a file that is there already."""
    if file.exists() or file.is_symlink():
        raise EdgesimError(f"{file}: is there already; choose another name")
    with system_errors(f"{file}: cannot be written"):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, _text("study.toml"))
    return file


def write_folder(folder: Path) -> list[Path]:
    """Write a config, a policy with its test, a study and a README into a new or empty folder; returns the files.

    Raises `EdgesimError` for a folder that holds anything.
    """
    _make_empty(folder)
    with system_errors(f"{folder}: cannot be written"):
        whole = {folder / "README.md": "README.md", folder / "run.toml": "run.toml"}
        for file, template in whole.items():
            write_whole(file, _text(template))
    return [*whole, *write("policy", "my_policy", folder)[0], *write("scenario", "my_study", folder)[0]]


def presets() -> dict[str, str]:
    """What each paper's setting is, by its name."""
    files = sorted(resources.files("edgesim.templates").joinpath("presets").iterdir(), key=lambda file: file.name)
    return {file.name.removesuffix(".toml"): file.read_text().partition("\n")[0].lstrip("# ") for file in files}


def write_preset(name: str, folder: Path) -> Path:
    """Write a paper's setting as ``run.toml`` into a new or empty folder; returns the file.

    Raises `EdgesimError` for an unknown name, with the names there are, and for a folder that holds anything.
    """
    if name not in (known := presets()):
        hint = did_you_mean(name, known) or ";"
        raise EdgesimError(f"--like {name}: no paper's setting has this name{hint} known: {', '.join(known)}")
    _make_empty(folder)
    file = folder / "run.toml"
    with system_errors(f"{folder}: cannot be written"):
        write_whole(file, _text(f"presets/{name}.toml"))
    return file


def _make_empty(folder: Path) -> None:
    """Make a folder that does not exist; raises `EdgesimError` for one that holds anything."""
    with system_errors(f"{folder}: cannot be written"):
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise EdgesimError(f"{folder}: is not an empty folder; choose another one")
        folder.mkdir(parents=True, exist_ok=True)


def _text(template: str) -> str:
    return resources.files("edgesim.templates").joinpath(template).read_text()
