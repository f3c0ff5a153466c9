"""What docs/compression.md quotes of codecs is worked out again: bits, errors, Elias' code, and how much stc sends."""

import re
from pathlib import Path

import pytest
import torch
from whole_runs import play

from edgesim.learning.codecs import make_codec
from edgesim.learning.codecs.transmission import charged_bits

PAGE = (Path(__file__).parents[3] / "docs/compression.md").read_text()
TEXT = " ".join(PAGE.split())
D, P, S = 558_802, 2_410, 7
WHOLE = 2**31 - 1
"""A bucket that holds any vector."""
GAUSSIAN = torch.randn(D, generator=torch.Generator().manual_seed(0))
UNIFORMS = torch.rand(D, generator=torch.Generator().manual_seed(1))


def rows_below(head):
    """Cells of each row of the table that begins with a line, without what is bold or code about them."""
    lines = PAGE.split(head)[1].split("\n\n")[0].splitlines()[2:]
    return [[cell.strip(" `*") for cell in line.strip(" |").split("|")] for line in lines]


def test_the_bits_of_an_update_are_those_that_are_charged():
    (cells,) = rows_below("| none | half | natural | qsgd, s 7 | sign | topk 1 %, index | rice | enumerative | stc 1 %")
    codings = [("topk", {"coding": coding}) for coding in ("index", "rice", "enumerative")]
    codecs = [(name, {}) for name in ("none", "half", "natural", "qsgd", "sign")] + codings + [("stc", {})]
    assert cells == [f"{charged_bits(make_codec(*codec), D):,}" for codec in codecs]


def test_a_scale_for_few_numbers_has_the_least_error():
    """By the closed form: (scale / s)^2 times the sum of f (1 - f)."""
    errors = []
    for norm, size in (("l2", D), ("max", D), ("max", 512)):
        buckets = torch.nn.functional.pad(GAUSSIAN.double(), (0, -D % size)).view(-1, size)
        scale = buckets.norm(dim=1) if norm == "l2" else buckets.abs().amax(1)
        parts = (S * buckets / scale[:, None]) % 1
        error = ((scale / S).square() * (parts * (1 - parts)).sum(1)).sum()
        errors.append(f"{float(error / GAUSSIAN.double().square().sum()):.2g}")
    one_l2, one_max, max_512 = errors
    assert f'is {one_l2} ||v||^2 with `norm = "l2"` over the whole vector, {one_max} with `max`, {max_512} with' in TEXT


def test_elias_code_of_another_payload():
    """Of as many numbers as are charged, drawn or again and again, and of one update in proportion."""
    again = GAUSSIAN[:P].repeat(D // P + 1)[:D]
    found = rows_below("| bits | 558,802 numbers | 2,410, again and again | 2,410, in proportion |")
    for (norm, size), cells in zip((("l2", WHOLE), ("l2", 512), ("max", 512), ("max", WHOLE)), found, strict=True):
        codec = make_codec("qsgd", {"coding": "elias", "norm": norm, "bucket": size})
        bits = [codec.written_bits(vector, UNIFORMS, S) for vector in (GAUSSIAN, again)]
        own_bits = codec.written_bits(GAUSSIAN[:P], UNIFORMS[:P], S)
        assert re.sub("[`,]", "", cells[0]) == norm + (" one scale" if size == WHOLE else " bucket 512")
        assert cells[1:] == [f"{count:,.0f}" for count in (*bits, own_bits * D / P)]
    sparse_bits, _, maxima_bits, _ = (float(cells[1].replace(",", "")) for cells in found)
    assert (
        f"about {round(sparse_bits, -4):,.0f} bits in place of {charged_bits(make_codec('qsgd', {'bucket': D}), D):,}"
        in TEXT
    )
    saved = 1 - maxima_bits / charged_bits(make_codec("qsgd", {}), D)
    assert f"and {saved:.0%} less with `max` and 512".replace("%", " %") in TEXT


@pytest.mark.slow
def test_errors_of_stc_by_the_share_of_the_numbers_that_it_sends(tmp_path):
    """Least at a tenth of the numbers or near it with a residual; roundings of other machines may change a digit."""
    first, behind = rows_below("  | of all numbers | 1 % | 5 % | 10 % | 20 % | 30 % | 50 % | 100 % |")
    for place, ratio in enumerate((0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0), 1):
        for feedback, rounds, cells in (("none", 1, first), ("residual", 30, behind)):
            config = {
                "rounds": rounds,
                "devices": {"count": 10},
                "data": {"partition": "iid"},
                "round": {"admission": "count", "count": 10},
                "learning": {"model": "mlp", "pretrain": False, "back_end": "loop"},
                "upload": {"codec": "stc", "ratio": ratio, "feedback": feedback},
            }
            metrics = play(tmp_path / f"{feedback}-{ratio}", config).metrics
            errors = metrics.query("name == 'codec' and key == 'error'")["value"]
            assert len(errors) == rounds
            late = errors.iloc[20:] if rounds > 1 else errors
            assert late.mean() == pytest.approx(float(cells[place]), abs=0.01)
