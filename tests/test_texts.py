"""Names of strangers in tables, progress, errors and figures: shown as text, whatever they are made of."""

import html
import io
import itertools
import json
import shutil
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from edited_runs import forget_digests
from matplotlib.text import Text
from rich.progress import Progress
from rich.table import Table
from typer.testing import CliRunner

from edgesim.analysis.runs import RunFolder
from edgesim.api.run import as_html, as_line
from edgesim.base.plain_text import figure_text, printable
from edgesim.commands.cli import app
from edgesim.config_file import parse
from edgesim.plots import style
from edgesim.plots.cell_map import draw_cell_map
from edgesim.plots.groups import knob_text, panels_of, quantity
from edgesim.screen.console import PlainConsole
from edgesim.screen.progress import Bars, bar
from edgesim.simulation import composition as simulation

EVIL = [
    "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x9b31m", "a\rb", "a\x08b", "[bold]x[/]", "[/]", "[link=http://x]y",
    ":smile:", "$\\frac{", "$\\frac{$", "$x$", "a $ b $ c", "$", "$$", "\\$", "\u202eabc", "\udcff", "a\u2028b",
]  # fmt: skip


@pytest.mark.parametrize("name", EVIL, ids=ascii)
def test_consoles_tables_progress_and_notebooks_show_a_name_as_text(name, capsys):
    console = PlainConsole(file=io.StringIO(), width=200, force_terminal=True, color_system=None)
    table = Table(title=name)
    table.add_column(name)
    table.add_row(name)
    console.print(name, highlight=False)
    console.print(table)
    said = console.file.getvalue()
    assert said.count(printable(name)) == 4
    assert all(one.isprintable() or one == "\n" for one in said)
    with bar(console, lines=True) as bars:
        bars.stop()
        task = bars.add_task(name, total=3, text="")
        bars.due_s = 0.0
        bars.update(task, completed=1, text=f"at {name}")
        assert isinstance(bars, Bars | Progress)
        console.print(bars.get_renderable())
    lines = capsys.readouterr().err.splitlines()
    assert printable(name) in lines[0]
    assert lines[0].isprintable()
    assert any(printable(name) in line for line in console.file.getvalue().removeprefix(said).splitlines())
    line, shown = as_line("Run", {"folder": name}), as_html({"folder": name})
    assert line == f"Run(folder {printable(name, keep='')})"
    assert html.escape(printable(name, keep="")) in shown
    assert shown.startswith('<div class="tex2jax_ignore mathjax_ignore">')
    assert name.isprintable() or name not in line + shown


@pytest.mark.parametrize("name", EVIL, ids=ascii)
def test_an_error_is_one_line_without_escapes(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("run.toml").write_text(
        '[data]\ndataset = "none"\npartition = "fedteddi"\n[learning]\ntraining = "none"\npretrain = true\n'
    )
    for key in ("selection.policy", "availability.model", "bogus", "algorithm.name", "learning.model"):
        result = CliRunner().invoke(app, ["run", "run.toml", "--set", f"{key}={json.dumps(name)}"])
        if result.exit_code != 0:
            assert all(one.isprintable() or one == "\n" for one in result.output), result.output
            assert sum(line.startswith("error: ") for line in result.output.splitlines()) == 1
    commands = [["run", name], ["show", name], [name], ["run", f"--{name}"], ["trace", name]]
    for words in [*commands, ["run", "run.toml", "--set", name]]:
        result = CliRunner().invoke(app, words)
        assert isinstance(result.exception, SystemExit), repr(result.exception)
        assert not {"\x1b", "\x9b", "\x07", "\x08", "\r", "\u202e"} & set(result.output), words


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    config = {
        "rounds": 2,
        "devices": {"count": 30},
        "topology": {"file": "three-cells"},
        "round": {"payload_bits": 4e6, "tmax_s": 0.8},
        "data": {"dataset": "none", "partition": "fedteddi"},
        "learning": {"training": "none", "pretrain": True},
    }
    simulation.run(parse(config, "test"), folder)
    return folder


@pytest.mark.slow
def test_a_run_of_a_stranger_is_shown_and_drawn_with_its_names_as_text(whole, tmp_path):
    folder = forget_digests(Path(shutil.copytree(whole, tmp_path / "run")))
    run = json.loads((folder / "run.json").read_text())
    told = dict(
        zip(("reason", "device_kind", "back_end", "back_end_notice", "note"), EVIL[:8:2] + EVIL[5:6], strict=True)
    )
    (folder / "run.json").write_text(json.dumps(run | told | {"notes": {"range": told.pop("note")}}))
    stations = pq.read_table(folder / "stations.parquet")
    names = [name.encode(errors="replace").decode() for name in (EVIL[9], EVIL[16], EVIL[0])]
    named = stations.set_column(stations.column_names.index("name"), "name", pa.array(names))
    pq.write_table(named, folder / "stations.parquet")
    shown = CliRunner().invoke(app, ["show", str(folder), "--all"], env={"COLUMNS": "400"})
    assert shown.exit_code == 0, shown.output
    assert all(one.isprintable() or one == "\n" for one in shown.output)
    assert all(printable(name) in shown.output for name in [*told.values(), EVIL[5]])
    figure = draw_cell_map(RunFolder(folder, {}, 0))
    assert {*map(figure_text, names)} <= {text.get_text() for text in figure.findobj(Text)}
    drawn = CliRunner().invoke(app, ["plot", str(folder)])
    assert drawn.exit_code == 0, repr(drawn.exception)
    for path in (folder / "plots").glob("*.svg"):
        assert all(one.isprintable() or one == "\n" for one in path.read_text())


def pixels(text: str, parse_math: bool) -> np.ndarray:
    with style.figure(3.0, 1.0) as figure:
        figure.text(0.1, 0.5, text, parse_math=parse_math)
        figure.canvas.draw()
        return np.asarray(figure.canvas.buffer_rgba()).copy()


@pytest.mark.parametrize("name", [name for name in EVIL if "\udcff" not in name], ids=ascii)
@pytest.mark.filterwarnings("ignore:Glyph")
def test_a_figure_shows_the_very_letters_of_a_name(name):
    assert np.array_equal(pixels(figure_text(name), True), pixels(printable(name), False))


@pytest.mark.parametrize("name", [*EVIL[:4], "$\\frac{$", "$$", "\u202eabc", "\udcff"], ids=ascii)
@pytest.mark.filterwarnings("ignore:Glyph")
def test_titles_labels_legends_and_ticks_are_drawn_whatever_the_name(name, tmp_path):
    places = itertools.product([name, "b"], [1.0, 2.0])
    runs = [RunFolder(Path(name), {"policy": policy, "k": name, name: value}, 0) for policy, value in places]
    (panel,) = panels_of(runs)
    labels = [series.label for series in panel.series]
    labels += [knob_text("x", name), knob_text(name, True), quantity(name).axis]
    with style.figure(style.PAGE_IN, 2.0, labels) as figure:
        axes = style.panel_grid(figure, [labels[0]])[0]
        axes.set_xticks(range(len(labels)), labels)
        axes.set_xlabel(labels[-1])
        style.headed(figure, labels[0])
        lines = [axes.plot([0, k])[0] for k in range(len(labels))]
        style.legend_below(figure, lines, labels)
        style.save(figure, tmp_path / "figure")
    assert (tmp_path / "figure.svg").read_text().isascii() or "\u202e" not in (tmp_path / "figure.svg").read_text()
    assert not plt.get_fignums()


def test_a_terminal_without_columns_gets_the_usual_ones(monkeypatch):
    monkeypatch.setenv("COLUMNS", "0")
    console = PlainConsole(file=io.StringIO())
    console.print("text")
    assert console.file.getvalue() == "text\n"


def test_ordinary_names_of_any_script_stay_as_they_are():
    for name in ("fedavg", "Zürich 3 (100 %)", "日本", "a_b-c", "👩‍🔧", "two\nlines"):
        assert printable(name) == figure_text(name) == name
    assert printable("two\nlines", keep="") == "two\\nlines"
    assert printable("\x1b[0m\udcff\u202e") == "\\x1b[0m\\udcff\\u202e"
