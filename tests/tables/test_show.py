"""The tables on the terminal against the same numbers worked out of the run folder."""

import io
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from edited_runs import edit_json, edit_table, forget_digests, write_plan
from rich.console import Console
from whole_runs import TIMED, play

from edgesim.analysis.products import digest_of
from edgesim.analysis.runs import RunFolder
from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.folder.records import RunWriter, read_table
from edgesim.simulation import composition as simulation
from edgesim.tables.show import print_run, print_skews, print_study

CONFIG = {
    "seed": 4,
    "rounds": 6,
    "round": {
        "payload_bits": 17_881_664.0,
        "tmax_s": 0.8,
        "delay_knowledge": "planned",
        "plan_quantile": 0.5,
        "download_s": 0.02,
    },
    "learning": {"training": "none", "pretrain": True},
    "data": {"partition": "fedteddi"},
}
LEARNING = {"devices": {"count": 3}, "data": {"partition": "iid"}, "learning": {"pretrain": False, "steps": 1}}


def shown(printer, folder, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width)
    printer(folder, console)
    return console.file.getvalue()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A run on batteries; no test changes it."""
    battery = {"battery_j": 5.0, "recharge_w": 0.3}
    return play(tmp_path_factory.mktemp("shown") / "run", CONFIG, devices=battery).folder


@pytest.fixture(scope="module")
def text(folder):
    return shown(print_run, folder)


def test_a_run_on_batteries_shows_the_charge_that_is_left(folder, text):
    left = read_table(folder, "metrics").query("name == 'battery_j' and round == 6").set_index("key")["value"]
    assert numbers(text, "charge per device") == pytest.approx(left.tolist(), abs=5e-3)


def numbers(text: str, start: str) -> list[float]:
    """Numbers of the last line that begins so: the table of work comes last."""
    *_, line = [line for line in text.splitlines() if line.strip(" │").startswith(f"{start} ")]
    found = re.findall(r"\d[\d,]*\.?\d*(?:e[+-]\d+)?", line.replace(start, "", 1))
    return [float(number.replace(",", "")) for number in found]


def test_a_run_shows_what_came_of_its_work_with_the_share_of_joules(folder, text):
    acts = read_table(folder, "activities").assign(seconds=lambda table: table["t_end_s"] - table["t_start_s"])
    late = acts.groupby(["round", "device"]).filter(lambda task: (task["outcome"] == "late").any())
    arrived = read_table(folder, "updates")[["round", "device"]]
    useful = acts.merge(arrived, on=["round", "device"])
    assert len(late) > 0
    whole_j = acts["energy_j"].sum()
    for kind, rows in (("late", late), ("useful", useful), ("all", acts)):
        seconds, bits, joules = (rows[name].sum() for name in ("seconds", "bits", "energy_j"))
        found = numbers(text, kind)
        assert found[:3] == [
            pytest.approx(seconds, abs=0.05),
            pytest.approx(bits, rel=1e-3),
            pytest.approx(joules, abs=0.05),
        ]
        assert found[3] == pytest.approx(100 * joules / whole_j, abs=0.05)


def test_a_run_shows_its_energy_by_activity_and_over_its_devices(folder, text):
    acts = read_table(folder, "activities")
    by_activity = acts.groupby("activity")["energy_j"].sum()
    expected = [acts["energy_j"].sum(), *(by_activity[name] for name in ("download", "compute", "upload"))]
    (line,) = [line for line in text.splitlines() if line.strip(" │").startswith("energy  ")]
    found = [float(number) for number in re.findall(r"([\d.]+) J", line)]
    assert found == pytest.approx(expected, abs=0.05)
    spent = acts.groupby("device")["energy_j"].sum()
    assert len(spent) == 30
    assert numbers(text, "energy per device") == pytest.approx([spent.min(), spent.median(), spent.max()], abs=0.005)


def test_a_run_shows_the_skew_of_its_data_in_every_frame(folder):
    text = shown(print_run, folder, 80)
    devices = read_table(folder, "devices")
    rows = [line.split() for line in text.splitlines() if re.match(r"[01] +\d", line)]
    assert [row[0] for row in rows] == ["0", "1"]
    for row, (_, frame) in zip(rows, devices.groupby("frame"), strict=True):
        counts = np.stack(frame["class_counts"].to_list())
        mixes = counts / counts.sum(axis=1, keepdims=True)
        emd = np.abs(mixes - counts.sum(axis=0) / counts.sum()).sum(axis=1)
        held = (counts > 0).sum(axis=1)
        expected = [60, 60, 60, held.min(), np.median(held), held.max(), emd.mean(), np.median(emd), emd.max()]
        assert [float(cell) for cell in row[1:]] == pytest.approx(expected, abs=0.005)


def test_a_wide_table_is_cut_off_on_no_terminal(tmp_path):
    plan = []
    for partition in ("dirichlet-labels", "quantity"):
        play(tmp_path / partition, CONFIG, data={"partition": partition, "partition_options": {"alpha": 0.5}})
        knobs = {"partition": partition, "alpha": 0.5}
        plan.append({"folder": partition, "knobs": knobs, "seed": 4, "status": "finished"})
    write_plan(tmp_path, "partitions", plan)
    wide, narrow = (shown(print_skews, tmp_path, width).splitlines() for width in (200, 40))
    assert [line.rstrip() for line in narrow[:5]] == [line.rstrip() for line in wide[:5]]
    assert "…" not in "".join(narrow)
    assert any(line.startswith("dirichlet-labels 0.5") for line in narrow)


def test_rounds_that_are_not_finished_count_for_nothing_in_a_run_that_was_killed(folder, tmp_path):
    killed = forget_digests(Path(shutil.copytree(folder, tmp_path / "run")))
    edit_json(killed / "run.json", status="running")
    before = shown(print_run, killed)
    assert "lost (its process is gone; edgesim resume" in before

    def with_cut(acts):
        return pd.concat([acts, acts[acts["round"] == 6].assign(round=7).astype(acts.dtypes.to_dict())])

    edit_table(killed, "activities", with_cut)
    assert shown(print_run, killed) == before


def test_a_run_without_a_finished_round_shows_no_work(tmp_path):
    RunWriter(tmp_path / "none", {"seed": 0, "selection": {"policy": "random"}}, {}).close("interrupted")
    text = shown(print_run, tmp_path / "none")
    assert "stopped" in text
    assert "useful" not in text


def study_of(folder, run, knobs):
    """A study in which every setting of ``knobs`` made the same run."""
    plan = [{"folder": f"r{number}", "knobs": of, "seed": 4, "status": "finished"} for number, of in enumerate(knobs)]
    for entry in plan:
        shutil.copytree(run, folder / entry["folder"])
    return write_plan(folder, "mixed", plan)


def test_a_study_shows_the_share_of_joules_wasted_in_eighty_columns(folder, tmp_path):
    knobs = [{"policy": "random", "plan_quantile": quantile} for quantile in (0.5, 0.95)]
    text = shown(print_study, study_of(tmp_path / "quantiles", folder, knobs), 80)
    (header,) = [line for line in text.splitlines() if line.startswith("plan_quantile")]
    assert header.split()[-2:] == ["joules", "waste"]
    acts, updates = (read_table(folder, name) for name in ("activities", "updates"))
    useful_j = acts.merge(updates[["round", "device"]], on=["round", "device"])["energy_j"].sum()
    for quantile in ("0.5", "0.95"):
        assert numbers(text, quantile)[-1] == pytest.approx(1 - useful_j / acts["energy_j"].sum(), abs=5e-4)


def test_settings_that_many_knobs_distinguish_have_numbers_so_that_a_table_fits_100_columns(folder, tmp_path):
    long = {name: f"{name}-has-a-rather-long-value" for name in ("partition", "algorithm", "codec")}
    some = {"policy": "random", **long}
    other = {"policy": "fedcs", **{name: f"{value}-too" for name, value in long.items()}}
    text = shown(print_study, study_of(tmp_path / "many", folder, [some, other]), 200)
    listed = ", ".join(f"{name} {value}" for name, value in some.items())
    assert f"setting 1: {listed}\n" in text
    table = text[text.index("\nsetting scheduled") :].splitlines()
    assert [line.split()[0] for line in table[3:5]] == ["1", "2"]
    assert max(map(len, table[:5])) <= 100
    # A few short knobs have columns.
    short = [{"policy": policy, "a": a} for policy, a in (("random", 1), ("fedcs", 2))]
    few = shown(print_study, study_of(tmp_path / "few", folder, short))
    assert "setting 1" not in few


def test_a_study_without_a_finished_run_says_what_became_of_its_runs(tmp_path):
    runs = [
        {"folder": f"r{seed}", "knobs": {"policy": "random"}, "seed": seed, "status": status}
        for seed, status in enumerate(("failed", "failed", "not run"))
    ]
    write_plan(tmp_path, "failed", runs)
    edit_json(tmp_path / "r1/run.json", reason="a loss is no number")
    with pytest.raises(EdgesimError) as caught:
        shown(print_study, tmp_path)
    said = "no run of the study is finished (2 failed, 1 planned; r1: a loss is no number); run it again"
    assert str(caught.value) == f"{tmp_path}: {said}"


def test_a_run_that_was_removed_counts_as_planned_and_has_no_digest(tmp_path):
    write_plan(tmp_path, "gone", [{"folder": "gone", "knobs": {"policy": "random"}, "seed": 4, "status": "finished"}])
    with pytest.raises(EdgesimError, match=r"no run of the study is finished \(1 planned\); run it again"):
        shown(print_study, tmp_path)
    with pytest.raises(EdgesimError, match="gone: is not there; run the study again"):
        digest_of([RunFolder(tmp_path / "gone", {}, 4)])


def test_a_run_says_on_what_it_trained_and_how_long_that_took(tmp_path):
    values = LEARNING | {"rounds": 2}
    asked = {"learning": LEARNING["learning"] | {"back_end": "stacked", "model": "own_noise.Noise"}}
    own = tmp_path / "own_noise.py"
    own.write_text(
        "from torch import nn\nimport torch\n"
        "class Noise(nn.Module):\n"
        "    def __init__(self, shape, classes):\n"
        "        super().__init__(); self.last = nn.Linear(64, classes)\n"
        "    def forward(self, x):\n"
        "        x = x.flatten(1); return self.last(x + 0.1 * torch.randn_like(x))\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        simulation.run(parse(values | asked, "test"), tmp_path / "run", cores=1)
    text = " ".join(shown(print_run, tmp_path / "run", 400).replace("│", " ").split())
    assert "back end loop on cpu" in text
    assert "the model cannot be stacked (vmap" in text
    parts = read_table(tmp_path / "run", "timing").groupby("part")["wall_s"].sum()
    assert f"({parts['train']:.1f} s training, {parts['evaluate']:.1f} s evaluation)" in text


def test_a_run_in_which_nothing_arrived_says_so(tmp_path):
    """Five at once share a band that would do for one."""
    crowd = {"admission": "count", "count": 5, "allocator": "equal_share", "tmax_s": 0.8, "payload_bits": 6e7}
    run = play(tmp_path / "run", TIMED, rounds=2, round=crowd)
    assert run.rounds["arrived"].sum() == 0
    assert "no update arrived in 2 rounds" in shown(print_run, run.folder)


def test_a_run_without_a_round_says_that_no_model_was_made_and_what_became_of_its_work(tmp_path):
    law = {"model": "bernoulli", "probability": 0.1, "slot_s": 0.05}
    buffered = {"protocol": "buffered", "admission": "count", "count": 3, "payload_bits": 1e6}
    with pytest.raises(EdgesimError, match="no model was made"):
        play(tmp_path / "run", TIMED, stop_at_s=1.0, availability=law, round=buffered)
    said = shown(print_run, tmp_path / "run", 200)
    dropped = read_table(tmp_path / "run", "activities")["outcome"].eq("dropped").sum()
    assert "no model was made" in said
    assert dropped > 0
    assert f"{dropped} dropped" in said


def test_a_run_shows_how_its_accuracy_went_without_an_interval(tmp_path):
    """The same measures worked out of its tables, round by round."""
    play(tmp_path / "run", LEARNING, rounds=8)
    brief = shown(lambda *where: print_run(*where, whole=False), tmp_path / "run", 400)
    assert brief.index("last test") < brief.index("simulated time")
    assert not re.search("WE |ID |forgetting|roughness|F1 by class", brief)
    text = shown(print_run, tmp_path / "run", 400)
    accuracies = 100 * read_table(tmp_path / "run", "rounds")["test_accuracy"].to_numpy()
    assert numbers(text, "best accuracy") == pytest.approx([accuracies.max() / 100, accuracies.argmax() + 1], abs=5e-5)
    last = accuracies[-5:]
    assert numbers(text, "WE") == pytest.approx([last.mean(), last.var(), 5], abs=5e-3)
    rounds = np.arange(5, 9)
    line = np.polyval(np.polyfit(rounds, accuracies[4:], 1), rounds)
    assert numbers(text, "ID") == pytest.approx([np.abs(accuracies[4:] - line).mean(), 1, 5, 8], abs=5e-3)
    table = read_table(tmp_path / "run", "metrics").query("name == 'class_accuracy' and round > 0")
    by_class = [100 * table[table["key"] == str(label)].sort_values("round")["value"].to_numpy() for label in range(10)]
    lost = [course[:-1].max() - course[-1] for course in by_class]
    (row,) = [row for row in text.splitlines() if "forgetting by class" in row]
    assert re.findall(r"(\d+): (-?[\d.]+)", row) == [(str(label), f"{lost[label]:.1f}") for label in range(10)]
    assert f"forgetting          │ {np.mean(lost):.2f} points" in text
    assert "IDP" not in text


def test_a_run_shows_first_what_a_newcomer_asks_and_the_rest_on_request(folder, text):
    brief = shown(lambda *where: print_run(*where, whole=False), folder)
    acts, updates = read_table(folder, "activities"), read_table(folder, "updates")
    assert numbers(brief, "took part") == [updates["device"].nunique(), 30]
    useful_j = acts.merge(updates[["round", "device"]], on=["round", "device"])["energy_j"].sum()
    whole_j = acts["energy_j"].sum()
    assert numbers(brief, "joules lost")[:2] == pytest.approx([whole_j - useful_j, whole_j], abs=0.06)
    further = ("energy per device", "data per device", "work by what came of it", "wall time", "jobs trained")
    assert not [row for row in further if row in brief]
    assert not [row for row in further if row not in text]
    order = [brief.index(f"│ {row} ") for row in ("status", "simulated time", "energy", "took part", "joules lost")]
    assert order == sorted(order)


def test_a_run_whose_rounds_are_not_all_tested_says_why_it_has_no_measures_of_its_course(tmp_path):
    play(tmp_path / "run", LEARNING, rounds=4, evaluation={"every": 2})
    text = shown(print_run, tmp_path / "run", 400)
    assert "WE, ID, forgetting" in text
    assert "undefined: 2 of 4 rounds have a test" in text


FEDPROX = {"name": "fedprox", "mu": 0.5, "server": "safa"}
KEPT = "passes), kpfl (keep first, settings default, age_active 0.16, age_idle 0.2), synchronous"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, ["weights samples), synchronous"]),
        ({"algorithm": FEDPROX}, ["fedprox (", "mu 0.5", "server safa, synchronous"]),
        ({"algorithm": {"kpfl": {"keep": "first"}}}, [KEPT]),
        ({"algorithm": {"kpfl": {}}}, ["server_s_per_step 0.0), synchronous"]),
        ({"round": {"protocol": "buffered", "admission": "count", "count": 2}}, [", buffered"]),
    ],
)
def test_a_run_shows_its_algorithm_and_protocol(tmp_path, settings, said):
    play(tmp_path / "run", TIMED, {"rounds": 2, "devices": {"count": 3}, "round": {"payload_bits": 1e5}}, settings)
    text = shown(print_run, tmp_path / "run", 400)
    assert [part for part in said if part not in text] == []
