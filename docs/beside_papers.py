"""Writes the tables "Beside the paper" into the pages of docs/papers: ``python docs/beside_papers.py``.

``papers/tables.toml`` says what is claimed, the paper's number, our verdict or what decides it, and by which command
ours comes. Ours are computed from ``papers/seeds/STUDY.csv``, which has a row per run of the study, and their p are
those of ``papers/seeds/STUDY-differences.csv``, all comparisons that were corrected together. Both files are written
from the runs by ``python docs/beside_papers.py STUDY FOLDER [DIFFERENCES ...]``: the study's folder, and the tables of
differences in it. Studies that were not run again since have no such files; their numbers are those that their pages
had, and stand in ``papers/results.csv``, as do those of the study whose ``tests`` are kept instead of its runs, which a
test of its page computes from them. Of studies that are ``scored``, ``papers/STUDY.parquet`` has the accuracy of
each run at equal seconds, bits and joules. Studies that are in no such table have files too, where a ``section`` of
``results.md``, or a ``page`` on a paper, quotes them.
"""

import re
import runpy
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from string import ascii_lowercase
from typing import Any

import numpy as np
import pandas as pd

from edgesim.analysis.measures import measure
from edgesim.analysis.runs import RunFolder, read_study
from edgesim.analysis.static_pairs import pairs
from edgesim.analysis.statistics import mean_interval, pair_by_seed

PAPERS = Path(__file__).parent / "papers"
SCENARIOS = Path(__file__).parents[1] / "scenarios"
_BEGIN, _END = "<!-- Written by docs/beside_papers.py -->", "<!-- End -->"
_HEAD = ["what", "paper", "here", "seeds", "run", "verdict"]
LEAST_SEEDS = 3
"""Seeds from which a number has an interval."""
SIGNIFICANT = 0.05
Row = Mapping[str, Any]
Key = tuple[str, str, str]
"""Names of a study, a setting and a measure."""


def tables() -> dict[str, str]:
    """The table of each page, in Markdown, with the commands below it.

    Raises KeyError, with study, setting and measure, for a number that is not among the results.
    """
    planned = read_plan()
    return {page: _table(rows, planned["studies"]) for page, rows in planned["pages"].items()}


def read_plan() -> dict[str, Any]:
    """What ``tables.toml`` says of studies and pages."""
    return tomllib.loads((PAPERS / "tables.toml").read_text())


def _result(studies: Mapping[str, Row], key: Key) -> Row:
    """Value, half width of its interval, p and seeds of a number, as texts."""
    name, setting, title = key
    study = studies[name]
    if "settings" not in study:
        return _quoted()[key]
    runs, differences = _read(f"{study.get('runs', name)}.csv"), _read(f"{name}-differences.csv")
    return _computed(runs, differences, study["settings"][setting], study["measures"][title])


@cache
def _quoted() -> dict[Key, Row]:
    rows = pd.read_csv(PAPERS / "results.csv", dtype=str, keep_default_na=False).to_dict("records")
    return {(row["study"], row["setting"], row["measure"]): row for row in rows}


@cache
def _read(name: str) -> pd.DataFrame:
    """A table of ``papers/seeds``; an empty one where there is none."""
    path = PAPERS / "seeds" / name
    return pd.read_csv(path) if path.is_file() else pd.DataFrame()


def _computed(runs: pd.DataFrame, differences: pd.DataFrame, where: Row, of: Row) -> Row:
    """Mean of a measure over the seeds of one setting, of its difference to the runs ``less`` seed by seed, or how many
    times as large the mean of the runs ``over`` is.
    """
    column, factor = of["column"], of.get("factor", 1)
    own = _by_seed(runs, where, column)
    if "over" in of:
        others = _by_seed(runs, {**where, **of["over"]}, column)
        return _row(float(np.mean(list(others.values())) / np.mean(list(own.values()))), np.nan, None, len(own), of)
    values, p = list(own.values()), None
    if "less" in of:
        first, second = pair_by_seed(own, _by_seed(runs, {**where, **of["less"]}, column))
        values = list(first - second)
        (p,) = _rows(differences, {**where, "measure": column})["p_holm"]
    mean, low, high = (factor * end for end in mean_interval(values, LEAST_SEEDS))
    return {**_row(mean, mean - low, p, len(values), of), "found": _found(mean, low, high, p, of.get("margin", 0.0))}


def _found(mean: float, low: float, high: float, p: float | None, margin: float) -> str:
    """Verdict on a difference as `edgesim compare` gives it, with the direction of a significant one."""
    if p is not None and p < SIGNIFICANT:
        return "higher" if mean > 0 else "lower"
    return "equivalent" if -margin < low and high < margin else "inconclusive"


def _verdict(found: str, expected: str) -> str:
    """What a difference says of a claim that it is ``expected`` to be higher or lower."""
    if found == expected:
        return "shown"
    return "the opposite is shown" if found in ("higher", "lower") else found


def _rows(table: pd.DataFrame, where: Row) -> pd.DataFrame:
    """The rows that have all these values."""
    for name, value in where.items():
        table = table[table[name] == value]
    return table


def _by_seed(runs: pd.DataFrame, where: Row, column: str) -> dict[int, float]:
    """A measure of the runs of one setting; raises ValueError where one of them never reached its target."""
    rows = _rows(runs, where)
    bound = f"{column}_bound"
    if bound in rows and rows[bound].notna().any():
        raise ValueError(f"{column}: a run of {dict(where)} never reached its target; expected a measure of all runs")
    known = rows[rows[column].notna()]
    values = {int(seed): float(value) for seed, value in zip(known["seed"], known[column], strict=True)}
    if not values or len(values) < len(known):
        raise ValueError(f"{column}: expected one run per seed of {dict(where)} (got {len(known)} rows)")
    return values


def _row(value: float, half: float, p: float | None, seeds: int, of: Row) -> Row:
    digits = of.get("digits", 1)
    return {
        "value": f"{value:z.{digits}f}",
        "half": "" if pd.isna(half) else f"{half:.{digits}f}",
        "p": "" if p is None else "< 0.001" if p < 0.001 else f"{p:.2g}",
        "seeds": str(seeds),
    }


def _table(rows: list[dict[str, str]], studies: Mapping[str, Row]) -> str:
    letters = dict(zip(dict.fromkeys(row["study"] for row in rows if "study" in row), ascii_lowercase, strict=False))
    lines = [_line(_HEAD), _line(["---"] * len(_HEAD))]
    for row in rows:
        if "not_run" in row:
            lines.append(_line([row["claim"], row["paper"], "not run", "", "", row["not_run"]]))
            continue
        settings = [row["setting"], *([row["against"]] if "against" in row else [])]
        results = {name: _result(studies, (row["study"], name, row["measure"])) for name in settings}
        ours = "; ".join([row["measure"], *(f"{name}: {_text(result)}" for name, result in results.items())])
        seeds = results[row["setting"]]["seeds"]
        verdict = row.get("verdict") or _verdict(results[row["setting"]]["found"], row["expects"])
        lines.append(_line([row["claim"], row["paper"], ours, seeds, letters[row["study"]], verdict]))
    return "\n".join([*lines, "", *(_run(letter, name, studies[name]) for name, letter in letters.items())])


def _run(letter: str, name: str, study: Row) -> str:
    """Line with the command of a study, and where its numbers come from."""
    if "tests" in study:
        source = f"computed from [all tests of its runs]({study['tests']})"
    elif "settings" not in study:
        source = f"not run again, since it takes {study['takes']}: numbers of an earlier run, whose runs are not kept"
    else:
        source = f"computed from [a row per run](seeds/{study.get('runs', name)}.csv)"
        if (PAPERS / f"seeds/{name}-differences.csv").is_file():
            which = " ".join(["all comparisons", study.get("compares", "")]).strip()
            source += f", p from [{which}](seeds/{name}-differences.csv)"
    return f"- {letter}: `{study['command']}`; {source}"


def _text(result: Row) -> str:
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


def collect(name: str, folder: Path, *differences: str) -> None:
    """Write the files of a study from its folder: a row per run, and the named tables of differences in the folder."""
    study = read_plan()["studies"][name]
    wanted = {*study.get("columns", ()), *(of["column"] for of in study.get("measures", {}).values())}
    names = {*study.get("knobs", ()), *(knob for where in study.get("settings", {}).values() for knob in where)}
    if "rows" in study:
        runs = pd.read_csv(folder / study["rows"])
        if "seed" not in runs:
            runs["seed"] = 0
    else:
        plan = read_study(folder)
        lost = {pair.run.folder: {"idp_points": pair.idp_points} for pair in pairs(plan.finished)[0]}
        target = study.get("target", plan.target)
        runs = pd.DataFrame(
            {**run.knobs, "seed": run.seed, **measure(run, target), **lost.get(run.folder, {}), **_own(study, run)}
            for run in plan.finished
        )
    if "runs" not in study:
        _write(
            runs[[of for of in runs if of in {*names, "seed"} or of.removesuffix("_bound") in wanted]], f"{name}.csv"
        )
    if study.get("scored"):
        pd.read_csv(folder / "scores.csv").to_parquet(PAPERS / f"{name}.parquet", index=False)
    if differences:
        tables = {Path(each).stem: pd.read_csv(folder / each) for each in differences}
        table = pd.concat(tables, names=["between"]).reset_index("between")
        told = [
            "measure",
            "pairs",
            "never",
            "differing",
            "difference",
            "low",
            "high",
            "ratio",
            "ratio_low",
            "ratio_high",
            *(of for of in ("low_holm", "high_holm") if "section" in study or "page" in study),
        ]
        first = ["between"] if len(differences) > 1 else []
        _write(table[[*first, *(of for of in table if of in names), *told, "p", "p_holm"]], f"{name}-differences.csv")


def _own(study: Row, run: RunFolder) -> Mapping[str, float]:
    """What a scenario itself measures of a run: the function, and further arguments, that ``own`` names."""
    if "own" not in study:
        return {}
    script, function, *further = study["own"]
    measured: Mapping[str, float] = runpy.run_path(str(SCENARIOS / script))[function](run, *further)
    return measured


def _write(table: pd.DataFrame, name: str) -> None:
    table.to_csv(PAPERS / "seeds" / name, index=False, lineterminator="\n", float_format="%.8g")


def main() -> None:
    """Write all pages anew, or with arguments the files of one study."""
    if sys.argv[1:]:
        name, folder, *differences = sys.argv[1:]
        collect(name, Path(folder), *differences)
        return
    for page, table in tables().items():
        path = PAPERS / f"{page}.md"
        path.write_text(with_table(path.read_text(), table))


if __name__ == "__main__":
    main()
