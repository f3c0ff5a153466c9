"""Lines of `edgesim show` about codecs: those of the run's config, of `run.json` and of `metrics`."""

import pandas as pd
from whole_runs import play

from edgesim.folder.records import read_config
from edgesim.tables.show_coding import coding_rows

STREAM = {"codec": "randk", "ratio": 0.2, "size": "stream", "least": 0.001}


def test_a_run_of_streams_says_what_was_sent_and_received(tmp_path):
    run = play(
        tmp_path,
        seed=3,
        rounds=3,
        devices={"count": 5},
        data={"partition": "iid", "samples_per_device": 40},
        radio={"bandwidth_hz": 2e6, "fading": "rayleigh"},
        round={"tmax_s": 0.8, "allocator": "equal_bits", "close": "deadline", "payload_bits": 17_881_664.0},
        learning={"pretrain": False, "steps": 1, "back_end": "loop"},
        evaluation={"samples": 40},
        upload=STREAM,
    )
    shown = dict(coding_rows(read_config(tmp_path), run.facts, run.metrics))
    assert shown["codec, size, feedback"] == "randk (ratio 0.2), stream least 0.001, none"
    notice = run.facts["update_bits_notice"]
    assert shown["bits of an update"] == f"17,888 for 558,802 numbers ({notice})"
    share = run.metric("received_share")
    assert 0 < share.mean() < 1
    whole, none = 100 * (share == 1).mean(), 100 * (share == 0).mean()
    said = f"{100 * share.mean():.1f}% in the mean, {whole:.1f}% of them whole, {none:.1f}% not at all"
    assert shown["received of uploads"] == said
    assert 0 < whole < 100
    error = run.metrics.query("name == 'codec' and key == 'error'")["value"].mean()
    assert f"relative error {error:.4g}, " in shown["coding, mean of merges"]


def test_a_run_with_codecs_both_ways_names_both_and_says_what_is_measured():
    """In the order of its lines; what a run does not measure is not told."""
    upload = {"codec": "topk", "coding": "rice", "values": "own", "size": "fit", "fit_at": "start", "least": 0.001}
    measured = {"error": [0.25, 0.75], "missing": [2.0], "setting": [17.0], "entropy_bits": [1.5]}
    rows = [(key, value) for key, values in measured.items() for value in values]
    metrics = pd.DataFrame(rows, columns=["key", "value"]).assign(name="codec")
    run = {"update_bits": 17_888, "update_numbers": 558_802, "change_bits": 558_834}
    config = {"upload": upload | {"feedback": "none"}, "download": {"codec": "sign"}}
    assert dict(coding_rows(config, run, metrics)) == {
        "codec, size, feedback": "topk (coding rice, values own), fit fit_at start least 0.001, none",
        "bits of an update": "17,888 for 558,802 numbers",
        "codec down": "sign, 558,834 bits a change",
        "coding, mean of merges": "relative error 0.5, the server lacks 2 times the length of an update, "
        "levels or numbers sent 17, entropy of 1.5 bits a number",
    }
    over = pd.DataFrame({"name": ["codec"], "key": ["bits_over_plan"], "value": [12.0]})
    assert dict(coding_rows({}, {}, over)) == {"coding, mean of merges": "12 bits an upload more than planned"}
    assert dict(coding_rows({}, {}, metrics[:0])) == {}
