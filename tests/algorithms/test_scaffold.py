"""SCAFFOLD against numbers worked out by hand or by programs that share nothing with this one."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from quadratics import TWO, Play, Quadratic, with_and_without_buffers

from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.folder.records import read_table
from edgesim.learning.algorithms.algorithm import Algorithm
from edgesim.learning.algorithms.records import Devices, Sizes
from edgesim.learning.algorithms.scaffold import Scaffold, effective_steps
from edgesim.learning.federation import make_federation
from edgesim.learning.learner import TorchLearner
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams

THREE_SIZES = (Quadratic(1.0, samples=40), Quadratic(-2.0, 3.0, samples=10), Quadratic(4.0, 0.5, samples=5))


def controls(play):
    """c, and c_i of all devices."""
    own = [float(play.state.own.get(device, 0.0)) for device in range(len(play.devices))]
    return [float(play.state.shared["control"]), *own]


def test_two_devices_that_take_part_in_every_round():
    """w, and then c, c_0, c_1; lr .1, K 2, so that K lr = .2.

    Round 1, controls zero. Device 0: 0, .1, .1 + .1 (1 - .1) = .19. Device 1: -.1 3 2 = -.6, -.6 - .1 3 1.4 = -1.02.
    Mean -.415. c_0 = -.19/.2 = -.95, c_1 = 1.02/.2 = 5.1, c = 4.15/2 = 2.075.
    Round 2, from -.415. Device 0, correction 2.075 + .95 = 3.025: -.415 - .1 (-1.415 + 3.025) = -.576,
    -.576 - .1 (-1.576 + 3.025) = -.7209. Device 1, correction -3.025: -.415 - .1 (4.755 - 3.025) = -.588,
    -.588 - .1 (4.236 - 3.025) = -.7091. Mean -.715. c_0 = .3059/.2 - 3.025 = -1.4955, c_1 = .2941/.2 + 3.025 = 4.4955.
    """
    play = Play(Scaffold, TWO)
    assert play.round(0, 1) == pytest.approx(-0.415, abs=1e-12)
    assert controls(play) == pytest.approx([2.075, -0.95, 5.1], abs=1e-12)
    assert play.round(0, 1) == pytest.approx(-0.715, abs=1e-12)
    assert controls(play) == pytest.approx([1.5, -1.4955, 4.4955], abs=1e-12)
    assert play.round(0, 1) == pytest.approx(-0.909705, abs=1e-12)


def test_a_device_that_is_away_keeps_its_control_untouched():
    """Round 2 is device 1's alone: as above to -.7091 and 4.4955; c = 2.075 + (4.4955 - 5.1)/2 = 1.77275."""
    play = Play(Scaffold, TWO)
    for ids, model, expected in (
        ((0, 1), -0.415, (2.075, -0.95, 5.1)),
        ((1,), -0.7091, (1.77275, -0.95, 4.4955)),
        ((0, 1), -0.9031425, (0.9702125, -1.7597825, 3.7002075)),
    ):
        assert play.round(*ids) == pytest.approx(model, abs=1e-12)
        assert controls(play) == pytest.approx(expected, abs=1e-12)


def test_the_control_of_option_i_is_the_gradient_at_the_start():
    """Round 1 from 0: c_0 = 0 - 1, c_1 = 3 2. Round 2 is device 1's alone, from -.415: 3 1.585 = 4.755.

    Its steps with correction 2.5 - 6: -.415 - .1 (4.755 - 3.5) = -.5405, -.5405 - .1 (4.3785 - 3.5) = -.62835.
    Round 3: c_0 = -.62835 - 1, c_1 = 3 1.37165.
    """
    play = Play(Scaffold, TWO, {"option": "I"})
    for ids, model, expected in (
        ((0, 1), -0.415, (2.5, -1, 6)),
        ((1,), -0.62835, (1.8775, -1, 4.755)),
        ((0, 1), -0.8522025, (1.2433, -1.62835, 4.11495)),
    ):
        assert play.round(*ids) == pytest.approx(model, abs=1e-12)
        assert controls(play) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("ids", [((0, 1, 2),) * 4, ((0, 1), (1, 2), (0, 2)), ((0,), (1,), (2,), (0,))], ids=str)
def test_with_one_step_both_options_are_the_same(ids):
    one, two = (Play(Scaffold, THREE_SIZES, {"option": option}, steps=1) for option in ("I", "II"))
    for arriving in ids:
        assert one.round(*arriving) == pytest.approx(two.round(*arriving), abs=1e-12)
        assert controls(one) == pytest.approx(controls(two), abs=1e-12)


def test_divided_by_k_instead_controls_grow_without_bound_under_momentum(monkeypatch):
    """Largest |c_i| of the first 10, 20, 40, 80 rounds, 20 steps at .02: why a config that asks for it is refused."""
    found = {}
    for count in ("effective", "literal"):
        if count == "literal":
            monkeypatch.setattr("edgesim.learning.algorithms.scaffold.effective_steps", lambda steps, momentum: steps)
        play, largest = Play(Scaffold, TWO, lr=0.02, steps=20, momentum=0.9), 0.0
        for number in range(1, 81):
            play.round(0, 1)
            largest = max(largest, *map(abs, controls(play)[1:]))
            found[count, number] = largest
    assert [round(found["literal", number]) for number in (10, 20, 40)] == [21, 98, 2118]
    assert found["literal", 80] == pytest.approx(953_000, rel=1e-3)
    assert found["effective", 80] < 25


def test_a_late_update_takes_its_weight_and_its_control_counts_in_full():
    """Both start at 0; device 0 arrives in round 1, its next update and device 1's first in round 2.

    Round 1: .19, c = -.95/2 = -.475. Round 2, device 0 from .19 with correction -.475 + .95 = .475:
    .19 - .1 (-.81 + .475) = .2235, .2235 - .1 (-.7765 + .475) = .25365, c_0 = -.06365/.2 - .475 = -.79325.
    Device 1 ends at -1.02, c_1 = 5.1. Mean of the updates: (.06365 - 1.02)/2 = -.478175.
    """
    play = Play(Scaffold, TWO)
    early, late = play.begin(0, 1)
    assert play.merge([early]) == pytest.approx(0.19, abs=1e-12)
    assert controls(play) == pytest.approx([-0.475, -0.95, 0], abs=1e-12)
    assert play.merge([*play.begin(0), late]) == pytest.approx(-0.288175, abs=1e-12)
    assert controls(play) == pytest.approx([2.153375, -0.79325, 5.1], abs=1e-12)


def test_the_age_of_an_update_weighs_on_the_model_and_not_on_the_control():
    """As above, the late update counting half as much: 1/3 of its -1.02 and 2/3 of the other's .06365."""
    play = Play(Scaffold, TWO)
    early, late = play.begin(0, 1)
    play.merge([early])
    model = play.merge([*play.begin(0), late], age_weight=0.5)
    assert model == pytest.approx(0.19 + 0.06365 * 2 / 3 - 1.02 / 3, abs=1e-12)
    assert controls(play) == pytest.approx([2.153375, -0.79325, 5.1], abs=1e-12)


def test_of_two_updates_of_a_device_the_newer_one_leaves_its_control():
    """Device 0 begins at 0, and anew at the model of device 1, -1.02, before its first update has come.

    c is 2.55 then; from -1.02 by the correction 2.55: -1.02 - .1 (-2.02 + 2.55) = -1.073, -1.073 - .1 (-2.073 + 2.55) =
    -1.1207, so c_0 = .1007/.2 - 2.55 = -2.0465. The late update's would be -.95.
    """
    play = Play(Scaffold, TWO)
    late, other = play.begin(0, 1)
    assert play.merge([other]) == pytest.approx(-1.02, abs=1e-12)
    play.merge([late, *play.begin(0)])
    assert controls(play) == pytest.approx([(5.1 - 2.0465) / 2, -2.0465, 5.1], abs=1e-12)


def test_the_pass_of_option_i_costs_one_epoch_in_as_many_as_there_are():
    """1 + 1 / E with E = 5, 2 and 1/2 epochs of 4, 6 and 8 samples."""
    devices = Devices(np.arange(3), np.zeros((3, 0), dtype=np.int64), np.array([4, 6, 8]))
    for option, expected in (("I", [1.2, 1.5, 3.0]), ("II", [1.0, 1.0, 1.0])):
        algorithm = Scaffold.Local(Scaffold.Options(option=option), Sizes(32.0, 1, 3), Streams(0))
        assert algorithm.compute_factor(devices, np.array([20, 12, 4]), 1, None).tolist() == expected


@pytest.mark.parametrize("ids", [(0, 1, 2), (0, 2), (1,)])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_the_first_round_is_that_of_fedavg_with_equal_weights(ids, momentum):
    """Oracle T9 of dpfl-kpfl.md."""
    scaffold = Play(Scaffold, THREE_SIZES, steps=3, momentum=momentum)
    fedavg = Play(Algorithm, THREE_SIZES, {"weights": "equal"}, steps=3, momentum=momentum)
    assert scaffold.round(*ids) == pytest.approx(fedavg.round(*ids), abs=1e-12)
    assert scaffold.alpha.tolist() == pytest.approx([1 / len(ids)] * len(ids))


def test_with_one_step_and_all_devices_every_round_is_that_of_fedavg_with_equal_weights():
    """The corrections c - c_i of all devices add up to nothing."""
    scaffold = Play(Scaffold, THREE_SIZES, steps=1)
    fedavg = Play(Algorithm, THREE_SIZES, {"weights": "equal"}, steps=1)
    for _ in range(5):
        assert scaffold.round(0, 1, 2) == pytest.approx(fedavg.round(0, 1, 2), abs=1e-12)


@settings(max_examples=50)
@given(
    st.sampled_from(["I", "II"]),
    st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), min_size=1, max_size=6),
    st.lists(st.integers(1, 4), min_size=1, max_size=6),
)
def test_c_is_the_mean_of_all_c_i_whoever_comes_when(option, begun, lengths):
    """Oracle T9 of dpfl-kpfl.md; as in a buffer: updates of several models, some of one device, by their beginning."""
    play, waiting = Play(Scaffold, THREE_SIZES, {"option": option}), []
    for ids, length in zip(begun, itertools.cycle(lengths), strict=False):
        waiting += [job for device in ids for job in play.begin(device)]
        ready, waiting = waiting[:length], waiting[length:]
        play.merge(ready, age_weight=0.5)
        control, *own = controls(play)
        assert control == pytest.approx(np.mean(own), abs=1e-9)


@pytest.mark.parametrize("option", ["I", "II"])
@pytest.mark.parametrize(("momentum", "steps", "lr"), [(0.0, 2, 0.1), (0.9, 20, 0.02)])
def test_two_unlike_devices_meet_at_the_best_model_of_their_mean_loss(momentum, steps, lr, option):
    """-1.25. FedAvg stays beside it: its devices drift apart in a round, and do not see that the others do."""
    settings = {"lr": lr, "steps": steps, "momentum": momentum}
    scaffold, fedavg = Play(Scaffold, TWO, {"option": option}, **settings), Play(Algorithm, TWO, **settings)
    for _ in range(150):
        ends = [play.round(0, 1) for play in (scaffold, fedavg)]
    assert ends[0] == pytest.approx(-1.25, abs=1e-6)
    assert abs(ends[1] + 1.25) > 0.05
    assert controls(scaffold) == pytest.approx([0, -2.25, 2.25], abs=1e-5)


@pytest.mark.parametrize(("steps", "expected"), [(1, 1.0), (2, 2.9), (20, 120.9418989132)])
def test_effective_steps_are_the_learning_rates_that_torchs_sgd_moves_by(steps, expected):
    weight = torch.zeros(1, dtype=torch.float64)
    optimiser = torch.optim.SGD([weight], lr=1.0, momentum=0.9)
    for _ in range(steps):
        weight.grad = -torch.ones(1, dtype=torch.float64)
        optimiser.step()
    assert effective_steps(steps, 0.9) == pytest.approx(expected, abs=1e-9)
    assert effective_steps(steps, 0.9) == pytest.approx(float(weight), rel=1e-12)
    assert effective_steps(steps, 0.0) == steps


def test_the_server_can_work_out_a_control_from_the_update():
    """Its change is -c - update / (K_eff lr), with the c that the device was sent."""
    play = Play(Scaffold, TWO, momentum=0.9)
    play.round(0, 1)
    for _ in range(3):
        model, (control, *own) = float(play.state.weights), controls(play)
        play.round(1)
        change = controls(play)[2] - own[1]
        assert change == pytest.approx(-control - (float(play.state.weights) - model) / (2.9 * 0.1), abs=1e-12)


def test_buffers_are_the_plain_mean_of_what_devices_ended_with():
    """Whatever an update weighs, and wherever it started."""
    play, plain = with_and_without_buffers(Scaffold)
    assert play.state.weights[1:].tolist() == [5.5, 3.0]
    assert float(play.state.weights[0]) == float(plain.state.weights[0])
    assert controls(play) == controls(plain)


def config(protocol="synchronous", **algorithm):
    return {
        "rounds": 4,
        "devices": {"count": 6},
        "learning": {"pretrain": False, "steps": 3},
        "round": {"protocol": protocol, "admission": "count", "count": 3}
        | ({"protocol_options": {"buffer": 2}} if protocol == "buffered" else {}),
        "algorithm": {"name": "scaffold"} | algorithm,
        "data": {"partition": "fedteddi"},
    }


@pytest.mark.parametrize("protocol", ["synchronous", "buffered"])
@pytest.mark.parametrize(("options", "factor"), [({}, 2), ({"derive_control": True}, 1)])
def test_a_run_on_digits_sends_what_the_table_says(tmp_path, protocol, options, factor):
    """A model of 2,410 parameters has 77,120 bits; each way the controls come beside it."""
    for folder in ("once", "again"):
        simulation.run(parse(config(protocol, **options), "test"), tmp_path / folder)
    rounds = read_table(tmp_path / "once", "rounds")
    assert len(rounds) == 4
    assert rounds["arrived"].tolist() == [3 if protocol == "synchronous" else 2] * 4
    assert (rounds["bits_up"] == factor * 77120 * rounds["arrived"]).all()
    # In rounds all six candidates receive what is sent; without, those whose work ended: in the end two are broken off.
    received = [6] * 4 if protocol == "synchronous" else [2, 2, 2, 4]
    assert (rounds["bits_down"] == np.multiply(2 * 77120, received)).all()
    for name in ("rounds.parquet", "updates.parquet", "metrics.parquet", "model.safetensors"):
        assert (tmp_path / "once" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_derived_controls_are_not_sent_and_change_no_model(tmp_path, monkeypatch):
    merge, ups = TorchLearner.merge, []

    def spied(self, arrived, *arguments):
        merged = merge(self, arrived, *arguments)
        ups.append({tuple(one.promise.result.up) for one in arrived})
        return merged

    monkeypatch.setattr(TorchLearner, "merge", spied)
    for folder, derive in (("sent", False), ("derived", True)):
        simulation.run(parse(config(derive_control=derive), "test"), tmp_path / folder)
    sent, derived = (tmp_path / folder / "model.safetensors" for folder in ("sent", "derived"))
    assert sent.read_bytes() == derived.read_bytes()
    assert ups == [{("own",)}] * 4 + [{()}] * 4


def test_a_timed_download_of_twice_the_bits_takes_twice_as_long(tmp_path):
    for name in ("fedavg", "scaffold"):
        values = config() | {"algorithm": {"name": name}}
        values["round"] = values["round"] | {"download_s": 0.1}
        simulation.run(parse(values, "test"), tmp_path / name)
        downloads = read_table(tmp_path / name, "activities").query("activity == 'download'")
        lasted_s = downloads["t_end_s"] - downloads["t_start_s"]
        assert lasted_s.tolist() == pytest.approx([0.1 if name == "fedavg" else 0.2] * len(downloads))


@pytest.mark.parametrize(
    ("options", "learning", "said"),
    [
        (
            {"step_count": "literal"},
            {"momentum": 0.9},
            r"^algorithm\.name = 'scaffold' with algorithm\.step_count = 'literal' w",
        ),
        (
            {},
            {"persist_momentum": True},
            r"^algorithm\.name = 'scaffold' with algorithm\.option = 'II' needs lear",
        ),
        (
            {},
            {"optimiser": "adam"},
            r"^algorithm\.name = 'scaffold' with algorithm\.option = 'II' needs lear",
        ),
        (
            {"option": "I", "derive_control": True},
            {},
            "algorithm 'scaffold': algorithm: derive_control = true needs option = ",
        ),
        ({"option": "III"}, {}, "option: input should be 'I' or 'II'"),
    ],
)
def test_options_that_do_not_go_together_are_refused(tmp_path, options, learning, said):
    with pytest.raises(EdgesimError, match=said) as refusal:
        simulation.run(parse(config(**options) | {"learning": learning}, "test"), tmp_path / "run")
    assert "\n" not in str(refusal.value)
    assert not (tmp_path / "run").exists()


def test_without_momentum_or_with_option_i_the_step_count_changes_nothing(tmp_path):
    for number, (options, momentum) in enumerate(
        [({}, 0.0), ({"step_count": "literal"}, 0.0), ({"option": "I"}, 0.9)]
        + [({"option": "I", "step_count": "literal"}, 0.9)]
    ):
        given = config(**options)
        given["learning"] |= {"momentum": momentum}
        simulation.run(parse(given, "test"), tmp_path / str(number))
    models = [(tmp_path / str(number) / "model.safetensors").read_bytes() for number in range(4)]
    assert models[0] == models[1]
    assert models[2] == models[3]
    assert models[0] != models[2]


def test_in_a_run_the_control_of_option_i_is_of_the_whole_data_set():
    """Not of the few samples that one step of four draws: by autograd, with the model that the run begins with."""
    given = config(option="I") | {"data": {"partition": "quantity", "samples_per_device": 30}}
    given["learning"] |= {"steps": 1, "batch_size": 4, "weight_decay": 0.2, "back_end": "loop"}
    complete = simulation.complete(parse(given, "test"))
    federation = make_federation(complete, Streams(1))
    learner = TorchLearner(complete, federation, Streams(1))
    start = learner.global_weights.clone()
    results = learner.results(learner.open_round(1, 1).start(np.array([2, 5])))
    for device, result in zip((2, 5), results, strict=True):
        own = torch.from_numpy(federation.frames[1].clients[device])
        assert len(own) > 4
        learner.model.load(start)
        learner.model.gradient.zero_()
        images, labels = learner.data.train(own)
        torch.nn.functional.cross_entropy(learner.model.module(images), labels).backward()
        torch.testing.assert_close(result.up["own"], learner.model.gradient + 0.2 * start, rtol=1e-5, atol=1e-7)
