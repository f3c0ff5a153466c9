"""Runs with whose choice no device could send: they are left out of the plan, all seeds of them."""

from edgesim.scenario import Runs
from edgesim.scenario.reach import leave_out_silent


def planned(seeds):
    runs = Runs(seeds=seeds)
    for name, upload in (("none", {"codec": "none"}), ("sign", {"codec": "sign"}), ("wrong", {"codec": "sign"})):
        for mhz in (0.4, 20.0):
            base = {
                "rounds": 1,
                "radio": {"bandwidth_hz": mhz * 1e6},
                "round": {"tmax_s": 0.5, "payload_bits": 17_881_664.0},
                "upload": upload,
            }
            # An error of another kind is the run's own to tell.
            wrong = {"devices": {"profile": "no-such-file"}} if name == "wrong" else {}
            runs.add(base | wrong, labels={"codec": name, "mhz": mhz})
    return runs


def test_runs_in_which_nobody_can_send_are_left_out_and_counted():
    runs = planned(seeds=2)
    silent = leave_out_silent(runs, ["mhz", "codec"])
    assert silent.to_dict("records") == [{"mhz": 0.4, "codec": "none", "seeds": 2}]
    left = [(run.knobs["codec"], run.knobs["mhz"], run.seed) for run in runs.planned]
    assert left == [
        (codec, mhz, seed)
        for codec, bands in (("none", [20.0]), ("sign", [0.4, 20.0]), ("wrong", [0.4, 20.0]))
        for mhz in bands
        for seed in (0, 1)
    ]


def test_one_seed_in_which_nobody_can_send_leaves_out_the_others_too(monkeypatch):
    monkeypatch.setattr("edgesim.scenario.reach._can_send", lambda run: run.seed != 1 or run.knobs["codec"] != "sign")
    runs = planned(seeds=3)
    silent = leave_out_silent(runs, ["codec"])
    assert silent.to_dict("records") == [{"codec": "sign", "seeds": 2}]
    assert {run.knobs["codec"] for run in runs.planned} == {"none", "wrong"}
