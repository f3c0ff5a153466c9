"""Whole runs whose updates are as large as the channel carries: what is sent, when, and what is refused."""

import numpy as np
import pandas as pd
import pytest
from refusals import in_one_line
from small_runs import SIZED
from whole_runs import TRAINING, configs, plays

import edgesim
from edgesim.learning.codecs import make_codec
from edgesim.learning.codecs.topk import TopK
from edgesim.radio.allocators.least_error import LeastError
from edgesim.simulation.complete import complete

D, TMAX_S = 558_802, 0.8
BASE = SIZED | {"devices": {"count": 10}, "upload": {"codec": "topk", "size": "fit"}}
BUFFERED = {
    "protocol": "buffered",
    "admission": "count",
    "count": 4,
    "allocator": "least",
    "protocol_options": {"buffer": 3},
}


config = configs(BASE)
run = plays(BASE)


def uploads_of(played):
    """Uploads with the instants at which their rounds began and their tasks began to compute."""
    rounds = played.rounds.set_index("round")["t_start_s"]
    begun = played.activities.query("activity == 'compute'").set_index(["device", "task"])["t_start_s"]
    up = played.uploads.join(begun.rename("begun_s"), on=["device", "task"])
    return up.assign(round_s=up["round"].map(rounds), left=lambda of: of["t_end_s"] - of["t_start_s"])


def assert_as_many_as_fit(up, due_s, codec):
    """Each upload that was done is the largest by its own rate that ends in time."""
    done = up[up["outcome"] == "done"]
    rooms = done["bits"] / done["left"] * (due_s[done.index] - done["t_start_s"])
    assert len(done) > 5
    for bits, room in zip(done["bits"], rooms, strict=True):
        k = codec.largest(D, round(bits) - 32)
        assert codec.bits(D, k) + 32 == round(bits)
        assert codec.bits(D, k) + 32 <= room * (1 + 1e-6)
        assert k == codec.largest(D, 40 * D) or codec.bits(D, k + 1) + 32 > room * (1 - 1e-6)


@pytest.mark.parametrize("codec", ["topk", "stc", "randk"])
def test_an_upload_that_begins_takes_what_its_fading_leaves_and_ends_in_time(run, codec):
    up = uploads_of(run(upload={"codec": codec}))
    assert set(up["outcome"]) == {"done"}
    assert_as_many_as_fit(up, up["round_s"] + TMAX_S, make_codec(codec, {}))


@pytest.mark.parametrize("allocator", ["equal_bits", "least_error", "equal_share"])
def test_levels_are_as_wide_as_fit(run, allocator):
    up = uploads_of(run(upload={"codec": "qsgd"}, round={"allocator": allocator}, radio={"fading": "none"}))
    assert set(up["outcome"]) == {"done"}
    widths = (up["bits"] - 32 - 32 * np.ceil(D / 512)) / D
    assert widths.round(9).isin(range(2, 17)).all()
    rooms = up["bits"] / up["left"] * (up["round_s"] + TMAX_S - up["t_start_s"])
    assert (up["bits"] + D > rooms * (1 - 1e-9)).all()


def test_least_error_is_asked_with_the_samples_of_those_who_share(run, monkeypatch):
    """Devices of unlike data sets: each update counts by its samples, and so do its bits."""
    asked, allocate = [], LeastError.allocate

    def caught(rule, request):
        asked.append(request)
        return allocate(rule, request)

    monkeypatch.setattr(LeastError, "allocate", caught)
    unlike = {"partition": "quantity", "samples_per_device": None}
    played = run(upload={"codec": "qsgd"}, round={"allocator": "least_error"}, data=unlike)
    samples = played.devices.query("frame == 1").set_index("device")["samples"]
    assert len(asked) == 6
    for request in asked:
        own = samples[request.ids].to_numpy()
        assert len({*own}) > 1
        assert request.sizes.weight / request.sizes.weight.sum() == pytest.approx(own / own.sum())


def test_on_a_band_shared_anew_sizes_are_those_of_the_reservations_and_uploads_end_no_later(run):
    """In the first round, behind which the runs are at other instants."""
    reserved, shared = (
        uploads_of(run(how, radio={"sharing": how})).query("round == 1").set_index("device")
        for how in ("reserved", "reshared")
    )
    assert shared["bits"].tolist() == pytest.approx(reserved["bits"].tolist(), rel=1e-12)
    assert (shared["t_end_s"] <= reserved["t_end_s"] + 1e-9).all()
    assert shared["t_end_s"].max() < reserved["t_end_s"].max()


def test_without_rounds_an_upload_has_what_computing_leaves_of_tmax_s(run):
    up = uploads_of(run(round=BUFFERED, rounds=12))
    assert_as_many_as_fit(up, up["begun_s"] + TMAX_S, make_codec("topk", {}))
    planned = uploads_of(run("plan", round=BUFFERED, rounds=12, upload={"fit_at": "plan"}, radio={"fading": "none"}))
    assert_as_many_as_fit(planned, planned["begun_s"] + TMAX_S, make_codec("topk", {}))


def test_without_rounds_a_plan_goes_by_what_is_known_of_the_path(run):
    """At 30 m/s plans on the present gain are often late, those on the known path fill ``tmax_s``."""
    fast = {"model": "direction", "speed_mps": [30.0, 30.0]}
    world = {"mobility": fast, "rounds": 12, "radio": {"fading": "none"}, "upload": {"fit_at": "plan"}}
    lengths_s = {}
    for knowledge in ("present", "known"):
        knobs = {**BUFFERED, "tmax_s": 4.0, "payload_bits": 32.0 * 40 * D, "path_knowledge": knowledge}
        up = uploads_of(run(knowledge, round=knobs, **world)).query("outcome == 'done'")
        lengths_s[knowledge] = (up["t_end_s"] - up["begun_s"]).to_numpy()
    assert (lengths_s["present"] > 4.0 + 1e-3).any()
    assert lengths_s["known"].max() == pytest.approx(4.0, rel=1e-4)
    assert (lengths_s["known"] <= 4.0 + 1e-6).all()


def test_without_rounds_quick_and_slow_devices_take_as_long_and_the_run_says_so(run):
    """Uploads fill what computing leaves, so that those that begin together arrive together."""
    played = run(round=BUFFERED, rounds=12)
    up = uploads_of(played)
    # One whose link carries all its numbers is through before.
    lengths_s = (up["t_end_s"] - up["begun_s"])[up["bits"] < 32 * D]
    assert lengths_s.to_numpy() == pytest.approx(TMAX_S, rel=1e-3)
    assert "fills the round.tmax_s = 0.8 s of its task" in played.facts["notes"]["in step"]
    for name, sections in {"rounds": {}, "fixed": {"round": BUFFERED, "upload": {"size": "fixed"}}}.items():
        assert "in step" not in run(name, **sections).facts["notes"]


@pytest.mark.parametrize("outage", [pytest.param(0.1, marks=pytest.mark.slow), 0.4])
def test_sizes_of_a_plan_with_outage_fail_as_often_as_it_says(run, outage):
    """FedTOE's equal outage: over a thousand uploads within three standard errors."""
    up = uploads_of(run(rounds=100, upload={"fit_at": "plan"}, round={"outage": outage, "close": "deadline"}))
    late = (up["outcome"] == "late").mean()
    assert abs(late - outage) < 3 * np.sqrt(outage * (1 - outage) / len(up))
    # All have the same reserve of gain: none that is in time was close by chance.
    assert len(up) >= 900


def test_plans_without_fading_are_kept(run):
    planned, begun = (
        uploads_of(run(at, upload={"fit_at": at}, radio={"fading": "none"}))[["device", "t_start_s", "t_end_s", "bits"]]
        for at in ("plan", "start")
    )
    pd.testing.assert_frame_equal(planned, begun)
    assert begun["bits"].nunique() > 1


def test_the_smallest_size_is_late_where_it_does_not_fit(run):
    """Nobody sends less than ``least``, 300,000 numbers, whatever the band."""
    sizes = {"upload": {"least": 300_000 / D, "codec": "randk"}, "round": {"admission": "count", "count": 8}}
    narrow = run(**sizes, radio={"bandwidth_hz": 2e6})
    assert set(narrow.uploads["outcome"]) == {"late"}
    assert narrow.facts["update_bits"] == 32 * 300_000
    wide = run("wide", **sizes, radio={"bandwidth_hz": 40e6}).uploads
    assert (wide[wide["outcome"] == "done"]["bits"] >= 32 * 300_000).all()
    assert (wide["outcome"] == "done").any()


def test_wires_take_their_time_off_what_is_sent(run):
    played = run(topology={"file": "three-cells"}, radio={"fading": "none"})
    rounds = played.rounds
    assert (played.uploads["outcome"] == "done").all()
    assert rounds["arrived"].equals(rounds["selected"])
    ends = rounds["t_end_s"] - rounds["t_start_s"]
    assert (ends <= TMAX_S * (1 + 1e-9)).all()
    # The last of each round is at the server when it is due, but for the bits of the next number.
    assert (ends > TMAX_S - 1e-3).all()


def test_devices_that_move_send_what_their_ways_carry(run):
    motion = {"model": "waypoint", "speed_mps": [20.0, 30.0]}
    up = uploads_of(run(mobility=motion, radio={"fading": "none", "shadowing": "map"}))
    assert set(up["outcome"]) == {"done"}
    assert (up["round_s"] + TMAX_S - up["t_end_s"]).max() < 1e-3


def test_links_of_their_own_need_no_allocator(run):
    own = {"allocator": "least", "admission": "count", "count": 8, "tmax_s": 8.0}
    up = uploads_of(run(round=own, radio={"sharing": "own", "fading": "none"}, devices={"profile": "sample-phones"}))
    assert_as_many_as_fit(up, up["round_s"] + 8.0, make_codec("topk", {}))


def test_bits_of_training_runs_are_those_without_training_and_the_codec_keeps_what_was_sent(run):
    """Of a model of 2,410 numbers the share that is charged of 558,802."""
    timing = run("timing")
    real = run("real", **TRAINING)
    for name in ("activities", "rounds"):
        columns = ["round", "bits" if name == "activities" else "bits_up"]
        pd.testing.assert_frame_equal(*(getattr(played, name)[columns] for played in (timing, real)))
    codec = make_codec("topk", {})
    metrics = real.metrics.query("name == 'codec' and key == 'setting'").set_index("round")["value"]
    for number, rows in real.uploads.groupby("round"):
        counts = [codec.largest(D, round(bits) - 32) for bits in rows["bits"]]
        assert metrics[number] == pytest.approx(np.mean([np.ceil(k / D * 2410 - 1e-9) for k in counts]))


def test_sizes_are_told_before_the_run_and_in_it(run, tmp_path):
    facts = run().facts
    assert facts["update_bits"] == make_codec("topk", {}).bits(D, 559)
    assert facts["update_bits_notice"] == "the least that is sent; sizes are decided as the upload begins"
    told = edgesim.dry_run(config(upload={"fit_at": "plan"}), tmp_path / "new").facts["coding"]
    assert (
        "an update of 558,802 numbers takes 24,568 bits, 0.137% of a model's, and more where the channel carries more"
        in told
    )


class Greedy(TopK):
    """Answers more numbers than fit."""

    def largest(self, d, bits):
        return super().largest(d, bits) + 1


class Silent(TopK):
    """Answers nothing where nothing fits, and a half where something does."""

    def largest(self, d, bits):
        return super().largest(d, bits) / 2 if bits > 40 else None


@pytest.mark.parametrize(
    ("codec", "size", "answer"),
    [
        (Greedy, {}, r"\d+ for \d+ bits"),
        (Greedy, {"size": "stream", "coding": "index", "ratio": 1.0}, r"\d+ for \d+ bits"),
        (Silent, {}, r"\d+\.[05] for \d+ bits"),
        (Silent, {"size": "stream", "coding": "index", "ratio": 1.0}, r"\d+\.[05] for \d+ bits"),
    ],
)
def test_a_codec_of_ones_own_that_answers_no_setting_that_fits_is_refused_by_name(run, codec, size, answer):
    path = f"{codec.__module__}.{codec.__name__}"
    expected = rf"upload\.codec: {codec.__name__}\.largest answered {answer} of {D} numbers, expected the greatest"
    with in_one_line(expected):
        run(upload={"codec": path, **size}, round={"close": "deadline"})


OUTAGE = {"outage": 0.1, "admission": "count", "count": 3}
LEAST_ERROR = {"round": {"allocator": "least_error"}}
FINISH = {"allocator": "least", "leftover": "equal_finish"}
BY_BAND = r"upload\.size = 'fit' needs round\.allocator = 'equal_bits' or 'equal_share': "
NONE = r"expected none with upload\.size = 'fit'"


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        *(
            ({"upload": {"codec": codec}}, rf"upload\.size: 'fit' does not go with upload\.codec = '{codec}'")
            for codec in ("sign", "natural", "none", "half")
        ),
        ({"upload": {"ratio": 0.05}}, rf"upload\.ratio: {NONE}, .* \(got 0\.05\); upload\.least is"),
        ({"upload": {"codec": "randk", "ratio": 1.0}}, rf"upload\.ratio: {NONE}"),
        ({"upload": {"codec": "qsgd", "levels": 7}}, rf"upload\.levels: {NONE}"),
        (
            {"round": OUTAGE},
            r"outage = 0\.1 with round\.admission = 'count' needs .* it enters least bandwidths alone",
        ),
        ({"round": {"allocator": "least"}}, BY_BAND + "'least', its default, would share"),
        ({"round": FINISH}, BY_BAND + r"round\.leftover = 'equal_finish' would share"),
        ({"upload": {"sise": "fit"}}, r"^codec 'topk': unknown key 'upload\.sise', did you mean 'upload\.size'\?$"),
        (
            {"upload": {"x": 1}},
            r"'upload\.x'; known: beside, codec, coding, .*, lost, plan, ratio, size, values$",
        ),
        (LEAST_ERROR, r"round\.allocator = 'least_error' needs upload\.codec = 'qsgd'"),
        (LEAST_ERROR | {"upload": {"codec": "qsgd", "size": "fixed"}}, r"'least_error' needs upload\.size = 'fit'"),
        ({"upload": {"size": "fixed", "fit_at": "plan"}}, r"upload\.fit_at.* needs upload\.size = 'fit'"),
        ({"upload": {"size": "fixed", "least": 0.1}}, r"upload\.least.* needs upload\.size = 'fit'"),
        ({"upload": {"size": "huge"}}, r"upload\.size: "),
        (
            {"upload": {"codec": "stc", "least": 0.5}},
            r"least: expected at most the largest size .*'stc' .*0\.5\)",
        ),
        ({"upload": {"least": 1.5}}, r"upload\.least: expected a ratio above 0 and up to 1 \(got 1\.5\)"),
        ({"upload": {"codec": "qsgd", "least": 1.5}}, r"upload\.least: expected the bits of a level, a whole number"),
    ],
)
def test_what_does_not_go_with_a_size_by_the_channel_is_refused_in_a_line(sections, message):
    with in_one_line(message):
        complete(config(**sections))


def test_defaults_are_written_out():
    upload = complete(config()).upload
    assert upload.options == {"coding": "rice", "values": "own"}
    assert complete(complete(config())) == complete(config())
    assert (upload.size, upload.fit_at, upload.least) == ("fit", "start", 0.001)
    assert complete(config(upload={"codec": "qsgd"})).upload.least == 2.0
    fixed = complete(config(upload={"size": "fixed"})).upload
    assert (fixed.fit_at, fixed.least) == (None, None)
