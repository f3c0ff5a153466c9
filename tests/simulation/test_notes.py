"""What is said of runs that go on all the same: at the start, in ``run.json``, in ``show``, once in a study."""

import io

import numpy as np
import pytest
import tomli_w
from rich.console import Console
from typed_commands import edgesim_lines
from typed_commands import printed as shown
from whole_runs import TIMED, phones

from edgesim import Study, compare, grid, run_study
from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.folder.records import read_run, read_table
from edgesim.radio.environment import load_environment
from edgesim.simulation import composition as simulation
from edgesim.tables.show import print_run, print_study

PAPER_CNN_BITS = 17_881_664.0


def values(policy: str = "random", rounds: int = 3, devices: dict | None = None, radio: dict | None = None, **round_):
    knobs = {"payload_bits": PAPER_CNN_BITS, "tmax_s": 0.8, **round_}
    more = {"devices": devices or {}, "radio": radio or {}, "selection": {"policy": policy}}
    return TIMED | {"rounds": rounds, "round": knobs, **more}


def play(folder, **knobs) -> tuple[dict[str, str], dict[str, str]]:
    """What a run told at its start, and what it noted in the end."""
    told = {}
    simulation.run(parse(values(**knobs), "test"), folder, on_note=told.__setitem__)
    return told, read_run(folder)["notes"]


def energy_j(folder) -> dict[str, float]:
    return read_table(folder, "activities").groupby("activity")["energy_j"].sum().to_dict()


COUNT = {"admission": "count", "count": 12}
EQUAL = {"admission": "count", "allocator": "equal_share"}


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("knobs", "at_start", "in_the_end"),
    [
        # The paper's cell.
        ({}, (), ()),
        ({"tmax_s": 30.0}, (), ("no choice", "upload energy")),
        # Four taken of five candidates, and of four.
        ({**EQUAL, "devices": {"count": 5}, "count": 4}, (), ()),
        ({**EQUAL, "devices": {"count": 4}, "count": 4}, (), ()),
        # Counts that fit, or need no least bandwidths.
        ({**COUNT, "count": 2}, (), ()),
        ({**EQUAL, "count": 12}, (), ()),
        ({**COUNT, "late": "keep"}, (), ("no arrivals",)),
        ({**COUNT, "tmax_s": 3.0}, (), ()),
        # Eight at random do not fit, but the eight best channels do.
        ({"policy": "best-channel", **COUNT, "count": 8}, ("overfull",), ()),
    ],
    ids=str,
)
def test_what_is_told_of_a_run_at_its_start_and_noted_in_the_end(tmp_path, knobs, at_start, in_the_end):
    told, notes = play(tmp_path, **knobs)
    assert (sorted(told), sorted(notes)) == (sorted(at_start), sorted(in_the_end))
    rounds, text = read_table(tmp_path, "rounds"), shown(print_run, tmp_path)
    assert "no choice" not in notes or (rounds["selected"] == rounds["candidates"]).all()
    assert ("note" in text) == bool(notes)
    assert all(note in text for note in notes.values())


def test_a_deadline_that_stretches_uploads_is_noted_with_their_joules_and_those_of_computing(tmp_path):
    told, notes = play(tmp_path, tmax_s=600.0)
    spent = energy_j(tmp_path)
    assert told == {}
    assert f"uploads drew {spent['upload']:,.0f} J" in notes["upload energy"]
    assert f"the {spent['compute']:,.0f} J of computing" in notes["upload energy"]
    assert "round.leftover = 'equal_finish'" in notes["upload energy"]
    assert notes["upload energy"] in shown(print_run, tmp_path)


@pytest.mark.parametrize(("power_w", "leftover"), [(0.0, "idle"), (0.5, "idle"), (1e-3, "equal_finish"), (4.0, "idle")])
def test_uploads_are_noted_where_they_draw_more_than_ten_times_what_computing_draws(tmp_path, power_w, leftover):
    _, notes = play(tmp_path, rounds=1, devices={"compute_power_w": power_w}, tmax_s=5.0, leftover=leftover)
    spent = energy_j(tmp_path)
    # Powers on both sides of ten times; nothing is compared with computing that is free.
    ratio = spent["upload"] / spent["compute"] if power_w else 0.0
    assert (ratio > 10) == (power_w in (0.5, 1e-3))
    assert ("upload energy" in notes) == (ratio > 10)
    # Advice is for uploads that least bandwidths stretch.
    assert ratio < 10 or notes["upload energy"].endswith("J of computing") == (leftover == "equal_finish")


@pytest.mark.parametrize(
    ("axis", "knobs", "noted"),
    [
        ({"round.payload_bits": [1e6, 4e6]}, {}, True),
        ({"round.payload_bits": [1e6, 4e6]}, {"leftover": "equal_finish"}, False),
        ({"round.payload_bits": [1e6, 4e6]}, {"admission": "count", "count": 2, "allocator": "equal_share"}, False),
        ({"round.tmax_s": [0.8, 1.0]}, {}, False),
    ],
)
def test_studies_and_comparisons_of_payloads_that_are_all_stretched_to_the_deadline_say_so(
    tmp_path, capsys, studies_here, axis, knobs, noted
):
    plan = Study("payloads", grid(values(rounds=2, devices={"count": 3}, **knobs), axis, range(2)))
    run_study(plan, tmp_path, jobs=1)
    capsys.readouterr()
    told = shown(print_study, tmp_path)
    folders = [path.parent for path in tmp_path.glob("*/run.json")]
    lengths_s = {folder.name: read_table(folder, "rounds")["t_end_s"].max() for folder in folders}
    if "round.payload_bits" in axis:
        # The deadline in all rounds, or less with fewer bits.
        assert (len({round(length_s, 6) for length_s in lengths_s.values()}) == 1) == noted
    compared = compare(folders, "energy_j", by=next(iter(axis)).removeprefix("round."))
    for text in (told, str(compared)):
        assert ("so that a smaller payload ends no round earlier. round.leftover = 'equal_finish'" in text) == noted


def test_more_devices_than_fit_by_count_are_told_at_the_start_and_counted_at_the_end(tmp_path):
    told, notes = play(tmp_path, admission="count", count=12)
    rounds = read_table(tmp_path, "rounds")
    assert (rounds["late"].sum(), rounds["selected"].sum()) == (36, 36)
    assert (
        "12 devices picked at random need more than the band to be in time in 10 of the first 10 rounds"
        in told["overfull"]
    )
    assert "all of them are late" in told["overfull"]
    assert "in 3 of 3 rounds the devices taken needed more than the band" in notes["overfull"]
    assert notes["overfull"] in shown(print_run, tmp_path)


def test_devices_beyond_the_range_of_the_office_are_told_and_counted(tmp_path):
    radio = {"channel": "inh-office"}
    told, notes = play(tmp_path / "wide", radio=radio, devices={"count": 200, "radius_m": 400.0}, tmax_s=20.0)
    placed = read_table(tmp_path / "wide", "devices").drop_duplicates("device")
    beyond = int((np.hypot(placed["x_m"], placed["y_m"]) > np.sqrt(150.0**2 - 2.0**2)).sum())
    assert 100 < beyond < 200
    assert told["range"] == notes["range"]
    assert f"{beyond} of 200 devices" in told["range"]
    assert "'inh-office' was not fitted for (direct distances of 1 to 150 m)" in told["range"]
    told, notes = play(tmp_path / "office", radio=radio, devices={"count": 200, "radius_m": 140.0}, tmax_s=20.0)
    assert "range" not in told | notes


@pytest.mark.parametrize(
    ("channel", "distance_m", "beyond"),
    [
        ("inh-office", [0.5, 149.0, 149.9, 150.1], [False, False, False, True]),
        ("uma", [9.9, 10.0, 5000.0, 5001.0], [True, False, False, True]),
        ("umi-street-canyon", [9.9, 10.0, 5000.0, 5001.0], [True, False, False, True]),
        ("fedteddi-macro", [1.0, 1e5], [False, False]),
        ("free-space", [1.0, 1e5], [False, False]),
    ],
)
def test_the_laws_know_the_range_that_their_source_gives(channel, distance_m, beyond):
    # TR 38.901, table 7.4.1-1: 10 m <= d_2D <= 5 km; 1 m <= d_3D <= 150 m, with 2 m between the antennas' heights.
    assert load_environment(channel).path_loss.beyond_fit(distance_m).tolist() == beyond


def test_the_command_tells_a_note_at_the_start_and_shows_it_in_the_end(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "1000")
    (tmp_path / "crowd.toml").write_text(tomli_w.dumps(values(admission="count", count=12)))
    status, output = edgesim_lines("run", "crowd.toml")
    assert status == 0, output
    first, rest = output.split("runs/crowd", 1)
    assert first.strip().startswith("note: 12 devices picked at random need more than the band")
    assert "in 3 of 3 rounds the devices taken needed more than the band" in rest


@pytest.mark.slow
def test_a_study_tells_each_note_once_and_names_a_run_and_the_number_of_others(tmp_path):
    base = values(rounds=2, admission="count", count=12, radio={"channel": "inh-office"}, devices={"radius_m": 600.0})
    runs = grid(base, {"selection.policy": ["random", "best-channel"]}, range(2))
    console = Console(file=io.StringIO(), width=2000)
    run_study(Study("s", runs), tmp_path / "s", jobs=1, console=console)
    said = console.file.getvalue()
    assert said.count("devices are at distances that the law of 'inh-office' was not fitted for") == 1
    assert said.count("need more than the band to be in time") == 1
    table = shown(print_study, tmp_path / "s")
    assert table.count("was not fitted for") == 1
    assert "random-s0 and 3 others: " in table
    assert table.count("needed more than the band") == 1


def test_a_run_in_which_nothing_arrives_says_so_and_why(tmp_path):
    """All 30 devices share 20 MHz equally, which is too little for each of them."""
    notes = play(tmp_path, admission="count", count=30, allocator="equal_share")[1]
    assert notes["no arrivals"].startswith(
        "no update arrived in 3 rounds, so the model never changed: of 90 selected devices each was late or lost its "
        "work"
    )
    assert "no update arrived" in shown(print_run, tmp_path)


def test_a_run_beyond_the_end_of_simulated_time_is_an_error(tmp_path):
    knobs = {"protocol": "asynchronous", "admission": "count", "count": 2, "tmax_s": 1e10}
    with pytest.raises(EdgesimError, match=r"^round \d+ ended at .* s, beyond the 1e\+10 s \(317 years\)"):
        play(tmp_path / "run", rounds=40, **phones(tmp_path, (1e7, 1e6), (1e7, 1e6)), **knobs)
    assert read_run(tmp_path / "run")["status"] == "failed"
