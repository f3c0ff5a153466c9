"""Numbers that docs/results.md and docs/policies.md quote are those of the committed rows that they stand beside."""

import re
import tomllib
from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy
from quoted import DOCS, SEEDS, section

PLAN = tomllib.loads((DOCS / "papers/tables.toml").read_text())
FACTORS = {1, 100, 1e-3}
"""Of a quoted number: as it is, in per cent, or in thousands."""
WITH_INTERVAL = re.compile(r"([\d,]+(?:\.\d+)?) ± ([\d.]+)")
BOUNDS = re.compile(r"(?<!F)[\[(]-?([\d.]+)(?:,| to) -?([\d.]+)[\])]")
PLAIN = re.compile(r"(?<![\d.])\d+\.\d+(?![\d.]| s )")
"""A number with decimals that is no deadline."""
P = re.compile(r"\bp (?:(=|<) )?(\d(?:\.\d+)?(?:(?:,| and| to) \d\.\d+)*)")

PREDICTION = re.compile(r"\| \([a-d]\) [^|]*\|[^|]*\|[^|]*\|")
"""A row about a prediction of ``scenarios/compression.py``, of which ``tests/scenario/test_compression.py`` has the
numbers."""
LEVEL = ("<", "0.05")
"""What is called significant, which is no result."""


@cache
def results_of(study):
    """All means of a study's settings and all differences, each with bounds and the p that were found for it."""
    if not (SEEDS / f"{study}.csv").is_file():
        return [
            quoted(row) for row in pd.read_csv(DOCS / "papers/results.csv").to_dict("records") if row["study"] == study
        ]
    runs, of, found = pd.read_csv(SEEDS / f"{study}.csv"), PLAN["studies"][study], []
    measures = {*of.get("columns", ()), *(each["column"] for each in of.get("measures", {}).values())}
    knobs = [name for name in runs if name != "seed" and name.removesuffix("_bound") not in measures]
    for _, rows in runs.groupby(knobs, dropna=False):
        for column in measures:
            values, bound = rows[column].dropna(), rows.get(f"{column}_bound", pd.Series(dtype=float))
            if bound.isna().all() and len(values):
                half = values.sem() * scipy.stats.t.ppf(0.975, len(values) - 1) if len(values) > 2 else 0
                found.append((values.mean(), values.mean() - half, values.mean() + half, ()))
    found += spreads_of(runs, *of["crossed"]) if "crossed" in of else []
    path = SEEDS / f"{study}-differences.csv"
    for row in pd.read_csv(path).itertuples() if path.is_file() else ():
        found.append((row.difference, row.low, row.high, (row.p, row.p_holm)))
        if "low_holm" in row._fields:
            found.append((row.difference, row.low_holm, row.high_holm, (row.p, row.p_holm)))
        found.append((row.ratio, row.ratio_low, row.ratio_high, (row.p, row.p_holm)))
    return [result for result in found if np.isfinite(result[0])]


def spreads_of(runs, first, second, column):
    """Of each seed the standard deviations between the means of two knobs' values, and their difference."""
    spreads = [runs.groupby(["seed", knob])[column].mean().groupby("seed").std() for knob in (first, second)]
    found = []
    for values in (*spreads, spreads[0] - spreads[1]):
        test = scipy.stats.ttest_1samp(values, 0.0)
        found.append((values.mean(), *test.confidence_interval(0.95), (test.pvalue,)))
    return found


def quoted(row):
    """A number of a study whose runs are not kept; its p is known as a bound at most."""
    half = 0 if pd.isna(row["half"]) else row["half"]
    return row["value"], row["value"] - half, row["value"] + half, ()


def decimals(text):
    return len(text.partition(".")[2])


def written(number, like):
    """The number's size, times every factor, with as many decimals as the text that it is compared with."""
    return {f"{abs(factor * number):.{decimals(like)}f}" for factor in FACTORS}


def fits(result, value, half):
    """Whether a result has the mean and the half interval that a text has, in one unit."""
    mean, _, high, _ = result
    return any(
        f"{abs(factor * mean):.{decimals(value)}f}" == value and f"{factor * (high - mean):.{decimals(half)}f}" == half
        for factor in FACTORS
    )


def not_found(text, studies):
    """What a text quotes with an interval or a p that no result of the studies has."""
    results = [result for study in studies for result in results_of(study)]
    lacking = []
    for sentence in re.split(r"(?<=[.;|]) ", text):
        cited = []
        for value, half in WITH_INTERVAL.findall(sentence):
            fitting = [result for result in results if fits(result, value.replace(",", ""), half)]
            cited += fitting
            if not fitting:
                lacking.append(f"{value} ± {half}")
        for low, high in BOUNDS.findall(sentence):
            # Of the difference the other way round the bounds change places.
            fitting = [
                result
                for result in results
                for first, last in (result[1:3], result[2:0:-1])
                if low in written(first, low) and high in written(last, high)
            ]
            cited += fitting
            if not fitting:
                lacking.append(f"[{low}, {high}]")
        for sign, values in P.findall(sentence):
            for value in re.findall(r"\d(?:\.\d+)?", values) if (sign, values) != LEVEL else ():
                known = {p for result in (cited or results) for p in result[3]}
                if not any(p < float(value) if sign == "<" else f"{p:.{decimals(value)}f}" == value for p in known):
                    lacking.append(f"p {sign} {value}")
    return lacking


def headings(page):
    return re.findall(r"^## (.*)$", (DOCS / page).read_text(), re.MULTILINE)


def text_of(page, title):
    return " ".join(section(title, page).split())


SECTIONS = sorted({of["section"] for of in PLAN["studies"].values() if "section" in of})


@pytest.mark.parametrize("title", SECTIONS)
def test_what_a_section_quotes_is_in_its_studies(title):
    studies = [name for name, of in PLAN["studies"].items() if of.get("section") == title]
    text = PREDICTION.sub("", text_of("results.md", title))
    assert WITH_INTERVAL.search(text)
    assert not_found(text, studies) == []


def rows_about_papers(title):
    """The last cell of each row of a table that links a paper's page, with the page's name."""
    for line in section(title).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("|") and (page := re.search(r"\(papers/([\w-]+)\.md\)", cells[0])):
            yield page[1], cells[-1]


def test_what_the_rows_of_papers_quote_is_in_the_studies_of_their_pages():
    rows = [*rows_about_papers("Papers repeated")]
    assert len(rows) >= 5
    for page, text in rows:
        studies = {row["study"] for row in PLAN["pages"].get(page, ()) if "study" in row}
        studies |= {name for name, of in PLAN["studies"].items() if of.get("page") == page}
        assert not_found(text, sorted(studies)) == [], page
        plain = PLAIN.findall(BOUNDS.sub("", P.sub("", WITH_INTERVAL.sub("", text))))
        means = [result[0] for study in studies for result in results_of(study)]
        # Ratios of means stand in the page's own table, which another test checks.
        beside = {*PLAIN.findall((DOCS / f"papers/{page}.md").read_text().partition("<!-- End -->")[0])}
        lacking = [number for number in plain if not any(f"{mean:.{decimals(number)}f}" == number for mean in means)]
        assert {*lacking} <= beside, page


@pytest.mark.parametrize("page", ["amiri", "fedpaq"])
def test_what_the_page_of_a_paper_quotes_is_in_its_studies(page):
    """Pages of which every number comes from rows; another test has the table beside the paper."""
    studies = {row["study"] for row in PLAN["pages"][page] if "study" in row}
    studies |= {name for name, of in PLAN["studies"].items() if of.get("page") == page}
    before, rest = (DOCS / f"papers/{page}.md").read_text().split("<!-- Written")
    text = " ".join((before + rest.partition("<!-- End -->")[2]).split())
    assert len(WITH_INTERVAL.findall(text)) > 10
    assert not_found(text, sorted(studies)) == []


def test_every_section_that_quotes_intervals_is_checked():
    quoting = {title for title in headings("results.md") if WITH_INTERVAL.search(text_of("results.md", title))}
    assert quoting - {"Papers repeated"} == {*SECTIONS}
    assert not [title for title in headings("policies.md") if WITH_INTERVAL.search(text_of("policies.md", title))]
