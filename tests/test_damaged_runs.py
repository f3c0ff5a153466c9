"""Run folders that were damaged or edited: one line that names the file and what is wrong in it, or a table."""

import io
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from edited_runs import forget_digests
from rich.console import Console

from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.folder import records
from edgesim.plots.gallery import draw
from edgesim.simulation import composition as simulation
from edgesim.tables.show import print_run

CONFIG = {
    "seed": 4,
    "rounds": 3,
    "devices": {"count": 5, "idle_power_w": 0.1, "battery_j": 5.0, "recharge_w": 0.3},
    "round": {"payload_bits": 4e6, "tmax_s": 0.8},
    "learning": {"training": "none", "pretrain": True},
    "data": {"partition": "fedteddi"},
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    simulation.run(parse(CONFIG, "test"), folder)
    return folder


@pytest.fixture
def folder(whole, tmp_path) -> Path:
    return forget_digests(Path(shutil.copytree(whole, tmp_path / "run")))


def show(folder: Path) -> str:
    console = Console(file=io.StringIO(), width=100)
    print_run(folder, console)
    return console.file.getvalue()


def edit(folder: Path, table: str, change) -> None:
    path = folder / f"{table}.parquet"
    pq.write_table(change(pq.read_table(path)), path)


def put(name: str, values) -> object:
    """A change of one column to ``values`` of the number of rows."""
    return lambda rows: rows.set_column(rows.column_names.index(name), name, values(rows))


def refusal(folder: Path, act=show) -> str:
    with pytest.raises(EdgesimError) as error:
        act(folder)
    text = str(error.value)
    assert "\n" not in text
    assert str(folder) in text
    return text


@pytest.mark.parametrize("table", records.SCHEMAS)
def test_a_column_that_is_missing_or_of_another_type_is_refused_with_table_and_column(folder, table):
    path = folder / f"{table}.parquet"
    whole, other = pq.read_table(path), pa.array([{"a": 1}])
    for name in records.SCHEMAS[table].names:
        pq.write_table(whole.drop_columns([name]), path)
        said = refusal(folder, lambda run: records.read_table(run, table))
        assert f"{table}.parquet: column '{name}' is missing; expected " in said
        pq.write_table(put(name, lambda rows: other.take(pa.array([0] * len(rows), pa.int32())))(whole), path)
        said = refusal(folder, lambda run: records.read_table(run, table))
        assert f"{table}.parquet: column '{name}': expected " in said
        assert "(got struct<a: int64>)" in said


def all_of(name: str, value: object, kind: pa.DataType | None = None) -> object:
    """A change that puts one value into every row of a column."""
    return put(name, lambda rows: pa.array([value] * len(rows), kind))


def twice(rows: pa.Table) -> pa.Table:
    return pa.concat_tables([rows, rows])


def ragged(rows: pa.Table) -> pa.Array:
    return pa.array([[1] * (1 + i % 2) for i in range(len(rows))], pa.list_(pa.int32()))


DAMAGES = {
    "text for numbers": ("activities", all_of("energy_j", "x"), "expected numbers (got string)"),
    "numbers for text": ("activities", all_of("activity", 1), "expected texts (got int64)"),
    "work of no kind": ("activities", all_of("activity", "x"), "row 1: expected download, compute, upload (got 'x')"),
    "an outcome of no kind": ("activities", all_of("outcome", "x"), "expected done, late, dropped, cancelled, uns"),
    "no outcome": ("activities", all_of("outcome", None, pa.string()), "row 1 has no value; expected texts"),
    "negative band": ("activities", all_of("bandwidth_hz", -1.0), "finite numbers, 0 or more (got -1.0)"),
    "endless band": ("activities", all_of("bandwidth_hz", float("inf")), "finite numbers, 0 or more (got inf)"),
    "negative bits": ("rounds", all_of("bits_up", -5e-324), "column 'bits_up': expected finite numbers, 0 or more"),
    "bits that are none": ("rounds", all_of("bits_down", float("nan")), "column 'bits_down': expected finite"),
    "negative joules": ("activities", all_of("energy_j", -3), "finite numbers, 0 or more (got -3"),
    "negative time away": ("activities", all_of("away_s", -3.5), "finite numbers, 0 or more (got -3.5)"),
    "too accurate": ("rounds", all_of("test_accuracy", 1.5), "column 'test_accuracy': expected numbers from 0 to 1"),
    "backwards work": ("activities", all_of("t_end_s", 0.0), "row 2: expected an instant not before t_start_s"),
    "too large": ("rounds", all_of("arrived", 2**40), "expected integers that fit int32"),
    "negative": ("updates", all_of("staleness", -5, pa.int32()), "expected 0 or more (got -5)"),
    "staler than the run": ("updates", all_of("staleness", 2**31 - 1, pa.int32()), "at most the number of the round"),
    "a device out of count": ("devices", all_of("device", 2**31 - 1, pa.int32()), "devices counted from 0"),
    "no value": ("metrics", all_of("value", None, pa.float64()), "row 1 has no value; expected numbers"),
    "not a number": ("rounds", all_of("t_end_s", float("nan")), "(got nan)"),
    "not finite": ("rounds", all_of("t_end_s", float("inf")), "(got inf)"),
    "ends before it begins": ("rounds", all_of("t_end_s", 0.5), "row 2: expected an instant above 0, not before"),
    "ends at the start": ("rounds", all_of("t_end_s", 0.0), "(got 0)"),
    "ragged": ("devices", put("class_counts", ragged), "the same number of classes in every row"),
    "rows twice": ("devices", twice, "row 11: device 0, frame 0 is in an earlier row"),
    "joules twice": ("metrics", twice, "'idle_j' of this round and device is in an earlier row"),
    "joules of nothing": ("metrics", all_of("key", "x"), "expected a device or '' for 'idle_j' (got 'x')"),
    "no devices": ("devices", lambda rows: rows.slice(0, 0), "devices.parquet: the table has no rows"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_table_is_refused_in_one_line_of_show(folder, damage):
    table, change, expected = DAMAGES[damage]
    edit(folder, table, change)
    said = refusal(folder)
    assert table in said
    assert expected in said


def test_integers_of_another_width_and_whole_numbers_for_fractions_are_read(folder):
    energy_j = records.read_table(folder, "rounds")["energy_j"].round()
    edit(folder, "rounds", put("energy_j", lambda rows: pa.array(energy_j.astype(int))))
    edit(folder, "rounds", put("round", lambda rows: rows["round"].cast(pa.int64())))
    rounds = records.read_table(folder, "rounds")
    assert rounds["round"].tolist() == [1, 2, 3]
    assert rounds["energy_j"].tolist() == energy_j.tolist()
    assert rounds.dtypes.astype(str).loc[["round", "energy_j"]].tolist() == ["int32", "float64"]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"status": None}, "status: expected a text (got None)"),
        ({"status": ...}, "status is missing; expected a text"),
        ({"schema_version": ...}, "schema_version is missing; expected a number"),
        ({"schema_version": 1}, "schema_version is 1, made by an older edgesim; expected 2"),
        ({"unobserved_share": 0.1, "unobserved_as": ...}, "unobserved_as is missing; expected a text"),
        ({"reason": 5}, "reason: expected a text (got 5)"),
        ({"wall_s": "long"}, "wall_s: expected a number (got 'long')"),
        ({"wall_s": float("nan")}, "wall_s: expected a number (got nan)"),
        ({"unobserved_share": [1]}, "unobserved_share: expected a number (got [1])"),
        ({"notes": ["a"]}, "notes: expected an object of texts"),
        ({"notes": {"a": 1}}, "notes: expected an object of texts"),
        ({"inputs": 7}, "inputs: expected an object of texts (got 7)"),
        ({"device_kind": "cpu", "back_end": ...}, "back_end is missing; expected a text"),
    ],
)
def test_a_run_json_with_other_facts_is_refused_by_key_of_show_and_of_run(folder, change, expected):
    path = folder / "run.json"
    facts = {**json.loads(path.read_text()), **change}
    path.write_text(json.dumps({key: value for key, value in facts.items() if value is not ...}))
    for act in (show, lambda run: simulation.why_run(run, simulation.complete(parse(CONFIG, "test")))):
        assert f"run.json: {expected}" in refusal(folder, act)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[1]", "null", "{}", "[" * 200_000, "\ud800".encode("utf-8", "surrogatepass"), None],
)
def test_a_folder_whose_run_json_is_broken_is_neither_shown_nor_drawn(folder, text):
    if text is None:
        (folder / "run.json").unlink()
    else:
        (folder / "run.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert "run.json" in refusal(folder)
    assert "run.json" in refusal(folder, lambda run: draw([run], run / "plots"))
    assert not (folder / "plots").exists()


def test_a_finished_run_that_lacks_a_table_or_its_model_is_run_again(tmp_path):
    data = {"dataset": "digits", "partition": "iid", "samples_per_device": 4}
    config = parse({**CONFIG, "rounds": 1, "data": data, "learning": {"pretrain": False, "steps": 1}}, "test")
    simulation.run(config, tmp_path / "run")
    for name in (*(f"{table}.parquet" for table in records.SCHEMAS), "model.safetensors"):
        (tmp_path / "run" / name).unlink()
        result = simulation.run(config, tmp_path / "run")
        assert (result.reused, result.restarted) == (False, f"lacked {name}")
        assert (tmp_path / "run" / name).is_file()
    assert simulation.run(config, tmp_path / "run").reused


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("seed = 1", "selection.policy is missing; expected a resolved config"),
        ("seed = 1\nselection = 5", "selection.policy is missing; expected a resolved config"),
        ("seed = 1\n[selection]\npolicy = [1]", "selection.policy: expected a text (got [1])"),
        ("[selection]\npolicy = 'random'", "seed is missing; expected a resolved config"),
        ("seed = true\n[selection]\npolicy = 'random'", "seed: expected a number (got True)"),
    ],
)
def test_a_config_that_lacks_what_is_shown_is_refused_by_key(folder, config, expected):
    (folder / "config.toml").write_text(config)
    assert f"config.toml: {expected}" in refusal(folder)
