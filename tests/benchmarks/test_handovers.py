"""Bits of uploads over very many handovers: what each piece of an upload carries is the integral of its rate.

At its full size there are 100,000 handovers, which takes several minutes; at the least size some thousands.
"""

import numpy as np
import pandas as pd
from sizes import size
from whole_runs import TIMED

from edgesim.config_file import parse
from edgesim.engine.make_world import make_world
from edgesim.folder.records import read_table
from edgesim.mobility.chords import chords_until
from edgesim.simulation import composition as simulation
from edgesim.simulation.complete import complete
from edgesim.streams import Streams

HANDED_OVER, INTERRUPTION_S, PAYLOAD_BITS = size(100_000, 3_000), 0.05, 6e7
NOISE_W_PER_HZ = 10 ** ((-174.0 - 30.0) / 10)
CONFIG = TIMED | {
    "seed": 5,
    "rounds": size(25, 3),
    "devices": {"count": 60},
    "round": {"payload_bits": PAYLOAD_BITS, "tmax_s": 40.0, "admission": "count", "count": 60,
              "allocator": "equal_share", "computes": "selected"},
    "topology": {"file": "three-cells"},
    "radio": {"grid_m": 10.0},
    "mobility": {"model": "direction", "speed_mps": [100.0, 150.0]},
    "handover": {"hysteresis_db": 0.5, "trigger_s": 0.0, "interruption_s": INTERRUPTION_S},
}  # fmt: skip


def test_bits_are_conserved_over_very_many_handovers(benchmark, tmp_path):
    """Integrals by chords that are worked out anew, to 1e-9; the silences add up to interruptions."""
    benchmark.pedantic(lambda: simulation.run(complete(parse(CONFIG, "handovers")), tmp_path / "run"), rounds=1)
    handovers = read_table(tmp_path / "run", "handovers")
    assert len(handovers) >= HANDED_OVER
    uploads = read_table(tmp_path / "run", "activities").query("activity == 'upload'")
    task = ["device", "task"]
    columns = handovers[[*task, "t_s", "from_station", "to_station"]].sort_values("t_s")
    joined = uploads.sort_values("t_start_s").astype(dict.fromkeys(task, "int64"))
    columns = columns.astype(dict.fromkeys(task, "int64"))
    # A piece between two handovers of its task has the station that the first one enters and the next one leaves.
    for direction, of in (("backward", "to_station"), ("forward", "from_station")):
        other = columns[[*task, "t_s", of]]
        joined = pd.merge_asof(joined, other, left_on="t_start_s", right_on="t_s", by=task, direction=direction).drop(
            columns="t_s"
        )
    pieces = joined[joined["to_station"] == joined["from_station"]]
    assert len(pieces) > 0.8 * HANDED_OVER
    moving = make_world(complete(parse(CONFIG, "handovers")), Streams(CONFIG["seed"])).moving
    assert moving is not None
    assert moving.maps is not None
    worst = 0.0
    for begin in range(0, len(pieces), 20_000):
        part = pieces.iloc[begin : begin + 20_000].sort_values("t_start_s")
        ids, starts_s, ends_s = (part[name].to_numpy() for name in ("device", "t_start_s", "t_end_s"))
        chords = chords_until(moving.paths, ids, starts_s, ends_s, CONFIG["radio"]["grid_m"])
        place = chords.place
        station = part["to_station"].to_numpy().astype(int)[place]
        gain = moving.maps.mean_power_gain(station, chords.x_m, chords.y_m)
        hz, power_w = part["bandwidth_hz"].to_numpy()[place], 10 ** ((23.0 - 30.0) / 10) * gain
        lasts_s = np.minimum(chords.end_s, ends_s[place]) - np.maximum(chords.begin_s, starts_s[place])
        expected = np.bincount(place, hz * np.log2(1 + power_w / (hz * NOISE_W_PER_HZ)) * lasts_s)
        worst = max(worst, (np.abs(expected - part["bits"].to_numpy()) / PAYLOAD_BITS).max())
    benchmark.extra_info |= {"handovers": len(handovers), "worst share of the payload": worst}
    assert worst < 1e-9
    whole = uploads.groupby(["device", "round"]).agg(bits=("bits", "sum"), outcome=("outcome", "last"))
    done = whole[whole["outcome"] == "done"]
    assert len(done) > 0
    np.testing.assert_allclose(done["bits"], PAYLOAD_BITS, rtol=1e-9)
    assert (handovers["interrupted_s"].dropna() <= INTERRUPTION_S + 1e-9).all()
