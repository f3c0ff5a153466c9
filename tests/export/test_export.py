"""Runs in the forms of other tools, read back with these tools' own readers; skipped where one is not installed."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from edited_runs import forget_digests
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from edgesim.analysis.band_use import band_use
from edgesim.analysis.metrics import start_accuracy
from edgesim.analysis.runs import RunFolder, runs_of
from edgesim.base import optional
from edgesim.base.errors import EdgesimError
from edgesim.commands.cli import app
from edgesim.config_file import parse
from edgesim.export.csv_files import write_csv
from edgesim.export.measures import measures
from edgesim.export.perfetto import lanes_of
from edgesim.folder.records import read_table
from edgesim.folder.run_schema import SCHEMAS
from edgesim.simulation import composition as simulation

CONFIG = {
    "seed": 3,
    "rounds": 4,
    "devices": {"count": 8},
    "data": {"samples_per_device": 30, "partition": "fedteddi"},
    "learning": {"model": "mlp", "lr": 0.1, "pretrain": True},
    "round": {"payload_bits": 17_881_664.0, "tmax_s": 0.8, "delay_knowledge": "planned", "plan_quantile": 0.5},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunFolder:
    folder = tmp_path_factory.mktemp("exported") / "run"
    simulation.run(parse(CONFIG, "test"), folder)
    return runs_of([folder])[0]


def export(run: RunFolder, *arguments: object):
    return CliRunner().invoke(app, ["export", str(run.folder), *map(str, arguments)])


def test_csv_holds_every_table_with_all_digits(run, tmp_path):
    paths = write_csv(run.folder, tmp_path / "csv")
    assert [path.stem for path in paths] == list(SCHEMAS)
    for path in paths:
        expected = read_table(run.folder, path.stem)
        found = pd.read_csv(path, dtype=str, keep_default_na=False)
        assert list(found) == list(expected)
        for name, column in expected.items():
            cells = ["" if one is None or one is np.nan else one for one in column.astype(object)]
            if name == "class_counts":
                assert [json.loads(text) for text in found[name]] == [list(each) for each in cells]
            elif column.dtype.kind in "if":
                known = [(float(text or "nan"), one) for text, one in zip(found[name], column, strict=True)]
                np.testing.assert_array_equal(*np.array(known).reshape(-1, 2).T)
            else:
                assert found[name].tolist() == [str(one) for one in cells]


def test_a_trace_of_perfetto_holds_every_activity_round_and_band(run, tmp_path):
    messages = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2", reason="no perfetto wheel")
    done = export(run, "--perfetto", tmp_path / "trace")
    assert done.exit_code == 0, done.output
    trace = messages.Trace()
    trace.ParseFromString((tmp_path / "trace").read_bytes())
    names = {packet.track_descriptor.uuid: packet.track_descriptor.name for packet in trace.packet}
    events, found, shares = messages.TrackEvent, [], []
    begun: dict[int, list] = {}
    for packet in trace.packet:
        event = packet.track_event
        if event.type == events.TYPE_SLICE_BEGIN:
            begun.setdefault(event.track_uuid, []).append(packet)
        elif event.type == events.TYPE_SLICE_END:
            first = begun[event.track_uuid].pop()
            facts = {
                note.name: note.int_value if note.HasField("int_value") else note.double_value
                for note in first.track_event.debug_annotations
            }
            track = names[event.track_uuid]
            slice_ = first.track_event
            found.append((track, slice_.name, slice_.categories[0], first.timestamp, packet.timestamp, facts))
        elif event.type == events.TYPE_COUNTER:
            shares.append((packet.timestamp, event.double_counter_value))
    assert not any(begun.values())
    rounds = [one for one in found if one[0] == "rounds"]
    assert [one[1] for one in rounds] == [f"round {number}" for number in run.rounds["round"]]
    assert [one[5]["arrived"] for one in rounds] == run.rounds["arrived"].tolist()
    assert [one[5]["test_accuracy"] for one in rounds] == run.rounds["test_accuracy"].tolist()
    acts = run.activities.sort_values(["device", "t_start_s", "t_end_s"], kind="stable")
    slices = [one for one in found if one[0].startswith("device ")]
    assert len(slices) == len(acts)
    assert [one[:3] for one in slices] == [
        (f"device {row.device}", row.activity, row.outcome) for row in acts.itertuples()
    ]
    for place, name in ((3, "t_start_s"), (4, "t_end_s")):
        assert np.abs(np.array([one[place] for one in slices]) - acts[name] * 1e9).max() <= 0.501
    assert [one[5]["round"] for one in slices] == acts["round"].tolist()
    assert [one[5].get("energy_j", 0.0) for one in slices] == acts["energy_j"].tolist()
    uploads = acts[acts["activity"] == "upload"]
    use = band_use(uploads, run.bandwidth_hz, reshared=False)
    assert [value for _, value in shares] == use.share.tolist()


SPANS = st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(0, 6)), min_size=1, max_size=30)


@given(SPANS)
def test_work_of_one_lane_never_overlaps_and_lanes_are_few(spans):
    rows = np.array(sorted(spans))
    device, start, end = rows[:, 0], rows[:, 1], rows[:, 1] + rows[:, 2]
    lanes = lanes_of(device, start, end)
    for one in set(device):
        mine = device == one
        for lane in set(lanes[mine]):
            at = np.flatnonzero(mine & (lanes == lane))
            assert (end[at[:-1]] <= start[at[1:]]).all()
        # Work that ends at once is in nobody's way, wherever it lies.
        long = mine & (end > start)
        at_once = [int((long & (start <= t) & (end > t)).sum()) for t in range(30)]
        assert lanes[mine].max() < max(1, *at_once) + (mine & ~long).any()


def test_measures_are_rounds_with_the_start_and_without_what_was_not_measured(run):
    found = measures(run)
    rounds = run.rounds
    assert found.end_s == rounds["t_end_s"].max()
    accuracy = found.by_name["test_accuracy"]
    assert accuracy["round"].tolist() == [0, *rounds["round"]]
    assert accuracy["value"].tolist() == [start_accuracy(run.metrics), *rounds["test_accuracy"]]
    assert accuracy["t_s"].tolist() == [0.0, *rounds["t_end_s"]]
    assert found.by_name["simulated_s"]["value"].tolist() == rounds["t_end_s"].tolist()
    missing = [name for name in rounds if rounds[name].isna().all()]
    assert not set(missing) & set(found.by_name)


def test_tensorboard_reads_rounds_as_steps_and_simulated_seconds(run, tmp_path):
    reader = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="TensorBoard is not installed"
    )
    assert export(run, "--tensorboard", tmp_path / "board").exit_code == 0
    found = reader.EventAccumulator(str(tmp_path / "board"), size_guidance={"scalars": 0})
    found.Reload()
    expected = measures(run).by_name
    assert set(found.Tags()["scalars"]) == set(expected)
    for name, table in expected.items():
        events = found.Scalars(name)
        assert [event.step for event in events] == table["round"].tolist()
        assert [event.wall_time for event in events] == pytest.approx(table["t_s"].tolist())
        assert [event.value for event in events] == pytest.approx(table["value"].tolist(), rel=1e-6)
    assert "simulated_s" in expected
    again = export(run, "--tensorboard", tmp_path / "board")
    assert again.exit_code == 2
    assert "holds a run already" in again.stderr


@pytest.mark.slow
def test_mlflow_reads_settings_and_measures(run, tmp_path):
    pytest.importorskip("mlflow", reason="MLflow is not installed")
    pytest.importorskip("sqlalchemy", reason="MLflow is installed without its databases (mlflow-skinny)")
    from mlflow import MlflowClient

    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    done = export(run, "--mlflow", uri)
    assert done.exit_code == 0, done.output
    client = MlflowClient(tracking_uri=uri)
    (found,) = client.search_runs([client.get_experiment_by_name("edgesim").experiment_id])
    assert found.info.status == "FINISHED"
    assert found.data.params["selection.policy"] == "random"
    assert found.data.params["round.tmax_s"] == "0.8"
    for name, table in measures(run).by_name.items():
        history = sorted(client.get_metric_history(found.info.run_id, name), key=lambda metric: metric.step)
        assert [metric.step for metric in history] == table["round"].tolist()
        assert [metric.value for metric in history] == pytest.approx(table["value"].tolist())


def refusal(done) -> str:
    assert done.exit_code == 2
    told = done.stderr.strip()
    assert "\n" not in told
    return told


def test_bad_input_is_one_line(run, tmp_path):
    assert "nothing to write: give --perfetto FILE" in refusal(export(run))
    (tmp_path / "file").write_text("")
    assert "cannot be written: File exists" in refusal(export(run, "--csv", tmp_path / "file"))
    damaged = Path(shutil.copytree(run.folder, tmp_path / "damaged"))
    (damaged / "timing.parquet").write_bytes(b"no table")
    assert "timing.parquet: is damaged" in refusal(export(RunFolder(damaged, {}, 0), "--csv", tmp_path / "csv"))
    assert not (tmp_path / "csv").exists()
    (tmp_path / "plan.json").write_text(json.dumps({}))
    assert "is a study; export one of its run folders" in refusal(
        export(RunFolder(tmp_path, {}, 0), "--csv", tmp_path / "c")
    )
    empty = forget_digests(Path(shutil.copytree(run.folder, tmp_path / "none")))
    read_table(empty, "rounds").iloc[:0].to_parquet(empty / "rounds.parquet")
    with pytest.raises(EdgesimError, match="has no finished round"):
        measures(RunFolder(empty, {}, 0))


def test_a_package_that_is_missing_is_named_with_the_extra_to_install():
    with pytest.raises(EdgesimError, match=r"perfetto: .*No module named 'nowhere'.*pip install 'edgesim\[perfetto\]'"):
        optional.needed("nowhere", "perfetto")
