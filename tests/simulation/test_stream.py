"""Whole runs whose uploads are ended by the deadline: what is received, what it is worth, and what is refused."""

import signal
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from refusals import in_one_line
from small_runs import SIZED
from stopped_runs import content, facts, saved_rounds
from two_processes import ENVIRONMENT
from whole_runs import TRAINING, configs, merged, plays

from edgesim import load
from edgesim.analysis.runs import runs_of
from edgesim.analysis.streams import received_share
from edgesim.folder.records import read_run, read_table
from edgesim.learning import draws
from edgesim.learning.charges import UploadCharges
from edgesim.learning.codecs import make_codec
from edgesim.learning.codecs.randk import RandK
from edgesim.learning.codecs.transmission import largest_setting
from edgesim.learning.sizes.stream import Stream
from edgesim.learning.transforms.encode import Encode
from edgesim.plots.gantt import draw_gantt
from edgesim.radio.bandwidth import rate_bps
from edgesim.radio.link import ShannonLink
from edgesim.selection.oort import Oort
from edgesim.selection.random_choice import RandomChoice
from edgesim.simulation import composition as simulation
from edgesim.simulation.complete import complete

D, TMAX_S = 558_802, 0.8
STREAMS = {
    "radio": {"bandwidth_hz": 2e6},
    "round": {"close": "deadline", "admission": "count", "count": 6},
    "upload": {"codec": "randk", "ratio": 0.2, "size": "stream"},
}
BASE = merged(SIZED, STREAMS)
TOPK = {"codec": "topk", "coding": "index"}
EQUAL = {"allocator": "equal_share"}


config = configs(BASE)
run = plays(BASE)


def test_worked_numbers_of_a_stream():
    """A megahertz for half a second at .3 of the average gain."""
    bits = 4_371_460.865944
    snr_hz = 1_424_772_642.107986
    assert rate_bps(1e6, 0.3 * snr_hz, 1.0) / 2 == pytest.approx(bits, rel=1e-12)
    planned_bits = ShannonLink(1.0).bits(0, 1e6, snr_hz, 0.0, 0.5)
    topk, _ = largest_setting(make_codec("topk", {"coding": "index"}), D, int(planned_bits) - 32)
    assert topk == 100_744
    topk, randk = make_codec("topk", {"coding": "index", "ratio": topk / D}), make_codec("randk", {"ratio": 1.0})
    for codec, prefix in ((topk, 84_065), (randk, 136_607)):
        charges = UploadCharges(32.0 * D, Stream(codec, D, None), 1, 0.0)
        whole_bits = float(charges.coded(np.array([32.0 * D]))[0])
        assert charges.sized(whole_bits, bits) == (prefix, codec.bits(D, prefix) + 32)
        assert charges.sized(whole_bits, 2 * whole_bits) == (codec.setting(D), whole_bits)
    assert topk.setting(D) == 100_744
    whole_bits = topk.bits(D, 100_744) + 32
    assert 0.5 * whole_bits / bits == pytest.approx(0.5991955734, abs=1e-9)
    assert pytest.approx(3.0905810098, abs=1e-10) == D / 136_607 - 1


def test_the_corrected_prefix_is_right_in_the_mean_whatever_law_cuts_it():
    """Prefixes of 1 to 20 of 20 numbers, most of them short: mean and squared error of 40,000 draws within three
    standard errors of the vector and of the mean of d/k' - 1 times its square."""
    vector, codec, count = torch.linspace(-1, 2, 20, dtype=torch.float64), RandK(ratio=1.0), 40_000
    lengths = torch.from_numpy(1 + np.random.default_rng(5).binomial(19, 0.2, count))[:, None]
    uniforms = draws.uniform(draws.key(3, 0), 0, (count, 20), vector.float())
    first = uniforms.argsort(dim=1).argsort(dim=1) < lengths
    coded = torch.where(first, vector * (20 / lengths), 0.0)
    for row in range(200):
        ours = codec.coded(vector.float(), uniforms[row], int(lengths[row]))
        assert torch.allclose(ours, coded[row].float(), rtol=1e-6)
    errors = coded - vector
    assert bool((errors.mean(0).abs() < 3 * errors.std(0) / count**0.5).all())
    squared = errors.square().sum(1)
    expected = (20 / lengths - 1).mean() * vector.square().sum()
    assert abs(squared.mean() - expected) < 3 * squared.std() / count**0.5


def replayed(starts_s, due_s, left, hz, snr_hz, band_hz):
    """Bits sent of each upload of ``left`` bits until they are due, [n], from event to event.

    A plain replay of `SharedBand`: those on the air share the band by their weights ``hz``.
    """
    sent, now_s = np.zeros(len(starts_s)), starts_s.min()
    while now_s < due_s - 1e-12:
        active = (starts_s <= now_s + 1e-12) & (left - sent > 1e-3)
        rates = rate_bps(band_hz * hz[active] / hz[active].sum(), snr_hz[active], 1.0)
        next_s = min([*(now_s + (left - sent[active]) / rates), *starts_s[starts_s > now_s + 1e-12], due_s])
        sent[active] += rates * (next_s - now_s)
        now_s = next_s
    return sent


def random_streams(seed: int, rounds: int) -> dict[str, Any]:
    """Sections of a random run of streams: devices begin at unlike instants, most of them on unlike weights."""
    rng = np.random.default_rng([7, seed])
    codec = [{"codec": "randk"}, TOPK][seed % 2]
    return {
        "seed": int(rng.integers(1_000)),
        "rounds": rounds,
        "devices": {"count": int(rng.integers(4, 12))},
        "radio": {"bandwidth_hz": float(10 ** rng.uniform(5.8, 6.5)), "fading": "rayleigh"},
        "round": {
            "tmax_s": round(float(rng.uniform(0.5, 1.2)), 2),
            "allocator": str(rng.choice(["equal_bits", "equal_bits", "equal_share"])),
            "count": int(rng.integers(2, 5)) if seed % 3 else 4,
        },
        "upload": codec | {"ratio": round(float(10 ** rng.uniform(-0.5, 0)), 3), "least": 0.001},
    }


@pytest.mark.parametrize(
    ("seed", "rounds"), [(0, 3), (1, 3), *[pytest.param(seed, 15, marks=pytest.mark.slow) for seed in range(2, 22)]]
)
def test_streams_beside_a_plain_replay_of_random_rounds(run, seed, rounds):
    """On each kind of band. Weights are the shares of a run with reserved bands, which has the same plans."""
    sections = random_streams(seed, rounds)
    upload, radio = sections["upload"], sections["radio"]
    options = {key: upload[key] for key in ("ratio", "coding") if key in upload}
    codec, tmax_s, band_hz = make_codec(upload["codec"], options), sections["round"]["tmax_s"], radio["bandwidth_hz"]
    whole, entry_bits = codec.setting(D), codec.bits(D, 1)
    world, left = simulation.Simulation(config(**sections)).world, float(entry_bits * whole + 32)
    shares, cut, weights = {}, 0, set()
    for sharing in ("reserved", "reshared"):
        played = run(sharing, **sections | {"radio": radio | {"sharing": sharing}})
        starts_s, received = played.rounds.set_index("round")["t_start_s"], played.metric("received_share", "key")
        for number, up in played.uploads.groupby("round"):
            ids, start_s, due_s = up["device"].to_numpy(), up["t_start_s"].to_numpy(), starts_s[number] + tmax_s
            gain = world.gain(ids, int(number), float(starts_s[number]), np.zeros_like(ids))
            snr_hz = world.drawn_rx_power_w(ids, int(number), gain) / world.links[0].noise_w_per_hz
            if sharing == "reserved":
                shares[number] = hz = up.set_index("device")["bandwidth_hz"]
                weights.update((hz / band_hz).round(6))
                sent = np.minimum(left, rate_bps(hz.to_numpy(), snr_hz, 1.0) * (due_s - start_s))
            else:
                sent = replayed(start_s, due_s, left, shares[number][ids].to_numpy(), snr_hz, band_hz)
            for row, bits in zip(up.itertuples(), sent, strict=True):
                k = min(int((bits * (1 + 1e-9) - 32) // entry_bits), whole)
                assert row.outcome == ("done" if k > 0 else "late")
                assert row.bits == pytest.approx(bits, rel=1e-6)
                assert abs(received[f"{row.device}/{row.task}"] * whole - k) <= 1e-6 * k + 0.5
                cut += 0 < k < whole
    assert len(shares) == rounds
    assert cut
    assert (len(weights) > rounds) == (sections["round"]["allocator"] == "equal_bits")


def test_a_stream_that_is_through_before_the_deadline_ends_then(run):
    played = run(upload={"ratio": 0.001})
    up = played.uploads
    assert set(up["outcome"]) == {"done"}
    assert up["bits"].unique().tolist() == [32 * 559 + 32]
    assert (up["t_end_s"] < played.rounds["t_end_s"].max()).all()
    assert played.metric("received_share").unique().tolist() == [1.0]


def test_a_stream_of_which_no_number_came_is_late(run):
    """Behind the header the first number takes 32 bits of those that a few hertz carry, which are about as many."""
    played = run(upload={"ratio": 1.0, "least": 1e-6}, radio={"bandwidth_hz": 20.0}, round=EQUAL)
    up = played.uploads
    assert up["outcome"].tolist() == ["done" if bits >= 64 else "late" for bits in up["bits"]]
    assert set(up["outcome"]) == {"done", "late"}
    assert (played.rounds["late"] == up["outcome"].eq("late").groupby(up["round"]).sum().to_numpy()).all()


def test_a_device_that_leaves_has_lost_its_stream(run):
    slots = {"model": "bernoulli", "probability": 0.7, "slot_s": 0.3}
    played = run(availability=slots, rounds=15)
    up, rounds = played.uploads, played.rounds
    assert {"done", "dropped"} <= set(up["outcome"])
    assert (rounds["arrived"] + rounds["late"] + rounds["dropped"] == rounds["selected"]).all()
    assert rounds["arrived"].sum() == len(played.updates)
    lost = up[up["outcome"] == "dropped"]
    received = played.metric("received_share", "key")
    assert (received[lost["device"].astype(str) + "/" + lost["task"].astype(str)] == 0).all()


def test_with_wires_the_deadline_is_the_stations(run):
    played = run(topology={"file": "three-cells"}, round={"count": 8})
    up, starts_s = played.uploads.query("outcome == 'done'"), played.rounds.set_index("round")["t_start_s"]
    latest_s = (up["t_end_s"] - up["round"].map(starts_s)).max()
    # Latencies of 21 ms and 3.6 Mbit over 1 Gbit/s and 200 Mbit/s.
    bits = 32 * np.ceil(0.2 * D) + 32
    assert latest_s == pytest.approx(TMAX_S - 0.021 - bits / 1e9 - bits / 200e6, abs=1e-9)


def test_policies_hear_the_shares_that_were_received(run, monkeypatch):
    """Those of all who were selected, as `metrics` has them, but of those who left; airtimes of the merged."""
    heard = []
    monkeypatch.setattr(Oort, "hear", lambda policy, report: heard.append(report))
    slow = {"radio": {"bandwidth_hz": 4e5}, "devices": {"mu_samples_per_s": 150.0}}
    come_and_go = {"availability": {"model": "bernoulli", "probability": 0.8, "slot_s": 0.3}}
    played = run(upload=TOPK, selection={"policy": "oort"}, **TRAINING | slow | come_and_go)
    rows = played.metrics.query("name == 'received_share'")
    expected = {(row.round, int(row.key.partition("/")[0])): row.value for row in rows.itertuples()}
    told = {(of.round, device): share for of in heard for device, share in zip(of.selected, of.received, strict=True)}
    gone = played.activities.query("outcome == 'dropped'")
    left = told.keys() & set(zip(gone["round"], gone["device"], strict=True))
    assert left == {key for key, share in told.items() if np.isnan(share)} != set()
    assert told | dict.fromkeys(left, 0.0) == expected
    assert 0 < sum(0 < share < 1 for share in told.values()) < len(told)
    assert 0 in told.values()
    up = played.uploads.set_index(["round", "device"])
    airtime_s = up["t_end_s"] - up["t_start_s"]
    for of in heard:
        assert of.feedback.upload_s == pytest.approx([airtime_s[of.round, device] for device in of.feedback.ids])
    heard.clear()
    run("whole", upload={"size": "fixed", "codec": "randk", "ratio": 0.001}, selection={"policy": "oort"}, **TRAINING)
    assert {of.received is None for of in heard} == {True}


@pytest.mark.parametrize("size", ["stream", "fit", "fixed"])
def test_policies_are_told_when_a_whole_upload_would_end(run, monkeypatch, size):
    """A whole stream has 111,761 numbers where admission plans with 559; a size that fits fills the time."""
    asked, choose, rows = [], RandomChoice.choose, np.arange(8)

    def caught(policy, view):
        of = view.estimates
        asked.append([of.ready_s(rows), of.upload_s(rows, 3), of.finish_s(rows, 3), of.due_s(rows)])
        return choose(policy, view)

    monkeypatch.setattr(RandomChoice, "choose", caught)
    options = {"stream": {"least": 0.001}, "fit": {"least": 0.001, "ratio": None}, "fixed": {}}[size]
    run(rounds=1, upload={"size": size} | options)
    ((ready_s, upload_s, finish_s, due_s),) = asked
    if size == "fit":
        assert finish_s.tolist() == due_s.tolist()
    else:
        whole = (32 * 111_761 + 32) / (32 * 559 + 32) if size == "stream" else 1.0
        assert finish_s - ready_s == pytest.approx(whole * upload_s)


@pytest.mark.parametrize("codec", [TOPK, {"codec": "randk"}], ids=["topk", "randk"])
def test_what_is_merged_is_the_prefix_and_residuals_keep_the_rest(run, monkeypatch, codec):
    """Caught where the server receives: k of P numbers are those that the share of D says; topk's are the largest."""
    caught, apply = {}, Encode.apply

    def catch(self, updates):
        passed, before = apply(self, updates), dict(self.state)
        rows = zip(updates.ids.tolist(), updates.tasks.tolist(), updates.vectors, passed.received, strict=True)
        for device, task, update, received in rows:
            caught[f"{device}/{task}"] = update, received, before.get(device, 0.0), passed.memories.get(device)
        return passed

    monkeypatch.setattr(Encode, "apply", catch)
    share = run(upload=codec, **TRAINING).metric("received_share", "key").loc[lambda shares: shares > 0]
    assert {*caught} == {*share.index}
    assert share.between(0.01, 0.99).any()
    whole = make_codec("topk", {"ratio": 0.2}).setting(D)
    for key, (update, received, before, memory) in caught.items():
        k = int(np.ceil(round(share[key] * whole) / D * 2410 - 1e-9))
        kept = received.nonzero().flatten()
        if memory is None:
            # Of the k entries that were drawn some may be 0.
            assert 0 < len(kept) <= k
            assert torch.allclose(received[kept], update[kept] * (2410 / k), rtol=1e-5)
        else:
            assert {*kept.tolist()} == {*(update + before).abs().topk(k).indices.tolist()}
            assert torch.allclose(received + memory, update + before, atol=1e-7)
    assert {memory is None for *_, memory in caught.values()} == {codec["codec"] == "randk"}


KILLED = """
import os, signal, sys
from pathlib import Path
from edgesim import load
from edgesim.engine.clock import Clock
from edgesim.simulation import composition

config, folder, until_s, step = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]), Clock.step
Clock.step = lambda clock: os.kill(os.getpid(), signal.SIGKILL) if clock.peek() > until_s else step(clock)
composition.run(load(config), folder, checkpoint_s=0.0)
"""
"""Plays a run until its next event lies behind an instant."""


@pytest.mark.slow
@pytest.mark.parametrize("sharing", ["reserved", "reshared"])
def test_a_process_killed_while_all_streams_of_a_round_are_on_the_air_is_resumed_to_every_byte(tmp_path, sharing):
    """By SIGKILL, between the last event before the deadline and the deadline."""
    simulation.run(config(**TRAINING, upload=TOPK, radio={"sharing": sharing}), tmp_path / "undisturbed")
    up = read_table(tmp_path / "undisturbed", "activities").query("activity == 'upload' and round == 4")
    assert len(up) > 2
    assert up["t_end_s"].nunique() == 1
    on_air_s = (up["t_start_s"].max() + up["t_end_s"].min()) / 2
    settings, folder = tmp_path / "undisturbed/config.toml", tmp_path / "killed"
    command = [sys.executable, "-c", KILLED, str(settings), str(folder), str(on_air_s)]
    assert subprocess.run(command, env=ENVIRONMENT, check=False).returncode == -signal.SIGKILL
    assert read_run(folder)["status"] == "running"
    assert saved_rounds(folder)[0] == 3
    assert simulation.run(load(settings), folder).resumed_after == 3
    assert content(folder) == content(tmp_path / "undisturbed")
    assert facts(folder) == facts(tmp_path / "undisturbed")


def test_admission_plans_with_the_whole_or_with_the_least(run):
    """A band that one whole update fills serves everybody by the least."""
    by_band = {"admission": None, "count": None}
    whole, least = (run(str(least), round=by_band, upload={"least": least}).rounds for least in (None, 0.001))
    assert whole["selected"].max() < least["selected"].max() == 8


def test_the_picture_of_a_round_shows_how_much_was_received(run):
    (this,) = runs_of([run().folder])
    share = received_share(this, this.activities)
    assert 0 < (share < 1).sum() < len(share)
    figure = draw_gantt(this, 2)
    heights = {round(bar.get_height(), 3) for bar in figure.axes[0].patches}
    of_round = share[(this.activities["round"] == 2) & (share < 1)]
    assert {round(0.72 * part, 3) for part in of_round} <= heights
    texts = figure.axes[0].texts
    assert {text.get_text() for text in texts} == {f"{100 * part:.2g} %" for part in of_round}
    assert "received in part" in [text.get_text() for legend in figure.legends for text in legend.get_texts()]


NO_ROUNDS = {"protocol": "buffered", "close": "arrivals", "allocator": "least"}
LEAST = {"upload": {"least": 0.001}, "round": {"allocator": "least"}}


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        *(
            ({"upload": {"codec": codec, "ratio": None}}, rf"upload\.size: 'stream' .* upload\.codec = '{codec}'")
            for codec in ("none", "half", "natural", "sign", "qsgd")
        ),
        ({"upload": {"codec": "topk"}}, r"upload\.size: 'stream' does not go with .* 'topk' with coding = 'rice'"),
        ({"upload": {"codec": "stc", "coding": "index"}}, r"upload\.size: 'stream' does not go with upload\.codec"),
        ({"round": {"late": "keep"}}, r"upload\.size = 'stream' needs round\.late = 'drop'"),
        ({"round": {"close": "arrivals"}}, r"upload\.size = 'stream' needs round\.close = 'deadline'"),
        ({"round": NO_ROUNDS}, r"'stream' needs round\.protocol = 'synchronous', not 'buffered': without rounds"),
        ({"upload": {"beside": "coded"}, "algorithm": {"name": "scaffold"}}, r"upload\.beside"),
        (LEAST, r"size = 'stream' needs round\.allocator = 'equal_"),
        ({"upload": {"least": 2.0}}, r"upload\.least: expected a ratio above 0 and up to 1 \(got 2\)"),
        ({"upload": {"least": 0.5}}, r"upload\.least: expected at most the size of a whole .* 0\.2 \(got 0\.5\)"),
        ({"upload": {"fit_at": "plan"}}, r"upload\.fit_at.* needs upload\.size = 'fit'"),
    ],
)
def test_what_does_not_go_with_streams_is_refused_in_a_line(sections, message):
    with in_one_line(message):
        complete(config(**sections))


def test_whole_streams_that_nobody_can_end_are_refused_with_the_way_out(run):
    """On links of their own, too: planned with fewer numbers they go out."""
    own = {"radio": {"sharing": "own", "fading": "none"}, "devices": {"profile": "sample-phones"}}
    own |= {"round": {"allocator": "least", "tmax_s": 2.5}}
    with in_one_line(r"or set upload\.least: with upload\.size = 'stream'"):
        run(upload={"ratio": 1.0}, **own)
    assert "done" in set(run("least", upload={"ratio": 1.0, "least": 0.001}, **own).uploads["outcome"])
