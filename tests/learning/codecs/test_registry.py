"""What holds for every codec, those of plug-ins too; and what is refused."""

import re
from itertools import repeat
from typing import Any

import pytest
import torch
from refusals import in_one_line

from edgesim.base.errors import Diverged
from edgesim.learning.codecs import CODECS, make_codec
from edgesim.learning.codecs.codec import Codec
from edgesim.learning.codecs.feedback import Sent
from edgesim.learning.codecs.transmission import charged_bits, counted, receive, transmit
from edgesim.templates.codec import FewDigits

TEMPLATE = "edgesim.templates.codec.FewDigits"
NAMES = [*CODECS, TEMPLATE]


def uniforms(codec, d, seed=0):
    drawn = torch.rand(d, generator=torch.Generator().manual_seed(seed)).clamp(2**-24, 1 - 2**-24)
    return drawn if codec.draws else None


def received(codec, vector, seed=0):
    d = len(vector)
    return receive(codec, vector, uniforms(codec, d, seed), codec.setting(d))


@pytest.mark.whole_family
@pytest.mark.parametrize("name", NAMES)
def test_every_codec_answers_what_its_kind_promises(name):
    codec = make_codec(name, {})
    assert make_codec(name, codec.model_dump()) == codec
    assert codec.default_feedback == ("residual" if codec.distortion == "contraction" else "none")
    sizes = [charged_bits(codec, d) for d in (1, 2, 3, 100, 10_000)]
    assert sizes == sorted(sizes)
    assert sizes[-1] <= 32 * 10_000
    for d in (1, 2, 513, 2000):
        vector = torch.randn(d, generator=torch.Generator().manual_seed(d))
        found = received(codec, vector)
        assert found.shape == vector.shape
        assert found.dtype == torch.float32
        lost = float((found - vector).norm() / vector.norm())
        if codec.distortion == "contraction":
            assert lost < 1
        elif codec.distortion == "rounding":
            assert lost < 1e-3


@pytest.mark.whole_family
@pytest.mark.parametrize("name", NAMES)
def test_what_becomes_of_a_vector_depends_on_itself_alone(name):
    """On no vector beside it, on neither precision, and it stays as it was."""
    codec = make_codec(name, {})
    stack = torch.randn(5, 700, generator=torch.Generator().manual_seed(1))
    before, drawn = stack.clone(), [uniforms(codec, 700, row) for row in range(5)]
    together = [one.update for one in transmit(codec, "none", stack, range(5), {}, drawn)]
    for row in range(5):
        assert torch.equal(together[row], received(codec, stack[row], row))
        assert torch.equal(together[row], received(codec, stack[row].double(), row))
        together[row].zero_()
    assert torch.equal(stack, before)


@pytest.mark.whole_family
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), 1e39])
def test_numbers_that_are_not_finite_in_float32_are_refused(name, number):
    vector = torch.ones(20, dtype=torch.float64)
    vector[7] = number
    with in_one_line(r"^upload\.codec: an update has numbers that are not finite") as refused:
        received(make_codec(name, {}), vector)
    assert "learning.lr" in refused.value.fields


def test_a_scale_above_the_largest_float_is_refused():
    """Two numbers of 3e38 are 4.2e38 long."""
    with pytest.raises(Diverged, match=r"^upload\.codec: the scale of an update is 4\.24e\+38, above float32's"):
        received(make_codec("qsgd", {"norm": "l2"}), torch.full((2,), 3e38))
    assert received(make_codec("sign", {}), torch.full((2,), 3e38)).tolist() == pytest.approx([3e38] * 2)
    with pytest.raises(Diverged, match=r"^upload\.codec: a number of an update, times d / k, is inf, above"):
        received(make_codec("randk", {}), torch.full((200,), 3e38))


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("qsdg", {}, "upload.codec: unknown codec 'qsdg', did you mean 'qsgd'?"),
        ("qsgd", {"level": 3}, "unknown key 'upload.level', did you mean 'upload.levels'?"),
        ("qsgd", {"levels": 0}, "upload.levels: input should be greater than or equal to 1"),
        ("qsgd", {"levels": 32_768}, "upload.levels: input should be less than or equal to 32767"),
        ("qsgd", {"bucket": 1}, "upload.bucket: input should be greater than or equal to 2"),
        ("qsgd", {"rounding": "nearest", "norm": "l2"}, "rounding = 'nearest' needs norm = 'max', not 'l2'"),
        ("topk", {"ratio": 0.0}, "upload.ratio: input should be greater than 0"),
        ("stc", {"ratio": 1.5}, "upload.ratio: input should be less than or equal to 1"),
        ("topk", {"coding": "huffman"}, "upload.coding: input should be 'rice', 'enumerative', 'index' or 'bitmap'"),
        ("topk", {"values": "one-sided"}, "values = 'one-sided' needs coding = 'enumerative', not 'rice'"),
        ("topk", {"values": "mean"}, "upload.values: input should be 'own' or 'one-sided'"),
        ("topk", {"levels": 3}, "upload.levels: is an option of codec 'qsgd', not of 'topk'"),
        ("natural", {"bits": 3}, "upload.bits: codec 'natural' takes no options, remove 'bits'"),
        ("collections.OrderedDict", {}, "expected a subclass of edgesim.learning.codecs.codec.Codec"),
    ],
)
def test_bad_names_and_options_are_refused_in_a_line(name, options, said):
    with in_one_line(re.escape(said)):
        make_codec(name, options)


class Wrong(Codec):
    """A plug-in that answers what a test says."""

    method: str
    answer: Any

    @property
    def distortion(self):
        return self.answer if self.method == "distortion" else "rounding"

    def setting(self, d):
        return self.answer if self.method == "setting" else 0

    def bits(self, d, setting):
        return self.answer if self.method == "bits" else 32 * d

    def coded(self, vector, uniforms, setting):
        return self.answer(vector) if self.method == "coded" else vector.clone()

    def counts(self, encoded, decoded, setting):
        return self.answer if self.method == "counts" else None


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("method", "answer", "said"),
    [
        ("bits", -1, "-1, expected a whole number from 0 to 2^53"),
        ("bits", float("inf"), "inf, expected"),
        ("bits", 0.5, "0.5, expected"),
        ("bits", True, "True, expected"),
        ("bits", 10**400, "1000"),
        ("setting", None, "None, expected a whole number"),
        ("setting", [3], r"[3], expected a whole number"),
        ("setting", -3, "-3, expected a whole number"),
        ("coded", lambda vector: vector[1:], "torch.float32 [2], expected 3 finite numbers of torch.float32"),
        ("coded", lambda vector: vector.double(), "torch.float64 [3], expected"),
        ("coded", lambda vector: vector * float("nan"), "torch.float32 [3], expected"),
        ("coded", lambda vector: vector.to_sparse(), "torch.float32 [3], expected"),
        ("coded", lambda _: None, "NoneType, expected 3 finite numbers in a tensor"),
        ("coded", lambda vector: vector.tolist(), "list, expected"),
        ("coded", lambda vector: vector.mul_(0.5), "the vector that it was given, changed, expected a tensor of its"),
        ("counts", [1, 2], "list, expected whole numbers from 0 on in a tensor"),
        ("counts", torch.tensor([1.0, 2.0]), "torch.float32 [2], expected whole numbers"),
        ("counts", torch.tensor([3, -1]), "torch.int64 [2], expected whole numbers"),
    ],
)
def test_wrong_answers_of_a_plug_in_are_refused_by_its_name(method, answer, said):
    codec, vector = Wrong(method=method, answer=answer), torch.ones(3)

    def use():
        charged_bits(codec, 3)
        coded = receive(codec, vector, None, 0)
        counted(codec, Sent(vector, coded, coded, None), 0)

    with in_one_line(rf"^upload\.codec: Wrong\.{method} answered {re.escape(said)}"):
        use()


def test_a_plug_in_without_a_kind_of_error_or_with_passes_that_are_no_number_is_refused(monkeypatch):
    monkeypatch.setattr(FewDigits, "passes", "many")
    with in_one_line(r"^upload\.codec: FewDigits\.passes answered 'many', expected a finite number"):
        make_codec(TEMPLATE, {})
    monkeypatch.setattr(FewDigits, "passes", 0.0)
    monkeypatch.setattr(FewDigits, "distortion", "lossy")
    with in_one_line(r"^upload\.codec: FewDigits\.distortion answered 'lossy', expected 'contr"):
        make_codec(TEMPLATE, {})


def test_as_many_updates_arrive_as_were_sent():
    codec = make_codec("sign", {})
    assert list(transmit(codec, "none", torch.empty(0, 5), [], {}, repeat(None))) == []
