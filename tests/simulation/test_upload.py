"""Whole runs whose updates are coded: what stays the same, what is charged, what survives a stop, what is refused."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from refusals import in_one_line
from stopped_runs import content
from whole_runs import by_rounds, configs, phones, plays

import edgesim
from edgesim.base.errors import EdgesimError
from edgesim.learning.algorithms import ALGORITHMS
from edgesim.learning.algorithms.privacy import why_unknown
from edgesim.simulation import composition as simulation
from edgesim.simulation.complete import complete
from edgesim.simulation.needs import check_frames

BASE: dict[str, Any] = {
    "seed": 2,
    "rounds": 5,
    "devices": {"count": 8},
    "data": {"partition": "iid", "samples_per_device": 40},
    "round": {"tmax_s": 0.8, "close": "deadline"},
    "learning": {"pretrain": False, "steps": 2, "back_end": "loop"},
    "evaluation": {"samples": 40},
}
SLOTS = {"model": "bernoulli", "probability": 0.8, "slot_s": 0.3}
"""Devices that leave in the middle of their work."""
BUFFERED = {"protocol": "buffered", "admission": "count", "count": 4, "close": "arrivals"}
BUFFERED |= {"protocol_options": {"buffer": 3}}


config = configs(BASE)
run = plays(BASE)


def without_codec_rows(played):
    metrics = played.metrics
    return metrics[metrics["name"] != "codec"].reset_index(drop=True)


@pytest.mark.parametrize("feedback", ["none", pytest.param("residual", marks=pytest.mark.slow)])
def test_with_codec_none_a_run_is_as_without_upload_but_for_its_rows(run, feedback):
    plain, coded = run("plain"), run("coded", upload={"codec": "none", "feedback": feedback, "encode": 0.0})
    tables = content(plain.folder), content(coded.folder)
    assert [name for name, data in tables[0].items() if tables[1][name] != data] == ["metrics.parquet"]
    pd.testing.assert_frame_equal(without_codec_rows(plain), without_codec_rows(coded))
    errors = coded.metrics.query("name == 'codec' and key == 'error'")["value"]
    assert errors.tolist() == [0.0] * 5


DOWN = {"round": {"download_s": 0.05}, "availability": SLOTS}


@pytest.mark.parametrize(
    "sections",
    [
        {"upload": {"codec": "sign"}},
        {"upload": {"codec": "topk", "lost": "add"}, "availability": SLOTS},
        DOWN | {"upload": {"codec": "qsgd"}, "download": {"codec": "topk"}},
        {"upload": {"codec": "stc", "feedback": "ef21"}, "round": BUFFERED, "availability": SLOTS},
    ],
    ids=["sign", "lost", "down", "buffered"],
)
def test_runs_without_training_have_the_same_events(run, sections):
    """But for losses; the jobs of lost updates are trained for their residuals."""
    real = run("real", **sections)
    timing = run("timing", **sections | {"learning": {"training": "none", "steps": 2}, "evaluation": None})
    for name, unlike in (("activities", []), ("updates", ["loss", "accuracy", "update_norm", "loss_rms"])):
        tables = [getattr(played, name) for played in (real, timing)]
        kept = [column for column in tables[0] if column not in unlike]
        pd.testing.assert_frame_equal(tables[0][kept], tables[1][kept])
    columns = ["t_end_s", "bits_up", "bits_down", "energy_j"]
    rounds = [played.rounds[columns] for played in (real, timing)]
    pd.testing.assert_frame_equal(*rounds)


@pytest.mark.parametrize("codec", ["topk", pytest.param("qsgd", marks=pytest.mark.slow)])
def test_loop_and_workers_have_the_same_bytes(run, codec):
    folders = [run(name, upload={"codec": codec}, learning={"back_end": name}) for name in ("loop", "workers")]
    assert content(folders[0].folder) == content(folders[1].folder)


def test_a_fork_that_changes_nothing_of_the_coding_goes_on_with_the_residuals(run, tmp_path):
    whole = run("whole", upload={"codec": "topk"}, checkpoint_at=[3])
    fork = edgesim.fork(whole.folder, 3, {"evaluation.samples": 30}, out=tmp_path / "fork", quiet=True)
    assert (fork.folder / "model.safetensors").read_bytes() == (whole.folder / "model.safetensors").read_bytes()
    with in_one_line(r"set upload\.codec: a fork has the past of its run"):
        edgesim.fork(whole.folder, 3, {"upload.codec": "sign"}, out=tmp_path / "other", quiet=True)


def test_jobs_of_lost_updates_run_only_where_they_are_added(run):
    jobs = {}
    for lost in ("forget", "add"):
        played = run(lost, upload={"codec": "topk", "lost": lost}, availability=SLOTS)
        rounds, work = played.rounds, played.activities
        jobs[lost] = int(rounds["jobs_trained"].sum())
    assert jobs["forget"] == rounds["arrived"].sum()
    cut = work.query("activity == 'upload' and outcome in ('dropped', 'late')")
    assert len(cut) > 0
    assert jobs["add"] >= jobs["forget"] + len(cut)


def test_downloads_are_as_long_as_what_a_device_has_missed(run, tmp_path):
    """Links of 1 Mbit/s; a change of 2,410 numbers at 16 bits, of which a device that was away twice needs three.

    The model is sent where it is shorter than changes: behind two, since 2 x 38,592 bits are more than 77,120.
    """
    world = phones(tmp_path, *[(0.001, 1e6)] * 3) | by_rounds(tmp_path, "111111", "100111", "011111")
    world |= {
        "rounds": 6,
        "round": {"tmax_s": 3.0, "download_s": "link", "close": "arrivals"},
    }
    near = {"rounding": "nearest", "bucket": 2410}
    for levels, change in ((7, 9_672), (32_767, 38_592)):
        played = run(f"w-{levels}", **world, download={"codec": "qsgd", "levels": levels, **near})
        down = played.activities.query("activity == 'download'")
        bits = down.pivot_table(index="device", columns="round", values="bits", aggfunc="sum")
        missed = {0: [None, 1, 1, 1, 1, 1], 1: [None, 0, 0, 3, 1, 1], 2: [0, None, 1, 1, 1, 1]}
        for device, counts in missed.items():
            expected = [77_120 if count is None else min(count * change, 77_120) for count in counts]
            found = bits.loc[device].reindex(range(1, 7)).fillna(0.0).tolist()
            assert found == pytest.approx(expected), (levels, device)
        lasted = down["t_end_s"] - down["t_start_s"]
        assert np.allclose(lasted, down["bits"] / 1e6)


TIMING: dict[str, Any] = {"learning": {"training": "none", "steps": 2}, "evaluation": None}


def test_a_download_that_is_cut_leaves_a_device_with_the_version_that_it_had(run):
    """A change takes 38,720 bits, half of a model; devices leave while it is on its way to them."""
    download, knobs = {"codec": "qsgd", "rounding": "nearest", "levels": 32_767}, {"download_s": 0.4, "tmax_s": 1.1}
    played = run(**TIMING, rounds=40, download=download, round=knobs, availability=SLOTS)
    rounds, down = played.rounds, played.activities.query("activity == 'download'")
    made = rounds.sort_values("round")["arrived"].gt(0).cumsum()
    cut_before_done = 0
    for _, own in down.sort_values("round").groupby("device"):
        known, cut = None, False
        for download in own.itertuples():
            behind = int(made.iloc[download.round - 2]) if download.round > 1 else 0
            if download.outcome != "done":
                cut = True
                continue
            missed = 77_120 if known is None else min(38_720 * (behind - known), 77_120)
            assert download.bits == pytest.approx(missed)
            cut_before_done += cut and known is not None
            known, cut = behind, False
    assert cut_before_done > 5


def test_codecs_that_draw_meet_the_same_world(run):
    """Delays, absences and decisions of random policies, as long as encoding takes no time."""
    tables = []
    for codec in ({"codec": "qsgd"}, {"codec": "natural"}, {"codec": "none"}):
        sections = {**TIMING, "availability": SLOTS, "round": {"admission": "count", "count": 4}}
        work = run(codec["codec"], **sections, upload={**codec, "encode": 0.0}).activities
        tables.append(work.query("activity == 'compute'").reset_index(drop=True))
    pd.testing.assert_frame_equal(tables[0], tables[1])
    pd.testing.assert_frame_equal(tables[0], tables[2])


def test_run_json_and_metrics_tell_of_the_coding(run):
    played = run("run", upload={"codec": "sign"}, download={"codec": "topk"}, round={"payload_bits": 320_000})
    facts, metrics = played.facts, played.metrics
    assert (facts["update_numbers"], facts["update_bits"]) == (10_000, 10_032)
    assert facts["change_bits"] > 0
    assert facts["bytes_per_merged_device"] == 4 * facts["parameters"]
    keys = set(metrics[metrics["name"] == "codec"]["key"])
    assert keys == {"error", "missing", "entropy_bits"}
    uploads = played.uploads.query("outcome == 'done'")
    assert uploads["bits"].tolist() == pytest.approx([10_032] * len(uploads))


def test_defaults_are_written_out():
    upload = complete(config(upload={"codec": "topk"})).upload
    assert upload is not None
    assert (upload.feedback, upload.encode) == ("residual", 20.0)
    assert upload.options == {"ratio": 0.01, "coding": "rice", "values": "own"}
    assert complete(config(upload={"codec": "topk"}, algorithm={"compute_cost": "equal"})).upload.encode == 0
    assert complete(config(upload={"codec": "qsgd", "rounding": "nearest"})).upload.feedback == "residual"
    assert complete(config(upload={"codec": "randk"})).upload.feedback == "none"
    assert complete(config(download={"codec": "none"})).download is None
    again = complete(complete(config(upload={"codec": "stc"}, download={"codec": "sign"})))
    assert again == complete(again)


CARRY = {"merging": {"skip": "carry"}, "data": {"validation_per_class": 5}}
EDGES = {"topology": {"file": "three-cells", "aggregation": "hierarchical", "cloud_every": 2}}
PUBLIC = {"data": {"public": "carved"}}


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"upload": {"size": "fit"}}, r"upload\.size: 'fit' does not go with upload\.codec = 'none'"),
        ({"download": {"codec": "none", "ratio": 0.1}}, r"download\.ratio: codec 'none' takes no options, remove"),
        ({"upload": {"codec": "sign", "levels": 3}}, r"upload\.levels: is an option of codec 'qsgd', not of 'sign'"),
        ({"upload": {"codec": "natural", "feedback": "ef21"}}, r"upload\.feedback: needs a codec whose error"),
        ({"upload": {"codec": "qsgd", "feedback": "residual"}}, r"upload\.feedback: needs a codec whose error"),
        *[
            ({"upload": {"beside": "coded", **codec}, "algorithm": {"name": "scaffold"}},
             rf"upload\.beside: 'coded' does not go with upload\.codec = '{codec['codec']}'")
            for codec in ({"codec": "qsgd"}, {"codec": "qsgd", "norm": "l2", "levels": 1}, {"codec": "natural"})
        ],
        ({"upload": {"codec": "topk"}, "algorithm": {"name": "mifa"}}, r"algorithm\.name = .* upload\.feedback"),
        ({"upload": {"codec": "topk"}, "algorithm": {"name": "safa"}}, r"algorithm\.name = 'safa' .* upload\.feedback"),
        ({"upload": {"codec": "half", "feedback": "residual"}, "algorithm": {"name": "fedprox", "server": "safa"}},
         r"algorithm\.server = 'safa' .* upload\.feedback"),
        ({"upload": {"codec": "topk"}, "algorithm": {"server": "mifa"}}, r"algorithm\.server = .* upload\.feedback"),
        ({"upload": {"codec": "topk"}, "algorithm": {"kpfl": {}}}, r"algorithm\.kpfl.* upload\.feedback = 'residual'"),
        ({"upload": {"codec": "topk", "feedback": "ef21", "lost": "add"}}, r"upload\.lost = 'add' needs upload"),
        ({"upload": {"codec": "qsgd", "lost": "add"}}, r"upload\.lost = 'add' needs upload\.feedback = 'residual'"),
        ({"upload": {"codec": "topk", "lost": "add"}, "round": BUFFERED}, r"upload\.lost = 'add' needs round"),
        ({"upload": {"codec": "topk", "lost": "add"}, **CARRY}, r"upload\.lost = 'add' does not go with merging\.skip"),
        ({"upload": {"codec": "sign"}, "round": {"payload_bits": 31}}, r"upload\.codec .*round\.payload_bits = 31"),
        ({"download": {"codec": "sign"}, "round": {"payload_bits": 31}}, r"download\.codec .*round\.payload_bits = 31"),
        ({"upload": {"codec": "sign"}, "algorithm": {"name": "fedmd"}, **PUBLIC}, r"upload\.codec .*algorithm\.name"),
        ({"upload": {"codec": "none"}, "algorithm": {"name": "fedproto"}}, r"upload\.codec .*algorithm\.name"),
        ({"download": {"codec": "sign"}, "algorithm": {"name": "fedproto"}}, r"download\.codec .*algorithm\.name"),
        ({"download": {"codec": "qsgd"}}, r"download\.codec: 'qsgd' cannot code changes of models"),
        ({"download": {"codec": "half"}}, r"download\.codec: unknown codec 'half'; known: qsgd, sign, topk, stc"),
        ({"download": {"codec": "randk"}}, r"download\.codec: unknown codec 'randk'"),
        ({"download": {"codec": "sgn"}}, r"download\.codec: unknown codec 'sgn', did you mean 'sign'\?"),
        ({"download": {"codec": "sign", "ratio": 0.1}}, r"download\.ratio: is an option of"),
        ({"download": {"codec": "sign"}, **EDGES}, r"download\.codec .*topology\.aggregation"),
        ({"download": {"codec": "sign"}, **CARRY}, r"download\.codec .*merging\.skip = 'carry'"),
        ({"download": {"codec": "sign"}, "algorithm": {"name": "safa"}}, r"algorithm\.name .*download"),
        ({"upload": {"feedback": "always"}}, r"upload\.feedback: "),
        ({"upload": {"encode": -1.0}}, r"upload\.encode: "),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused_in_a_line_that_names_the_key(sections, message):
    with in_one_line(message):
        complete(config(**sections))


def test_kpfl_takes_ef21():
    again = {"upload": {"codec": "topk", "feedback": "ef21"}, "learning": {"keep_best": False}}
    assert complete(config(**again, algorithm={"kpfl": {}})).upload.feedback == "ef21"


def test_frames_from_the_best_model_are_refused_with_coded_downloads():
    with in_one_line(r"download\.codec = 'sign' needs learning\.keep_best = false"):
        check_frames(complete(config(download={"codec": "sign"})), 2)
    check_frames(complete(config(download={"codec": "sign"}, learning={"keep_best": False})), 2)
    check_frames(complete(config(upload={"codec": "sign"})), 2)


def test_residuals_that_do_not_fit_the_budget_are_refused_with_the_way_out(tmp_path):
    learning = {"memory_budget_mib": 1, "model": "fedteddi-cnn"}
    this = config(upload={"codec": "sign"}, devices={"count": 40}, learning=learning)
    with pytest.raises(EdgesimError, match=r"upload\.feedback = 'none'") as refused:
        simulation.run(this, tmp_path / "run")
    assert "learning.memory_budget_mib" in refused.value.fields
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("mechanism", "upload", "reason"),
    [
        ("local", {"codec": "topk"}, None),
        ("local", {"codec": "topk", "lost": "add"}, "upload.lost"),
        ("central", {"codec": "qsgd"}, None),
        ("central", {"codec": "topk"}, "upload.feedback"),
        ("central", {"codec": "topk", "feedback": "ef21"}, "upload.feedback"),
    ],
)
def test_epsilon_is_right_or_not_told(mechanism, upload, reason):
    this = complete(config(privacy={"mechanism": mechanism, "noise": 1.0, "clip": 1.0}, upload=upload))
    why = why_unknown(this, "", has_buffers=False, frames=1)
    assert why is None if reason is None else reason in why


def test_a_dry_run_tells_bits_least_bandwidths_with_and_without_and_bytes_of_a_checkpoint():
    asked = {"round": {"payload_bits": 17_881_664}, "upload": {"codec": "topk"}, "devices": {"count": 6}}
    base = {"rounds": 2, "data": {"partition": "iid"}, "learning": {"pretrain": False}}
    facts = edgesim.dry_run(base | asked).facts
    bits, hertz = facts["coding"].split("; ")
    assert bits == "an update of 558,802 numbers takes 226,614 bits, 1.267% of a model's"
    coded, whole = (float(part.split(" to ")[0].split()[-1]) for part in hertz.split(", without "))
    # The payload is 79 times as small, and bandwidth grows faster than the rate that it carries.
    assert 79 < whole / coded < 300
    assert "up to 0." in facts["memory"]
    assert " MB of a checkpoint; training on " in facts["memory"]
    assert "coding" not in edgesim.dry_run(base).facts


def test_a_dry_run_tells_what_a_merge_holds_and_what_a_change_takes():
    """Six updates of 2,410 numbers take 0.0578 MB, as received as much again, and so do their residuals."""
    base = {"rounds": 2, "data": {"partition": "iid"}, "learning": {"pretrain": False}, "devices": {"count": 6}}
    held = {
        feedback: edgesim.dry_run(base | {"upload": {"codec": "topk", "feedback": feedback}}).facts["memory"]
        for feedback in ("none", "residual")
    }
    assert "0.0578 MB, at most, and 0.116 MB with what is decoded of them in a merge" in held["none"]
    assert "0.0578 MB, at most, and 0.174 MB with what is decoded and remembered of them in a merge" in held["residual"]
    assert "merge" not in edgesim.dry_run(base).facts["memory"].split(";")[0]
    down = edgesim.dry_run(base | {"download": {"codec": "topk"}}).facts["coding"]
    assert down.startswith("a change of 2,410 numbers takes 1,012 bits on the way down, 1.312% of a model's")


OWN = {"fedmd": "its devices send no models", "fedproto": "its devices send no models"}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_that_sends_models_and_starts_from_these_takes_coded_updates(name, run):
    """Servers that use updates again take EF21; what the codec keeps is what `updates` says was trained."""
    once = "updates without residuals" not in ALGORITHMS[name].needs
    upload = {"codec": "topk", "ratio": 0.2} | ({} if once else {"feedback": "ef21"})
    sections = PUBLIC if "public images" in ALGORITHMS[name].needs else {}
    sections = sections | {"algorithm": {"name": name}, "upload": upload, "rounds": 3}
    if name in OWN:
        with in_one_line(OWN[name]):
            run("refused", **sections)
        return
    played = run("run", **sections)
    rows = played.metrics.query("name == 'codec'")
    errors, missing = (rows[rows["key"] == key].sort_values("round")["value"].tolist() for key in ("error", "missing"))
    assert len(errors) == len(missing) == 3
    assert all(0 < error < 0.9 for error in errors)
    # In the first round nothing is remembered: both are of the same vector. From then on they differ.
    assert errors[0] == pytest.approx(missing[0])
    assert errors[1:] != pytest.approx(missing[1:])
