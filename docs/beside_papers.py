"""Writes the tables "Beside the paper" into the pages of docs/papers: ``python docs/beside_papers.py``.

What is claimed, the paper's number and the verdict stand in ``papers/tables.toml``; our numbers in
``papers/results.csv``, of which a row is one measure of one setting of a study, as its tables print it.
"""

import csv
import re
import tomllib
from pathlib import Path
from string import ascii_lowercase
from typing import Any

PAPERS = Path(__file__).parent / "papers"
_BEGIN, _END = "<!-- Written by docs/beside_papers.py -->", "<!-- End -->"
_HEAD = ["what", "paper", "here", "seeds", "run", "verdict"]


def tables() -> dict[str, str]:
    """The table of each page, in Markdown, with the commands below it.

    Raises KeyError, with study, setting and measure, for a number that is not among the results.
    """
    planned = tomllib.loads((PAPERS / "tables.toml").read_text())
    with (PAPERS / "results.csv").open(newline="") as file:
        results = {(row["study"], row["setting"], row["measure"]): row for row in csv.DictReader(file)}
    return {page: _table(rows, results, planned["studies"]) for page, rows in planned["pages"].items()}


def _table(rows: list[dict[str, str]], results: dict[Any, dict[str, str]], commands: dict[str, str]) -> str:
    studies = list(dict.fromkeys(row["study"] for row in rows if "study" in row))
    letters = dict(zip(studies, ascii_lowercase, strict=False))
    lines = [_line(_HEAD), _line(["---"] * len(_HEAD))]
    for row in rows:
        if "not_run" in row:
            lines.append(_line([row["claim"], row["paper"], "not run", "", "", row["not_run"]]))
            continue
        result = results[row["study"], row["setting"], row["measure"]]
        settings = [row["setting"], *([row["against"]] if "against" in row else [])]
        numbers = [f"{name}: {_number(results[row['study'], name, row['measure']])}" for name in settings]
        ours = f"{row['measure']}; {'; '.join(numbers)}"
        lines.append(_line([row["claim"], row["paper"], ours, result["seeds"], letters[row["study"]], row["verdict"]]))
    runs = [f"- {letter}: `{commands[study]}`" for study, letter in letters.items()]
    return "\n".join([*lines, "", *runs])


def _number(result: dict[str, str]) -> str:
    """A number with its 95 % interval where there are seeds for one, and p where it was tested."""
    half = f" ± {result['half']}" if result["half"] else ""
    equals = "" if result["p"][:1] in "<>" else "= "
    p = f" (p {equals}{result['p']})" if result["p"] else ""
    return f"{result['value']}{half}{p}"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def with_table(page: str, table: str) -> str:
    """A page whose part between the two marks is the table."""
    between = re.compile(f"{re.escape(_BEGIN)}\n.*?{re.escape(_END)}", re.DOTALL)
    return between.sub(lambda _: f"{_BEGIN}\n\n{table}\n\n{_END}", page)


def main() -> None:
    """Write all pages anew."""
    for name, table in tables().items():
        path = PAPERS / f"{name}.md"
        path.write_text(with_table(path.read_text(), table))


if __name__ == "__main__":
    main()
