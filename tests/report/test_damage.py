"""Tables with strange values: a page, or one line that names the folder; nothing else, nothing half-written."""

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from edited_runs import forget_digests
from typer.testing import CliRunner
from whole_runs import TIMED, play

from edgesim.commands.cli import app
from edgesim.folder.run_schema import SCHEMAS

CONFIG = {
    "seed": 4,
    "rounds": 2,
    "devices": {"count": 3, "battery_j": 5.0, "recharge_w": 0.3},
    "round": {"payload_bits": 4e6, "tmax_s": 0.8},
}
STRANGE = [
    (pa.types.is_integer, [None, 2**31 - 2]),
    (pa.types.is_floating, [None, -1.0, 1e299]),
    (pa.types.is_string, ["\x1b[2J"]),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    return forget_digests(play(folder, TIMED, CONFIG).folder)


@pytest.mark.slow
@pytest.mark.parametrize("table", SCHEMAS)
def test_strange_values_of_a_table_are_shown_or_refused_in_one_line(whole, tmp_path, table):
    read = pq.read_table(whole / f"{table}.parquet")
    refused = 0
    cases = [(of, value) for of in SCHEMAS[table] for is_of, values in STRANGE if is_of(of.type) for value in values]
    for number, (field, value) in enumerate(cases):
        folder, name = Path(shutil.copytree(whole, tmp_path / str(number))), field.name
        place = read.column_names.index(name)
        values = [value if number % 2 or row == 1 else one for row, one in enumerate(read[name].to_pylist())]
        column = pa.array(values, type=field.type)
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
