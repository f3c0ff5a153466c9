"""KPFL in whole runs: its generator, what it costs, what goes on over frames, and what is refused."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from contract import KPFL, make_config, new_learner, two_frames
from torch import nn

from edgesim import simulation
from edgesim.algorithms.kpfl import _hits
from edgesim.config_file import parse
from edgesim.errors import EdgesimError
from edgesim.learning.generator import NOISE, ImageGenerator
from edgesim.learning.jobs import Arrived
from edgesim.runs.records import read_table
from edgesim.runs.saved import pack, unpack

FEDAVG = ("fedavg", "own")


def config_of(kpfl=(), pair=FEDAVG, **given):
    return make_config(pair, options={"kpfl": KPFL | dict(kpfl)}, **given)


def validated():
    """With images of the server's own, by which it judges."""
    config = config_of()
    data = config.data.model_copy(update={"validation_per_class": 2})
    algorithm = config.algorithm.model_copy(update={"kpfl": config.algorithm.kpfl | {"validation_accept": True}})
    return config.model_copy(update={"data": data, "algorithm": algorithm})


def merged_rounds(learner, *rounds):
    """The states of the server after rounds in which some devices are merged."""
    states = []
    for number, ids in enumerate(rounds, 1):
        promises = learner.open_round(number, 1).start(np.array(ids))
        for promise in promises:
            promise.due = True
        learner.merge([Arrived(promise) for promise in promises], np.array(ids))
        states.append(learner.states[0])
    return states


@pytest.mark.parametrize(
    ("shape", "parameters"),
    [((3, 32, 32), 129_155), ((1, 32, 32), 128_865), ((1, 28, 28), 101_985), ((1, 8, 8), 21_345)],
)
def test_generators_have_the_papers_size_and_make_images_of_any_shape(shape, parameters):
    maker = ImageGenerator(shape, 10, torch.zeros(1))
    assert maker.parameters == parameters
    noise, labels = torch.randn(6, NOISE), torch.arange(6)
    images = maker.images(maker.new(np.random.default_rng(0)), noise, labels)
    assert images.shape == (6, *shape)
    assert 0 < float(images.min()) < float(images.max()) < 1


def test_an_odd_size_has_a_generator_too():
    maker = ImageGenerator((2, 7, 13), 3, torch.zeros(1))
    assert maker.images(maker.new(np.random.default_rng(0)), torch.randn(2, NOISE), torch.tensor([0, 2])).shape == (
        *(2, 2, 7, 13),
    )


def test_a_generator_goes_on_with_its_moments_as_if_it_had_never_been_put_away():
    maker = ImageGenerator((1, 8, 8), 10, torch.zeros(1))
    random = torch.Generator().manual_seed(0)
    batches = [(torch.randn(8, NOISE, generator=random), torch.arange(8)) for _ in range(4)]

    def bright(images, noise, labels):
        return -images.mean()

    new = maker.new(np.random.default_rng(0))
    whole = maker.trained(new, batches, bright)
    parts = maker.trained(maker.trained(new, batches[:2], bright), batches[2:], bright)
    assert torch.equal(whole.weights, parts.weights)
    assert torch.equal(whole.second, parts.second)
    assert whole.steps == parts.steps == 4
    before, after = (maker.images(one, *batches[0]).mean() for one in (new, whole))
    assert after > before


def test_the_server_trains_its_generator_and_nothing_of_the_pool():
    states = merged_rounds(new_learner(config_of()), (0, 1, 2), (2, 3))
    generators = [state.generator for state in states]
    assert [generator.steps for generator in generators] == [2, 4]
    assert not torch.equal(generators[0].weights, generators[1].weights)
    assert torch.equal(states[0].pool[0].model, states[1].pool[0].model)
    assert [list(state.pool) for state in states] == [[0, 1, 2], [0, 1, 2, 3]]


def test_the_gradient_of_the_pools_answers_reaches_the_generator():
    """Of the cross-entropy alone: in the published program it did not."""
    plain, taught = (
        merged_rounds(new_learner(config_of({"ce": ce, "contrast": 0.0, "diversity": 0.0})), (0, 1))[0].generator
        for ce in (0.0, 5.0)
    )
    assert float(plain.first.abs().max()) < 1e-2 < float(taught.first.abs().max())


def test_the_improved_model_is_another_than_the_first_and_is_what_devices_get():
    first, improved = (
        merged_rounds(new_learner(config_of({"keep": keep})), (0, 1))[0] for keep in ("first", "improved")
    )
    assert first.generator is None
    assert float((first.weights - improved.weights).abs().max()) > 1e-5
    assert torch.equal(first.pool[0].model, improved.pool[0].model)


def test_the_distilled_model_is_taken_only_where_the_servers_own_images_say_so(monkeypatch):
    """Asked about the distilled model, then about the average; a tie is for the average."""
    taken = []
    for improved, average in ((8, 7), (7, 7)):
        hits = iter([improved, average])
        monkeypatch.setattr("edgesim.algorithms.kpfl._hits", lambda bench, weights, hits=hits: next(hits))
        learner = new_learner(validated())
        fresh = SimpleNamespace(ids=np.arange(2), staleness=np.zeros(2))
        state, ids = merged_rounds(learner, (0, 1))[0], fresh
        weights = learner.accounts.algorithm.counted(state, ids, None)
        mean = sum(share * entry.model for share, entry in zip(weights.tolist(), state.pool.values(), strict=True))
        taken.append(float((state.weights - mean).abs().max()) > 1e-5)
    assert taken == [True, False]


def test_hits_are_counted_on_images_that_no_device_has():
    learner = new_learner(validated())
    bench = learner._bench()
    assert len(bench.validation) == 20
    held = np.concatenate([learner.accounts.held.samples_of(device) for device in range(8)])
    assert not np.isin(bench.validation, held).any()
    learner.model.load(learner.global_weights)
    images, labels = learner.data.train(learner.data.index(bench.validation))
    learner.model.module.eval()
    expected = int((learner.model.module(images).argmax(1) == labels).sum())
    assert _hits(bench, learner.global_weights) == expected


def test_its_state_can_be_saved():
    (state,) = merged_rounds(new_learner(config_of(pair=("fpl", "own"))), (0, 1))
    again = unpack(type(state), *pack(state))
    assert torch.equal(again.pool[1].up["prototypes"].nan_to_num(), state.pool[1].up["prototypes"].nan_to_num())
    assert torch.equal(again.generator.weights, state.generator.weights)


def test_pool_and_generator_go_on_over_frames_while_cfeds_tasks_begin_anew():
    learner = new_learner(config_of(pair=("cfed", "own")), two_frames)
    merged_rounds(learner, (0, 1), (1, 2))
    learner.end_frame()
    learner.open_round(3, 2)
    state = learner.states[0]
    assert list(state.pool) == [0, 1, 2]
    assert state.generator.steps == 4
    assert state.inner.since == 3


def test_server_seconds_are_charged_where_they_are_wanted_and_wall_time_is_told(tmp_path):
    folders = []
    for number, seconds in enumerate((0.0, 0.25)):
        config = config_of({"server_s_per_step": seconds})
        assert simulation.run(config, tmp_path / str(number)).status == "finished"
        folders.append(tmp_path / str(number))
    plain, charged = (read_table(folder, "rounds") for folder in folders)
    lengths = [(table["t_end_s"] - table["t_start_s"]).iloc[0] for table in (plain, charged)]
    # Two steps on the generator and one on the model.
    assert lengths[1] - lengths[0] == pytest.approx(0.75)
    timing = read_table(folders[0], "timing")
    assert (timing[timing["part"] == "server"]["wall_s"] > 0).sum() == len(plain)
    assert (timing["wall_s"] >= 0).all()
    updates = read_table(folders[0], "updates").groupby("round")["weight"].sum()
    assert (updates <= 1 + 1e-6).all()
    assert updates.iloc[-1] < 0.999


@pytest.mark.parametrize("setting", ["late", "buffered"])
def test_late_and_buffered_updates_enter_the_pool(setting, tmp_path):
    result = simulation.run(config_of(setting=setting), tmp_path / "run")
    assert result.status == "finished", result.reason
    assert read_table(tmp_path / "run", "updates")["staleness"].max() > 0


def test_a_first_round_without_an_arrival_leaves_the_pool_empty():
    learner = new_learner(config_of())
    before = learner.global_weights
    learner.open_round(1, 1).start(np.arange(2))
    assert len(learner.merge([], np.arange(2)).weight) == 0
    assert learner.states[0].pool == {}
    assert torch.equal(learner.global_weights, before)


def test_exponents_that_reach_their_bound_are_told_before_the_first_round(tmp_path):
    notes = []
    config = config_of({"age_idle": -5.0})
    simulation.run(config, tmp_path / "run", on_note=lambda about, note: notes.append(note))
    told = "algorithm.kpfl: exponents are bounded at 20, which is reached by age_idle after 4 rounds"
    assert told in notes
    assert told in json.loads((tmp_path / "run" / "run.json").read_text())["notes"].values()


def test_the_pool_and_a_pass_of_its_models_must_have_room(tmp_path):
    """The mlp's 2,410 numbers are 9,640 bytes, those of 115 devices 1.057 MiB."""
    config = config_of(memory_budget_mib=1)
    data = config.data.model_copy(update={"samples_per_device": 11})
    devices = config.devices.model_copy(update={"count": 115})
    many = config.model_copy(update={"devices": devices, "rounds": 1, "data": data})
    said = r"^algorithm: .* MiB of each device \(1 x the model\), 1.\d+ MiB of all 115 and .* MiB for a pass on made"
    with pytest.raises(EdgesimError, match=said):
        simulation.run(many, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def without_linear(image_shape, class_count):
    return nn.Sequential(nn.Conv2d(image_shape[0], class_count, image_shape[1]), nn.Flatten())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "mifa"}, "algorithm.kpfl: the server of 'mifa' does more with models than average them"),
        ({"name": "fedprox", "server": "safa"}, "algorithm.kpfl: the server of 'safa' does more with models"),
        ({"name": "fedmd"}, "algorithm.kpfl: algorithm 'fedmd' averages no models unless algorithm.average_weights"),
        ({"name": "cfed", "server_passes": 1}, "algorithm.server_passes: with algorithm.kpfl the server distils"),
        (
            {"name": "fedproto", "average_weights": True, "stale_prototypes": True},
            "algorithm.stale_prototypes: has no effect with algorithm.kpfl",
        ),
        ({"weights": "equal"}, "algorithm.weights: has no effect with algorithm.kpfl"),
        ({"kpfl": {"validation_accept": True}}, "algorithm.kpfl.validation_accept: the server has no images to judge"),
        ({"kpfl": {"ce": -1.0}}, "KPFL: algorithm.kpfl.ce: input should be greater than or equal to 0"),
        ({"kpfl": {"kep": "first"}}, "KPFL: unknown key 'algorithm.kpfl.kep', did you mean 'keep'"),
        ({"kpfl": 3}, "algorithm.kpfl: input should be a valid dict"),
    ],
    ids=str,
)
def test_a_mistake_is_one_line(changes, said):
    values = {"name": "fedavg", "kpfl": {}} | changes
    with pytest.raises(EdgesimError) as refusal:
        simulation.complete(parse({"data": {"public": "carved"}, "algorithm": values}, "run.toml"))
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("section", "values", "said"),
    [
        ("round", {"protocol": "asynchronous", "admission": "count", "count": 4}, "algorithm 'kpfl' is for round.prot"),
        ("topology", {"file": "three-cells", "aggregation": "hierarchical", "cloud_every": 2}, "algorithm 'kpfl' is"),
        ("privacy", {"mechanism": "central", "noise": 1.0}, "privacy.mechanism: 'central' adds .* KPFL's is of a pool"),
        ("staleness", {"weight": "polynomial", "a": 1.0}, "staleness.weight: has no effect with algorithm.kpfl"),
    ],
    ids=str,
)
def test_ways_to_merge_that_have_no_pool_are_refused(section, values, said):
    late = {"round": {"late": "keep"}} if section == "staleness" else {}
    with pytest.raises(EdgesimError, match=said):
        simulation.complete(parse({section: values, "algorithm": {"kpfl": {}}} | late, "run.toml"))


@pytest.mark.parametrize(
    ("section", "values", "said"),
    [
        ("learning", {"model": "test_kpfl_runs.without_linear"}, "^algorithm.kpfl.keep: 'improved' needs features"),
        (
            "data",
            {"dataset": "breast-cancer", "partition": "iid"},
            "^algorithm.kpfl.keep = 'improved': the server makes",
        ),
    ],
    ids=["model", "table"],
)
def test_distillation_is_refused_where_there_are_no_images_or_features(section, values, said):
    def config(keep):
        own = {"learning": {"pretrain": False}, "algorithm": {"kpfl": {"keep": keep}}}
        own[section] = own.get(section, {}) | values
        return simulation.complete(parse(own, "run.toml"))

    with pytest.raises(EdgesimError, match=said):
        new_learner(config("improved"))
    new_learner(config("first")).close()
