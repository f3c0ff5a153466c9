"""Whole runs: the promises that a user of the simulator relies on."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from whole_runs import merged

from edgesim.analysis.check import run_faults
from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.folder.records import SCHEMAS, RunWriter, read_config, read_run, read_table
from edgesim.learning.algorithms.fedavg import FedAvg
from edgesim.simulation import composition as simulation

PAPER_CNN_BITS = 17_881_664.0


def config(policy: str = "random", rounds: int | None = 4, training: str = "real", **sections):
    values = {
        "seed": 3,
        "rounds": rounds,
        "round": {"payload_bits": PAPER_CNN_BITS, "tmax_s": 0.8},
        "learning": {"training": training, "pretrain": True},
        "selection": {"policy": policy},
        "data": {"partition": "fedteddi"},
    }
    return parse(merged(values, sections), "test")


def activities(folder: Path) -> pd.DataFrame:
    return read_table(folder, "activities")


def test_a_run_of_the_config_that_a_run_wrote_leaves_the_same_bytes_but_for_timing(tmp_path):
    simulation.run(config("fedteddi"), tmp_path / "a")
    simulation.run(parse(read_config(tmp_path / "a"), "written"), tmp_path / "b")
    tables = [f"{table}.parquet" for table in set(SCHEMAS) - {"timing"}]
    for file in (*tables, "model.safetensors", "config.toml"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes(), file


@pytest.mark.skipif("not __import__('torch').cuda.is_available()", reason="needs a CUDA device")
def test_on_a_gpu_two_runs_leave_the_same_bytes_and_learn_what_a_cpu_learns(tmp_path):
    for name, device in (("a", "cuda"), ("b", "cuda"), ("c", "cpu")):
        simulation.run(config("fedteddi", 3, learning={"device": device}), tmp_path / name)
    for file in ("model.safetensors", "updates.parquet"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    gpu, cpu = (read_table(tmp_path / name, "rounds")["test_loss"] for name in "ac")
    assert gpu.tolist() == pytest.approx(cpu.tolist(), rel=1e-2)


def test_two_policies_of_one_seed_see_the_same_compute_delays(tmp_path):
    delays = {}
    for policy, training in (("random", "none"), ("best-norm", "real")):
        simulation.run(config(policy, training=training), tmp_path / policy)
        computing = activities(tmp_path / policy).query("activity == 'compute' and t_end_s - t_start_s < 0.7")
        lengths = computing["t_end_s"] - computing["t_start_s"]
        delays[policy] = dict(zip(zip(computing["round"], computing["device"], strict=True), lengths, strict=True))
    common = delays["random"].keys() & delays["best-norm"].keys()
    assert len(common) > 80
    assert [delays["random"][key] for key in common] == pytest.approx(
        [delays["best-norm"][key] for key in common], abs=1e-12
    )


@pytest.mark.parametrize(
    ("policy", "all_train"),
    [
        (name, name == "best-norm")
        for name in ("random", "fedteddi", "best-norm", "best-channel", "pure-drift", "fed-cbs")
    ],
)
def test_jobs_run_only_where_their_result_is_used_and_cost_no_time_but_simulated_one(tmp_path, policy, all_train):
    simulation.run(config(policy), tmp_path / "real")
    rounds = read_table(tmp_path / "real", "rounds")
    expected = rounds["candidates"] if all_train else rounds["arrived"]
    assert rounds["jobs_trained"].tolist() == expected.tolist()
    assert rounds["arrived"].min() > 0
    if policy not in ("fedteddi", "best-norm"):
        simulation.run(config(policy, training="none"), tmp_path / "none")
        assert activities(tmp_path / "real").equals(activities(tmp_path / "none"))


@pytest.mark.slow
def test_a_timing_only_run_imports_no_torch(tmp_path):
    script = (
        "import sys; from pathlib import Path; from edgesim.config_file import parse\n"
        "from edgesim.simulation import composition\n"
        "composition.run(parse({'rounds': 2, 'learning': {'training': 'none'}}, 'x'), Path(sys.argv[1]))\n"
        "sys.exit('torch' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)


def test_learning_works_and_labels_permuted_before_pre_training_bring_it_to_chance(tmp_path):
    final = {}
    for permuted in (False, True):
        folder = tmp_path / str(permuted)
        simulation.run(config("fed-cbs", 40, data={"permute_labels": permuted}), folder)
        final[permuted] = read_table(folder, "rounds")["test_accuracy"].tail(5).mean()
    assert final[False] > 0.75
    assert final[True] < 0.2


def test_updates_and_rounds_agree(tmp_path):
    """Bits, joules, hertz and outcomes are added up by `edgesim check`, whose invariants are broken one by one."""
    simulation.run(config("power-of-choice", 6), tmp_path)
    assert run_faults(tmp_path) == []
    rounds, updates = read_table(tmp_path, "rounds"), read_table(tmp_path, "updates")
    weighed = (updates["weight"] * updates["loss"]).groupby(updates["round"]).sum()
    assert rounds["train_loss"].tolist() == pytest.approx(weighed.tolist())
    assert updates.groupby("round")["weight"].sum().tolist() == pytest.approx([1.0] * 6)
    # The test split holds 36 images of every class.
    by_class = read_table(tmp_path, "metrics").query("name == 'class_accuracy' and round == 6")
    assert by_class["key"].tolist() == [str(label) for label in range(10)]
    assert by_class["value"].mean() == pytest.approx(rounds["test_accuracy"].iloc[-1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("knowledge", "expected"),
    [("known", (7.5, 10.1, 13.0)), ("reported", (4.6, 7.1, 9.8)), ("planned", (5.5, 8.1, 10.8))],
)
def test_mean_clients_that_fit_are_those_of_the_specification(tmp_path, knowledge, expected):
    for tmax_s, mean in zip((0.8, 1.0, 1.2), expected, strict=True):
        rounds = []
        for seed in range(4):
            folder = tmp_path / f"{tmax_s}-{seed}"
            knobs = {"delay_knowledge": knowledge, "tmax_s": tmax_s}
            knobs |= {"report_by_s": tmax_s} if knowledge == "reported" else {}
            none = {"dataset": "none"}
            simulation.run(config(rounds=60, training="none", seed=seed, round=knobs, data=none), folder)
            rounds.append(read_table(folder, "rounds"))
        table = pd.concat(rounds)
        assert table["selected"].mean() == pytest.approx(mean, abs=0.5)
        if knowledge == "planned":
            chosen = table["selected"].sum()
            sigma = np.sqrt(0.05 * 0.95 / chosen)
            assert table["late"].sum() / chosen == pytest.approx(0.05, abs=3 * sigma)
        else:
            assert table["late"].sum() == 0


def test_planning_on_the_mean_delay_misses_one_in_e(tmp_path):
    # Exp: P(delay > mean) = 1/e whatever a, m and mu; the mean is the 1 - 1/e quantile of the random part.
    knobs = {"delay_knowledge": "planned", "plan_quantile": 1 - float(np.exp(-1)), "tmax_s": 1.0}
    simulation.run(config(rounds=300, training="none", round=knobs, data={"dataset": "none"}), tmp_path)
    rounds = read_table(tmp_path, "rounds")
    chosen = rounds["selected"].sum()
    share = np.exp(-1)
    assert rounds["late"].sum() / chosen == pytest.approx(share, abs=3 * np.sqrt(share * (1 - share) / chosen))


def test_stop_at_s_ends_the_run_with_the_round_that_closes_then(tmp_path):
    """Seven rounds of 0.8 s, although 7 additions of 0.8 miss 5.6 by a rounding step; no eighth one begins there."""
    assert "stop_at_s" in simulation.run(config(training="none", rounds=None, stop_at_s=0.8 * 7), tmp_path).reason
    assert read_table(tmp_path, "rounds")["round"].tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert set(activities(tmp_path)["round"]) == set(range(1, 8))


def test_more_participants_than_a_table_ever_has_at_once_are_refused(tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text("device,start_s,end_s\n0,0,60\n1,10,20\n2,20,30\n")
    world = {"availability": {"model": "table", "file": str(trace), "after_end": "wrap"}, "devices": {"count": 3}}
    knobs = {"admission": "count", "payload_bits": 1e5}
    expected = (
        rf"round.count = 3: never more than 2 of the 3 devices of {trace} are online at once; lower it or raise "
        "devices.count"
    )
    for protocol in ({}, {"protocol": "asynchronous"}):
        with pytest.raises(EdgesimError, match=expected):
            simulation.run(config(training="none", round=knobs | protocol | {"count": 3}, **world), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    # One in most rounds, and three are invited where only two are ever there.
    fits = config(training="none", round=knobs | {"count": 2, "over_commitment": 1.3}, **world)
    assert simulation.run(fits, tmp_path / "run").status == "finished"


def test_more_rounds_of_one_length_than_a_recording_has_time_for_are_refused_before_they_begin(tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text("device,start_s,end_s\n0,0,10\n1,0,10\n")

    def run(rounds, after_end="raise", **knobs):
        table = {"model": "table", "file": str(trace), "after_end": after_end}
        world = {"availability": table, "devices": {"count": 2}, "data": {"dataset": "none"}, "rounds": rounds}
        folder = tmp_path / f"{rounds}-{after_end}-{'-'.join(map(str, knobs.values()))}"
        return simulation.run(config(training="none", round={"payload_bits": 1e5} | knobs, **world), folder)

    said = r"trace\.csv: the trace ends at 10 s, but 11 s \(11 rounds of 1 s each\) is asked for; end the run earlier"
    with pytest.raises(EdgesimError, match=said):
        run(11, close="deadline", tmax_s=1.0)
    assert [path.name for path in tmp_path.iterdir()] == ["trace.csv"]
    # What fits exactly, also where the clock's sum is not exact; rounds that end early; what goes on behind the end.
    assert run(10, close="deadline", tmax_s=1.0).status == "finished"
    assert run(100, close="deadline", tmax_s=0.1).status == "finished"
    assert run(11, close="arrivals", tmax_s=1.0, leftover="equal_finish").status == "finished"
    assert run(11, "wrap", close="deadline", tmax_s=1.0).status == "finished"


@pytest.mark.parametrize(
    ("sections", "said", "key", "unit"),
    [
        ({"round": {"tmax_s": 0.05}}, r"round.tmax_s = 0.05: no device can .* set round.tmax_s to", "tmax_s", "s"),
        (
            {"round": {"tmax_s": 0.1, "delay_knowledge": "reported"}},
            r"round.tmax_s = 0.1: no device .* round.report_by_s to 0.5 of it",
            "tmax_s",
            "s",
        ),
        ({"radio": {"bandwidth_hz": 1e3}}, r"radio.bandwidth_hz = 1000: the band is too narrow", "bandwidth_hz", "Hz"),
    ],
    ids=["deadline", "reports", "band"],
)
@pytest.mark.whole_family
def test_what_serves_nobody_is_refused_with_a_value_that_would_do(tmp_path, sections, said, key, unit):
    with pytest.raises(EdgesimError, match=said) as error:
        simulation.run(config(training="none", **sections), tmp_path / "run")
    assert not (tmp_path / "run").exists()
    enough = float(str(error.value).split("at least ")[1].split(f" {unit}")[0])
    ((section, knobs),) = sections.items()
    simulation.run(config(training="none", rounds=10, **{section: knobs | {key: enough}}), tmp_path / "run")
    assert read_table(tmp_path / "run", "rounds")["arrived"].sum() > 0


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        (
            {"round": {"delay_knowledge": "reported", "report_by_s": 0.01}},
            "at least .* and round.report_by_s to 0.0125",
        ),
        (
            {"round": {"admission": "count", "count": 31}},
            r"round\.count \(31\) must not be above devices\.count \(30\)",
        ),
        ({"rounds": [3, 4]}, "rounds: 2 numbers were given, but the data have 1 frame"),
    ],
    ids=["reports", "count", "frames"],
)
@pytest.mark.whole_family
def test_what_cannot_be_run_is_refused_by_name(tmp_path, sections, said):
    with pytest.raises(EdgesimError, match=said):
        simulation.run(config(training="none", **sections), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("file", "choose another folder"),
        ("file/run", "choose another folder"),
        ("full", "not empty and not a run folder"),
    ],
)
@pytest.mark.whole_family
def test_a_place_that_cannot_be_the_folder_of_a_run_is_refused(tmp_path, place, said):
    (tmp_path / "file").write_text("")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/thesis.tex").write_text("years of work")
    with pytest.raises(EdgesimError, match=said):
        simulation.run(config(training="none"), tmp_path / place)


@pytest.mark.parametrize(("first", "last", "said"), [(10.0, 2e6 + 1, "10 to 2,000,001"), (3e6, 3e6, "3,000,000")])
def test_a_hopeless_deadline_is_refused_with_the_bits_of_all_devices(tmp_path, monkeypatch, first, last, said):
    def upload_bits(algorithm, devices, round, ledger):
        return np.where(devices.ids == 0, first, last)

    monkeypatch.setattr(FedAvg.Local, "upload_bits", upload_bits)
    with pytest.raises(EdgesimError, match=f"no device can compute and upload {said} bits by the deadline"):
        simulation.run(config(training="none", round={"tmax_s": 1e-4}), tmp_path / "run")


@pytest.fixture
def interrupted(tmp_path):
    """Runs a config in ``tmp_path`` until Ctrl-C or SIGTERM ends it."""

    def run(*how):
        before = signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                simulation.run(config(training="none"), tmp_path, *how)
        finally:
            assert signal.signal(signal.SIGTERM, before) is signal.default_int_handler
        return read_run(tmp_path)["status"]

    return run


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_as_it_makes_its_folder_goes_on_and_one_that_ends_does_not_count_as_running(
    number, tmp_path, monkeypatch, interrupted
):
    begin, told = RunWriter._begin, simulation.end_notes
    with monkeypatch.context() as patch:
        patch.setattr(RunWriter, "_begin", lambda *given: (begin(*given), signal.raise_signal(number)))
        assert interrupted() == "interrupted"
    # It waited for the end of the first round, which is saved.
    assert list(tmp_path.glob("*.arrow"))
    monkeypatch.setattr(simulation, "end_notes", lambda *given: (signal.raise_signal(number), told(*given))[1])
    assert interrupted(lambda _: signal.raise_signal(number)) == "interrupted"
    assert list(tmp_path.glob("checkpoint-*"))
    assert interrupted() == "finished"
    assert not [*tmp_path.glob("*.arrow"), *tmp_path.glob("checkpoint-*")]


def test_a_folder_that_holds_another_run_is_refused_and_left_alone(tmp_path):
    simulation.run(config(training="none"), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(EdgesimError, match="holds a run of another config"):
        simulation.run(config(training="none", seed=4), tmp_path)
    assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}
