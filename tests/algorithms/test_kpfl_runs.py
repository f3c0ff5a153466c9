"""KPFL in whole runs: its generator, what it costs, what goes on over frames, and what is refused."""

import json
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from contract import KPFL, make_config, new_learner, two_frames
from torch import nn

from edgesim import simulation
from edgesim.algorithms.kpfl import Kpfl, _hits
from edgesim.config_file import parse
from edgesim.errors import EdgesimError
from edgesim.learning.federation import make_federation
from edgesim.learning.generator import NOISE, ImageGenerator, Layers
from edgesim.learning.jobs import Arrived
from edgesim.learning.model_pool import pass_bytes
from edgesim.learning.tensors import DeviceData
from edgesim.runs.records import read_table
from edgesim.runs.saved import pack, unpack
from edgesim.streams import Streams

FEDAVG = ("fedavg", "own")


def config_of(kpfl=(), pair=FEDAVG, **given):
    return make_config(pair, options={"kpfl": KPFL | dict(kpfl)}, **given)


def validated():
    """With images of the server's own, by which it judges."""
    config = config_of()
    data = config.data.model_copy(update={"validation_per_class": 2})
    algorithm = config.algorithm.model_copy(update={"kpfl": config.algorithm.kpfl | {"validation_accept": True}})
    return config.model_copy(update={"data": data, "algorithm": algorithm})


def merged_rounds(learner, *rounds, first=1):
    """The states of the server after rounds in which some devices are merged."""
    states = []
    for number, ids in enumerate(rounds, first):
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


@pytest.mark.parametrize(("levels", "scale", "top"), [(16, 16.0, 1.0), (255, 255.0, 1.0), (255, 127.5, 2.0)])
def test_a_made_image_is_as_bright_at_most_as_the_brightest_of_the_data_set(levels, scale, top):
    """Pixels of digits are from 0 to 16, others of a byte to 255; runs divide them by a scale."""
    dataset = replace(make_federation(config_of(), Streams(0)).dataset, fixed_scale=scale)
    if levels == 255:
        dataset = replace(dataset, brightest_uint8=255.0)
    data = DeviceData(dataset, torch.device("cpu"))
    made = data.of_brightness(torch.tensor([0.0, 0.5, 1.0]))
    assert made.flatten().tolist() == [0.0, top / 2, top]
    if levels == 16:
        images, _ = data.train(torch.arange(500))
        assert (float(images.min()), float(images.max())) == (0.0, 1.0)


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


OPTIONS = {
    **{"generator_steps": 3, "distil_steps": 2, "batch": 12, "T": 0.7, "age_active": 0.3, "age_idle": -0.4},
    **{"ce": 1.5, "contrast": 0.4, "diversity": 2.5},
}
"""All unlike each other and the defaults."""


def by_hand(learner, options, number, state, theta, adam, layers):
    """The model after a round's server training in plain PyTorch, on `Layers` and their Adam, which go on; and the
    largest norms of the generator's and of the model's gradients.

    Pixels of digits are from 0 to 1 as the mlp sees them.
    """
    pool, counts = state.pool, np.array([entry.class_counts for entry in state.pool.values()])
    raw = [np.exp(0.3 * entry.active if entry.active else -0.4 * entry.idle) for entry in pool.values()]
    by_class = np.array(raw)[:, None] / sum(raw) + counts / np.maximum(counts.sum(0), 1)
    by_class = torch.tensor(by_class / by_class.sum(0))
    random = learner.streams.generator("kpfl", round=number)

    def drawn():
        labels = random.choice(10, 12, p=counts.sum(0) / counts.sum())
        return torch.tensor(random.standard_normal((12, 100))), torch.tensor(labels)

    def net(weights, images):
        """The mlp: 64, 32 and 10 units."""
        into, bias, out, out_bias = weights.split([2048, 32, 320, 10])
        features = torch.relu(images.flatten(1) @ into.view(32, 64).T + bias)
        return features @ out.view(10, 32).T + out_bias, features

    def logs(logits, labels):
        return logits.log_softmax(1)[torch.arange(12), labels]

    norms = [0.0, 0.0]
    layers.train()
    for _ in range(3):
        noise, labels = drawn()
        adam.zero_grad()
        made = layers(noise, labels)
        teachers = [net(entry.model, made)[0] for entry in pool.values()]
        taught = -sum((by_class[row, labels] * logs(own, labels)).mean() for row, own in enumerate(teachers))
        features = net(theta, made)[1]
        there = sorted(set(labels.tolist()))
        centres = torch.stack([features.detach()[labels == label].mean(0) for label in there])
        alike = torch.cosine_similarity(features[:, None], centres[None], dim=2) / 0.7
        contrast = -logs(alike, torch.tensor([there.index(label) for label in labels.tolist()])).mean()
        flat = made.flatten(1)
        apart = (flat[:, None] - flat).abs().mean(2) * (noise[:, None] - noise).square().mean(2)
        loss = options["ce"] * taught + options["contrast"] * contrast + options["diversity"] * (-apart.mean()).exp()
        loss.backward()
        norms[0] = max(norms[0], float(torch.nn.utils.clip_grad_norm_(layers.parameters(), 10.0)))
        adam.step()
    layers.eval()
    asked = [drawn() for _ in range(2)]
    own = theta.clone().requires_grad_()
    sgd = torch.optim.SGD([own], 0.01, weight_decay=1e-5)
    for noise, labels in asked:
        with torch.no_grad():
            images = layers(noise, labels)
            teachers = torch.stack([net(entry.model, images)[0] for entry in pool.values()])
            target = (by_class[:, labels][..., None] * teachers).sum(0).softmax(1)
        sgd.zero_grad()
        (target * (target.log() - net(own, images)[0].log_softmax(1))).sum(1).mean().backward()
        norms[1] = max(norms[1], float(torch.nn.utils.clip_grad_norm_([own], 10.0)))
        sgd.step()
    return own.detach(), norms


@pytest.mark.parametrize(("strength", "clipped"), [(1.0, False), (4000.0, True)])
def test_what_the_server_trains_is_what_plain_pytorch_makes_of_the_same_draws(strength, clipped):
    """Three rounds in float64: Adam at 3e-4 with decay 1e-2 on the generator, SGD at .01 with decay 1e-5 on the model.

    Gradients are at most 10 long, as those of the generator are where its losses count much.
    """
    options = OPTIONS | {name: strength * OPTIONS[name] for name in ("ce", "contrast", "diversity")}
    learner = new_learner(config_of(options, precision="float64"))
    first = new_learner(config_of(options | {"keep": "first"}, precision="float64"))
    maker = ImageGenerator((1, 8, 8), 10, torch.zeros(1, dtype=torch.float64))
    start = maker.new(learner.streams.generator("kpfl-generator"))
    layers = Layers((1, 8, 8), 10).double()
    load(layers, start.weights[: maker.parameters])
    adam = torch.optim.Adam(layers.parameters(), 3e-4, weight_decay=1e-2)
    for number, ids in enumerate(((0, 1, 2), (2, 3), (0, 3)), 1):
        began = learner.global_weights
        (state,) = merged_rounds(learner, ids, first=number)
        # The same devices from the same model, whose pool is averaged and left at that.
        first.global_weights = began
        first.states = [replace(each, weights=began) for each in first.states]
        (alone,) = merged_rounds(first, ids, first=number)
        assert torch.equal(alone.pool[ids[0]].model, state.pool[ids[0]].model)
        expected, norms = by_hand(learner, options, number, state, alone.weights, adam, layers)
        torch.testing.assert_close(state.weights, expected, rtol=0, atol=1e-9)
        made = torch.cat([channels_last(parameter).flatten() for parameter in layers.parameters()]).detach()
        torch.testing.assert_close(state.generator.weights[: maker.parameters], made, rtol=0, atol=1e-9)
        moments = [torch.cat([norm.running_mean, norm.running_var]) for norm in of_kind(layers, nn.BatchNorm2d)]
        torch.testing.assert_close(state.generator.weights[maker.parameters :], torch.cat(moments), rtol=0, atol=1e-9)
        assert (norms[0] > 10) == clipped
        assert float((expected - alone.weights).abs().max()) > 1e-5


def of_kind(module, kind):
    return [layer for layer in module.modules() if isinstance(layer, kind)]


def channels_last(parameter):
    """Weights of convolutions [o, i, h, w] as [o, h, w, i], as vectors of weights have them; others as they are."""
    return parameter.movedim(1, -1) if parameter.dim() == 4 else parameter


def load(module, vector):
    """Give a module's parameters the numbers of a vector."""
    sizes = [parameter.numel() for parameter in module.parameters()]
    with torch.no_grad():
        for parameter, part in zip(module.parameters(), vector.split(sizes), strict=True):
            channels_last(parameter).copy_(part.view(channels_last(parameter).shape))


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
def test_late_and_buffered_updates_enter_the_pool_as_the_models_that_their_devices_had(setting, tmp_path, monkeypatch):
    """In every merge of a run; ages are counted here by the devices of each merge, a flush being a round."""
    merges, plain = [], Kpfl.refine

    def seen(self, state, arrived, ledger, bench):
        merges.append((state.pool, arrived))
        return plain(self, state, arrived, ledger, bench)

    monkeypatch.setattr(Kpfl, "refine", seen)
    result = simulation.run(config_of(setting=setting), tmp_path / "run")
    assert result.status == "finished", result.reason
    active, idle, last = {}, {}, {}
    for pool, arrived in merges:
        here = set(arrived.ids.tolist())
        active = {device: active.get(device, 0) + 1 if device in here else 0 for device in {*active, *here}}
        idle = {device: 0 if device in here else idle[device] + 1 for device in active}
        rows = sorted(range(len(arrived.ids)), key=lambda row: -arrived.staleness[row])
        last |= {int(arrived.ids[row]): arrived.starts[row] + arrived.updates[row] for row in rows}
        assert list(pool) == sorted(active)
        for device, entry in pool.items():
            assert (entry.active, entry.idle) == (active[device], idle[device])
            assert torch.equal(entry.model, last[device])
    assert sum(entry.idle > 1 for pool, _ in merges for entry in pool.values()) > 2
    updates = read_table(tmp_path / "run", "updates")
    assert updates["staleness"].max() > 0
    assert len(updates) == sum(len(arrived.ids) for _, arrived in merges)


@pytest.mark.parametrize("setting", ["rounds", "late", "buffered"])
@pytest.mark.parametrize("pair", [FEDAVG, ("cfed", "own")], ids="+".join)
def test_updates_count_the_same_without_training(setting, pair, tmp_path):
    """W hangs on data and ages alone."""
    found = []
    for training in ("real", "none"):
        config = config_of(pair=pair, setting=setting, training=training)
        assert simulation.run(config, tmp_path / training).status == "finished"
        found.append(read_table(tmp_path / training, "updates")["weight"])
    assert found[0].tolist() == found[1].tolist()
    assert found[0].between(0, 1).all()
    assert found[0].nunique() > 5


def test_without_a_data_set_what_updates_count_is_unknown(tmp_path):
    config = parse(
        {
            "rounds": 2,
            "devices": {"count": 3},
            "round": {"payload_bits": 1e5, "protocol": "buffered", "admission": "count", "count": 2},
            "data": {"dataset": "none"},
            "learning": {"training": "none"},
            "algorithm": {"kpfl": {"keep": "first"}},
        },
        "run.toml",
    )
    assert simulation.run(simulation.complete(config), tmp_path / "run").status == "finished"
    assert read_table(tmp_path / "run", "updates")["weight"].isna().all()


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


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("fedavg", "the paper tuned them for 'fedavg' under timed-random participation, on Office-Caltech-10"),
        (
            "fedcl",
            "the paper has none for 'fedcl' under availability.model = 'bernoulli': its program's defaults are used",
        ),
    ],
)
def test_where_settings_of_the_paper_come_from_is_told_before_the_first_round(name, said, tmp_path):
    notes = []
    config = make_config((name, "own"), options={"kpfl": {"settings": "paper", "keep": "first", "age_idle": -5.0}})
    simulation.run(config, tmp_path / "run", on_note=lambda about, note: notes.append(note))
    bound = "algorithm.kpfl: exponents are bounded at 20, which is reached by age_idle after 4 rounds"
    assert f"algorithm.kpfl.settings = 'paper': {said}; {bound}" in notes
    tuned = config.algorithm.kpfl
    assert (tuned["age_active"], tuned["age_idle"]) == (0.02 if name == "fedavg" else 0.16, -5.0)


def test_the_pools_mean_is_part_of_the_servers_wall_time(tmp_path, monkeypatch):
    plain = Kpfl.merge

    def slow(self, *arguments):
        time.sleep(0.02)
        return plain(self, *arguments)

    monkeypatch.setattr(Kpfl, "merge", slow)
    assert simulation.run(config_of({"keep": "first"}), tmp_path / "run").status == "finished"
    timing = read_table(tmp_path / "run", "timing")
    assert len(timing[timing["part"] == "server"]) > 3
    assert (timing[timing["part"] == "server"]["wall_s"] >= 0.02).all()


def budgeted(mib, **kpfl):
    """115 devices with 11 samples each: the mlp's 2,410 numbers are 9,640 bytes, 115 times that 1.057 MiB."""
    config = config_of(kpfl, memory_budget_mib=mib)
    data = config.data.model_copy(update={"samples_per_device": 11})
    devices = config.devices.model_copy(update={"count": 115})
    return config.model_copy(update={"devices": devices, "rounds": 1, "data": data})


@pytest.mark.parametrize(
    ("mib", "kpfl", "said"),
    [
        (1, {"keep": "first"}, r"0.009193 MiB of each device \(1 x the model\), 1.057 MiB of all 115, above"),
        (2, {}, r", [23].\d+ MiB of all 115 and [12].\d+ MiB for made images and a pass of one model over them, above"),
    ],
)
def test_the_pool_and_a_pass_of_its_models_must_have_room(mib, kpfl, said, tmp_path):
    with pytest.raises(EdgesimError, match=f"^algorithm: remembers .*{said} learning.memory_budget_mib = {mib};"):
        simulation.run(budgeted(mib, **kpfl), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_memory_of_a_pool_that_is_only_averaged_is_told_before_the_first_round():
    learner, heard = new_learner(budgeted(8, keep="first")), []
    learner.prepare(heard.append)
    told = "what is remembered of 115 devices, the server's pool of their models included, takes up to 1.057 MiB"
    assert heard == [told]


@pytest.mark.parametrize(("mib", "fills"), [(4, True), (8, False)])
def test_memory_of_a_pool_that_is_distilled_is_told_before_the_first_round(mib, fills):
    """Passes of all models at once, or of as many as there is room for."""
    learner, heard = new_learner(budgeted(mib)), []
    learner.prepare(heard.append)
    memory = learner.memory
    least, most = pass_bytes(learner.model, (1, 8, 8), 16, 115)
    assert most == 115 * least
    assert memory.passes == ((mib << 20) - 115 * 9640 - memory.making if fills else most)
    assert learner._bench().room_bytes == (mib << 20) - 115 * 9640 - memory.making
    making, passes, total = (f"{count / 2**20:,.4g}" for count in (memory.making, memory.passes, memory.total))
    (told,) = heard
    assert told.endswith(
        f" 1.057 MiB; making images and training on them {making}, passes of the pool over them {passes}; "
        f"together {total}"
    )
    assert memory.total == 115 * 9640 + memory.making + memory.passes
    assert (memory.total == mib << 20) == fills
    facts = learner.facts()
    assert (facts["bytes_of_made_images"], facts["bytes_of_passes_over_the_pool"]) == (memory.making, memory.passes)


def test_a_pool_of_prototypes_counts_them_too():
    """10 classes with 32 features each beside the model's numbers."""
    assert new_learner(config_of({"keep": "first"}, ("fpl", "own"))).memory.device == 4 * (2410 + 320)


@pytest.mark.parametrize(("model", "batch"), [("mlp", 2), ("mlp", 128), ("small-cnn", 64)])
def test_the_servers_training_takes_no_more_memory_than_was_told(model, batch, peak_bytes):
    learner = new_learner(config_of({"batch": batch}, model=model))
    (state,) = merged_rounds(learner, range(8))
    nobody = SimpleNamespace(ids=[])
    taken = peak_bytes(lambda: learner.accounts.algorithm.refine(state, nobody, None, learner._bench()))
    told = learner.memory.making + learner.memory.passes
    assert told / 4 < taken < told


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
        (
            {"kpfl": {"keep": "first", "server_s_per_step": 0.1}},
            "algorithm.kpfl.server_s_per_step: with keep = 'first' the server trains nothing; remove it",
        ),
        (
            {"kpfl": {"keep": "first", "validation_accept": True}},
            "algorithm.kpfl.validation_accept: with keep = 'first' the server trains nothing; remove it",
        ),
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
