"""Links that devices do not share: recorded rates, whoever else sends."""

import numpy as np
import pytest

from edgesim.base.errors import EdgesimError
from edgesim.config_file import parse
from edgesim.folder.records import read_table
from edgesim.simulation import composition as simulation

RATES_BPS = [1e6, 4e6, 2e6, 5e5]


def values(profile, **round_):
    return {
        "rounds": 3,
        "devices": {"count": 4, "profile": str(profile)},
        "radio": {"sharing": "own"},
        "round": {"tmax_s": 3.0, "payload_bits": 1e6, "close": "deadline", **round_},
        "data": {"dataset": "none"},
        "learning": {"training": "none", "steps": 1, "batch_size": 10},
    }


@pytest.fixture
def profile(tmp_path):
    path = tmp_path / "phones.csv"
    rows = [f"{device},{0.1 * (device + 1)},{rate}" for device, rate in enumerate(RATES_BPS)]
    path.write_text("device,s_per_sample,link_bps\n" + "\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize("admission", [{}, {"admission": "count", "count": 4}])
def test_every_upload_takes_its_bits_over_its_own_rate(tmp_path, profile, admission):
    simulation.run(parse(values(profile, **admission), "test"), tmp_path / "run")
    acts = read_table(tmp_path / "run", "activities").query("round == 1")
    uploads = acts[acts["activity"] == "upload"].set_index("device")
    # Compute takes 1, 2, 3 and 4 s; device 2 would end at 3.5 s, so only 0 and 1 make the deadline.
    assert (uploads["t_end_s"] - uploads["t_start_s"])[[0, 1]].tolist() == pytest.approx([1.0, 0.25])
    assert uploads.query("outcome == 'done'").index.tolist() == [0, 1]
    if not admission:
        assert uploads.index.tolist() == [0, 1]


@pytest.mark.parametrize("protocol", [{}, {"close": "arrivals", "protocol": "asynchronous"}])
def test_the_model_comes_over_the_same_link(tmp_path, profile, protocol):
    """Bits over rate down, compute, bits over rate up: FedDance's device time; 1, 0.25, 0.5 and 2 s each way."""
    knobs = {"admission": "count", "count": 4, "tmax_s": 9.0, "download_s": "link", **protocol}
    simulation.run(parse(values(profile, **knobs) | {"rounds": 8}, "test"), tmp_path / "run")
    acts = read_table(tmp_path / "run", "activities")
    first = acts[acts["t_end_s"] <= 9].groupby(["device", "activity"])[["t_start_s", "t_end_s", "bits"]].first()
    down_s = np.array([1e6 / rate for rate in RATES_BPS])
    ready_s = down_s + np.arange(1.0, 5.0)
    assert first.xs("download", level="activity")["t_end_s"].tolist() == pytest.approx(down_s.tolist())
    assert first.xs("download", level="activity")["bits"].tolist() == [1e6] * 4
    assert first.xs("upload", level="activity")["t_start_s"].tolist() == pytest.approx(ready_s.tolist())
    assert first.xs("upload", level="activity")["t_end_s"].tolist() == pytest.approx((ready_s + down_s).tolist())


def test_who_cannot_fetch_compute_and_send_in_time_needs_more_than_any_band(tmp_path, profile):
    # 1 + 1 + 1, 0.25 + 2 + 0.25, 0.5 + 3 + 0.5 and 2 + 4 + 2 s against a deadline of 3.
    simulation.run(parse(values(profile, download_s="link"), "test"), tmp_path / "run")
    assert read_table(tmp_path / "run", "rounds")["selected"].tolist() == [2] * 3
    with pytest.raises(EdgesimError, match=r"round\.tmax_s = 2: no device can compute and upload"):
        simulation.run(parse(values(profile, download_s="link", tmax_s=2.0), "test"), tmp_path / "short")


def test_a_download_over_the_link_needs_one_rate_per_device():
    words = r"round\.download_s = 'link' (needs radio\.sharing = 'own', not|does not go with devices\.links)"
    own = {"radio": {"sharing": "own"}, "devices": {"links": {"file": "links.csv"}}}
    for world in ({}, own):
        with pytest.raises(EdgesimError, match=words):
            parse(world | {"round": {"download_s": "link"}}, "test")
    with pytest.raises(EdgesimError, match=r"round\.download_s"):
        parse({"round": {"download_s": -1}}, "test")


def test_a_profile_without_links_is_refused_in_one_line(tmp_path, profile):
    profile.write_text("device,s_per_sample\n0,0.1\n1,0.1\n2,0.1\n3,0.1\n")
    with pytest.raises(EdgesimError, match=r"phones\.csv: has no column link_bps, which radio\.sharing = 'own' needs"):
        simulation.run(parse(values(profile), "test"), tmp_path / "run")
    with pytest.raises(EdgesimError, match=r"radio\.sharing = 'own' needs devices\.links"):
        parse({"radio": {"sharing": "own"}}, "test")
    with pytest.raises(EdgesimError, match=r"devices\.links needs radio\.sharing = 'own'"):
        parse({"devices": {"links": {"file": "links.csv"}}}, "test")


def test_without_rounds_every_task_takes_compute_plus_upload(tmp_path, profile):
    config = values(profile) | {"rounds": 8, "devices": {"count": 4, "profile": str(profile)}}
    config["round"] = {
        "protocol": "asynchronous", "admission": "count", "count": 4, "payload_bits": 1e6, "tmax_s": 9.0,
    }  # fmt: skip
    simulation.run(parse(config, "test"), tmp_path / "run")
    updates, rounds = (read_table(tmp_path / "run", name) for name in ("updates", "rounds"))
    lengths_s = 10 * 0.1 * np.arange(1, 5) + 1e6 / np.array(RATES_BPS)
    ends = sorted((k * lengths_s[device], device) for device in range(4) for k in range(1, 9))[:8]
    assert rounds["t_end_s"].tolist() == pytest.approx([t_s for t_s, _ in ends])
    assert updates["device"].tolist() == [device for _, device in ends]


def recorded(folder, seed, seconds=40, count=4):
    """A file of links that change every second, with gaps, as [devices, seconds] too."""
    rng = np.random.default_rng(seed)
    bps = rng.integers(1, 5, (count, seconds)) * 1e5 * rng.integers(0, 2, (count, seconds))
    bps[:, -1] = 1e5
    rows = [f"{k},{t},{bps[k, t]},{seconds}" for t in range(seconds) for k in range(count)]
    (folder / "links.csv").write_text("\n".join(["device,t_s,bps,end_s", *rows]))
    return bps


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
def test_an_upload_ends_where_its_own_recorded_capacity_reaches_its_bits(tmp_path, profile, seed):
    bps = recorded(tmp_path, seed)
    config = values(profile, tmax_s=30.0, payload_bits=1.5e6, admission="count", count=4)
    config |= {
        "rounds": 5,
        "devices": {
            "count": 4,
            "profile": str(profile),
            "links": {"file": str(tmp_path / "links.csv"), "after_end": "wrap"},
        },
    }
    simulation.run(parse(config, "test"), tmp_path / "run")
    uploads = read_table(tmp_path / "run", "activities").query("activity == 'upload'")
    starts_s = read_table(tmp_path / "run", "rounds").set_index("round")["t_start_s"]
    assert len(uploads) == 20
    for upload in uploads.itertuples():
        # Compute takes 1, 2, 3 and 4 s; the link is no slower because others send.
        start_s = starts_s[upload.round] + upload.device + 1
        assert upload.t_start_s == pytest.approx(start_s)
        end_s = reached_s(bps[upload.device], upload.t_start_s, 1.5e6)
        close_s = starts_s[upload.round] + 30.0
        assert upload.outcome == ("done" if end_s <= close_s else "late")
        assert upload.t_end_s == pytest.approx(min(end_s, close_s))


def test_by_the_band_those_are_taken_whose_recorded_links_are_quick_enough(tmp_path, profile):
    bps = recorded(tmp_path, 3)
    config = values(profile, tmax_s=12.0, payload_bits=1.5e6)
    config |= {
        "rounds": 6,
        "devices": {
            "count": 4,
            "profile": str(profile),
            "links": {"file": str(tmp_path / "links.csv"), "after_end": "wrap"},
        },
    }
    simulation.run(parse(config, "test"), tmp_path / "run")
    uploads = read_table(tmp_path / "run", "activities").query("activity == 'upload'")
    assert (uploads["outcome"] == "done").all()
    for number in range(1, 7):
        start_s = 12.0 * (number - 1)
        quick = [k for k in range(4) if reached_s(bps[k], start_s + k + 1, 1.5e6) <= start_s + 12.0]
        assert sorted(uploads.query("round == @number")["device"]) == quick
    assert 0 < len(uploads) < 24


def test_a_run_beyond_the_end_of_links_that_neither_wrap_nor_hold_says_so(tmp_path, profile):
    recorded(tmp_path, 0)
    config = values(profile, tmax_s=30.0, payload_bits=1.5e6, admission="count", count=4)
    config["devices"] = {"count": 4, "profile": str(profile), "links": {"file": str(tmp_path / "links.csv")}}
    with pytest.raises(
        EdgesimError, match=r"links\.csv: device \d: the capacity is known up to 40 s, but needed later"
    ):
        simulation.run(parse(config, "test"), tmp_path / "run")


def test_links_over_time_need_no_profile_and_stand_before_its_rates(tmp_path, profile):
    recorded(tmp_path, 1)
    config = values(profile)
    config["devices"] = {"count": 4, "links": {"file": str(tmp_path / "links.csv"), "after_end": "wrap"}}
    config["round"]["tmax_s"] = 60.0
    simulation.run(parse(config, "test"), tmp_path / "run")
    uploads = read_table(tmp_path / "run", "activities").query("activity == 'upload'")
    assert (uploads["outcome"] == "done").all()
    assert (uploads["bandwidth_hz"] == 0).all()


@pytest.mark.parametrize("sharing", ["own", "reserved", "reshared"])
def test_a_run_whose_uploads_wait_for_capacity_that_never_comes_says_so_or_ends_in_time(tmp_path, profile, sharing):
    (tmp_path / "links.csv").write_text("device,t_s,bps\n0,0,1e6\n0,5,0\n")
    (tmp_path / "band.toml").write_text(
        'name = "x"\nsource = "y"\n[capacity]\nfile = "links.csv"\nafter_end = "hold"\n'
    )
    links = {"links": {"file": str(tmp_path / "links.csv"), "after_end": "hold"}} if sharing == "own" else {}
    config = values(profile) | {"rounds": 9, "devices": {"count": 1, "profile": str(profile), **links}}
    config["radio"] = {"sharing": sharing, "channel": str(tmp_path / "band.toml")}
    config["round"] = {
        "protocol": "asynchronous", "admission": "count", "count": 1, "payload_bits": 1e6, "tmax_s": 9.0,
    }  # fmt: skip
    with pytest.raises(EdgesimError, match="from 5 s on, the recorded capacity is 0 for ever"):
        simulation.run(parse(config, "test"), tmp_path / "run")
    # A second of computing and one of sending: the third upload would begin at the very end.
    assert read_table(tmp_path / "run", "rounds")["t_end_s"].tolist() == pytest.approx([2.0, 4.0])
    done = simulation.run(parse(config | {"stop_at_s": 60.0}, "test"), tmp_path / "stopped")
    assert done.reason.startswith("stop_at_s = 60")


def short_record(folder, profile, sharing, protocol):
    """One device that computes for 1 s and sends for 7 s, on a link of which nothing is known from 150 s on."""
    (folder / "links.csv").write_text("device,t_s,bps,end_s\n0,0,1e6,150\n")
    (folder / "band.toml").write_text('name = "x"\nsource = "y"\n[capacity]\nfile = "links.csv"\nend_s = 150\n')
    links = {"links": {"file": str(folder / "links.csv")}} if sharing == "own" else {}
    config = values(profile) | {"rounds": 99, "devices": {"count": 1, "profile": str(profile), **links}}
    config["radio"] = {"sharing": sharing} | ({} if sharing == "own" else {"channel": str(folder / "band.toml")})
    config["round"] = {
        "protocol": protocol, "admission": "count", "count": 1, "payload_bits": 7e6, "tmax_s": 30.0,
    }  # fmt: skip
    if protocol == "synchronous" and sharing != "own":
        config["round"]["allocator"] = "equal_share"
    return config


@pytest.mark.parametrize("protocol", ["asynchronous", "synchronous"])
@pytest.mark.parametrize("sharing", ["own", "reserved", "reshared"])
def test_only_a_run_that_sends_at_the_end_of_its_record_fails(tmp_path, profile, sharing, protocol):
    """Eighteen tasks end at 8, 16, ..., 144 s; the next upload begins at 145 s and would end at 152 s."""
    config, ends_s = short_record(tmp_path, profile, sharing, protocol), [8.0 * k for k in range(1, 19)]

    def play(name, **changes):
        return simulation.run(parse(config | changes, "test"), tmp_path / name)

    def models_s(name):
        return read_table(tmp_path / name, "rounds")["t_end_s"].tolist()

    assert play("stopped", stop_at_s=150.0).reason.startswith("stop_at_s = 150")
    assert models_s("stopped") == pytest.approx(ends_s)
    assert play("done", rounds=18).reason == "all rounds done"
    with pytest.raises(
        EdgesimError, match=r"links\.csv: the capacity is known up to 150 s, but needed later"
    ) as caught:
        play("failed")
    assert "\n" not in str(caught.value)
    assert models_s("failed") == pytest.approx(ends_s)
    with pytest.raises(EdgesimError, match=r"known up to 150 s, but needed up to 150\.5 s \(stop_at_s\)"):
        play("refused", stop_at_s=150.5)
    assert not (tmp_path / "refused").exists()
    # The phone leaves for good at 146 s, and its upload with it.
    (tmp_path / "phone.csv").write_text("device,start_s,end_s\n0,0,146\n")
    availability = {
        "model": "table",
        "file": str(tmp_path / "phone.csv"),
        "after_end": "absent",
        "interruption": "abort",
    }
    assert "ever available again" in play("left", availability=availability).reason
    assert models_s("left")[:18] == pytest.approx(ends_s)


def test_by_the_band_nobody_is_planned_beyond_the_end_of_the_record_and_the_clock_does_not_pass_it(tmp_path, profile):
    recorded(tmp_path, 0)
    config = values(profile, tmax_s=16.0, payload_bits=1e5)
    config["devices"] = {"count": 4, "profile": str(profile), "links": {"file": str(tmp_path / "links.csv")}}
    # Rounds begin at 0, 16 and 32 s; what the third can plan with ends at 40 s, and so does the run.
    done = simulation.run(parse(config | {"rounds": 9, "stop_at_s": 40.0}, "test"), tmp_path / "stopped")
    assert done.reason.startswith("stop_at_s = 40")
    uploads = read_table(tmp_path / "stopped", "activities").query("activity == 'upload'")
    assert (uploads["outcome"] == "done").all()
    with pytest.raises(EdgesimError, match="known up to 40 s, but needed later"):
        simulation.run(parse(config | {"rounds": 9}, "test"), tmp_path / "failed")
    assert read_table(tmp_path / "failed", "rounds")["t_start_s"].tolist() == pytest.approx([0.0, 16.0, 32.0])
