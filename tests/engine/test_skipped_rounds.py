"""Rounds that make no model: what they cost in seconds, joules and bits, and what stands in the tables."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from refusals import in_one_line
from safetensors.torch import load_file
from typed_commands import printed
from whole_runs import by_rounds, merged, phones, play, stays

from edgesim.analysis.check import run_faults
from edgesim.analysis.runs import RunFolder
from edgesim.analysis.waste import work_by_kind
from edgesim.config_file import parse
from edgesim.engine.stagnation import Stagnation
from edgesim.learning.datasets import load_shared
from edgesim.plots.gantt import draw_gantt
from edgesim.simulation import composition as simulation
from edgesim.tables.show import print_run

MODEL_BITS = 77_120.0
LINK_BPS = (1e6, 5e5, 2e6)
S_PER_SAMPLE = (0.002, 0.001, 0.004)
SAMPLES = 40
COMPUTE_W, DOWNLOAD_W = 2.0, 0.9


@pytest.fixture(scope="module")
def sections(tmp_path_factory):
    """Three devices with links and speeds of their own, and how rounds that are not due are skipped.

    Device 2 is away in round 5, and device 1 in round 7.
    """
    folder = tmp_path_factory.mktemp("world")
    there = by_rounds(folder, "11111111", "11111101", "11110111")
    base = phones(folder, *zip(S_PER_SAMPLE, LINK_BPS, strict=True)) | there
    base |= {
        "seed": 3,
        "rounds": 8,
        "round": {"tmax_s": 3.0, "download_s": "link"},
        "data": {"partition": "iid", "samples_per_device": SAMPLES, "validation_per_class": 20},
        "learning": {"pretrain": False, "epochs": 1, "batch_size": 20, "lr": 0.1, "model": "mlp"},
    }

    def make(skip=None, **more):
        own = {"merging": {} if skip is None else {"skip": skip}}
        other = {"availability": None} if isinstance(more.get("availability"), dict) else {}
        return merged(base, own, other, more)

    return make


@pytest.fixture(scope="module")
def once(tmp_path_factory, sections):
    """The run with a way to skip, simulated once."""
    folder = tmp_path_factory.mktemp("once")
    return cache(lambda skip: play(folder / str(skip), sections(skip)))


@pytest.fixture
def run(tmp_path, sections, once):
    """Simulate a run of such sections."""
    return lambda skip=None, name="run", **more: play(tmp_path / name, sections(skip, **more)) if more else once(skip)


def transfer_s(device):
    return MODEL_BITS / LINK_BPS[device]


def compute_s(device):
    return SAMPLES * S_PER_SAMPLE[device]


def of_metrics(played, name):
    return played.metric(name).to_dict()


def test_rounds_that_are_not_due_by_the_accuracies_of_the_run_make_no_model(run):
    """Long and at a high rate, so that accuracy falls now and then."""
    found = run("carry", availability=None, rounds=30, learning={"lr": 1.0, "momentum": 0.5})
    accuracy, due = of_metrics(found, "schedule_accuracy"), of_metrics(found, "due")
    schedule, expected = Stagnation(), []
    schedule.hear(0, accuracy[0])
    for round in range(1, 31):
        expected += [round] * schedule.is_due(round)
        schedule.hear(round, accuracy[round])
    assert [round for round, is_due in due.items() if is_due] == expected
    assert sorted(set(found.updates["round"])) == expected
    assert set(range(5, 31, 2)) - set(expected)
    assert set(range(5, 31, 2)) & set(expected)
    tested = found.rounds.set_index("round")["test_accuracy"]
    for round in set(range(5, 31)) - set(expected):
        assert accuracy[round] == accuracy[round - 1]
        assert tested[round] == tested[round - 1]


def test_the_signal_is_the_accuracy_on_the_images_that_no_device_holds(sections, run):
    """Worked out by hand from the model of the last round, which was due: two linear layers with ReLU between."""
    found = run()
    assert of_metrics(found, "due")[8] == 1
    shared = load_shared(simulation.complete(parse(sections(), "test")).data)
    weights = list(load_file(found.folder / "model.safetensors").values())
    images = torch.from_numpy(np.asarray(shared.dataset.images[0])[shared.validation]).flatten(1).float()
    assert len(images) == 200
    matrices = sorted((of for of in weights if of.ndim == 2), key=lambda of: -of.shape[1])
    biases = [next(of for of in weights if of.shape == (len(matrix),)) for matrix in matrices]
    hidden = torch.relu(images / 16 @ matrices[0].T + biases[0])
    predicted = (hidden @ matrices[1].T + biases[1]).argmax(1).numpy()
    labels = shared.dataset.train_labels[shared.validation]
    assert of_metrics(found, "schedule_accuracy")[8] == pytest.approx((predicted == labels).mean(), abs=1e-12)


def test_with_the_test_images_the_signal_is_the_accuracy_of_the_tables(run):
    found = run(merging={"signal": "test"}, data={"validation_per_class": None})
    tested = found.rounds.set_index("round")["test_accuracy"].to_dict() | {0: found.metric("test_accuracy")[0]}
    assert of_metrics(found, "schedule_accuracy") == tested


def seconds(played, round, activity):
    """How long each device was at it in a round."""
    rows = played.activities.query("round == @round and activity == @activity")
    return dict(zip(rows["device"], rows["t_end_s"] - rows["t_start_s"], strict=True))


@pytest.mark.parametrize("skip", ["discard", "carry"])
def test_a_skipped_round_ends_with_the_last_who_has_computed_and_sends_nothing_up(run, skip):
    """Round 5, in which device 2 is away; the model of round 4 is new to all."""
    found = run(skip)
    assert [round for round, due in of_metrics(found, "due").items() if not due] == [5, 7]
    row = found.rounds.set_index("round").loc[5]
    assert row["t_end_s"] - row["t_start_s"] == pytest.approx(max(transfer_s(k) + compute_s(k) for k in (0, 1)))
    assert seconds(found, 5, "download") == pytest.approx({k: transfer_s(k) for k in (0, 1)})
    assert seconds(found, 5, "compute") == pytest.approx({k: compute_s(k) for k in (0, 1)})
    assert seconds(found, 5, "upload") == {}
    assert (row["selected"], row["arrived"], row["late"], row["dropped"]) == (2, 0, 0, 0)
    assert (row["bits_up"], row["bits_down"], row["bandwidth_hz"]) == (0, 2 * MODEL_BITS, 0)
    joules = sum(DOWNLOAD_W * transfer_s(k) + COMPUTE_W * compute_s(k) for k in (0, 1))
    assert row["energy_j"] == pytest.approx(joules)
    assert row["jobs_trained"] == (2 if skip == "carry" else 0)
    outcomes = found.activities.query("round == 5 and activity == 'compute'")["outcome"]
    assert set(outcomes) == {"kept" if skip == "carry" else "skipped"}


@pytest.mark.parametrize("skip", ["discard", "carry"])
def test_a_model_goes_down_once_to_each_device_that_lacks_it(run, skip):
    """Round 6 after round 5, which device 2 missed; then round 7, whose model is new; and round 8, for device 1."""
    found = run(skip)
    assert seconds(found, 6, "download") == pytest.approx({2: transfer_s(2)})
    assert seconds(found, 7, "download") == pytest.approx({0: transfer_s(0), 2: transfer_s(2)})
    assert seconds(found, 8, "download") == pytest.approx({1: transfer_s(1)})
    down = dict(zip(found.rounds["round"], found.rounds["bits_down"], strict=True))
    assert down == {1: 3 * MODEL_BITS, 2: 3 * MODEL_BITS, 3: 3 * MODEL_BITS, 4: 3 * MODEL_BITS,
                    5: 2 * MODEL_BITS, 6: MODEL_BITS, 7: 2 * MODEL_BITS, 8: MODEL_BITS}  # fmt: skip
    row = found.rounds.set_index("round").loc[6]
    assert row["bits_up"] == 3 * MODEL_BITS
    ends = [transfer_s(k) + compute_s(k) + (k == 2) * transfer_s(k) for k in range(3)]
    assert row["t_end_s"] - row["t_start_s"] == pytest.approx(max(ends))


def test_a_device_that_left_before_it_had_the_model_is_sent_it_again(run, tmp_path):
    """Device 1 leaves in the middle of its download of round 5, and is back in round 6."""
    times = run("discard", "before", availability=None).rounds.set_index("round")
    leaves_s = times["t_start_s"][5] + transfer_s(1) / 2
    spans = (0, 0.0, 1e3), (1, 0.0, leaves_s), (1, leaves_s + 0.01, 1e3), (2, 0.0, 1e3)
    found = run("discard", **stays(tmp_path, *spans))
    assert seconds(found, 6, "download") == pytest.approx({1: transfer_s(1)})


def test_updates_that_are_sent_in_a_skipped_round_cost_what_they_always_cost(run):
    """And are dropped: rows of uploads, but none of updates."""
    found = run("sent")
    row = found.rounds.set_index("round").loc[5]
    ends = [2 * transfer_s(k) + compute_s(k) for k in (0, 1)]
    assert row["t_end_s"] - row["t_start_s"] == pytest.approx(max(ends))
    assert (row["arrived"], row["bits_up"], row["bits_down"]) == (2, 2 * MODEL_BITS, 2 * MODEL_BITS)
    assert row["jobs_trained"] == 0
    assert found.rounds["bits_down"].tolist() == [count * MODEL_BITS for count in (3, 3, 3, 3, 2, 3, 2, 3)]
    assert set(found.activities["outcome"]) == {"done"}
    assert 5 not in set(found.updates["round"])


def test_a_skipped_round_ends_at_the_deadline_where_a_device_has_not_computed(run, tmp_path):
    """Device 2 takes 0.24 s, more than the 0.2 s of a round, with which no update of its arrives in any."""
    own = {"round": {"tmax_s": 0.2, "admission": "count", "count": 3, "download_s": 0.0}, "availability": None}
    slow = phones(tmp_path, *zip((*S_PER_SAMPLE[:2], 0.006), LINK_BPS, strict=True))
    found = run("discard", **slow, **own)
    row = found.rounds.set_index("round").loc[5]
    assert row["t_end_s"] - row["t_start_s"] == pytest.approx(0.2)
    assert (row["selected"], row["arrived"], row["late"]) == (3, 0, 1)
    late = found.activities.query("round == 5 and outcome == 'late'")
    assert late["device"].tolist() == [2]


def test_all_candidates_that_can_compute_in_time_take_part_where_the_band_decides(run):
    """A band that serves one update or two leaves none out where nothing is sent; unscheduled work is not kept."""
    narrow = {
        "devices": {"count": 8, "profile": None, "mu_samples_per_s": 2000.0},
        "radio": {"sharing": "reserved", "bandwidth_hz": 2e4},
        "round": {"tmax_s": 1.0, "download_s": 0.0},
        "availability": None,
    }
    found = run("carry", **narrow)
    selected = found.rounds.set_index("round")["selected"]
    assert selected[4] < 8
    assert selected[5] == 8
    kept = found.activities.query("outcome == 'kept'")
    assert set(kept["activity"]) == {"compute"}
    assert set(kept[kept["round"] == 5]["device"]) == set(range(8))
    unscheduled = found.activities.query("outcome == 'unscheduled'")
    assert 6 in set(unscheduled["round"])


def kinds_of_work(found):
    return work_by_kind(found.activities, found.updates).set_index(["round", "kind"])


def test_kept_work_is_useful_where_the_next_model_has_it(run, tmp_path):
    """That of round 5 is; of round 7 that of device 2, but not of device 0, which is away in round 8."""
    found = run("carry", rounds=9, **by_rounds(tmp_path, "111111101", "111111011", "111101111"))
    work = kinds_of_work(found)
    assert set(work.loc[5].index) == {"useful"}
    assert set(work.loc[7].index) == {"useful", "unused"}
    lost_j = DOWNLOAD_W * transfer_s(0) + COMPUTE_W * compute_s(0)
    assert work.loc[(7, "unused"), "joules"] == pytest.approx(lost_j)
    # Told when it turns out; round 9 is the last, and nobody gets what is kept of it.
    told = found.metrics.query("name == 'wasted_j' and key == 'unused'").set_index("round")["value"]
    assert told[8] == pytest.approx(lost_j)
    assert told[10] == pytest.approx(work.loc[(9, "unused"), "joules"])
    assert told.sum() == pytest.approx(work.xs("unused", level="kind")["joules"].sum())


def test_show_tells_how_many_rounds_were_merged_and_skipped(run):
    assert "8 (6 merged, 2 skipped)" in printed(print_run, run().folder)


@pytest.mark.parametrize("skip", ["discard", "carry"])
def test_a_skipped_round_can_be_drawn(run, skip):
    figure = draw_gantt(RunFolder(run(skip).folder, {}, 3), 5)
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert ("skipped" in legend, "kept" in legend) == (skip == "discard", skip == "carry")
    assert "2 scheduled, 0 arrived" in figure.axes[0].get_title()


def test_the_config_of_a_run_says_how_it_merges_and_without_a_schedule_nothing_is_said_of_it(run):
    said = (run().folder / "config.toml").read_text()
    assert '[merging]\nrule = "stagnation"\nsignal = "validation"\nskip = "discard"\n' in said
    both = [run(name=f"every {number}", merging=of) for number, of in enumerate((None, {"rule": "every"}))]
    texts = [(played.folder / "config.toml").read_text() for played in both]
    assert texts[0] == texts[1]
    assert "merging" not in texts[0]
    assert not {"due", "schedule_accuracy"} & set(both[0].metrics["name"])
    assert (both[0].rounds["arrived"] > 0).all()


HUNDRED = str(Path(__file__).parents[1] / "compared" / "hundred-classes.npz")
EDGES = {"file": "three-cells", "aggregation": "hierarchical", "cloud_every": 2}
FRAMES = {
    "data": {"partition": "fedteddi", "dataset": HUNDRED, "samples_per_device": 6, "validation_per_class": None},
    "merging": {"signal": "test"},
    "rounds": [4, 4],
}
CARRY = {"skip": "carry"}


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"merging": {"rule": "often"}}, "merging.rule: input should be 'every' or 'stagnation'"),
        ({"merging": {"skip": "keep"}}, "merging.skip: input should be 'discard', 'carry' or 'sent'"),
        ({"merging": {"signal": "loss"}}, "merging.signal: input should be 'validation' or 'test'"),
        ({"merging": {"rule": "every", "skip": "sent"}}, "'sent' needs merging.rule = 'stagnation', not 'every'"),
        ({"data": {"validation_per_class": None}}, "'stagnation' needs data.validation_per_class"),
        ({"learning": {"training": "none"}}, "'stagnation' needs learning.training = 'real', not 'none'"),
        ({"round": {"late": "keep", "delay_knowledge": "planned"}}, "needs round.late = 'drop', not 'keep'"),
        ({"round": {"protocol": "buffered", "admission": "count", "count": 2}}, "needs round.protocol = 'synchronous'"),
        ({"topology": EDGES}, "'stagnation' needs topology.aggregation = 'flat', not"),
        ({"algorithm": {"kpfl": {}}}, "merging.rule = 'stagnation' does not go with algorithm.kpfl"),
        ({"merging": CARRY, "learning": {"persist_momentum": True}}, "with merging.skip = 'carry' needs learni"),
        ({"merging": CARRY, "algorithm": {"name": "fedprox"}}, "'carry' does not go with algorithm.name = 'fedprox'"),
        (FRAMES, "hundred-classes.npz' does not go with merging"),
    ],
)  # fmt: skip
def test_what_a_schedule_does_not_go_with_is_refused_in_one_line(sections, tmp_path, changes, said):
    with in_one_line(re.escape(said)):
        play(tmp_path / "run", sections(**{"availability": None} | changes))
    assert not (tmp_path / "run").exists()


ON_A_BAND = {
    "devices": {"count": 8, "profile": None, "mu_samples_per_s": 2000.0},
    "radio": {"sharing": "reserved", "bandwidth_hz": 4e5},
    "round": {"tmax_s": 1.0, "download_s": 0.02},
}


def test_devices_that_join_by_how_they_train_train_in_skipped_rounds_too(run, monkeypatch):
    """Jobs of round 5 run for their accuracies, which change who joins in round 6; with a number instead none run.

    In the code's form: chance / decay is .5 (.7 + accuracy), in rounds 5 and 6 of decays .95 and .94.
    """
    law = {"law": "fedstg", "form": "code", "capability": [1.0], "floor": 0.0, "base": 0.5}
    for measured in (True, False):
        joining = law if measured else law | {"performance": 1.0}
        rising = iter(np.linspace(0.1, 0.9, 20).tolist())
        monkeypatch.setattr("edgesim.learning.learner.TorchLearner.signal", lambda _, of, up=rising: next(up))
        found = run("discard", f"run {measured}", availability=None, joining=joining, **ON_A_BAND)
        rounds = found.rounds.set_index("round")
        assert of_metrics(found, "due")[5] == 0
        assert rounds.loc[5, "selected"] > 0
        assert rounds.loc[5, "jobs_trained"] == (rounds.loc[5, "selected"] if measured else 0)
        told = found.metrics.query("name == 'join_chance'").set_index(["round", "key"])["value"]
        joined = set(found.activities.query("round == 5")["device"].astype(str))
        grown = (told[6] / 0.94) / (told[5] / 0.95)
        changed = {device for device, of in grown.items() if abs(of - 1) > 1e-9}
        assert changed <= joined
        assert bool(changed) == measured


WORLDS = {
    "tested by seconds": {"evaluation": {"every_s": 0.25}},
    "decided on reports": {"round": {"delay_knowledge": "reported", "report_by_s": 0.5, "tmax_s": 1.0}},
    "planned": {"round": {"delay_knowledge": "planned", "plan_quantile": 0.5}},
    "over-committed": {"round": {"admission": "count", "count": 3, "over_commitment": 1.5}},
    "on batteries": {"devices": {"battery_j": 3.0, "recharge_w": 0.3}},
    "paused": {"availability": {"model": "markov", "slot_s": 0.07, "interruption": "pause"}},
    "over wires": {"topology": {"file": "three-cells"}},
    "behind a closing deadline": {"round": {"close": "deadline", "computes": "selected"}},
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("skip", ["discard", "carry", "sent"])
def test_rows_add_up_in_any_world(run, world, skip):
    """What `edgesim check` adds up is right, nothing is merged in a skipped round, and nobody sends in a silent one."""
    found = run(skip, **merged({"availability": {"model": "always"}}, ON_A_BAND, WORLDS[world]), rounds=10)
    acts, rounds = found.activities, found.rounds.set_index("round")
    assert run_faults(found.folder) == []
    skipped = [round for round, due in of_metrics(found, "due").items() if not due]
    assert skipped
    assert not set(skipped) & set(found.updates["round"])
    silent = acts[acts["round"].isin(skipped)]
    assert (silent["activity"] == "upload").any() == (skip == "sent")
    assert skip == "sent" or not rounds.loc[skipped, "arrived"].any()
    ends = {"discard": {"skipped"}, "carry": {"kept"}, "sent": {"done"}}[skip]
    assert ends <= set(silent["outcome"])
    assert ends == {"done"} or not ends & set(acts[~acts["round"].isin(skipped)]["outcome"])
    taken = rounds[["arrived", "late", "dropped"]].sum(axis=1)
    computed = silent[silent["outcome"].isin(ends) & (silent["activity"] == "compute")].groupby("round").size()
    both = taken.add(computed if skip != "sent" else 0, fill_value=0)
    assert (both <= rounds["selected"]).all()
