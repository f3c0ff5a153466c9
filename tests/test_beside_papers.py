"""Tables of papers beside ours: each number is that of the committed runs, or of the page that it is quoted from."""

import csv
import re
import runpy
import statistics
import tomllib
from pathlib import Path

import pytest
import scipy

DOCS = Path(__file__).parents[1] / "docs"
PAPERS = DOCS / "papers"
BESIDE_PAPERS = runpy.run_path(str(DOCS / "beside_papers.py"))
PLAN = tomllib.loads((PAPERS / "tables.toml").read_text())
WRITTEN = re.compile("<!-- Written by docs/beside_papers.py -->(.*)<!-- End -->", re.DOTALL)


def records(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def numbers_of(name):
    """Study, setting and measure of each number in a page's table, its text and seeds, read from the page alone."""
    (part,) = WRITTEN.findall((PAPERS / f"{name}.md").read_text())
    runs = re.findall(r"^- (\w): `(.+?)`;(?:.*all comparisons ?(.*?)\])?", part, re.MULTILINE)
    commands = {letter: (command, compares) for letter, command, compares in runs}
    of_command = {(study["command"], study.get("compares", "")): key for key, study in PLAN["studies"].items()}
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in part.splitlines() if line[:2] == "| "]
    for what, _, ours, seeds, run, verdict in rows[2:]:
        assert what
        assert verdict
        measure, *settings = ours.split("; ")
        for setting, _, text in (each.rpartition(": ") for each in settings):
            yield of_command[commands[run]], setting, measure, text, seeds


def recomputed(study, setting, measure):
    """Value, half of the interval, p and seeds of a number, by SciPy from the study's rows per run."""
    where, of = PLAN["studies"][study]["settings"][setting], PLAN["studies"][study]["measures"][measure]
    rows = records(PAPERS / f"seeds/{PLAN['studies'][study].get('runs', study)}.csv")

    def by_seed(where):
        mine = [row for row in rows if all(row[knob] == str(value) for knob, value in where.items())]
        return {row["seed"]: float(row[of["column"]]) for row in mine if row[of["column"]]}

    own, factor, digits, p = by_seed(where), of.get("factor", 1), of.get("digits", 1), ""
    values = [*own.values()]
    if "over" in of:
        return (
            f"{statistics.mean(by_seed(where | of['over']).values()) / statistics.mean(values):.{digits}f}",
            "",
            "",
            len(own),
        )
    if "less" in of:
        theirs = by_seed(where | of["less"])
        assert theirs.keys() == own.keys()
        values = [own[seed] - theirs[seed] for seed in own]
        p = corrected_p(study, where, of["column"], scipy.stats.ttest_1samp(values, 0).pvalue)
        p = "< 0.001" if p < 0.001 else f"{p:.2g}"
    half = ""
    if len(values) >= 3:
        interval = scipy.stats.ttest_1samp(values, 0).confidence_interval()
        half = f"{factor * (interval.high - interval.low) / 2:.{digits}f}"
    return f"{factor * statistics.mean(values):z.{digits}f}", half, p, len(values)


def corrected_p(study, where, column, p):
    """p of one comparison, corrected by Holm among all of its study's in which a pair differs."""
    rows = [row for row in records(PAPERS / f"seeds/{study}-differences.csv") if row["differing"] != "0"]
    ordered = sorted(rows, key=lambda row: float(row["p"]))
    corrected = 0.0
    for rank, row in enumerate(ordered):
        corrected = max(corrected, min(1.0, (len(ordered) - rank) * float(row["p"])))
        assert float(row["p_holm"]) == pytest.approx(corrected, rel=1e-5)
        if row["measure"] == column and all(row[knob] == str(value) for knob, value in where.items()):
            assert float(row["p"]) == pytest.approx(p, rel=1e-4)
            return corrected
    raise AssertionError(f"{study}: {where} was not compared")


@pytest.mark.parametrize("name", PLAN["pages"])
def test_each_number_beside_a_papers_is_that_of_the_committed_runs_or_of_the_page_that_it_is_quoted_from(name):
    page = (PAPERS / f"{name}.md").read_text()
    assert BESIDE_PAPERS["with_table"](page, BESIDE_PAPERS["tables"]()[name]) == page
    quoted = {(row["study"], row["setting"], row["measure"]): row for row in records(PAPERS / "results.csv")}
    elsewhere = WRITTEN.sub("", page)
    found = [*numbers_of(name)]
    for study, setting, measure, text, seeds in found:
        number = re.fullmatch(r"(-?[\d.]+)(?: ± ([\d.]+))?(?: \(p (?:= )?([<>]? ?[\d.]+)\))?", text)
        assert number is not None, text
        if "settings" in PLAN["studies"][study]:
            expected = recomputed(study, setting, measure)
        else:
            row = quoted[study, setting, measure]
            expected = row["value"], row["half"], row["p"], row["seeds"]
            value = row["value"].lstrip("-")
            assert (f"{value} ± {row['half']}" if row["half"] else value) in elsewhere, text
        assert [part or "" for part in number.groups()] + [seeds] == [str(part) for part in expected]
    assert len(found) >= 6
    assert any("not_run" in row for row in PLAN["pages"][name])


@pytest.mark.parametrize(
    ("mean", "half", "p", "verdict"),
    [
        (-2.0, 1.0, 0.04, "shown"),
        (2.0, 1.0, 0.04, "the opposite is shown"),
        (-2.0, 1.0, 0.06, "inconclusive"),
        (-0.2, 0.7, 0.06, "equivalent"),
        (-0.2, 0.7, 0.04, "shown"),
    ],
)
def test_a_difference_is_judged_by_its_p_and_its_interval(mean, half, p, verdict):
    found = BESIDE_PAPERS["_found"](mean, mean - half, mean + half, p, 1.0)
    assert BESIDE_PAPERS["_verdict"](found, "lower") == verdict


def test_every_file_of_runs_belongs_to_a_study_whose_numbers_are_computed_from_it():
    computed = {name for name, study in PLAN["studies"].items() if study.keys() & {"settings", "section", "page"}}
    files = {path.stem for path in (PAPERS / "seeds").glob("*.csv")}
    assert {name.removesuffix("-differences") for name in files} == computed
    assert computed.isdisjoint({row["study"] for row in records(PAPERS / "results.csv")})


def test_every_quoted_result_is_in_a_table_and_no_interval_is_of_fewer_than_three_seeds():
    written = "\n".join(BESIDE_PAPERS["tables"]().values())
    for row in records(PAPERS / "results.csv"):
        assert f"{row['setting']}: {row['value']}" in written, row
        assert bool(row["half"]) <= (int(row["seeds"]) >= 3), row
