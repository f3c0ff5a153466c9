"""Runs the tutorials and makes pages of notebooks: ``python docs/notebooks.py [NAME ...]``, as ``make tutorials`` does.

A tutorial is a notebook of ``docs/tutorials/`` that holds what its cells printed and drew when it was last run, and a
digest of these cells: a cell that was edited and not run again is noticed by a test. A line that ends with ``# quick:
VALUE`` gives a size of the study; the tests run the notebook with the values behind ``quick:``. The builder of the
handbook makes a page in Markdown of each notebook, with its figures as files beside it.
"""

import base64
import hashlib
import os
import re
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

DOCS = Path(__file__).parent
TUTORIALS = DOCS / "tutorials"
TIMEOUT_S = 900

_QUICK = re.compile(r"^(\w+ = ).*# quick: (.*)$", re.MULTILINE)
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_STYLE = re.compile(r"<style.*?</style>\s*", re.DOTALL)


def run(notebook: NotebookNode, folder: Path, quick: bool = False) -> None:
    """Run all cells in a folder and keep what they show in the notebook; ``quick`` at reduced size.

    Raises `nbclient.exceptions.CellExecutionError` where a cell fails.
    """
    for cell in _code(notebook):
        if quick:
            cell.source = _QUICK.sub(r"\1\2", cell.source)
    tools = {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])}
    plain = {"COLUMNS": "90", "NO_COLOR": "1", "TERM": "dumb", "OMP_NUM_THREADS": "1"}
    where = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=TIMEOUT_S, resources=where, coalesce_streams=True)
    client.execute(env=os.environ | tools | plain)
    for cell in _code(notebook):
        cell.metadata.pop("execution", None)
        cell.outputs = [output for output in cell.outputs if not _is_progress(output)]
        for output in cell.outputs:
            _shorten(output.get("data", {}))
            if "text" in output:
                output.text = _ANSI.sub("", output.text).replace(str(folder), "~/tutorial")
    notebook.metadata["ran"] = digest(notebook)
    notebook.metadata.language_info = {"name": "python"}


def digest(notebook: NotebookNode) -> str:
    """Digest of the code of all cells."""
    return hashlib.sha256("\0".join(cell.source for cell in _code(notebook)).encode()).hexdigest()[:16]


def page(notebook: NotebookNode, name: str) -> tuple[str, dict[str, bytes]]:
    """A page in Markdown of a notebook, and the figures that belong beside it, by the names of their files."""
    parts: list[str] = []
    figures: dict[str, bytes] = {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        language = "bash" if cell.source.startswith("%%bash") else "python"
        parts.append(f"```{language}\n{cell.source}\n```")
        for output in cell.outputs:
            data = output.get("data", {})
            if "image/png" in data:
                file = f"{name}-{len(figures) + 1}.png"
                figures[file] = base64.b64decode(data["image/png"])
                parts.append(f"![Figure {len(figures)}]({file})")
            elif "text/html" in data:
                parts.append(f'<div class="output">{_in_one_block(data["text/html"])}</div>')
            else:
                parts.append(f"```text\n{(output.get('text') or data['text/plain']).rstrip()}\n```")
    return "\n\n".join(parts) + "\n", figures


def _code(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _is_progress(output: NotebookNode) -> bool:
    """Whether an output is a line of progress, which is another one in every run."""
    return output.output_type == "display_data" and [*output.data] == ["text/plain"]


def _shorten(data: dict[str, str]) -> None:
    """Leave of the forms of a result the one that pages show."""
    if "text/html" in data:
        # Pages and Jupyter have styles of their own for tables without a class.
        data["text/html"] = _STYLE.sub("", data["text/html"]).replace(' border="1" class="dataframe"', "")
    if data.keys() & {"text/html", "image/png"}:
        data.pop("text/plain", None)


def _in_one_block(html: str) -> str:
    """HTML without empty lines, at which Markdown would end it."""
    return "\n".join(line for line in html.splitlines() if line.strip())


def main(names: list[str]) -> None:
    """Run the tutorials of these names, or all, whole, and write what they show into them."""
    files = [TUTORIALS / f"{name}.ipynb" for name in names] or sorted(TUTORIALS.glob("*.ipynb"))
    for file in files:
        notebook, began = nbformat.read(file, as_version=4), time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            run(notebook, Path(folder))
        nbformat.write(notebook, file)
        print(f"{file.stem}: {time.perf_counter() - began:.0f} s, {file.stat().st_size / 1000:.0f} kB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
