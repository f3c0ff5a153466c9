"""Links that devices do not share: recorded rates, whoever else sends."""

import numpy as np
import pytest
from whole_runs import TIMED, merged, play, stays, write_rows
from whole_runs import phones as own_phones

from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.folder.records import read_table

RATES_BPS = [1e6, 4e6, 2e6, 5e5]
COUNT = {"admission": "count", "count": 4}
ALONE = {"admission": "count", "count": 1}
TASKS = {"protocol": "asynchronous", "payload_bits": 1e6, "tmax_s": 9.0}


@pytest.fixture
def phones(tmp_path):
    """Sections of four devices that compute for 1, 2, 3 and 4 s, and of rounds in which they send 1 Mbit."""
    of_phones = {
        "rounds": 3,
        "round": {"tmax_s": 3.0, "payload_bits": 1e6},
        "learning": {"steps": 1, "batch_size": 10},
    }
    return merged(TIMED, of_phones, own_phones(tmp_path, *zip((0.1, 0.2, 0.3, 0.4), RATES_BPS, strict=True)))


@pytest.mark.parametrize("admission", [{}, COUNT])
def test_every_upload_takes_its_bits_over_its_own_rate(tmp_path, phones, admission):
    uploads = play(tmp_path / "run", phones, round=admission | {"close": "deadline"}).uploads
    uploads = uploads.query("round == 1").set_index("device")
    # Device 2 would end at 3.5 s, so only 0 and 1 make the deadline.
    assert (uploads["t_end_s"] - uploads["t_start_s"])[[0, 1]].tolist() == pytest.approx([1.0, 0.25])
    assert uploads.query("outcome == 'done'").index.tolist() == [0, 1]
    assert admission or uploads.index.tolist() == [0, 1]


@pytest.mark.parametrize("protocol", ["synchronous", "asynchronous"])
def test_the_model_comes_over_the_same_link(tmp_path, phones, protocol):
    """Bits over rate down, compute, bits over rate up: FedDance's device time; 1, 0.25, 0.5 and 2 s each way."""
    knobs = COUNT | {"tmax_s": 9.0, "download_s": "link", "protocol": protocol}
    acts = play(tmp_path / "run", phones, rounds=8, round=knobs).activities
    first = acts[acts["t_end_s"] <= 9].groupby(["device", "activity"])[["t_start_s", "t_end_s", "bits"]].first()
    down, up = (first.xs(way, level="activity") for way in ("download", "upload"))
    down_s = 1e6 / np.array(RATES_BPS)
    assert down["bits"].tolist() == [1e6] * 4
    assert down["t_end_s"].tolist() == pytest.approx(down_s.tolist())
    assert up["t_start_s"].tolist() == pytest.approx((down_s + np.arange(1.0, 5.0)).tolist())
    assert up["t_end_s"].tolist() == pytest.approx((2 * down_s + np.arange(1.0, 5.0)).tolist())


def test_who_cannot_fetch_compute_and_send_in_time_needs_more_than_any_band(tmp_path, phones):
    # 1 + 1 + 1, 0.25 + 2 + 0.25, 0.5 + 3 + 0.5 and 2 + 4 + 2 s against a deadline of 3.
    assert play(tmp_path / "run", phones, round={"download_s": "link"}).rounds["selected"].tolist() == [2] * 3
    with pytest.raises(EdgesimError, match=r"round\.tmax_s = 2: no device can compute and upload"):
        play(tmp_path / "short", phones, round={"download_s": "link", "tmax_s": 2.0})


OWN, LINKS = {"sharing": "own"}, {"links": {"file": "links.csv"}}


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"round": {"download_s": "link"}}, r"download_s = 'link' needs radio\.sharing = 'own', not"),
        ({"round": {"download_s": "link"}, "radio": OWN, "devices": LINKS}, r"'link' does not go with devices\.links"),
        ({"round": {"download_s": -1}}, r"round\.download_s"),
        ({"radio": OWN}, r"radio\.sharing = 'own' needs devices\.links"),
        ({"devices": LINKS}, r"devices\.links needs radio\.sharing = 'own'"),
    ],
)
def test_links_of_the_devices_own_are_refused_without_rates(sections, said):
    with pytest.raises(EdgesimError, match=said):
        parse(sections, "test")


def test_a_profile_without_links_is_refused_in_one_line(tmp_path, phones):
    write_rows(tmp_path / "phones.csv", "device,s_per_sample", [(k, 0.1) for k in range(4)])
    with pytest.raises(EdgesimError, match=r"phones\.csv: has no column link_bps, which radio\.sharing = 'own' needs"):
        play(tmp_path / "run", phones)


def test_without_rounds_every_task_takes_compute_plus_upload(tmp_path, phones):
    played = play(tmp_path / "run", phones, rounds=8, round=COUNT | TASKS)
    lengths_s = np.arange(1, 5) + 1e6 / np.array(RATES_BPS)
    ends = sorted((k * lengths_s[device], device) for device in range(4) for k in range(1, 9))[:8]
    assert played.rounds["t_end_s"].tolist() == pytest.approx([t_s for t_s, _ in ends])
    assert played.updates["device"].tolist() == [device for _, device in ends]


def recorded(folder, seed, after_end=None, seconds=40, count=4):
    """Section of links that change every second, with gaps; and their rates, [devices, seconds]."""
    rng = np.random.default_rng(seed)
    bps = rng.integers(1, 5, (count, seconds)) * 1e5 * rng.integers(0, 2, (count, seconds))
    bps[:, -1] = 1e5
    rows = [(k, t_s, bps[k, t_s], seconds) for t_s in range(seconds) for k in range(count)]
    links = {"file": write_rows(folder / "links.csv", "device,t_s,bps,end_s", rows)}
    return {"devices": {"links": links | ({"after_end": after_end} if after_end else {})}}, bps


def reached_s(bps, start_s, bits):
    """When the sum over the seconds of a link that repeats reaches the bits."""
    second, left_s = int(start_s), 1.0 - start_s % 1.0
    while True:
        now_bps = bps[second % len(bps)]
        # What is left by rounding when a second has carried all does not wait for the next one.
        if now_bps and bits <= now_bps * left_s + 1e-3:
            return second + 1.0 - left_s + bits / now_bps
        bits -= now_bps * left_s
        second, left_s = second + 1, 1.0


@pytest.mark.parametrize("seed", range(3))
def test_an_upload_ends_where_its_own_recorded_capacity_reaches_its_bits(tmp_path, phones, seed):
    links, bps = recorded(tmp_path, seed, "wrap")
    knobs = COUNT | {"tmax_s": 30.0, "payload_bits": 1.5e6, "close": "deadline"}
    played = play(tmp_path / "run", phones, links, rounds=5, round=knobs)
    starts_s = played.rounds.set_index("round")["t_start_s"]
    assert len(played.uploads) == 20
    for upload in played.uploads.itertuples():
        # The link is no slower because others send.
        assert upload.t_start_s == pytest.approx(starts_s[upload.round] + upload.device + 1)
        end_s = reached_s(bps[upload.device], upload.t_start_s, 1.5e6)
        close_s = starts_s[upload.round] + 30.0
        assert upload.outcome == ("done" if end_s <= close_s else "late")
        assert upload.t_end_s == pytest.approx(min(end_s, close_s))


def test_by_the_band_those_are_taken_whose_recorded_links_are_quick_enough(tmp_path, phones):
    links, bps = recorded(tmp_path, 3, "wrap")
    knobs = {"tmax_s": 12.0, "payload_bits": 1.5e6, "close": "deadline"}
    uploads = play(tmp_path / "run", phones, links, rounds=6, round=knobs).uploads
    assert (uploads["outcome"] == "done").all()
    for number in range(1, 7):
        start_s = 12.0 * (number - 1)
        quick = [k for k in range(4) if reached_s(bps[k], start_s + k + 1, 1.5e6) <= start_s + 12.0]
        assert sorted(uploads.query("round == @number")["device"]) == quick
    assert 0 < len(uploads) < 24


def of_record(folder, sharing, links, capacity):
    """Sections of one device whose own link, or whose band, is in a file."""
    file = str(folder / "links.csv")
    (folder / "band.toml").write_text(f'name = "x"\nsource = "y"\n[capacity]\nfile = "links.csv"\n{capacity}\n')
    if sharing == "own":
        return {"devices": {"count": 1, "links": {"file": file} | links}}
    return {"devices": {"count": 1}, "radio": {"sharing": sharing, "channel": str(folder / "band.toml")}}


@pytest.mark.parametrize("sharing", ["own", "reserved", "reshared"])
def test_a_run_whose_uploads_wait_for_capacity_that_never_comes_says_so_or_ends_in_time(tmp_path, phones, sharing):
    write_rows(tmp_path / "links.csv", "device,t_s,bps", [(0, 0, 1e6), (0, 5, 0)])
    world = of_record(tmp_path, sharing, {"after_end": "hold"}, 'after_end = "hold"')
    with pytest.raises(EdgesimError, match="from 5 s on, the recorded capacity is 0 for ever"):
        play(tmp_path / "run", phones, world, rounds=9, round=ALONE | TASKS)
    # A second of computing and one of sending: the third upload would begin at the very end.
    assert read_table(tmp_path / "run", "rounds")["t_end_s"].tolist() == pytest.approx([2.0, 4.0])
    done = play(tmp_path / "stopped", phones, world, rounds=9, stop_at_s=60.0, round=ALONE | TASKS)
    assert done.result.reason.startswith("stop_at_s = 60")


@pytest.mark.parametrize("protocol", ["asynchronous", "synchronous"])
@pytest.mark.parametrize("sharing", ["own", "reserved", "reshared"])
def test_only_a_run_that_sends_at_the_end_of_its_record_fails(tmp_path, phones, sharing, protocol):
    """One device computes for 1 s and sends for 7 s, and nothing is known from 150 s on.

    Eighteen tasks end at 8, 16, ..., 144 s; the next upload begins at 145 s and would end at 152 s.
    """
    write_rows(tmp_path / "links.csv", "device,t_s,bps,end_s", [(0, 0, 1e6, 150)])
    world, ends_s = of_record(tmp_path, sharing, {}, "end_s = 150"), [8.0 * k for k in range(1, 19)]
    knobs = ALONE | {"protocol": protocol, "payload_bits": 7e6, "tmax_s": 30.0}
    knobs |= {"allocator": "equal_share"} if protocol == "synchronous" and sharing != "own" else {}

    def go(name, **changes):
        return play(tmp_path / name, phones, world, {"rounds": 99, "round": knobs}, **changes)

    stopped = go("stopped", stop_at_s=150.0)
    assert stopped.result.reason.startswith("stop_at_s = 150")
    assert stopped.rounds["t_end_s"].tolist() == pytest.approx(ends_s)
    assert go("done", rounds=18).result.reason == "all rounds done"
    with pytest.raises(EdgesimError, match=r"links\.csv: .*capacity is known up to 150 s, but needed later; [^\n]*$"):
        go("failed")
    assert read_table(tmp_path / "failed", "rounds")["t_end_s"].tolist() == pytest.approx(ends_s)
    with pytest.raises(EdgesimError, match=r"known up to 150 s, but needed up to 150\.5 s \(stop_at_s\)"):
        go("refused", stop_at_s=150.5)
    assert not (tmp_path / "refused").exists()
    # The phone leaves for good at 146 s, and its upload with it.
    left = go("left", **stays(tmp_path, (0, 0, 146), after_end="absent", interruption="abort"))
    assert "ever available again" in left.result.reason
    assert left.rounds["t_end_s"].tolist()[:18] == pytest.approx(ends_s)
