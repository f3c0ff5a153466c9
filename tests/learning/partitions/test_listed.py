"""A partition listed in a file: its rows are the sets, and every bad row is one line."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from refusals import in_one_line
from whole_runs import play

from edgesim.config_file import parse
from edgesim.folder.records import read_table
from edgesim.learning.federation import make_federation
from edgesim.learning.partitions.listed import Listed
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams

ROWS = pd.DataFrame({"device": [1, 0, 1, 2, 0, 2], "sample": [7, 9, 0, 7, 3, 8]})
LABELS = np.arange(10) % 5


@pytest.fixture(params=["csv", "parquet"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def written(folder: Path, table: pd.DataFrame, kind: str) -> str:
    path = folder / f"listed.{kind}"
    table.to_csv(path, index=False) if kind == "csv" else table.to_parquet(path, index=False)
    return str(path)


def divided(file: str, devices: int = 3, size: int | None = None) -> list[list[int]]:
    (parts,) = Listed(file=file).divide(LABELS, 5, devices, size, Streams(0))
    return [part.tolist() for part in parts]


def test_each_device_holds_the_samples_of_its_rows_in_ascending_order(tmp_path, kind):
    file = written(tmp_path, ROWS.assign(note=1), kind)
    assert divided(file) == [[3, 9], [0, 7], [7, 8]]
    assert divided(file, devices=2) == [[3, 9], [0, 7]]


def row(number: int, kind: str) -> str:
    return f"line {number + 1}" if kind == "csv" else f"row {number}"


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("sample", 10, "sample: expected a whole number from 0 to 9 (got 10"),
        ("sample", -1, "sample: expected a whole number from 0 to 9 (got -1"),
        ("sample", 1.5, "sample: expected a whole number from 0 to 9 (got 1.5"),
        ("sample", np.nan, "sample: expected a whole number from 0 to 9 (got nan"),
        ("device", -3, "device: expected a whole number from 0 to 2147483647 (got -3"),
        ("device", 1e30, "device: expected a whole number from 0 to 2147483647 (got 1e+30"),
        ("sample", 7, "sample: expected each sample of a device once (got 7"),
    ],
)
def test_a_bad_row_is_one_line_with_file_row_and_column(tmp_path, kind, column, value, said):
    table = ROWS.astype(float)
    table.loc[2, column] = value
    file = written(tmp_path, table, kind)
    with in_one_line(re.escape(f"{file}: {'line 4' if kind == 'csv' else 'row 3'}: {said}")):
        divided(file)


def test_other_bad_input_is_one_line(tmp_path, kind):
    file = written(tmp_path, ROWS, kind)
    for said, how in (
        ("data.samples_per_device: is not for data.partition = 'listed'", (file, 3, 2)),
        (f"data.partition_options.file: {file} lists no sample of device 3; every device from 0 to", (file, 4, None)),
        ("data.partition_options.file: no file 'nowhere'", ("nowhere", 3, None)),
    ):
        with in_one_line(f"^{re.escape(said)}"):
            divided(*how)
    for table, said in (
        (ROWS[["device"]], "column 'sample' is missing; expected device, sample"),
        (ROWS.astype(str) if kind == "parquet" else ROWS.assign(device="x"), "device"),
        (ROWS.iloc[:0], "holds no rows; expected device, sample"),
    ):
        with in_one_line(f"^{file}: .*{said}"):
            divided(written(tmp_path, table, kind))
    write = pacsv.write_csv if kind == "csv" else pq.write_table
    write(pa.table([pa.array([0, 1, 2])] * 3, names=["device", "sample", "device"]), file)
    with in_one_line(f"^{file}: column 'device' is given 2 times; expected it once$"):
        divided(file)
    with in_one_line(r"^partition 'listed': data\.partition_options\.file: field required"):
        simulation.complete(parse({"data": {"partition": "listed"}}, "test"))


def test_a_run_trains_on_the_listed_samples_and_is_run_again_when_the_list_changes(tmp_path):
    random = np.random.default_rng(0)
    rows = pd.DataFrame({"device": np.repeat(np.arange(4), 20), "sample": random.permutation(1000)[:80]})
    file = written(tmp_path, rows, "csv")
    values = {
        "rounds": 2,
        "devices": {"count": 4},
        "data": {"dataset": "digits", "partition": "listed", "partition_options": {"file": file}},
        "round": {"payload_bits": 1e5},
        "learning": {"pretrain": False},
    }
    config = parse(values, "test")
    result = simulation.run(config, tmp_path / "run")
    assert result.status == "finished"
    federation = make_federation(simulation.complete(config), Streams(0))
    assert [part.tolist() for part in federation.frames[1].clients] == [
        sorted(rows["sample"][rows["device"] == device]) for device in range(4)
    ]
    counts = np.stack(read_table(tmp_path / "run", "devices").query("frame == 1")["class_counts"].to_list())
    assert counts.sum() == 80
    assert simulation.run(config, tmp_path / "run").reused
    written(tmp_path, rows.iloc[:-1], "csv")
    assert simulation.run(config, tmp_path / "run").restarted.startswith("data.partition_options.file changed")


@pytest.mark.parametrize(("devices", "told"), [(3, None), (2, "of 1 device beyond"), (1, "of 2 devices beyond")])
def test_a_run_of_fewer_devices_than_the_file_has_says_so(tmp_path, kind, devices, told):
    values = {
        "rounds": 1,
        "devices": {"count": devices},
        "data": {"partition": "listed", "partition_options": {"file": written(tmp_path, ROWS, kind)}},
        "learning": {"training": "none", "pretrain": True},
    }
    note = play(tmp_path / "run", values).facts["notes"].get("listed")
    assert (note is None) if told is None else (told in note)
