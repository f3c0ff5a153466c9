"""Messages: written as bytes, read back, as long as charged, and with the values that a run computes."""

import numpy as np
import pytest
import torch

from edgesim.learning.codecs import CODECS, make_codec
from edgesim.learning.codecs.levels import elias
from edgesim.learning.codecs.message import Reader, as_bytes, of_bytes

ONE_SIDED = {"values": "one-sided", "coding": "enumerative"}
CASES = [
    ("none", {}), ("half", {}), ("natural", {}), ("sign", {}),
    ("qsgd", {}), ("qsgd", {"levels": 1, "bucket": 5}), ("qsgd", {"levels": 127, "norm": "l2", "bucket": 100_000}),
    ("qsgd", {"levels": 32_767, "bucket": 16}), ("qsgd", {"rounding": "nearest", "levels": 3, "bucket": 7}),
    ("topk", {"ratio": 0.1}), ("topk", {"ratio": 0.02, "coding": "enumerative"}),
    ("topk", {"ratio": 0.1, **ONE_SIDED}), ("topk", {"ratio": 0.34, **ONE_SIDED}),
    ("topk", {"ratio": 1.0, "coding": "index"}), ("topk", {"ratio": 0.3, "coding": "bitmap"}),
    ("stc", {"ratio": 0.05}), ("stc", {"ratio": 0.5, "coding": "enumerative"}),
    ("stc", {"ratio": 0.01, "coding": "index"}), ("stc", {"ratio": 0.2, "coding": "bitmap"}),
    ("randk", {"ratio": 0.1}), ("randk", {"ratio": 1.0}),
]  # fmt: skip


def vectors(count):
    """Float32 vectors of 1 to 300 numbers, ordinary and odd ones in turn."""
    random = np.random.default_rng(0)
    for turn in range(count):
        d = int(random.integers(1, 300))
        vector = random.standard_normal(d) * 10.0 ** random.uniform(-10, 10)
        kind = turn % 8
        if kind == 1:
            vector[:] = -0.0 if turn % 16 == 1 else 0.0
        elif kind == 2:
            vector[random.integers(d)] = 1e36
        elif kind == 3:
            vector = random.integers(-(2**23), 2**23, d) * 2.0**-149
        elif kind == 4:
            vector = random.integers(-2, 3, d).astype(np.float64)
        elif kind == 5:
            vector *= random.random(d) > 0.9  # zeros of either sign
        yield torch.from_numpy(vector.astype(np.float32))


def uniforms(vector, turn):
    """Of 23 bits, as runs draw them, with the least and the largest among them."""
    words = np.random.default_rng(turn).integers(0, 2**23, len(vector))
    words[0] = (0, 2**23 - 1)[turn % 2]
    return torch.from_numpy(((words + 0.5) * 2.0**-23).astype(np.float32))


COUNTS = pytest.mark.parametrize("count", [80, pytest.param(10_000, marks=pytest.mark.slow)])


@COUNTS
@pytest.mark.whole_family
@pytest.mark.parametrize(("name", "options"), CASES)
def test_what_is_read_back_is_what_a_run_computes(name, options, count):
    codec = make_codec(name, options)
    for turn, vector in enumerate(vectors(count)):
        d = len(vector)
        before, setting = vector.clone(), codec.setting(d)
        drawn = uniforms(vector, turn) if codec.draws else None
        values = codec.coded(vector, drawn, setting)
        message = codec.write(vector, drawn, setting)
        assert len(message) == codec.bits(d, setting)
        data = as_bytes(message)
        assert len(data) == -(-len(message) // 8)
        reader = Reader(of_bytes(data, len(message)))
        read = codec.read(reader, d, drawn, setting)
        assert reader.place == len(message)
        assert read.dtype == np.float32
        assert np.array_equal(read, values.numpy())
        assert torch.equal(vector, before)


def test_all_codecs_of_edgesim_are_written_and_read():
    assert {name for name, _ in CASES} == {*CODECS}


@COUNTS
def test_elias_messages_are_read_back(count):
    random = np.random.default_rng(1)
    forms = set()
    for turn, vector in enumerate(vectors(count)):
        s, bucket = int(random.choice([1, 2, 7, 127])), int(random.choice([2, 16, 1000]))
        codec = make_codec("qsgd", {"levels": s, "bucket": bucket, "norm": ("max", "l2")[turn % 2]})
        levels, scales = codec.quantised(vector, uniforms(vector, turn), s)
        message = elias.write(levels, scales, bucket, s)
        assert len(message) == elias.size_bits(levels, bucket, s) <= len(scales) + codec.bits(len(vector), s)
        reader = Reader(message)
        read, of_buckets = elias.read(reader, len(vector), bucket, s)
        assert reader.place == len(message)
        assert np.array_equal(read, levels)
        assert np.array_equal(of_buckets, scales)
        forms.add(int(message[0]))
    assert forms == {0, 1}


def test_elias_pays_for_lengths_of_long_vectors_and_hardly_for_maxima_of_short_buckets():
    """558,802 Gaussian numbers, 7 levels: 59,201 bits of 2,235,240, and 2,219,209 of 2,270,152, both of one draw.

    Between draws the first has a standard deviation of 1.3 %.
    """
    vector = torch.randn(558_802, generator=torch.Generator().manual_seed(0))
    drawn = torch.rand(558_802, generator=torch.Generator().manual_seed(1))
    for options, bits in (({"norm": "l2", "bucket": 2**31 - 1}, 59_201), ({"norm": "max"}, 2_219_209)):
        codec = make_codec("qsgd", options)
        levels, _ = codec.quantised(vector, drawn, 7)
        assert elias.size_bits(levels, codec.bucket, 7) == pytest.approx(bits, rel=0.04 if bits < 1e5 else 0.005)
