"""With this band and this deadline: should devices send more coarsely, or less, or should fewer devices send?

No paper has this comparison. In FedTeddi's cell (30 devices within 250 m, Rayleigh fading) each update is charged as
one of FedTeddi's CNN, 558,802 numbers, by what is sent of it: codecs of one size, sizes that fit what the channel
carries, and streams that the deadline ends, in several bands, with several deadlines, under several policies. Codecs of
one size are planned on a reserve of gain (``round.outage``) and end their rounds early; sizes that follow the channel
share the band by allocators of their own. All runs end after the same simulated seconds; what to take is tested at
equal seconds, at equal bits sent up and at equal joules, paired by seed, with Holm's correction over all bands and
deadlines of a policy. In the map of winners a place, which is a band and a deadline, is grey where no codec is shown to
be better than all others.

Where no device could send with a codec by the deadline, on its planned gain in any of the first rounds, the codec loses
without a run: its model would stay as it was at the start. It is named (``cannot_send.csv``), and stands in no test.

Predictions, written before the first run: (a) the winner changes with the band; (b) in the widest band no codec is more
accurate than none; (c) sizes that fit beat every codec of one size in at most half of the places, since they fill every
deadline; (d) policies differ less with codecs than without, since nearly all devices then fit.

When each is confirmed, also written before the whole study ran, all at equal seconds:

- (a) confirmed if, with some policy and deadline, two bands have different winners; refuted if bands have winners, and
  two of one policy and deadline never differ; inconclusive where never two bands of a policy and deadline have one.
- (b) refuted if, in the widest band, a codec is shown to be better than none; confirmed if every codec is shown to gain
  less than a point, by the upper end of its interval at the level of Holm's correction.
- (c) refuted if in more than half of all places and policies a size that fits (not a stream) is shown to be better than
  every codec of one size that can send; confirmed if in at least half of them each size that fits is shown to gain less
  than a point over some codec of one size.
- (d) confirmed or refuted by the 95 % t interval over seeds of how much further policies lie apart (their highest
  accuracy minus their lowest) without a codec than with one, on average over codecs and over places where none can
  send.

A study ends with its last seed: seeds are fixed beforehand (0 to 9), and none is added after a look at the tables.
"""

import itertools
from typing import Annotated, Any

from typer import Option

from edgesim.scenario import Policies, Runs, equal_cost, names, numbers, refuse_unknown, scenario, start
from edgesim.scenario.reach import leave_out_silent

ONE_SIZE = {"leftover": "equal_finish"}
STREAM = {"allocator": "equal_bits", "close": "deadline"}
CODECS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "none": ({"codec": "none"}, ONE_SIZE),
    "qsgd 4 bits": ({"codec": "qsgd", "levels": 7}, ONE_SIZE),
    "qsgd 8 bits": ({"codec": "qsgd", "levels": 127}, ONE_SIZE),
    "sign": ({"codec": "sign"}, ONE_SIZE),
    "topk": ({"codec": "topk"}, ONE_SIZE),
    "randk": ({"codec": "randk"}, ONE_SIZE),
    "topk that fits": ({"codec": "topk", "size": "fit"}, {"allocator": "equal_bits"}),
    "qsgd that fits": ({"codec": "qsgd", "size": "fit"}, {"allocator": "least_error"}),
    "topk stream": ({"codec": "topk", "coding": "index", "ratio": 1.0, "size": "stream", "least": 0.001}, STREAM),
    "randk stream": ({"codec": "randk", "ratio": 1.0, "size": "stream", "least": 0.001}, STREAM),
}
"""Sections ``[upload]`` and ``[round]`` by name; topk and randk of one size send 1 % of the numbers."""
FOREMOST = ("none", "topk", "topk that fits", "topk stream")
"""Thick in the figures of curves."""
NUMBERS = 558_802
QUICK = {
    "codecs": "none,topk,topk that fits,randk stream",
    "band_mhz": "2,20",
    "tmax": "0.8",
    "policies": "random",
    "seconds": 5.0,
    "seeds": 2,
}


def cell(seconds: float, band_mhz: float, tmax_s: float, policy: str) -> dict[str, Any]:
    """The world and the training of all runs in a band and with a deadline."""
    return {
        "stop_at_s": seconds,
        "radio": {"bandwidth_hz": band_mhz * 1e6, "fading": "rayleigh"},
        "round": {"tmax_s": tmax_s, "payload_bits": 32.0 * NUMBERS, "outage": 0.1},
        "data": {"partition": "iid"},
        "selection": {"policy": policy},
        "learning": {"pretrain": False},
        "evaluation": {"every_s": 1.0},
    }


@scenario("runs/compression", seeds=10, quick=QUICK)
def main(
    runs: Runs,
    codecs: Annotated[str, Option(help="What is sent.")] = ",".join(CODECS),
    band_mhz: Annotated[str, Option(help="Bands in MHz.")] = "1,2,5,20",
    tmax: Annotated[str, Option(help="Deadlines in seconds.")] = "0.4,0.8,1.6",
    policies: Policies = "random,fedteddi,best-channel",
    seconds: Annotated[float, Option(min=3, help="Simulated seconds of each run.")] = 16.0,
) -> None:
    """Map bands and deadlines to what to send, at equal seconds, bits and joules: a study for each policy."""
    refuse_unknown("--codecs", names(codecs), CODECS)
    for policy in names(policies):
        for mhz, tmax_s, name in itertools.product(numbers(band_mhz), numbers(tmax), names(codecs)):
            base, (upload, knobs) = cell(seconds, mhz, tmax_s, policy), CODECS[name]
            labels = {"place": f"{mhz:g} MHz, {tmax_s:g} s", "codec": name}
            runs.add(base | {"upload": upload, "round": base["round"] | knobs}, labels=labels)
        silent = leave_out_silent(runs, ["place", "codec"])
        against = [("codec", "none")] if "none" in names(codecs) else []
        study = runs.compare(runs.out / policy, against=against)
        equal_cost.recommend(study, "place", "codec", FOREMOST, runs.formats)
        equal_cost.name_silent(study, silent, "place", "codec")
        equal_cost.map_winners(study, "place", ("radio.bandwidth_hz", "round.tmax_s"), runs.formats)


if __name__ == "__main__":
    start(main)
