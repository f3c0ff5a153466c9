"""Tables with strange values: a page, or one line that names the folder; nothing else, nothing half-written."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from edited_runs import forget_digests
from typer.testing import CliRunner

from edgesim.commands.cli import app
from edgesim.config_file import parse
from edgesim.folder.run_schema import SCHEMAS
from edgesim.simulation import composition as simulation

CONFIG = {
    "seed": 4,
    "rounds": 2,
    "devices": {"count": 3, "battery_j": 5.0, "recharge_w": 0.3},
    "round": {"payload_bits": 4e6, "tmax_s": 0.8},
    "learning": {"training": "none", "pretrain": True},
    "data": {"dataset": "none", "partition": "fedteddi"},
}
STRANGE = {
    "whole": [None, 2**31 - 2],
    "number": [None, -1.0, 1e299],
    "text": ["\x1b[2J"],
}


CASES = [
    (table, field.name, value)
    for table, schema in SCHEMAS.items()
    for field in schema
    for has_kind, kind in (
        (pa.types.is_integer, "whole"),
        (pa.types.is_floating, "number"),
        (pa.types.is_string, "text"),
    )
    if has_kind(field.type)
    for value in STRANGE[kind]
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    simulation.run(parse(CONFIG, "test"), folder)
    return forget_digests(folder)


@pytest.mark.slow
@pytest.mark.parametrize("table", SCHEMAS)
def test_strange_values_of_a_table_are_shown_or_refused_in_one_line(whole, tmp_path, table):
    read = pq.read_table(whole / f"{table}.parquet")
    refused = 0
    for number, (_, name, value) in enumerate(case for case in CASES if case[0] == table):
        folder = Path(shutil.copytree(whole, tmp_path / str(number)))
        place = read.column_names.index(name)
        values = [value if number % 2 or row == 1 else one for row, one in enumerate(read[name].to_pylist())]
        column = pa.array(values, type=SCHEMAS[table].field(name).type)
        pq.write_table(read.set_column(place, name, column), folder / f"{table}.parquet")
        # What is exported is what is read; of each column one value is enough.
        commands = [["report", str(folder)], ["export", str(folder), "--csv", str(folder / "csv")]]
        for command in commands if value is None else commands[:1]:
            done = CliRunner().invoke(app, command)
            told = done.stderr.strip()
            assert done.exit_code in (0, 2), (name, value, done.exception)
            assert done.exception is None or isinstance(done.exception, SystemExit), (name, value, done.exception)
            if done.exit_code == 2:
                refused += 1
                assert "\n" not in told, (name, value, told)
                assert str(folder) in told
                assert not (folder / "report.html").exists()
                assert not list(folder.glob("*.part"))
        shutil.rmtree(folder)
    assert refused or table in ("timing", "stations", "updates", "metrics", "handovers")
