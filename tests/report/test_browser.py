"""The page in a browser: what it draws is what the tables say, and every picture is linked with the others.

Needs Chromium and Playwright (the extra ``dev``), which downloads no browser here; without them these are skipped.
"""

import itertools
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edited_runs import write_plan
from whole_runs import TIMED, play

from edgesim.analysis.band_use import use_by_station
from edgesim.analysis.runs import runs_of
from edgesim.folder.rows_file import WAYS
from edgesim.report import run_data
from edgesim.report.report import report_html
from edgesim.report.server import served

pytestmark = pytest.mark.slow
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NAMES = ("random", "best-channel")
READY = "html[data-ready]"


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed: apt-get install chromium")
    driver = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")
    with driver.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def loaded(browser, tmp_path_factory):
    """Loads reports from their files, each once, and keeps what their consoles told and what they requested."""
    told: list[str] = []
    pages: dict[object, Any] = {}

    def load(folder: Path, **options):
        wanted = folder, run_data.AGGREGATED_FROM, *options.items()
        if wanted not in pages:
            file = tmp_path_factory.mktemp("page") / "page.html"
            file.write_text(report_html(folder), encoding="utf-8")
            page = pages[wanted] = browser.new_page(viewport={"width": 1200, "height": 800}, **options)
            page.on("console", lambda one: told.append(one.text) if one.type in ("error", "warning") else None)
            page.on("pageerror", lambda error: told.append(str(error)))
            page.on("dialog", lambda dialog: told.append(dialog.message))
            own = ("data:", file.as_uri())
            page.on("request", lambda one: None if one.url.startswith(own) else told.append(one.url))
            page.goto(file.as_uri())
            page.wait_for_selector(READY, timeout=60_000)
        return pages[wanted]

    yield load, told
    for page in pages.values():
        page.close()


@pytest.fixture
def open_page(loaded):
    """Opens a report, with nothing chosen; at the end, the console must be silent and nothing requested."""
    load, told = loaded
    told.clear()

    def opened(folder: Path, **options):
        page = load(folder, **options)
        page.emulate_media(media="screen")
        page.mouse.move(0, 0)
        page.evaluate("() => { document.activeElement.blur(); choose({ round: null, device: null }); }")
        page.evaluate("() => { edgesim.timeline.reset(); window.scrollTo(0, 0); }")
        return page

    yield opened
    assert told == []


def picture(page, name: str) -> str:
    return str(page.evaluate(f"document.getElementById('{name}').toDataURL()"))


def chosen(page) -> tuple[str, str]:
    return page.input_value("#round"), page.input_value("#device")


def test_the_browser_unpacks_what_was_packed(any_run, open_page):
    page = open_page(any_run)
    (run,) = runs_of([any_run])
    acts = run.activities.sort_values(["device", "t_start_s", "t_end_s"], kind="stable")
    away = "const [run] = edgesim.data.runs, of = edgesim.data.activities, n = edgesim.data.outcomes.length;"
    found = page.evaluate(
        f"() => {{ {away} const kept = [...run.made.code.keys()].filter((i) => of[Math.floor(run.made.code[i] / n)] "
        "!== 'away'); return { start: kept.map((i) => run.made.start[i]), end: kept.map((i) => run.made.end[i]), "
        "round: kept.map((i) => run.made.round[i]), device: kept.map((i) => run.made.device[i]), "
        "energy: [...run.rounds.joules], tick: run.bars.tick_s }; }"
    )
    assert found["round"] == acts["round"].tolist()
    assert found["device"] == acts["device"].tolist()
    np.testing.assert_allclose(found["start"], acts["t_start_s"], atol=found["tick"])
    np.testing.assert_allclose(found["end"], acts["t_end_s"], atol=found["tick"])
    assert found["energy"] == pytest.approx(run.rounds["energy_j"].cumsum().tolist())


def assert_the_band_is_that_in_use(folder: Path, page, atol: float | None = None) -> None:
    """Of each station by its share of all bands; within two ticks for each device unless told."""
    (run,) = runs_of([folder])
    stations, uses = zip(*use_by_station(run), strict=True)
    shown = np.array(page.evaluate("() => [...edgesim.timeline.bandShown]"))
    edges = np.linspace(0, page.evaluate("() => edgesim.timeline.facts.end"), len(shown) + 1)
    every = np.array([[use.mean(*span) for span in itertools.pairwise(edges)] for use in uses])
    weights = np.array([station.bandwidth_hz for station in stations])
    assert len(set(weights)) == min(len(stations), 2)
    tick = page.evaluate("() => edgesim.data.runs[0].bars.tick_s") / (edges[1] - edges[0])
    atol = atol or 2 * run.device_count * tick + 1e-3
    np.testing.assert_allclose(shown, weights @ every / weights.sum(), atol=atol)
    assert shown.max() > 0.3


def test_the_band_below_the_timeline_is_that_in_use(any_run, open_page):
    assert_the_band_is_that_in_use(any_run, open_page(any_run))


def test_zooming_and_filtering_change_what_is_drawn(any_run, open_page):
    page = open_page(any_run)
    whole = picture(page, "timeline")
    page.focus("#timeline")
    page.keyboard.press("+")
    zoomed = picture(page, "timeline")
    assert zoomed != whole
    view = page.evaluate("() => edgesim.timeline.view")
    assert view["to"] - view["from"] == pytest.approx(0.6 * page.evaluate("() => edgesim.timeline.facts.end"))
    page.keyboard.press("]")
    assert picture(page, "timeline") != zoomed
    page.keyboard.press("0")
    assert picture(page, "timeline") == whole
    page.uncheck("#states input[value=upload]")
    assert picture(page, "timeline") != whole
    page.check("#states input[value=upload]")
    assert picture(page, "timeline") == whole
    box = page.locator("#timeline").bounding_box()
    page.mouse.move(box["x"] + 400, box["y"] + 40)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -400)
    page.keyboard.up("Control")
    page.wait_for_timeout(100)
    assert picture(page, "timeline") != whole
    # A tooltip goes when the keyboard moves what lies below the pointer.
    page.focus("#timeline")
    page.mouse.move(box["x"] + 401, box["y"] + 40)
    assert page.locator("#tip").is_visible()
    page.keyboard.press("ArrowRight")
    assert not page.locator("#tip").is_visible()


def test_a_choice_on_one_picture_shows_on_the_others(any_run, open_page):
    page = open_page(any_run)
    (run,) = runs_of([any_run])
    rows = run.activities
    row = rows[(rows["activity"] == "upload") & rows["round"].isin(run.rounds["round"])].iloc[-1]
    middle = (row["t_start_s"] + row["t_end_s"]) / 2
    at = page.evaluate(
        "([t, device]) => { const p = edgesim.timeline, v = p.view;"
        " return [62 + (t - v.from) / (v.to - v.from) * p.width, (device + 0.5) / v.bottom * p.height]; }",
        [middle, int(row["device"])],
    )
    page.locator("#timeline").click(position={"x": at[0], "y": at[1]})
    rounds = run.rounds
    now = rounds[(rounds["t_start_s"] <= middle) & (rounds["t_end_s"] >= middle)]["round"].iloc[0]
    assert chosen(page) == (str(now), str(row["device"]))
    assert page.evaluate("() => edgesim.charts.cell.renderers[0].data_source.selected.indices") == [row["device"]]
    marks = (
        "() => edgesim.charts.counts.center.filter((one) => one.name === 'chosen')"
        ".map((one) => [one.visible, one.location])"
    )
    assert page.evaluate(marks) == [[True, now]]
    assert f"Round {now}:" in page.inner_text("#told")
    before = picture(page, "who")
    page.focus("#who")
    page.keyboard.press("ArrowUp" if row["device"] else "ArrowDown")
    assert chosen(page)[1] == str(abs(row["device"] - 1))
    assert picture(page, "who") != before
    page.keyboard.press("Escape")
    assert chosen(page) == ("", "")
    assert page.evaluate(marks)[0][0] is False


def test_a_click_on_a_chart_chooses_its_round_and_on_the_map_its_device(any_run, open_page):
    page = open_page(any_run)
    (run,) = runs_of([any_run])
    first = run.devices.query("frame == frame.max() and device == 0")[["x_m", "y_m"]].to_numpy()[0]
    for name, place in (("counts", (2, 1)), ("cell", first)):
        page.locator(f"#{name}").scroll_into_view_if_needed()
        page.wait_for_timeout(300)
        x, y = page.evaluate(
            "([name, x, y]) => { const view = Bokeh.index.roots.find((one) => one.model.name === name),"
            " f = view.frame, box = view.canvas_view.el.getBoundingClientRect();"
            " return [box.left + f.x_scale.compute(x), box.top + f.y_scale.compute(y)]; }",
            [name, *map(float, place)],
        )
        page.mouse.click(x, y)
        page.wait_for_timeout(400)
    assert chosen(page) == ("2", "0")


@pytest.fixture(scope="module")
def two(tmp_path_factory) -> Path:
    """A study of two policies, of which one is drawn in black on paper; no test changes what lies there."""
    folder, plan = tmp_path_factory.mktemp("two") / "study", []
    for policy in NAMES:
        config = {
            "rounds": 3,
            "devices": {"count": 6},
            "data": {"samples_per_device": 30, "partition": "fedteddi"},
            "selection": {"policy": policy},
            "round": {"admission": "count", "count": 2},
            "learning": {"pretrain": True},
        }
        play(folder / policy, config)
        plan.append({"folder": policy, "knobs": {"policy": policy}, "seed": 0, "status": "finished"})
    return write_plan(folder, "two", plan)


def inks(page, chart: str) -> set[tuple[int, int, int]]:
    """Colours of what a chart draws inside its axes, on the copy for paper; antialiased edges are left out."""
    pixels = page.evaluate(
        f"() => {{ const canvas = document.querySelector('#{chart} .copy'), context = canvas.getContext('2d');"
        " return [...context.getImageData(0, 0, canvas.width, canvas.height).data]; }"
    )
    opaque = np.array(pixels).reshape(-1, 4)
    colours, counts = np.unique(opaque[opaque[:, 3] == 255][:, :3], axis=0, return_counts=True)
    return {tuple(colour) for colour in colours[counts > 20].tolist()}


def test_a_dark_page_becomes_light_by_its_button_and_has_the_colours_of_a_light_one_on_paper(two, open_page):
    back = "() => getComputedStyle(document.body).backgroundColor"
    light, dark = pages = [open_page(two, color_scheme=scheme) for scheme in ("light", "dark")]
    assert [page.evaluate(back) for page in pages] == ["rgb(255, 255, 255)", "rgb(21, 24, 28)"]
    assert picture(light, "timeline") != picture(dark, "timeline")
    dark.click("#theme")
    assert dark.evaluate(back) == "rgb(255, 255, 255)"
    dark.click("#theme")
    for page in pages:
        page.evaluate(
            "async () => { dispatchEvent(new Event('beforeprint')); for (let i = 0; i < 200; i++) await null; }"
        )
    of_light, of_dark = (inks(page, "accuracy-rounds") for page in pages)
    assert of_light == of_dark
    # That of random, which is black on paper and light in the dark.
    assert min(max(colour) for colour in of_dark) < 40
    dark.emulate_media(media="print")
    keys = "() => getComputedStyle(document.querySelector('.key')).printColorAdjust"
    assert dark.evaluate(keys) == "exact"
    for page in pages:
        page.evaluate("() => dispatchEvent(new Event('afterprint'))")
    assert dark.query_selector(".copy") is None
    assert dark.evaluate("() => document.documentElement.dataset.theme") == "dark"
    assert dark.pdf()[:5] == b"%PDF-"


def test_paper_says_how_streams_are_drawn_in_rows_that_show_it(tmp_path, open_page):
    config = {
        "rounds": 2,
        "devices": {"count": 10},
        "radio": {"bandwidth_hz": 2e6},
        "round": {"allocator": "equal_bits", "close": "deadline", "payload_bits": 17_881_664.0},
        "upload": {"codec": "randk", "ratio": 1.0, "size": "stream", "least": 0.001},
    }
    page = open_page(play(tmp_path / "run", TIMED, config).folder)
    assert page.evaluate("() => edgesim.timeline.height") == 180
    assert page.inner_text("#parts").endswith("the pointer or a choice shows that share as a number.")
    page.emulate_media(media="print")
    assert page.inner_text("#parts").endswith("that the server received until the deadline.")
    assert page.is_hidden("#timeline-help")


def test_on_a_narrow_screen_nothing_is_cut_and_the_links_stand_below_the_title(two, open_page):
    page = open_page(two)
    page.set_viewport_size({"width": 420, "height": 800})
    page.wait_for_timeout(300)
    parts = "[...document.querySelectorAll('body, .wide, pre, nav')]"
    assert page.evaluate(f"() => {parts}.filter((one) => one.scrollWidth > one.clientWidth).length") == 0
    boxes = [page.locator(one).bounding_box() for one in ("h1", "nav")]
    assert boxes[1]["y"] >= boxes[0]["y"] + boxes[0]["height"]
    # No colour of a legend stands at the end of a line whose name begins the next.
    entries = "[...document.querySelectorAll('.entry')]"
    assert page.evaluate(f"() => {entries}.map((one) => one.getClientRects().length)") == [1] * 10
    heading = "() => getComputedStyle(document.querySelector('td'), '::before').content"
    first = page.evaluate("() => document.querySelector('thead th:nth-child(2)').textContent")
    assert page.evaluate(heading) == f'"{first}"'
    page.set_viewport_size({"width": 1200, "height": 800})


def test_paper_of_a_study_names_the_run_of_each_picture_and_says_what_the_curves_are(two, open_page, tmp_path):
    plan = [
        {"folder": name, "knobs": {"policy": "any"}, "seed": i, "status": "finished"} for i, name in enumerate(NAMES)
    ]
    seeds = write_plan(Path(shutil.copytree(two, tmp_path / "seeds")), "seeds", plan)
    of = "() => [...document.querySelectorAll('.of-run')].map((one) => one.innerText)"
    for folder, named, means in (
        (two, ": random", ""),
        (seeds, "", "Means over seeds with 95 % t intervals from three seeds on."),
    ):
        page = open_page(folder)
        page.emulate_media(media="print")
        assert page.evaluate(of) == [named] * 5
        assert page.inner_text("#means") == means


def test_a_chosen_round_stands_at_its_megabits(two, open_page):
    page = open_page(two)
    (run,) = runs_of([two / "random"])
    page.fill("#round", "2")
    place = "() => edgesim.charts['accuracy-bits'].center.find((one) => one.name === 'chosen').location"
    assert page.evaluate(place) == pytest.approx(run.rounds.query("round <= 2")["bits_up"].sum() / 1e6)
    label = "() => edgesim.charts['accuracy-bits'].below[0].axis_label"
    assert page.evaluate(label) == "bits sent up (Mbit)"


def test_policies_are_switched_off_and_on_and_no_chart_has_folded_its_tools(two, open_page):
    page = open_page(two)
    tools = page.evaluate(
        "() => { const all = (root) => [...root.querySelectorAll('*')].flatMap((one) => "
        "[one, ...(one.shadowRoot ? all(one.shadowRoot) : [])]);"
        " return all(document).map((one) => String(one.className)).filter((name) => /OnOffB|overflow/.test(name)); }"
    )
    assert tools
    assert not [name for name in tools if "overflow" in name]
    shown = (
        "() => Object.values(edgesim.charts).flatMap((chart) => chart.renderers).filter((one) => "
        "one.name === 'series:best-channel').map((one) => one.visible)"
    )
    assert page.evaluate(shown) == [True] * 10
    page.uncheck("#series input[value=best-channel]")
    assert page.evaluate(shown) == [False] * 10
    page.check("#series input[value=best-channel]")
    assert page.evaluate(shown) == [True] * 10
    before = picture(page, "timeline")
    drawn = "document.getElementById('timeline').toDataURL()"
    for label, sign in (("best-channel", "!=="), ("random", "===")):
        page.select_option("#run", label=label)
        page.wait_for_function(f"(before) => {drawn} {sign} before", arg=before)


ONE_OF_BOTH = pytest.mark.parametrize("any_run", ["paused"], indirect=True)


@ONE_OF_BOTH
def test_an_aggregated_page_says_so_and_draws_groups(any_run, open_page, monkeypatch):
    monkeypatch.setattr(run_data, "AGGREGATED_FROM", 1)
    page = open_page(any_run)
    assert page.inner_text("#aggregated").startswith("Aggregated, since there are")
    whole = picture(page, "timeline")
    page.click("#in")
    assert picture(page, "timeline") != whole


@ONE_OF_BOTH
def test_names_with_markup_do_nothing(any_run, tmp_path, open_page):
    folder = tmp_path / "<img src=x onerror=alert(1)>"
    shutil.copytree(any_run, folder)
    page = open_page(folder)
    assert page.inner_text("h1") == folder.name
    assert page.locator("img").count() == 0


@ONE_OF_BOTH
def test_a_page_that_is_loaded_again_comes_back_with_what_was_chosen(any_run, browser):
    """As `edgesim watch --web` serves it; the second page, of the end, no longer loads itself."""
    pages = [report_html(any_run), report_html(any_run, refresh_s=600)]
    with served(lambda: pages[-1], 0) as url:
        page = browser.new_page(viewport={"width": 1200, "height": 800})
        told: list[str] = []
        page.on("pageerror", lambda error: told.append(str(error)))
        asked: list[str] = []
        page.on("request", lambda one: None if one.url.startswith("data:") else asked.append(one.url))
        page.goto(url)
        page.wait_for_selector(READY, timeout=60_000)
        assert page.locator("meta[http-equiv=refresh]").count() == 1
        page.fill("#round", "2")
        page.fill("#device", "1")
        page.uncheck("#states input[value=upload]")
        page.focus("#timeline")
        page.keyboard.press("+")
        before = page.evaluate("() => edgesim.timeline.view"), picture(page, "timeline")
        pages.pop()
        page.reload()
        page.wait_for_selector(READY, timeout=60_000)
        assert chosen(page) == ("2", "1")
        assert not page.is_checked("#states input[value=upload]")
        assert (page.evaluate("() => edgesim.timeline.view"), picture(page, "timeline")) == before
        assert page.locator("meta[http-equiv=refresh]").count() == 0
        assert (told, set(asked)) == ([], {url})
        page.close()


@pytest.fixture(scope="module")
def moving(tmp_path_factory) -> Path:
    """Devices that cross three cells of different bands, with handovers; the bands are shared anew."""
    folder = tmp_path_factory.mktemp("moving")
    layout = folder / "bands.toml"
    text = Path("topologies/three-cells.toml").read_text()
    layout.write_text(text.replace("[[stations]]", "[[stations]]\nbandwidth_share = 0.25", 1))
    values = {
        "rounds": 6,
        "devices": {"count": 12},
        "topology": {"file": str(layout)},
        "mobility": {"model": "direction", "speed_mps": [60.0, 90.0], "turn_s": 2.0},
        "handover": {"hysteresis_db": 0.5, "trigger_s": 0.02},
        "radio": {"sharing": "reshared"},
        "round": {"close": "deadline", "payload_bits": 2e7},
    }
    return play(folder / "run", TIMED, values).folder


def test_the_map_follows_a_device_that_moves(moving, open_page):
    """At the begin of round 3, and along its way until then; the places are on the way."""
    page = open_page(moving)
    began_s = runs_of([moving])[0].rounds["t_start_s"][2]
    page.evaluate("() => choose({ round: 3, device: 2 })")
    ways = WAYS.read(moving)
    own = ways[ways["device"] == 2]
    expected = [np.interp(began_s, own["t_s"], own[axis]) for axis in ("x_m", "y_m")]
    dots = page.evaluate("() => { const { x, y } = source('cell', 'devices').data; return [x[2], y[2]]; }")
    assert dots == pytest.approx(expected)
    way, until = page.evaluate("() => source('cell', 'way').data"), own[own["t_s"] <= began_s]
    assert way["x"] == pytest.approx([*until["x_m"], expected[0]])
    assert way["y"] == pytest.approx([*until["y_m"], expected[1]])
    said = f"where they were when round 3 began, at {began_s:g} s, with the way of the chosen one until then."
    assert page.inner_text("#moment") == f"Devices move: shown is {said}"
    page.evaluate("() => choose({ round: null, device: null })")
    assert page.evaluate("() => source('cell', 'way').data.x") == []
    assert page.inner_text("#moment").startswith("Devices move: shown is where they were when the run began, ")


def test_the_band_line_weighs_the_stations_of_devices_that_move_task_by_task(moving, open_page):
    assert_the_band_is_that_in_use(moving, open_page(moving), atol=0.01)


def test_handovers_are_marked_in_the_timeline_and_crosses_on_the_map(moving, open_page):
    """Each where its device was then; the map says which station a device has at the end of the chosen round."""
    (run,) = runs_of([moving])
    told, ways = run.handovers, WAYS.read(moving).groupby("device")
    names = run.stations.set_index("station")["name"]
    page = open_page(moving)
    assert page.evaluate("() => edgesim.timeline.marksShown") == len(told) > 5
    assert page.evaluate(
        "() => !document.getElementById('handed').hidden && !document.getElementById('crosses').hidden"
    )
    crosses = page.evaluate("() => source('cell', 'handovers').data")
    places = [
        [
            np.interp(row.t_s, ways.get_group(row.device)["t_s"], ways.get_group(row.device)[axis])
            for axis in ("x_m", "y_m")
        ]
        for row in told.itertuples()
    ]
    np.testing.assert_allclose(np.column_stack([crosses["x"], crosses["y"]]), places, atol=1e-6)
    chosen = told[told["phase"] == "upload"].iloc[-1]
    of = {"round": int(chosen["round"]), "device": int(chosen["device"])}
    page.evaluate("(of) => choose(of)", of)
    own = told[(told["round"] == of["round"]) & (told["device"] == of["device"])]
    station = names[own["to_station"].iloc[-1]]
    what = page.evaluate("() => source('cell', 'devices').data.what")
    assert what[of["device"]] == f"device {of['device']} of {station}"
    assert len(page.evaluate("() => source('cell', 'handovers').data.what")) == len(own)
    text = page.evaluate("() => document.getElementById('told').textContent")
    assert f"from {names[chosen['from_station']]} to {names[chosen['to_station']]}" in text
    # The interruption is no absence: nobody leaves in this run.
    assert page.evaluate("() => edgesim.data.runs[0].made.code.every((code) => activityOf(code) !== 'away')")
    # The part of the upload before the handover was sent to the station that the device left.
    assert f"(paused), {names[chosen['from_station']]}" in text
