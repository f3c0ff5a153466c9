"""Lines of `edgesim show` about codecs: those of the run's config, of `run.json` and of `metrics`."""

import io

from rich.console import Console

from edgesim.config_file import parse
from edgesim.folder.records import read_run, read_table
from edgesim.simulation import composition as simulation
from edgesim.tables.show import print_run

STREAM = {"codec": "randk", "ratio": 0.2, "size": "stream", "least": 0.001}


def lines(folder, upload=None, download=None):
    """Lines about a run of three rounds, by their names."""
    config = {
        "seed": 3,
        "rounds": 3,
        "devices": {"count": 5},
        "data": {"partition": "iid", "samples_per_device": 40},
        "radio": {"bandwidth_hz": 2e6, "fading": "rayleigh"},
        "round": {"tmax_s": 0.8, "allocator": "equal_bits", "close": "deadline", "payload_bits": 17_881_664.0},
        "learning": {"pretrain": False, "steps": 1, "back_end": "loop"},
        "evaluation": {"samples": 40},
        "upload": upload,
        "download": download,
    }
    simulation.run(parse({key: value for key, value in config.items() if value is not None}, "test"), folder)
    console = Console(file=io.StringIO(), width=2000)
    print_run(folder, console)
    cells = (line.strip("│┌┐└┘ ").split("│") for line in console.file.getvalue().splitlines() if "│" in line)
    return {row[0].strip(): row[1].strip() for row in cells if len(row) == 2}


def test_a_run_of_streams_says_what_was_sent_and_received(tmp_path):
    shown, metrics = lines(tmp_path, STREAM), read_table(tmp_path, "metrics")
    assert shown["codec, size, feedback"] == "randk (ratio 0.2), stream least 0.001, none"
    notice = read_run(tmp_path)["update_bits_notice"]
    assert shown["bits of an update"] == f"17,888 for 558,802 numbers ({notice})"
    share = metrics.query("name == 'received_share'")["value"]
    assert 0 < share.mean() < 1
    whole, none = 100 * (share == 1).mean(), 100 * (share == 0).mean()
    said = f"{100 * share.mean():.1f}% in the mean, {whole:.1f}% of them whole, {none:.1f}% not at all"
    assert shown["received of uploads"] == said
    assert 0 < whole < 100
    error = metrics.query("name == 'codec' and key == 'error'")["value"].mean()
    assert f"relative error {error:.4g}, " in shown["coding, mean of merges"]


def test_a_run_with_codecs_both_ways_names_both_and_says_what_is_measured(tmp_path):
    shown = lines(tmp_path, {"codec": "topk", "size": "fit"}, {"codec": "sign"})
    of = read_table(tmp_path, "metrics").query("name == 'codec'").groupby("key")["value"].mean()
    assert shown["coding, mean of merges"] == (
        f"relative error {of['error']:.4g}, the server lacks {of['missing']:.4g} times the length of an update, "
        f"levels or numbers sent {of['setting']:.4g}, entropy of {of['entropy_bits']:.4g} bits a number"
    )
    assert shown["codec, size, feedback"].startswith("topk (coding rice, values own), fit fit_at start least 0.001, ")
    assert shown["codec down"] == "sign, 558,834 bits a change"
    assert "received of uploads" not in shown


def test_a_run_whose_values_decide_how_many_bits_are_sent_says_how_many_more_than_planned(tmp_path):
    shown = lines(tmp_path, {"codec": "qsgd", "coding": "elias"})
    over = read_table(tmp_path, "metrics").query("name == 'codec' and key == 'bits_over_plan'")["value"]
    text = f" bits a number, {over.mean():.4g} bits an upload more than planned"
    assert shown["coding, mean of merges"].endswith(text)


def test_a_run_without_codecs_has_none_of_these_lines(tmp_path):
    shown = lines(tmp_path)
    assert "bits up" in shown
    assert not [name for name in shown if "codec" in name or "coding" in name or "received" in name]
