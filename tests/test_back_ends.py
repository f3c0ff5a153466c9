"""Whole runs on every back end: the same tables, and nothing left running."""

import multiprocessing
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.numpy import load_file
from whole_runs import merged

from edgesim import Study, grid, run_study
from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.folder.records import SCHEMAS, read_run, read_table
from edgesim.learning.back_ends.loop import LoopBackEnd
from edgesim.learning.jobs import Promise
from edgesim.learning.learner import TorchLearner
from edgesim.learning.transforms.encode import Encode
from edgesim.learning.transforms.transform import Passed, Updates
from edgesim.simulation import composition as simulation

POLICIES = ["random", "best-channel", "best-norm", "power-of-choice", "pure-drift", "fed-cbs", "fedcgd", "fedteddi"]


BASE = {
    "round": {"payload_bits": 17_881_664.0},
    "learning": {"pretrain": False},
    "data": {"partition": "fedteddi"},
}
STUDY = {"round": {"tmax_s": 0.8}, "learning": {"pretrain": True, "pretrain_max_epochs": 2}}
"""FedTeddi's, in whose rounds a few of the thirty devices fit."""


def _play(folder: Path, *parts, cores: int = 1, **sections) -> None:
    simulation.run(parse(merged(BASE, *parts, sections), "test"), folder, cores=cores)


def _run(folder: Path, rounds: int = 3, **learning) -> None:
    """A run of FedTeddi's study."""
    _play(folder, STUDY, seed=3, rounds=rounds, learning=learning, selection={"policy": "fedteddi"})


def _differing(one: Path, other: Path) -> set[str]:
    files = [f"{table}.parquet" for table in SCHEMAS if table != "timing"] + ["model.safetensors"]
    return {file for file in files if (one / file).read_bytes() != (other / file).read_bytes()}


@pytest.mark.parametrize("model", ["mlp", pytest.param("fedteddi-cnn", marks=pytest.mark.slow)])
def test_a_study_has_the_same_tables_on_every_back_end(model, tmp_path):
    for name in ("loop", "workers", "stacked"):
        _run(tmp_path / name, model=model, back_end=name)
        assert read_run(tmp_path / name)["back_end"] == name
    assert _differing(tmp_path / "loop", tmp_path / "workers") == set()
    for table in ("rounds", "activities", "updates"):
        alone, stacked = (read_table(tmp_path / name, table) for name in ("loop", "stacked"))
        assert alone.shape == stacked.shape
        for column in alone:
            if alone[column].dtype.kind == "f":
                np.testing.assert_allclose(stacked[column], alone[column], rtol=2e-3, err_msg=column)
            else:
                np.testing.assert_array_equal(stacked[column], alone[column], err_msg=column)
    models = [load_file(tmp_path / name / "model.safetensors") for name in ("loop", "stacked")]
    for name, tensor in models[0].items():
        np.testing.assert_allclose(models[1][name], tensor, atol=1e-3)


ASYNCHRONOUS = {"round": {"protocol": "asynchronous", "admission": "count", "count": 8}}


@pytest.mark.slow
def test_jobs_that_run_along_under_fedasync_change_nothing_but_how_many_were_trained(tmp_path, monkeypatch):
    def run(name: str, back_end: str) -> Path:
        _play(tmp_path / name, ASYNCHRONOUS, rounds=25, learning={"back_end": back_end}, cores=2)
        return tmp_path / name

    batches: list[int] = []
    whole = LoopBackEnd.run

    def noted(back_end: LoopBackEnd, promises: Sequence[Promise]) -> int:
        batches.append(whole(back_end, promises))
        return batches[-1]

    with monkeypatch.context() as patch:
        patch.setattr(LoopBackEnd, "run", noted)
        along = run("along", "loop")
    assert max(batches) > 1
    assert _differing(along, run("workers", "workers")) == set()
    monkeypatch.setattr(TorchLearner, "_run_along", lambda *_: None)
    alone = run("one by one", "loop")
    # Only when the jobs ran, and how many of them, is another matter.
    assert _differing(along, alone) == {"rounds.parquet"}
    more, fewer = (read_table(folder, "rounds") for folder in (along, alone))
    assert more["jobs_trained"].sum() > fewer["jobs_trained"].sum() == len(read_table(alone, "updates"))
    pd.testing.assert_frame_equal(more.drop(columns="jobs_trained"), fewer.drop(columns="jobs_trained"))


OVER_ACTORS = {
    "asynchronous": ASYNCHRONOUS,
    "coded": {
        "upload": {"codec": "topk", "beside": "coded"},
        "download": {"codec": "sign"},
        "algorithm": {"name": "scaffold"},
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", OVER_ACTORS)
def test_a_run_over_actors_of_ray_has_every_byte_of_the_loop(kind, tmp_path, ray_actors):
    for name in ("loop", "ray"):
        _play(tmp_path / name, OVER_ACTORS[kind], rounds=4, learning={"back_end": name})
        assert read_run(tmp_path / name)["back_end"] == name
        assert read_table(tmp_path / name, "rounds")["jobs_trained"].sum() > 4
    assert read_run(tmp_path / "ray")["actor_kind"].startswith("torch ")
    assert _differing(tmp_path / "loop", tmp_path / "ray") == set()


def test_what_devices_train_is_the_same_stacked_before_it_is_coded(tmp_path, monkeypatch):
    """Behind a codec a rounding may be a level or a sign; when the uploads end does not depend on it."""
    trained: dict[str, list[torch.Tensor]] = {}
    apply = Encode.apply

    def noted(coding: Encode, updates: Updates) -> Passed:
        trained.setdefault(name, [update.clone() for update in updates.vectors])
        return apply(coding, updates)

    monkeypatch.setattr(Encode, "apply", noted)
    for name in ("loop", "stacked"):
        _play(tmp_path / name, rounds=3, upload={"codec": "sign"}, learning={"back_end": name})
    assert len(trained["loop"]) == len(trained["stacked"]) > 1
    for alone, stacked in zip(trained["loop"], trained["stacked"], strict=True):
        assert float((alone - stacked).norm()) < 1e-4 * float(alone.norm())
    events = [(tmp_path / name / "activities.parquet").read_bytes() for name in trained]
    assert events[0] == events[1]


@pytest.mark.slow
def test_the_summary_of_fedteddis_study_is_the_same_stacked_as_in_the_loop(tmp_path):
    """All eight policies: whom they pick by losses, norms and gradients must not hang on a back end."""
    base = merged(BASE, STUDY, {"rounds": 3})
    axes = {"selection.policy": POLICIES, "learning.back_end": ["loop", "stacked"]}
    run_study(Study("both", grid(base, axes, [3]), target=0.535), tmp_path, jobs=1)
    summary = pd.read_csv(tmp_path / "summary.csv").set_index(["back_end", "policy"])
    assert len(summary) == 16
    pd.testing.assert_frame_equal(summary.loc["stacked"], summary.loc["loop"], rtol=2e-3)


@pytest.mark.slow
def test_no_process_outlives_its_run_whether_it_ends_well_or_in_an_error(tmp_path):
    before = set(multiprocessing.active_children())
    _run(tmp_path / "well", back_end="workers", workers=2, rounds=1)
    assert set(multiprocessing.active_children()) == before
    with pytest.raises(EdgesimError, match="tmax_s"):
        _play(tmp_path / "refused", learning={"back_end": "workers", "workers": 1}, round={"tmax_s": 1e-4})
    assert set(multiprocessing.active_children()) == before


_OWN = """
from torch import nn

def net(image_shape, class_count):
    return nn.Sequential(nn.Flatten(), nn.AlphaDropout(0.2), nn.Linear(64, class_count))
"""


def test_a_model_that_cannot_be_stacked_says_so_once_and_runs_all_the_same(tmp_path, monkeypatch):
    (tmp_path / "model_of_a_back_end_test.py").write_text(_OWN)
    monkeypatch.syspath_prepend(tmp_path)
    heard = []
    learning = {"model": "model_of_a_back_end_test.net", "back_end": "stacked"}
    config = parse(merged(BASE, {"rounds": 2, "learning": learning}), "test")
    simulation.run(config, tmp_path / "run", on_start=heard.append, cores=1)
    (notice,) = [text for text in heard if "stacked" in text]
    run = read_run(tmp_path / "run")
    assert (run["back_end"], run["back_end_notice"]) == ("loop", notice)
    assert notice.startswith("the model cannot be stacked (")


def test_mixed_precision_learns_what_single_precision_learns(tmp_path):
    for precision in ("float32", "mixed"):
        _run(tmp_path / precision, precision=precision, rounds=8)
    single, mixed = (read_table(tmp_path / name, "rounds")["test_accuracy"].iloc[-1] for name in ("float32", "mixed"))
    assert mixed == pytest.approx(single, abs=0.08)
    assert _differing(tmp_path / "float32", tmp_path / "mixed") >= {"updates.parquet", "model.safetensors"}
