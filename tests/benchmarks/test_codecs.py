"""What encoding the updates of a merge costs beside one pass, y <- a x + y over the same stack, in the same process."""

import os
from itertools import count, repeat

import numpy as np
import pytest
import torch
from sizes import least_cpu_s, size

import edgesim
from edgesim.learning import draws
from edgesim.learning.codecs import make_codec
from edgesim.learning.codecs.transmission import transmit
from edgesim.learning.torch_settings import reproducible
from edgesim.learning.transforms.encode import Encode
from edgesim.learning.transforms.transform import Updates
from edgesim.streams import Streams

UPDATES, NUMBERS, TURNS = size((30, 558_802, 7), (3, 1000, 1))
ROUNDS = size(60, 2)


@pytest.fixture(scope="module")
def stack():
    return torch.randn(UPDATES, NUMBERS, generator=torch.Generator().manual_seed(0))


def drawn(like):
    """Uniforms of each update, as a run draws them."""
    seeds = Streams(0).seeds("codec/up", range(UPDATES), 1)
    return [draws.uniform(draws.key(seed, 0), 0, (NUMBERS,), like) for seed in seeds.tolist()]


def in_passes(benchmark, stack, title, work, aim):
    other = torch.zeros_like(stack)
    contenders = {"pass": lambda: other.add_(stack, alpha=0.5), title: work}
    with reproducible(stack.device):
        least = benchmark.pedantic(least_cpu_s, args=(contenders, TURNS), rounds=1)
    passes = least[title] / max(least["pass"], 1e-9)
    benchmark.extra_info |= {"passes": passes, "aim": aim, "load_average": os.getloadavg()[0], **least}
    print(f"\n{title}: {1e3 * least[title]:.0f} ms, {passes:.1f} passes of {1e3 * least['pass']:.1f} ms (aim {aim})")


@pytest.mark.parametrize(
    ("name", "options", "aim"),
    [
        ("qsgd", {}, 15), ("qsgd", {"norm": "l2"}, None), ("natural", {}, 15), ("sign", {}, 20), ("half", {}, None),
        ("randk", {}, 30), ("topk", {}, 60), ("stc", {}, None),
    ],
)  # fmt: skip
def test_encoding_a_merge(benchmark, stack, name, options, aim):
    """Aims in passes; uniforms are drawn beforehand."""
    codec = make_codec(name, options)
    uniforms = drawn(stack) if codec.draws else repeat(None)
    received = torch.empty_like(stack)

    def work():
        for row, sent in zip(received, transmit(codec, "none", stack, range(UPDATES), {}, uniforms), strict=True):
            row.copy_(sent.update)

    in_passes(benchmark, stack, "-".join(map(str, (name, *options.values()))), work, aim)


@pytest.mark.parametrize(
    ("name", "feedback", "aim"),
    [
        ("qsgd", "none", 55), ("natural", "none", 55), ("half", "none", None), ("sign", "residual", 24),
        ("randk", "none", 70), ("topk", "none", 60), ("topk", "residual", 64),
    ],
)  # fmt: skip
def test_all_that_a_merge_does_to_encode(benchmark, stack, name, feedback, aim):
    """With draws, decoded copies, and the errors and the entropy that `metrics` has, in a merge after the first.

    Aims are those of the codec, of draws and of a residual together: all else is to fit into what they leave.
    """
    coding = Encode(make_codec(name, {}), feedback, Streams(0), NUMBERS)
    coding.state = dict(enumerate(stack.clone())) if coding.stored else {}
    updates = Updates(np.arange(UPDATES), np.arange(UPDATES), list(stack))
    in_passes(benchmark, stack, f"all of {name} with feedback {feedback}", lambda: coding.apply(updates), aim)


def test_a_residual_beside_its_codec(benchmark, stack):
    """Measured: 4 passes more than the codec alone."""
    codec = make_codec("sign", {})
    memories = dict(enumerate(stack.clone()))
    received = torch.empty_like(stack)

    def work():
        for row, sent in zip(
            received, transmit(codec, "residual", stack, range(UPDATES), memories, repeat(None)), strict=True
        ):
            row.copy_(sent.update)

    in_passes(benchmark, stack, "sign with residual", work, None)


def test_draws_of_a_merge(benchmark, stack):
    """Uniforms for each number of each update."""
    in_passes(benchmark, stack, "draws", lambda: drawn(stack), 40)


@pytest.mark.parametrize("codec", ["none", "topk"])
def test_a_run_with_upload_beside_one_without(benchmark, tmp_path, codec):
    """Runs of 558,802-number payloads take turns, in one process; the least time of each counts."""
    base = {
        "rounds": ROUNDS,
        "round": {"tmax_s": 0.8, "payload_bits": 32 * 558_802},
        "data": {"partition": "iid"},
        "learning": {"pretrain": False, "back_end": "loop", "model": "linear"},
        "evaluation": {"every": ROUNDS},
    }
    folders = (tmp_path / str(number) for number in count())
    runs = {
        "without": lambda: edgesim.run(base, next(folders), quiet=True),
        "with": lambda: edgesim.run(base | {"upload": {"codec": codec}}, next(folders), quiet=True),
    }
    least = benchmark.pedantic(least_cpu_s, args=(runs, TURNS), rounds=1)
    ratio = least["with"] / max(least["without"], 1e-9)
    benchmark.extra_info |= {"ratio": ratio, "load_average": os.getloadavg()[0], **least}
    print(f"\na run with upload.codec = {codec!r}: {ratio:.2f} times as long as one without")
