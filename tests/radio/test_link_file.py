"""Recorded uplinks of many devices: every answer against a sum over rows in exact arithmetic, and what is refused."""

import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from refusals import in_one_line

from edgesim.base.device_keys import DeviceKeys, texts
from edgesim.config import LinksConfig
from edgesim.radio.capacity import CapacityTables, one_capacity_table
from edgesim.radio.link import RecordedOwnLinks
from edgesim.radio.link_file import LinkRows, load_links, read_links, write_links

HEAD = "device,t_s,bps\n"
Row = tuple[float, float]


def csv(folder: Path, body: str, head: str = HEAD) -> Path:
    path = folder / "links.csv"
    path.write_text(head + body)
    return path


def made(links: list[list[Row]], until_s: list[float], wraps: bool) -> CapacityTables:
    device = np.repeat(np.arange(len(links)), [len(rows) for rows in links])
    t_s, bps = np.array([row for rows in links for row in rows], dtype=float).T
    return CapacityTables("links.csv", device, t_s, bps, np.array(until_s), wraps)


def exact_bits(rows: list[Row], until_s: float, wraps: bool, t0_s: float, t1_s: float) -> Fraction:
    """Row by row of every repetition."""
    total, edges = Fraction(0), [*(t_s for t_s, _ in rows[1:]), until_s if np.isfinite(until_s) else 1e9]
    for cycle in range(int(t1_s // until_s) + 1 if wraps else 1):
        shift = Fraction(until_s) * cycle if wraps else Fraction(0)
        for (begin_s, bps), over_s in zip(rows, edges, strict=True):
            begin, over = max(Fraction(begin_s) + shift, Fraction(t0_s)), min(Fraction(over_s) + shift, Fraction(t1_s))
            total += max(over - begin, Fraction(0)) * Fraction(bps)
    return total


@st.composite
def many_links(draw: st.DrawFn) -> tuple[list[list[Row]], list[float], bool]:
    wraps = draw(st.booleans())
    links, until_s = [], []
    for _ in range(draw(st.integers(1, 4))):
        lengths = draw(st.lists(st.floats(1.0, 60.0), min_size=1, max_size=5))
        bps = draw(st.lists(st.just(0.0) | st.floats(1e3, 1e8), min_size=len(lengths), max_size=len(lengths)))
        assume(any(bps))
        edges = np.append(0.0, np.cumsum(lengths)).tolist()
        links.append(list(zip(edges[:-1], bps, strict=True)))
        until_s.append(edges[-1] if wraps else np.inf)
    return links, until_s, wraps


@given(many_links(), st.floats(0.0, 300.0), st.floats(0.0, 300.0), st.floats(1.0, 1e9))
def test_every_link_carries_the_sum_over_its_own_rows(made_up, a_s, b_s, bits):
    links, until_s, wraps = made_up
    tables, ids = made(links, until_s, wraps), np.arange(len(links))
    t0_s, t1_s = sorted((a_s, b_s))
    exact = [exact_bits(rows, end_s, wraps, t0_s, t1_s) for rows, end_s in zip(links, until_s, strict=True)]
    slack = 1e8 * 1e-12 * 300 + 1e-6
    assert tables.bits_between(ids, t0_s, t1_s) == pytest.approx([float(sum_) for sum_ in exact], abs=slack)
    ends_s = tables.end_s(ids, bits, t0_s)
    for device, end_s in zip(ids.tolist(), ends_s.tolist(), strict=True):
        if not end_s < 2000.0:
            continue
        rows, slack = links[device], max(bps for _, bps in links[device]) * 1e-9
        through = exact_bits(rows, until_s[device], wraps, t0_s, end_s)
        assert float(through) == pytest.approx(bits, abs=slack, rel=1e-9)
        slowest_bps = min(bps for _, bps in rows if bps)
        before_s = max(t0_s, end_s - 2 * (slack + 1e-9 * bits) / slowest_bps - 1e-9)
        assert before_s == end_s or exact_bits(rows, until_s[device], wraps, t0_s, before_s) < bits


@given(many_links(), st.floats(0.0, 300.0), st.just(0.0) | st.floats(1.0, 1e9))
def test_the_company_of_other_links_changes_no_bit_of_an_answer(made_up, start_s, bits):
    links, until_s, wraps = made_up
    together = made(links, until_s, wraps).end_s(np.arange(len(links)), bits, start_s)
    for device, rows in enumerate(links):
        t_s, bps = np.array(rows).T
        alone = one_capacity_table("link.csv", t_s, bps, until_s[device], wraps)
        assert alone.end_s(0, bits, start_s) == together[device]


def test_two_links_by_hand():
    # Link 0: 10 bit/s for 2 s, then nothing for 2 s; link 1: 1 bit/s, from 3 s on 5 bit/s, and 8 s long.
    links = RecordedOwnLinks(made([[(0, 10), (2, 0)], [(0, 1), (3, 5)]], [4.0, 8.0], True))
    assert links.end_s(0, 0.0, 0.0, 25.0, 1.0) == 5.5
    assert links.end_s(1, 0.0, 0.0, 25.0, 1.0) == 7.6
    assert links.bits(0, 0.0, 0.0, 1.0, 5.0) == 20.0
    ids, zero = np.array([0, 1]), np.zeros(2)
    assert links.mean_bps(ids, 0.0, zero, 0.0, 4.0).tolist() == [5.0, 2.0]
    # From 1 s on, both instants counted from 10 s: link 0 is then at 3 s of its third run, link 1 at 3 s of its second.
    needs_hz = links.least_hz(ids, np.array([10.0, 10.0]), np.ones(2), 3.0, zero, 10.0)
    assert needs_hz.tolist() == [0.0, 0.0]
    assert links.least_hz(ids, np.array([10.1, 10.1]), np.ones(2), 3.0, zero, 10.0).tolist() == [np.inf, np.inf]
    assert links.least_hz(ids, np.ones(2), np.full(2, 3.0), 3.0, zero, 10.0).tolist() == [np.inf, np.inf]


def test_beyond_its_own_end_a_link_that_does_not_wrap_is_not_asked():
    tables = made([[(0, 10)], [(0, 10)]], [4.0, 9.0], False)
    assert tables.bits_between([0, 1], 0.0, [4.0, 9.0]).tolist() == [40.0, 90.0]
    with in_one_line(r"links\.csv: device 0: the capacity is known up to 4 s, but needed later"):
        tables.end_s([1, 0], 50.0, 0.0)


def test_rows_may_be_mixed_and_further_devices_are_left_out(tmp_path):
    path = csv(tmp_path, "1,0,5\n0,0,3\n2,0,9\n1,2,7\n")
    links = load_links(LinksConfig(file=str(path), end_s=4.0, after_end="wrap"), 2)
    assert (links.link.tolist(), links.t_s.tolist(), links.bps.tolist()) == ([0, 1, 1], [0, 0, 2], [3, 5, 7])
    assert (links.until_s.tolist(), links.wraps) == ([4.0, 4.0], True)
    held = load_links(LinksConfig(file=str(path), after_end="hold"), 3)
    assert (held.until_s.tolist(), held.wraps) == ([np.inf] * 3, False)


def test_a_file_may_say_where_each_device_ends(tmp_path):
    path = csv(tmp_path, "0,0,3,5\n1,0,5,8\n1,2,7,8\n", "device,t_s,bps,end_s\n")
    assert load_links(LinksConfig(file=str(path)), 2).until_s.tolist() == [5.0, 8.0]
    assert load_links(LinksConfig(file=str(path), after_end="hold"), 2).until_s.tolist() == [np.inf, np.inf]
    assert read_links(path).held_s.tolist() == [5.0, 2.0, 6.0]
    with in_one_line(r"devices\.links\.end_s: .*links\.csv has a column end_s already; remove the key"):
        load_links(LinksConfig(file=str(path), end_s=9.0, after_end="wrap"), 2)


def test_links_are_read_back_as_they_were_written(tmp_path):
    names = texts(["home", "tram"])
    rows = np.array([0, 1, 1]), np.array([0, 0, 0.1]), np.array([1.0, 2.0, 1 / 3])
    links = LinkRows(*rows, np.array([7.0, 0.3]), names)
    write_links(tmp_path / "links.parquet", links)
    found = read_links(tmp_path / "links.parquet")
    assert found.end_s is not None
    for name in ("device", "t_s", "bps", "end_s", "keys"):
        assert getattr(found, name).tolist() == getattr(links, name).tolist()
    assert pd.read_parquet(tmp_path / "links.parquet")["key"].tolist() == ["home", "tram", "tram"]
    assert [column.tolist() for column in found.of(1)] == [[0, 0.1], [2.0, 1 / 3]]


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("column", "body", "said"),
    [
        ("", "", "holds no rows; expected device, t_s, bps"),
        ("", "0,0,5\nphone,0,5\n", "line 3: device: expected a whole number, 0 or more (got phone)"),
        ("", "0,0,5\n-1,0,5\n", "line 3: device: expected a whole number, 0 or more (got -1)"),
        ("", "0,0,5\n1.5,0,5\n", "line 3: device: expected a whole number, 0 or more (got 1.5)"),
        ("", "0,0,5\n3,0,5\n1,0,5\n", "device 2 has no rows; expected all devices from 0 to 3"),
        ("", "0,0,5\n1,0,5\n0,4,5\n1,4,5\n0,3,5\n", "line 6: t_s: expected a later time than in the device's row"),
        ("", "0,0,5\n1,1,5\n", "line 3: t_s: expected 0 in the device's first row; count the times from there (got 1)"),
        ("", "0,0,5\n1,0,0\n1,3,0\n", "line 3: bps: expected at least one device's row above 0; no upload would ever"),
        ("", "0,0,5\n1,0,-2\n", "line 3: bps: expected bit/s, 0 or more (got -2)"),
        ("", "0,0,5\n0,soon,2\n", "line 3: t_s: expected a finite number (got soon)"),
        ("end_s", "0,0,5,9\n0,1,5,8\n", "line 3: end_s: expected one end in all rows of a device (got 8)"),
        ("end_s", "0,0,5,9\n1,0,5,4\n1,4,5,4\n", "line 4: end_s: expected an instant after the device's last t_s"),
        ("end_s", "0,0,5,\n", "line 2: end_s: expected a finite number (got nan)"),
        ("key", "0,0,5,a\n0,1,5,b\n", "line 3: key: expected one key in all rows of a device (got b)"),
        ("key", "0,0,5,a\n1,0,5,b\n2,0,5,a\n", "line 4: key: expected a key that no other device has (got a)"),
        ("key", "0,0,5,a\n1,0,5,\n", "line 3: key: expected the device's key (got nan)"),
    ],
)
def test_a_bad_row_is_refused_in_one_line(column, body, said, tmp_path):
    path = csv(tmp_path, body, ",".join(["device,t_s,bps", *column.split()]) + "\n")
    with in_one_line(re.escape(f"{path}: {said}")):
        read_links(path)


def test_links_are_found_by_their_keys_and_without_keys_by_their_place(tmp_path):
    path = csv(tmp_path, "0,0,5,a\n2,0,7,c\n1,0,6,b\n1,2,60,b\n", "device,t_s,bps,key\n")
    keys = DeviceKeys(texts(["c", "b"]), "phones.parquet")
    config = LinksConfig(file=str(path), after_end="hold")
    found = load_links(config, 2, keys)
    assert (found.link.tolist(), found.t_s.tolist(), found.bps.tolist()) == ([0, 1, 1], [0, 0, 2], [7, 6, 60])
    assert load_links(config, 2).bps.tolist() == [5, 6, 60]
    without = csv(tmp_path, "0,0,5\n1,0,6\n")
    assert load_links(LinksConfig(file=str(without), after_end="hold"), 2, keys).bps.tolist() == [5, 6]


@pytest.mark.parametrize(
    ("keys", "count", "said"),
    [
        ({"after_end": "hold"}, 3, "links.csv: is a recording of 2 links, but devices.count is 3; lower devices.count"),
        ({}, 2, "devices.links.end_s: expected the instant at which the last rows end"),
        ({"after_end": "wrap"}, 2, "devices.links.end_s: expected the instant at which the last rows end"),
        ({"end_s": 2.0}, 2, "devices.links.end_s: expected an instant after the start of the last row"),
    ],
)
def test_too_few_links_and_missing_ends_are_refused(keys, count, said, tmp_path):
    path = csv(tmp_path, "0,0,5\n1,0,5\n1,2,6\n")
    with in_one_line(re.escape(said)):
        load_links(LinksConfig(file=str(path), **keys), count)
