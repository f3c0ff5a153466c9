"""Recorded steps, on a stand-in for a GPU's graphs: operations noted in one run, then repeated in the same memory."""

import gc
import weakref

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from edgesim.errors import EdgesimError
from edgesim.learning import back_ends
from edgesim.learning.back_ends import graphs, stacked
from edgesim.learning.back_ends.stacked import StackedBackEnd
from edgesim.learning.flat import FlatModel
from edgesim.learning.models import make_model
from edgesim.learning.tensors import DeviceData
from edgesim.learning.torch_settings import reproducible

SHAPE, CLASSES = (3, 16, 16), 4
EDGES = ([0, 8, 16, 24], [0, 8, 12, 20], [0, 8, 16, 24], [0, 3, 8], [0, 8])
MODELS = {
    "mlp": lambda: make_model("mlp", SHAPE, CLASSES),
    "small-cnn": lambda: make_model("small-cnn", SHAPE, CLASSES),
    "batch norm": lambda: nn.Sequential(
        nn.Conv2d(3, 4, 3, stride=4), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, CLASSES)
    ),
    "dropout": lambda: nn.Sequential(
        nn.Flatten(), nn.Linear(768, 8), nn.LayerNorm(8), nn.Dropout(0.4), nn.Linear(8, CLASSES)
    ),
}


def places(values) -> set[int]:
    return {leaf.untyped_storage().data_ptr() for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)}


class Tape(TorchDispatchMode):
    """Notes operations, and repeats them from what their inputs hold by then into the memory they went to before."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = []
        self.repeats = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        made = [leaf for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor)]
        fresh = [tensor.detach() if places(tensor) - places((args, kwargs)) else None for tensor in made]
        if func._schema.is_mutable or any(tensor is not None for tensor in fresh):
            self.calls.append((func, args, kwargs, fresh))
        return out

    @torch.no_grad()
    def repeat(self) -> None:
        self.repeats += 1
        # What a step leaves in its own memory is gone when others have used it.
        for tensor in (tensor for *_, fresh in self.calls for tensor in fresh if tensor is not None):
            tensor.fill_(float("nan") if tensor.is_floating_point() else 0)
        for func, args, kwargs, fresh in self.calls:
            made = [leaf for leaf in tree_leaves(func(*args, **kwargs)) if isinstance(leaf, torch.Tensor)]
            for tensor, result in zip(fresh, made, strict=True):
                if tensor is not None:
                    tensor.copy_(result)


class Recorder:
    """A `graphs.Recorder`."""

    def __init__(self) -> None:
        self.tapes = []
        self.pools = 0

    def __call__(self):
        self.pools += 1
        return self.capture

    def capture(self, work):
        work()
        tape = Tape()
        with tape:
            work()
        self.tapes.append(tape)
        return tape.repeat

    @property
    def repeats(self) -> int:
        return sum(tape.repeats for tape in self.tapes)


@pytest.fixture
def recorder(monkeypatch) -> Recorder:
    monkeypatch.setattr(graphs, "_MET", 2)
    return Recorder()


@pytest.fixture
def recorded_on(data, recorder):
    """A back end that records, of which the trial at its start is forgotten."""

    def make(model) -> StackedBackEnd:
        back_end = StackedBackEnd(model, data, 4096, recorder)
        assert back_end.notice is None
        recorder.tapes.clear()
        return back_end

    return make


#: Jobs that differ in all that a recorded step could wrongly keep, and what they share.
ROUNDS = (
    {"lr": 0.02},
    {"lr": [0.02, 0.01, 0.03, 0.005, 0.02], "momentum": [0.5, 0.0, 0.9, 0.5, 0.3]},
    {"lr": 0.01, "proximal": 2.0},
    {"lr": 0.02, "augmented": True},
    {"lr": 0.03, "weight_decay": [0.5, 0.0, 0.1, 0.2, 0.3], "momentum": 0.0},
    {"lr": 0.04, "proximal": [0.0, 1.0, 2.0, 0.0, 0.5], "weight_decay": 0.1},
)


def train_both(plain, recorded, model, promises):
    """Rounds on two back ends from the same models; pairs of promises."""
    for given in ROUNDS * 2:
        alone, replayed = (promises(model, *EDGES, **given) for _ in range(2))
        for n in (1, 3):
            alone[n].start = replayed[n].start = (1.0 + 0.1 * n) * alone[n].start
        plain.run(alone)
        recorded.run(replayed)
        yield from zip(alone, replayed, strict=True)
        model.load(alone[0].start + alone[0].result.update)


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-5), (torch.float64, 1e-12)])
@pytest.mark.parametrize("name", MODELS)
def test_replayed_steps_train_as_others_do(name, dtype, bound, flat, data, promises, recorder, recorded_on):
    model = flat(MODELS[name], dtype)
    plain, recorded = StackedBackEnd(model, data, 4096), recorded_on(model)
    for alone, replayed in train_both(plain, recorded, model, promises):
        found, expected = replayed.result, alone.result
        assert (found.update - expected.update).norm() < bound * expected.update.norm()
        for field in ("loss", "loss_rms", "accuracy", "update_norm"):
            assert getattr(found, field) == pytest.approx(getattr(expected, field), rel=bound), field
    assert recorder.repeats > len(recorder.tapes) > 3


def test_a_shape_is_recorded_once_when_it_was_met_often_enough(flat, promises, recorder, recorded_on, monkeypatch):
    monkeypatch.setattr(graphs, "_MET", 4)
    model = flat(MODELS["mlp"])
    recorded = recorded_on(model)
    counts = []
    for _ in range(4):
        recorded.run(promises(model, [0, 8, 16], [0, 8, 16]))
        counts.append((len(recorder.tapes), recorder.repeats))
    assert counts == [(0, 0), (1, 1), (1, 3), (1, 5)]


def test_the_results_of_a_round_outlive_later_replays(flat, promises, recorder, recorded_on):
    model = flat(MODELS["mlp"])
    recorded = recorded_on(model)
    rounds = [promises(model, *EDGES, lr=0.01 * n) for n in range(1, 5)]
    for made in rounds:
        recorded.run(made)
    kept = [[promise.result.update.clone() for promise in made] for made in rounds]
    for _ in range(3):
        recorded.run(promises(model, *EDGES, lr=0.5))
    for made, updates in zip(rounds, kept, strict=True):
        assert all(torch.equal(promise.result.update, update) for promise, update in zip(made, updates, strict=True))


@pytest.mark.parametrize("clients", [5, 15])
def test_stacks_that_stay_in_place_give_way_to_others_when_their_memory_is_full(
    clients, flat, data, promises, recorder, recorded_on, monkeypatch
):
    model = flat(MODELS["mlp"])
    plain, recorded = StackedBackEnd(model, data, 4096), recorded_on(model)
    # Room for the widest stack alone, or for those of a round.
    recorded._graphs._memory_bytes = clients * 8 * 4 * model.trainable
    held, pools = [], recorder.pools
    settle = graphs.Graphs.settle
    monkeypatch.setattr(graphs.Graphs, "settle", lambda *given: (settle(*given), held.append(given[0]._held_bytes))[0])
    for alone, replayed in train_both(plain, recorded, model, promises):
        assert (replayed.result.update - alone.result.update).norm() < 1e-5 * alone.result.update.norm()
    assert 0 < max(held) <= recorded._graphs._memory_bytes
    assert recorder.pools > pools + 5
    # Steps that are given up again before they come again are not worth recording.
    assert bool(recorder.repeats) == (clients == 15)


def test_large_steps_and_modules_that_are_no_chain_run_as_they_are(
    flat, data, promises, recorder, recorded_on, monkeypatch
):
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(768, CLASSES)

        def forward(self, images):
            return self.layer(images.flatten(1))

    model = flat(MODELS["mlp"])
    small = recorded_on(model)
    monkeypatch.setattr(stacked, "_SMALL_BYTES", 5 * small._client_bytes(8) - 1)
    other = flat(Own)
    for back_end, module in ((small, model), (StackedBackEnd(other, data, 4096, recorder), other)):
        for _ in range(5):
            back_end.run(promises(module, *EDGES))
    assert not recorder.tapes
    monkeypatch.setattr(stacked, "_SMALL_BYTES", 5 * small._client_bytes(8))
    for _ in range(5):
        small.run(promises(model, *EDGES))
    assert recorder.tapes
    monkeypatch.setattr(stacked, "_SMALL_BYTES", 2 * small._client_bytes(4) - 1)
    tapes = len(recorder.tapes)
    StackedBackEnd(model, data, 4096, recorder)
    assert len(recorder.tapes) == tapes


def test_where_recording_fails_or_replays_are_wrong_steps_run_as_they_are_and_the_user_hears_why(
    flat, data, promises, recorder, make_config, monkeypatch
):
    def cannot(work):
        work()
        raise RuntimeError("CUDA error: operation not permitted when stream is capturing\nCompile with ...")

    def forgets(work):
        work()
        return lambda: None

    model = flat(MODELS["mlp"])
    alone = promises(model, *EDGES)
    StackedBackEnd(model, data, 4096).run(alone)
    for capture, reason in (
        (cannot, "CUDA error: operation not permitted when stream is capturing"),
        (forgets, "replayed steps bring other numbers"),
    ):
        monkeypatch.setattr(back_ends, "recorder_on", lambda device, capture=capture: lambda: capture)
        config = make_config(learning={"back_end": "stacked"}).learning
        back_end, notice = back_ends.make_back_end(config, model, data, MODELS["mlp"], 1)
        assert notice == f"steps are not recorded as graphs ({reason})"
        for _ in range(4):
            made = promises(model, *EDGES)
            back_end.run(made)
        assert all(torch.equal(one.result.update, two.result.update) for one, two in zip(made, alone, strict=True))


def test_the_first_thing_that_went_wrong_is_the_reason_and_running_out_of_memory_is_none(flat, data):
    def twice(work):
        try:
            raise RuntimeError("operation not permitted when stream is capturing\n...")
        finally:
            raise RuntimeError("operation failed due to a previous error during capture")

    def too_large(work):
        raise RuntimeError("CUDA error: out of memory")

    model = flat(MODELS["mlp"])
    assert StackedBackEnd(model, data, 4096, lambda: twice).notice == (
        "steps are not recorded as graphs (operation not permitted when stream is capturing)"
    )
    with pytest.raises(EdgesimError, match=r"^out of memory while trying to record a step: set "):
        StackedBackEnd(model, data, 4096, lambda: too_large)


def test_a_step_that_cannot_be_recorded_in_the_midst_of_a_run_is_one_line(flat, data, promises, recorder):
    model = flat(MODELS["mlp"])
    back_end = StackedBackEnd(model, data, 4096, recorder)
    back_end._graphs._capture = lambda work: torch.zeros(2).view(3)
    back_end.run(promises(model, *EDGES))
    with pytest.raises(EdgesimError, match=r"^recording a training step as a graph failed \(.*\); set .*'loop'$"):
        back_end.run(promises(model, *EDGES))


def test_a_closed_back_end_holds_no_stacks(flat, promises, recorded_on):
    model = flat(MODELS["mlp"])
    back_end = recorded_on(model)
    back_end.run(promises(model, *EDGES))
    held = weakref.ref(next(iter(back_end._graphs._fixed.values())))
    gc.collect()
    gc.disable()
    try:
        assert held() is not None
        back_end.close()
        assert held() is None
    finally:
        gc.enable()


def test_a_processor_records_nothing():
    assert graphs.recorder_on(torch.device("cpu")) is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("room", ["enough", "little"])
@pytest.mark.parametrize("name", MODELS)
def test_on_a_gpu_replayed_steps_train_as_others_do(name, room, dataset, promises, monkeypatch):
    monkeypatch.setattr(graphs, "_MET", 2)
    gpu, replays = torch.device("cuda"), []
    recorder = graphs.recorder_on(gpu)

    def counted():
        capture = recorder()

        def record(work):
            replay = capture(work)
            return lambda: (replay(), replays.append(1))

        return record

    with reproducible(gpu):
        torch.manual_seed(0)
        model, data = FlatModel(MODELS[name]().to(gpu), gpu), DeviceData(dataset, gpu)
        plain, recorded = StackedBackEnd(model, data, 4096), StackedBackEnd(model, data, 4096, counted)
        assert recorded.notice is None
        if room == "little":
            recorded._graphs._memory_bytes = 15 * 8 * 4 * model.trainable
        replays.clear()
        for alone, replayed in train_both(plain, recorded, model, promises):
            assert (replayed.result.update - alone.result.update).norm() < 1e-3 * alone.result.update.norm()
            assert replayed.result.loss == pytest.approx(alone.result.loss, rel=1e-3)
        assert replays
        recorded.close()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_a_step_that_waits_for_it_is_not_recorded_and_training_goes_on(dataset, promises, monkeypatch):
    gpu = torch.device("cuda")
    step = StackedBackEnd._step

    def waits(self, stack, *inputs):
        losses, logits = step(self, stack, *inputs)
        losses.sum().item()
        return losses, logits

    with reproducible(gpu):
        torch.manual_seed(0)
        model, data = FlatModel(MODELS["mlp"]().to(gpu), gpu), DeviceData(dataset, gpu)
        before = torch.cuda.current_stream()
        with monkeypatch.context() as patch:
            patch.setattr(StackedBackEnd, "_step", waits)
            refused = StackedBackEnd(model, data, 4096, graphs.recorder_on(gpu))
            assert "not permitted" in refused.notice
            assert torch.cuda.current_stream() == before
            made = promises(model, *EDGES)
            refused.run(made)
        alone = promises(model, *EDGES)
        StackedBackEnd(model, data, 4096).run(alone)
        for one, other in zip(made, alone, strict=True):
            assert (one.result.update - other.result.update).norm() < 1e-3 * other.result.update.norm()
