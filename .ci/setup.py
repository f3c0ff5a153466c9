"""Sets up the environment of a checkout: ``python .ci/setup.py FOLDER``.

The environment sees no package of the system; it gets what pyproject.toml needs for development, and edgesim in place.
The interpreter's own pip installs them by the user's settings (PIP_INDEX_URL, PIP_CONSTRAINT, PIP_NO_INDEX with
PIP_FIND_LINKS, ...). What pip prints is kept in FOLDER/setup.log; a failure is one line.
"""

import os
import re
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).parents[1]
DOWNLOAD = "up to 3.3 GB (PyTorch for CUDA is most of it) and 6.9 GB in {folder}"
"""Wheels and files of a new environment: Linux, x86-64, Python 3.11, November 2026."""
_LARGE = re.compile(r"\s*Downloading \S+ \(\d{2,}\.\d [MG]B\)")


def main(folder: Path) -> None:
    """Make the environment, or complete one that is there."""
    begun_s = time.monotonic()
    make_environment(folder)
    if os.environ.get("PIP_NO_INDEX"):
        say("installs from PIP_FIND_LINKS alone and downloads nothing, since PIP_NO_INDEX is set")
    else:
        say(f"downloads what is not there yet: {DOWNLOAD.format(folder=folder)}")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (folder / "setup.log").write_text("")
    install(folder, *project["dependencies"], *project["optional-dependencies"]["dev"])
    # Without a second environment for the build, which would need the packages of the first one anew.
    install(folder, "--no-build-isolation", "--no-deps", "--editable", str(ROOT))
    say(f"{folder} is ready after {time.monotonic() - begun_s:.0f} s; to use it: . {folder}/bin/activate")


def make_environment(folder: Path) -> None:
    """An environment with pip; ends with one line where this Python cannot make it."""
    try:
        import ensurepip  # noqa: F401 - absent where a distribution has a package of its own for it
        import venv

        venv.create(folder, symlinks=os.name != "nt", with_pip=True)
    except ImportError as error:
        end(f"this Python has no {error.name}; on Debian and Ubuntu: apt-get install python3-venv")
    except ValueError as error:
        end(str(error))
    except subprocess.CalledProcessError as error:
        end(f"{folder} cannot be made: {reason((error.output or b'').decode(errors='replace').splitlines())}")


def install(folder: Path, *words: str) -> None:
    """Let pip install; prints only names and sizes of large files, and ends with one line where pip fails."""
    options = ["--disable-pip-version-check", "--progress-bar", "off"]
    # What other settings of a shell make importable, pip would take for installed.
    settings = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    lines = []
    with (
        subprocess.Popen(
            [folder / "bin/python", "-m", "pip", "install", *options, *words],
            env=settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as pip,
        (folder / "setup.log").open("a") as log,
    ):
        assert pip.stdout is not None
        for line in pip.stdout:
            log.write(line)
            lines.append(line.strip())
            if _LARGE.match(line):
                print(f"  {line.strip()}", flush=True)
    if pip.returncode:
        end(f"{reason(lines)}; all that pip said: {folder}/setup.log")


def reason(lines: list[str]) -> str:
    """Why pip failed: its first error, and the network's where it had to try again."""
    errors = [line.partition(" ")[2] for line in lines if line.lower().startswith("error: ")]
    broken = [match[1] for line in lines if (match := re.search(r"connection broken by '(.*)': /", line))]
    # Behind what Python shows of a connection.
    network = [each.rpartition(">: ")[2].strip("')") for each in broken]
    return "; ".join([*errors[:1], *network[:1]]) or "pip failed"


def say(text: str) -> None:
    """Print a line at once, also where the output is a file."""
    print(f"make setup: {text}", flush=True)


def end(why: str) -> NoReturn:
    """End with one line."""
    sys.exit(f"make setup: {why}")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except OSError as error:
        end(f"{error.filename or sys.argv[1]}: {error.strerror}")
