"""Links that devices do not share: recorded rates, whoever else sends."""

import numpy as np
import pytest

from edgesim import simulation
from edgesim.config import parse
from edgesim.errors import EdgesimError
from edgesim.records import read_table

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


def test_a_profile_without_links_is_refused_in_one_line(tmp_path, profile):
    profile.write_text("device,s_per_sample\n0,0.1\n1,0.1\n2,0.1\n3,0.1\n")
    with pytest.raises(EdgesimError, match=r"phones\.csv: has no column link_bps, which radio\.sharing = 'own' needs"):
        simulation.run(parse(values(profile), "test"), tmp_path / "run")
    with pytest.raises(EdgesimError, match=r"radio\.sharing = 'own' needs devices\.profile"):
        parse({"radio": {"sharing": "own"}}, "test")


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
