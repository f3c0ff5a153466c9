"""The largest messages that fit: by trying all of them, and worked numbers of the channel."""

import math

import pytest

from edgesim.base.errors import EdgesimError
from edgesim.learning.codecs import CODECS, make_codec
from edgesim.learning.codecs.codec import Codec
from edgesim.radio.link import ShannonLink

D = 558_802
SNR_HZ = 1_424_772_642.107986
"""Received power over noise density at 250 m of the macro law with 23 dBm."""

SPARSE = [("topk", coding) for coding in ("rice", "enumerative", "index", "bitmap")]
SPARSE += [("stc", coding) for coding in ("rice", "enumerative", "index", "bitmap")]

ONE_SIDED = ("topk", {"coding": "enumerative", "values": "one-sided"})


@pytest.mark.parametrize(("name", "options"), [*[(n, {"coding": c}) for n, c in SPARSE], ("randk", {}), ONE_SIDED])
@pytest.mark.parametrize("d", [1, 2, 3, 7, 64, 150])
def test_as_many_numbers_as_fit_are_sent(name, options, d):
    codec, most = make_codec(name, options), math.ceil(d / 10) if name == "stc" else d
    sizes = [codec.bits(d, k) for k in range(1, most + 1)]
    for bits in range(max(sizes) + 40):
        assert codec.largest(d, bits) == max((k for k, size in enumerate(sizes, 1) if size <= bits), default=0)


@pytest.mark.parametrize("options", [{}, {"norm": "l2", "bucket": 40}])
def test_levels_are_as_wide_as_fit(options):
    codec, d = make_codec("qsgd", options), 100
    sizes = {2 ** (width - 1) - 1: codec.bits(d, 2 ** (width - 1) - 1) for width in range(2, 17)}
    for bits in range(max(sizes.values()) + 200):
        assert codec.largest(d, bits) == max((s for s, size in sizes.items() if size <= bits), default=0)


def test_worked_numbers_of_what_fits():
    """Bits that 20/30 MHz carry in half a second; a header of 32 is sent as well."""
    carried_bits = ShannonLink(1.0).bits(0, 20e6 / 30, SNR_HZ, 0.0, 0.5)
    assert carried_bits == pytest.approx(3_687_384.466680, abs=6e-7)
    room = int(carried_bits) - 32
    assert make_codec("qsgd", {"bucket": D}).largest(D, room) == 2**5 - 1
    assert make_codec("topk", {"coding": "index"}).largest(D, room) == 70_910
    assert make_codec("topk", {}).largest(D, room) == 102_090
    assert make_codec("topk", {}).bits(D, 102_090) + 32 == 3_687_360
    assert make_codec("randk", {}).largest(D, room) == 115_229
    for coding, counts in {"rice": [1, 25, 138], "index": [1, 23, 118]}.items():
        topk = make_codec("topk", {"coding": coding})
        assert [topk.largest(650, bits - 32) for bits in (100, 1_000, 5_000)] == counts


@pytest.mark.parametrize("name", list(CODECS))
def test_the_smallest_message_is_the_least_that_a_device_sends(name):
    codec, d = make_codec(name, {}), 5_000
    if type(codec).largest is Codec.largest:
        assert codec.largest(d, 10**9) == 0
        return
    floor = codec.floor(d, codec.least)
    assert floor == (1 if name == "qsgd" else 5)
    assert codec.largest(d, codec.bits(d, floor)) == floor
    assert codec.largest(d, codec.bits(d, floor) - 1) < floor


@pytest.mark.parametrize(("name", "least"), [("qsgd", 1.0), ("qsgd", 2.5), ("qsgd", 17.0), ("topk", 1.5), ("randk", 2)])
def test_a_least_that_is_no_size_is_refused(name, least):
    with pytest.raises(EdgesimError, match=r"upload\.least: expected .* \(got"):
        make_codec(name, {}).floor(100, least)


def test_shares_of_charged_numbers_are_those_of_the_numbers_that_there_are():
    assert make_codec("topk", {}).rescaled(70, 1_000, 10) == 1
    assert make_codec("stc", {}).rescaled(71, 1_000, 100) == 8
    assert make_codec("randk", {}).rescaled(1_000, 1_000, 33) == 33
    assert make_codec("qsgd", {}).rescaled(7, 1_000, 33) == 7
