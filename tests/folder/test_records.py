import os
from pathlib import Path

import numpy as np
import pytest
from refusals import in_one_line

from edgesim.base.errors import EdgesimError
from edgesim.folder import records


def metrics(number: int) -> dict:
    return {"round": [number, number], "name": ["a", "b"], "key": ["", "x"], "value": [0.5, np.nan]}


def test_rows_come_back_as_written_and_missing_columns_are_null(tmp_path):
    writer = records.RunWriter(tmp_path, {"seed": 3}, {"edgesim": "0"})
    writer.write("metrics", metrics(1))
    writer.write("updates", {"round": [1], "device": [7], "task": [1], "weight": [1.0], "staleness": [0]})
    writer.close("finished", reason="done")
    assert records.read_table(tmp_path, "metrics")["name"].tolist() == ["a", "b"]
    update = records.read_table(tmp_path, "updates").iloc[0]
    assert update["device"] == 7
    assert np.isnan(update["loss"])
    assert records.read_config(tmp_path) == {"seed": 3}
    assert records.read_run(tmp_path)["status"] == "finished"
    assert not list(tmp_path.glob("*.arrow"))


def test_a_killed_run_leaves_every_finished_round_readable_even_with_a_torn_last_batch(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "_FLUSH_S", 0.0)
    writer = records.RunWriter(tmp_path, {}, {})
    for number in (1, 2, 3):
        writer.write("metrics", metrics(number))
        writer.write("rounds", {"round": [number]})
    stream = tmp_path / "metrics.arrow"
    whole = stream.read_bytes()
    assert records.read_table(tmp_path, "metrics")["round"].tolist() == [1, 1, 2, 2, 3, 3]
    stream.write_bytes(whole[:-40])
    assert records.read_table(tmp_path, "metrics")["round"].tolist() == [1, 1, 2, 2]
    assert records.read_run(tmp_path)["status"] == "running"


def test_tables_have_the_same_bytes_however_often_rows_were_flushed(tmp_path, monkeypatch):
    for folder, flush_s in (("often", 0.0), ("once", 1e9)):
        monkeypatch.setattr(records, "_FLUSH_S", flush_s)
        writer = records.RunWriter(tmp_path / folder, {}, {})
        for number in range(1, 6):
            writer.write("metrics", metrics(number))
            writer.write("updates", {"round": np.array([number]), "device": [7], "weight": [1.0]})
            writer.write("rounds", {"round": [number]})
        writer.close("finished")
    for name in records.SCHEMAS:
        often, once = ((tmp_path / folder / f"{name}.parquet").read_bytes() for folder in ("often", "once"))
        assert often == once, name


@pytest.mark.parametrize("name", ["config.toml.part", "rounds.parquet", "run.json.part", "timing.arrow"])
def test_a_folder_in_which_no_file_can_be_written_is_refused_and_free_for_the_next(tmp_path, name):
    """A folder stands where the file should."""
    (tmp_path / name).mkdir()
    with pytest.raises(EdgesimError, match=r"cannot be made a run folder: .*(d|D)irectory.*; choose another folder"):
        records.RunWriter(tmp_path, {}, {})
    (tmp_path / name).rmdir()
    records.RunWriter(tmp_path, {}, {}).close("finished")


def test_a_file_of_the_system_is_written_to_and_not_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "_OF_THE_SYSTEM", (tmp_path,))
    (tmp_path / "stdout").symlink_to("terminal")
    records.write_whole(tmp_path / "stdout", "text")
    assert (tmp_path / "stdout").is_symlink()
    assert (tmp_path / "terminal").read_text() == "text"


@pytest.mark.skipif(not Path("/dev/fd").is_dir(), reason="needs /dev/fd")
def test_a_pipe_of_the_shell_gets_the_text():
    out, into = os.pipe()
    records.write_whole(Path(f"/dev/fd/{into}"), "text")
    os.close(into)
    with os.fdopen(out) as pipe:
        assert pipe.read() == "text"


@pytest.mark.parametrize("folder", [".", "", "/"])
def test_a_folder_is_no_place_for_a_text(folder):
    with pytest.raises(IsADirectoryError):
        records.write_whole(Path(folder), "text")


def test_every_table_carries_its_schema_version(tmp_path):
    import pyarrow.parquet as pq

    records.RunWriter(tmp_path, {}, {}).close("finished")
    for name in records.SCHEMAS:
        schema = pq.read_schema(tmp_path / f"{name}.parquet")
        assert schema.metadata[b"schema_version"] == b"2"
        assert schema.names == records.SCHEMAS[name].names


@pytest.mark.parametrize("broken", [".", "rounds.parquet", "run.json", "config.toml"])
def test_a_folder_that_is_no_run_folder_is_refused_with_one_line(tmp_path, broken):
    """Files that hold something else are the matter of tests/test_damaged_runs.py."""
    folder = tmp_path / "run"
    records.RunWriter(folder, {}, {}).close("finished")
    (folder / broken).rename(tmp_path / "elsewhere")
    with in_one_line(str(folder)):
        [read(folder) for read in (records.read_run, records.read_config, lambda it: records.read_table(it, "rounds"))]


def test_a_table_that_no_run_has_is_refused_by_name(tmp_path):
    with pytest.raises(EdgesimError, match="unknown table 'rows'; the tables of a run are rounds, "):
        records.read_table(str(tmp_path), "rows")
