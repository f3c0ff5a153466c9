"""The page of a run and of a study: what it says, beside the tables; what it needs; what is refused."""

import base64
import gzip
import json
import math
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from edited_runs import edit_json, edit_table, forget_digests
from made_up_runs import write_run, write_study
from small_runs import TIMING
from typer.testing import CliRunner
from whole_runs import TIMED, play

import edgesim
from edgesim.activities import ACTIVITIES
from edgesim.analysis.differences import differences_table
from edgesim.analysis.metrics import scheduled_share
from edgesim.analysis.runs import runs_of
from edgesim.analysis.statistics import mean_interval
from edgesim.analysis.waste import work_by_kind
from edgesim.base.errors import EdgesimError
from edgesim.commands.cli import app
from edgesim.folder.records import SCHEMA_VERSION, read_table
from edgesim.plots.palette import KIND_COLORS, PALETTE
from edgesim.report import run_data
from edgesim.report.charts import COUNT_COLORS
from edgesim.report.report import report_html
from edgesim.report.states import IN_PART, STATES
from edgesim.report.tables import table_html

POLICIES = ("random", "best-channel")


ONE_OF_BOTH = pytest.mark.parametrize("any_run", ["paused"], indirect=True)
"""Where it does not matter of which kind the run is."""


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    """Two policies on three seeds, written by hand, and a run that failed."""
    folder = write_study(
        tmp_path_factory.mktemp("studies") / "two", [{"policy": name} for name in POLICIES], seeds=3, rounds=4
    )
    runs = json.loads((folder / "plan.json").read_text())["runs"]
    lost = runs[0] | {"folder": "lost", "seed": 3}
    edit_json(folder / "plan.json", name="two", target=None, runs=[*runs, lost])
    (folder / "lost").mkdir()
    (folder / "lost/run.json").write_text(json.dumps({"schema_version": SCHEMA_VERSION, "status": "failed"}))
    return folder


@pytest.fixture(scope="module")
def study_page(study, page_of):
    return page_of(report_html(study))


def cells(page, start: str) -> dict[str, list[str]]:
    """The rows of the first table whose caption or first heading begins so, by their first cell."""
    (found, *_) = [table for table in page.tables if any(row and row[0].startswith(start) for row in table)]
    return {row[0]: row[1:] for row in found}


def bokeh_columns(item) -> list[dict[str, list]]:
    """The data of all sources of a Bokeh item, numbers as lists."""
    found = []

    def plain(value):
        if isinstance(value, dict) and value.get("type") == "ndarray":
            data = base64.b64decode(value["array"]["data"])
            # Versions of Bokeh differ in whether they compress.
            data = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
            return np.frombuffer(data, value["dtype"]).tolist()
        return value

    def walk(value):
        if isinstance(value, dict):
            if value.get("name") == "ColumnDataSource" and value.get("type") == "object":
                entries = value["attributes"]["data"]["entries"]
                found.append({name: plain(column) for name, column in entries})
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)

    walk(item)
    return found


def test_the_page_needs_nothing_but_itself(any_html, any_page):
    assert {"cell", "counts", "work"} <= set(any_page.data["charts"])
    assert all(link.startswith(("#", "data:")) for link in any_page.links), any_page.links
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', any_html)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'")
    assert "http" not in policy[1]


def test_the_pages_tables_are_those_of_edgesim_show(any_run, any_page):
    shown = CliRunner().invoke(app, ["show", str(any_run), "--all"], env={"COLUMNS": "200"}).output
    facts = {name: values[0] for name, values in cells(any_page, "status").items()}
    for name in ("rounds", "arrived", "bits up", "energy", "simulated time"):
        assert re.search(rf"{name} +│ {re.escape(facts[name])} ", shown), (name, facts[name])
    useful = cells(any_page, "useful")["useful"]
    assert re.search(rf"useful +{' +'.join(map(re.escape, useful))}", shown)


def test_what_the_pictures_are_drawn_from_is_in_the_tables(any_run, any_page, decoded):
    (run,) = any_page.data["runs"]
    (read,) = runs_of([any_run])
    rounds, activities, updates = (read_table(any_run, name) for name in ("rounds", "activities", "updates"))
    assert decoded(run["rounds"]["number"]).tolist() == rounds["round"].tolist()
    assert decoded(run["rounds"]["end_s"]).tolist() == rounds["t_end_s"].tolist()
    for name in ("candidates", "selected", "arrived", "late", "dropped"):
        assert decoded(run["rounds"][name]).tolist() == rounds[name].tolist()
    assert decoded(run["rounds"]["bits"])[-1] == pytest.approx(rounds["bits_up"].sum())
    assert decoded(run["rounds"]["joules"])[-1] == pytest.approx(rounds["energy_j"].sum())
    devices = read.devices.query("frame == frame.max()").sort_values("device")
    of_rounds = activities[activities["round"].isin(rounds["round"])]
    use = scheduled_share(of_rounds, devices["device"].to_numpy(), len(rounds))
    assert decoded(run["map"]["use"]).tolist() == use.tolist()
    assert decoded(run["map"]["x_m"]).tolist() == devices["x_m"].tolist()
    work = work_by_kind(activities, updates).query("round in @rounds['round']").groupby("kind").sum()
    for amount in ("seconds", "bits", "joules"):
        for kind, of_kind in run["work"][amount].items():
            expected = work[amount].get(kind, 0.0)
            assert decoded(of_kind).sum() == pytest.approx(expected, rel=1e-9)


def test_the_page_says_what_was_run_and_how_to_run_it_again(any_run, any_page):
    assert f"edgesim run {any_run / 'config.toml'} --out NEW_FOLDER" in any_page.written
    assert (any_run / "config.toml").read_text().split("[", 1)[0].strip() in any_page.written
    assert "payload_bits = " in any_page.written
    assert json.loads((any_run / "run.json").read_text())["platform"] in any_page.written


def test_a_study_is_repeated_from_its_plan_and_not_one_run_of_it(study, study_page):
    command = f"mkdir NEW_FOLDER && cp {study / 'plan.json'} NEW_FOLDER && edgesim study run NEW_FOLDER"
    assert command in study_page.written
    assert "--out NEW_FOLDER" not in study_page.written


@ONE_OF_BOTH
@pytest.mark.parametrize(
    ("kept", "typed"),
    [
        (["scenarios/cells.py", "--seeds", "3"], "python scenarios/cells.py --seeds 3"),
        (["/opt/edgesim/__main__.py", "run", "a b.toml"], "python -m edgesim run &#x27;a b.toml&#x27;"),
        (["/usr/bin/edgesim", "run", "a.toml"], "/usr/bin/edgesim run a.toml"),
    ],
)
def test_the_command_that_began_a_run_is_one_to_type(any_run, tmp_path, kept, typed):
    shutil.copytree(any_run, tmp_path / "run")
    edit_json(tmp_path / "run/run.json", command=kept)
    assert f"<p>Begun by</p><pre>{typed}</pre>" in report_html(tmp_path / "run")


def test_a_studys_curves_are_means_with_t_intervals(study, study_page):
    charts = study_page.data["charts"]
    assert {"accuracy-rounds", "accuracy-seconds", "accuracy-bits", "accuracy-joules", "waste"} <= set(charts)
    by_policy = {source["of"][0]: source for source in bokeh_columns(charts["accuracy-rounds"]) if "of" in source}
    assert tuple(by_policy) == POLICIES
    for policy, source in by_policy.items():
        tables = [read_table(study / f"run{POLICIES.index(policy)}-s{seed}", "rounds") for seed in range(3)]
        for number in (1, 4):
            values = [table.set_index("round")["test_accuracy"][number] for table in tables]
            mean, low, high = mean_interval(values).within(0, 1)
            place = source["x"].index(number)
            assert [source[name][place] for name in ("mean", "low", "high")] == pytest.approx([mean, low, high])
    for over, last in (("bits", 1e-6), ("joules", 1.0)):
        column = "bits_up" if over == "bits" else "energy_j"
        for source in bokeh_columns(charts[f"accuracy-{over}"]):
            number = POLICIES.index(source["of"][0])
            spent = [read_table(study / f"run{number}-s{seed}", "rounds")[column].sum() for seed in range(3)]
            assert source["x"][-1] == pytest.approx(last * min(spent))


def test_a_studys_page_has_its_corrected_p_values_and_intervals(study, study_page):
    page = study_page
    table = differences_table(study, "policy", "random")
    (row,) = table.query("measure == 'final_accuracy'").to_dict("records")
    names, values = next(table for table in page.tables if "corrected p" in table[0])
    shown = dict(zip(names, values, strict=True))
    assert shown["policy"] == "best-channel"
    assert float(shown["difference"]) == pytest.approx(row["difference"], rel=1e-3)
    assert json.loads(shown["95 %"]) == pytest.approx([row["low"], row["high"]], rel=1e-3)
    assert json.loads(shown["corrected"]) == pytest.approx([row["low_holm"], row["high_holm"]], rel=1e-3)
    assert float(shown["corrected p"]) == pytest.approx(row["p_holm"], abs=5e-4)


def test_a_studys_page_holds_a_run_of_each_line_and_says_so(study_page):
    page = study_page
    assert [run["name"] for run in page.data["runs"]] == ["run0-s0", "run1-s0"]
    assert "holds 2 of 6 runs" in page.data["note"]
    assert ": 7 runs: 6 finished, 1 failed; " in page.written
    assert "Not all is finished; the page shows what is." in page.written


@pytest.mark.parametrize("many", ["AGGREGATED_FROM", "MOST_BARS"])
def test_many_devices_or_bars_are_aggregated(any_run, page_of, monkeypatch, many):
    monkeypatch.setattr(run_data, many, 1)
    (run,) = page_of(report_html(any_run)).data["runs"]
    assert "bars" not in run
    assert run["groups"]["count"] == run["devices"]
    assert ("number" in run["map"]) == (many == "MOST_BARS")


@ONE_OF_BOTH
def test_names_with_markup_are_text(any_run, tmp_path, page_of):
    evil = "</script><img src=x onerror=alert(1)>"
    folder = tmp_path / "<b>bold<i>"
    shutil.copytree(any_run, folder)
    edit_json(folder / "run.json", command=["edgesim", evil], notes={"a": evil}, platform=evil)
    html = report_html(folder)
    page = page_of(html)
    assert evil not in html
    assert {"img", "b", "i"}.isdisjoint(page.tags)
    assert page.written.count(evil) >= 3
    assert page.data["runs"][0]["name"] == folder.name


@ONE_OF_BOTH
def test_a_run_that_goes_on_or_was_killed_has_a_page_that_says_so(any_run, tmp_path, page_of):
    folder = Path(shutil.copytree(any_run, tmp_path / "run"))
    edit_json(folder / "run.json", status="running")
    written = page_of(report_html(folder)).written
    assert "Not all is finished; the page shows what is." in written
    assert f"{folder}: 1 lost; " in written
    assert f"`edgesim resume {folder}` resumes it" in written


def test_a_run_of_one_round_has_a_page(tmp_path, page_of):
    page = page_of(report_html(write_run(tmp_path / "one", rounds=1)))
    assert "accuracy-joules" in page.data["charts"]
    assert all(
        math.isfinite(value) for source in bokeh_columns(page.data["charts"]["accuracy-bits"]) for value in source["x"]
    )


@ONE_OF_BOTH
def test_a_run_without_a_round_is_refused_in_one_line(any_run, tmp_path):
    folder = forget_digests(Path(shutil.copytree(any_run, tmp_path / "none")))
    edit_table(folder, "rounds", lambda rows: rows.iloc[:0])
    with pytest.raises(EdgesimError, match="has no finished round"):
        report_html(folder)


@ONE_OF_BOTH
def test_the_command_writes_beside_the_run_or_where_it_is_told(any_run, tmp_path):
    done = CliRunner().invoke(app, ["report", str(any_run), "--out", str(tmp_path / "page.html")])
    assert done.exit_code == 0
    assert done.stdout.strip() == str(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")


def refusal(*arguments: object) -> str:
    done = CliRunner().invoke(app, ["report", *map(str, arguments)])
    assert done.exit_code == 2
    told = done.stderr.strip()
    assert "\n" not in told
    return told


@ONE_OF_BOTH
def test_bad_input_is_one_line(any_run, study, tmp_path):
    assert "no such folder" in refusal(tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    assert "not a run folder: run.json is missing" in refusal(tmp_path / "empty")
    assert "is a file" in refusal(any_run / "run.json")
    assert "is a folder; expected a file to write" in refusal(any_run, "--out", tmp_path)
    assert "cannot be written: No such file or directory" in refusal(any_run, "--out", tmp_path / "no" / "page.html")
    damaged = Path(shutil.copytree(any_run, tmp_path / "damaged"))
    (damaged / "activities.parquet").write_bytes(b"no table")
    assert "activities.parquet: is damaged" in refusal(damaged)
    assert not (damaged / "report.html").exists()
    newer = Path(shutil.copytree(any_run, tmp_path / "newer"))
    edit_json(newer / "run.json", schema_version=99)
    assert "schema_version is 99, made by a newer edgesim" in refusal(newer)
    unfinished = tmp_path / "unfinished"
    unfinished.mkdir()
    shutil.copy(study / "plan.json", unfinished)
    edit_json(unfinished / "plan.json", runs=json.loads((study / "plan.json").read_text())["runs"][-1:])
    assert "no run of the study is finished" in refusal(unfinished)


def test_a_study_that_edgesim_has_just_run_has_a_report_and_no_export(tmp_path, studies_here):
    """Its folder is as `edgesim.study` leaves it, not one that a test wrote."""
    base = TIMING | {"devices": {"count": 4}}
    edgesim.study(base, {"selection.policy": POLICIES}, seeds=2, out=tmp_path / "study", jobs=1, quiet=True)
    html = report_html(tmp_path / "study")
    assert all(name in html for name in ("<h1>study</h1>", "best-channel-s0", "random-s0"))
    done = CliRunner().invoke(app, ["export", str(tmp_path / "study"), "--csv", str(tmp_path / "csv")])
    assert done.exit_code == 2
    assert "is a study; export one of its run folders" in done.output


@pytest.mark.slow
@ONE_OF_BOTH
def test_a_report_as_typed_loads_nothing_that_simulates_or_draws_figures(any_run, tmp_path):
    """What it loads is most of the time that it takes."""
    script = (
        "import sys; from edgesim.commands.entry import main\n"
        "try: main()\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        "heavy = {'edgesim.simulation.composition', 'matplotlib', 'networkx', 'scipy.stats', 'torch'}\n"
        "print(sorted(sys.modules.keys() & heavy))"
    )
    command = [sys.executable, "-c", script, "report", str(any_run), "--out", str(tmp_path / "page.html")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [str(tmp_path / "page.html"), "[]"], done.stderr


def test_the_timeline_has_when_devices_that_come_and_go_were_absent(tmp_path, page_of, decoded):
    """Each of two halves of the devices is there for 2 s in turn."""
    config = {
        "stop_at_s": 12.0,
        "devices": {"count": 8},
        "availability": {"model": "round_robin", "turn_s": 2.0, "groups": 2},
        "round": {"admission": "count", "count": 2, "payload_bits": 1e6},
    }
    played = play(tmp_path / "run", TIMED, config)
    page = page_of(report_html(played.folder))
    (run,) = page.data["runs"]
    code, tick = decoded(run["bars"]["code"]), run["bars"]["tick_s"]
    away = code // len(page.data["outcomes"]) == page.data["activities"].index("away")
    length_s = decoded(run["bars"]["length"])[away] * tick
    device = decoded(run["bars"]["device"])[away]
    per_device = [length_s[device == one].sum() for one in range(8)]
    acts = played.activities
    assert per_device == pytest.approx([6.0] * 8, abs=0.05 + 1.0 * acts["outcome"].eq("dropped").any())
    fresh = Path(shutil.copytree(played.folder, tmp_path / "without"))
    (fresh / "absences.parquet").unlink()
    (without,) = page_of(report_html(fresh)).data["runs"]
    assert len(decoded(without["bars"]["code"])) == len(acts)
    (fresh / "absences.parquet").write_bytes(b"no table")
    assert "absences.parquet: is damaged" in refusal(fresh)


def test_the_timeline_has_what_was_received_of_uploads_that_the_deadline_ended(tmp_path, page_of, decoded):
    """By device and time, as thousandths; uploads that were received in part have an outcome of their own."""
    config = {
        "rounds": 4,
        "devices": {"count": 6},
        "radio": {"bandwidth_hz": 8e6, "fading": "rayleigh"},
        "round": {"tmax_s": 0.8, "payload_bits": 17_881_664.0, "allocator": "equal_bits", "close": "deadline"},
        "upload": {"codec": "randk", "ratio": 0.1, "size": "stream", "least": 0.001},
    }
    played = play(tmp_path / "run", TIMED, config)
    page = page_of(report_html(played.folder))
    (run,) = page.data["runs"]
    share = played.metric("received_share", "key")
    work = played.activities.sort_values(["device", "t_start_s"])
    ended = work["activity"].eq("upload") & work["outcome"].eq("done")
    received = share.reindex(work["device"].astype(str) + "/" + work["task"].astype(str)).where(ended.to_numpy(), 1.0)
    assert decoded(run["bars"]["received"]).tolist() == np.ceil(1000 * received).tolist()
    in_part = decoded(run["bars"]["code"]) % len(page.data["outcomes"]) == page.data["outcomes"].index(IN_PART)
    assert in_part.tolist() == (received < 1).tolist()
    assert 0 < in_part.sum() < ended.sum()


@pytest.mark.parametrize("kind", ["late", "dropped", "unscheduled"])
def test_a_kind_of_lost_work_has_one_colour_in_charts_and_timeline(kind):
    assert {state.light.lower() for state in STATES if state.name == kind} == {KIND_COLORS[kind].lower()}


def test_cells_of_a_narrow_screen_name_the_group_that_their_column_stands_under():
    page = table_html("", ["frame", "EMD\nmean", "\nmost", "rounds", "\nlast"], [list("01234")], [False] * 5)
    assert re.findall('data-of="([^"]*)"', page) == ["EMD mean", "EMD most", "rounds", "last"]


def test_orange_is_computing_in_every_picture_of_the_page():
    others = [*KIND_COLORS.values(), *COUNT_COLORS.values()]
    others += [shade for state in STATES if state.name != "compute" for shade in (state.light, state.dark)]
    assert ACTIVITIES["compute"].color == PALETTE["orange"]
    assert PALETTE["orange"].lower() not in [color.lower() for color in others]
