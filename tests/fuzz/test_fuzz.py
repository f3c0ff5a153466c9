"""Whatever comes in, one line that says what is wrong, within seconds; or a run that means something.

Quick tests try a few inputs of each kind, slow ones 700 in all; ``EDGESIM_FUZZ=30000`` tries so many instead.
"""

import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from edited_runs import forget_digests
from fuzz_inputs import BASE, CONTENT, KINDS, ROOT, WEEK, attempt, merged, whole_data, write
from fuzz_outcomes import GOOD, bad_number, outcome
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edgesim.config_file import parse
from edgesim.folder.records import read_table
from edgesim.simulation import composition as simulation

ALL = int(os.environ.get("EDGESIM_FUZZ", "700"))
SHARE = {"combination": 0.25, "config": 0.2, "run folder": 0.15, "content file": 0.2}
"""Of all inputs; the other kinds share what is left."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run, whose tables other checks than that of digests look at."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    simulation.run(parse(BASE, "test"), folder)
    return forget_digests(folder)


def try_inputs(kind: str, count: int, whole: Path) -> None:
    @settings(max_examples=count, suppress_health_check=list(HealthCheck), database=None, print_blob=False)
    @given(st.data())
    def one(data: st.DataObject) -> None:
        with tempfile.TemporaryDirectory(dir=whole.parent) as place, pytest.MonkeyPatch.context() as patch:
            folder = Path(place)
            patch.chdir(folder)
            ended, said, given = attempt(kind, data.draw, folder, whole)
            assert ended in GOOD, f"ended as {ended}: {said}\n{given}"

    one()


@pytest.mark.parametrize("name", CONTENT)
def test_the_text_files_that_are_broken_make_a_run_while_they_are_whole(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text, config = CONTENT[name]
    Path(name).write_text(text)
    if name == "recorded-capacity.toml":
        shutil.copy(ROOT / "channels" / "recorded-capacity.csv", tmp_path)
    assert outcome(write(tmp_path, merged(BASE, config)), tmp_path / "out") == ("finished", "")
    if name == "week.csv":
        assert text == WEEK
        assert outcome(["trace", "show", name]) == ("finished", "")


@pytest.mark.parametrize("kind", ["npz", "mnist", "images"])
def test_the_data_that_are_broken_make_a_run_while_they_are_whole(kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _, config = whole_data(kind, tmp_path)
    assert outcome(write(tmp_path, config), tmp_path / "out") == ("finished", "")


@pytest.mark.usefixtures("figures_as_text")
@pytest.mark.parametrize("kind", KINDS)
def test_a_few_inputs_are_refused_in_a_line_or_mean_something(kind, whole):
    try_inputs(kind, 6, whole)


@pytest.mark.slow
@pytest.mark.usefixtures("figures_as_text")
@pytest.mark.parametrize("kind", KINDS)
def test_inputs_are_refused_in_a_line_or_mean_something(kind, whole):
    rest = (1 - sum(SHARE.values())) / (len(KINDS) - len(SHARE))
    try_inputs(kind, round(ALL * SHARE.get(kind, rest)), whole)


@pytest.mark.parametrize(
    ("table", "column", "value", "said"),
    [
        ("rounds", "t_end_s", np.inf, "'t_end_s': expected finite numbers"),
        ("activities", "energy_j", -1.0, "'energy_j': expected finite numbers, 0 or more"),
        ("devices", "mu_per_s", np.inf, "devices.mu_per_s holds inf"),
        ("activities", "t_end_s", 0.0, "expected an instant not before t_start_s"),
        ("rounds", None, None, "the run finished without a round"),
    ],
)
def test_numbers_that_no_run_may_have_are_found(table, column, value, said, whole, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(whole, folder)
    assert bad_number(folder) == ""
    path = folder / f"{table}.parquet"
    held = pq.read_table(path)
    if column is None:
        held = held.slice(0, 0)
    else:
        values = held.column(column).to_pylist()
        held = held.set_column(held.column_names.index(column), held.field(column), [[*values[:-1], value]])
    pq.write_table(held, path)
    assert said in bad_number(folder)


def test_devices_of_recorded_speeds_have_no_rate_in_their_table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text, config = CONTENT["profile.csv"]
    Path("profile.csv").write_text(text)
    simulation.run(parse(merged(BASE, config), "test"), Path("run"))
    assert read_table(Path("run"), "devices")["mu_per_s"].isna().all()
    simulation.run(parse(BASE, "test"), Path("other"))
    assert np.isfinite(read_table(Path("other"), "devices")["mu_per_s"]).all()
