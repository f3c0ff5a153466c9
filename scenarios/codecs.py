"""What does each codec save in bits, seconds and joules, and what does it cost in accuracy?

In FedTeddi's cell (30 devices within 250 m, a deadline of 0.8 s) random devices whose least bandwidths fit into the
band train, and the band that is left over ends their uploads earlier. The MLP is trained, and each update charged as
one of FedTeddi's CNN, 558,802 numbers, by the codec's own bits and the time that encoding takes. All runs end after the
same simulated seconds and are tested at the same instants. Codecs whose error is shorter than the update keep a
residual on each device; ``topk alone`` is what happens without.

Compared is the mean accuracy over the last tenth of a budget, paired by seed, at equal seconds, at equal
bits sent up and at equal joules, as in `radio_cost.py`.
"""

import itertools
from typing import Annotated, Any

from typer import Option

from edgesim.scenario import Bands, Runs, Seconds, equal_cost, names, numbers, refuse_unknown, scenario, start

CODECS: dict[str, dict[str, Any]] = {
    "none": {"codec": "none"},
    "half": {"codec": "half"},
    "qsgd 8 bits": {"codec": "qsgd", "levels": 127},
    "qsgd 4 bits": {"codec": "qsgd", "levels": 7},
    "natural": {"codec": "natural"},
    "sign": {"codec": "sign"},
    "topk": {"codec": "topk"},
    "topk alone": {"codec": "topk", "feedback": "none"},
    "stc": {"codec": "stc"},
    "randk": {"codec": "randk"},
}
"""Sections ``[upload]`` by name; topk, stc and randk send 1 % of the numbers."""
FOREMOST = ("none", "qsgd 4 bits", "sign", "topk")
"""Thick in the figure."""
NUMBERS = 558_802
QUICK = {"codecs": "none,qsgd 4 bits,topk", "band_mhz": "2,20", "seconds": 6.0, "seeds": 2}


def cell(seconds: float, band_mhz: float) -> dict[str, Any]:
    """The world and the training of all runs in a band."""
    return {
        "stop_at_s": seconds,
        "radio": {"bandwidth_hz": band_mhz * 1e6},
        "round": {"tmax_s": 0.8, "leftover": "equal_finish", "payload_bits": 32.0 * NUMBERS},
        "data": {"partition": "iid"},
        "learning": {"pretrain": False},
        "evaluation": {"every_s": 1.0},
    }


@scenario("runs/codecs", seeds=5, quick=QUICK)
def main(
    runs: Runs,
    codecs: Annotated[str, Option(help="Codecs to compare.")] = ",".join(CODECS),
    band_mhz: Bands = "2,20",
    seconds: Seconds = 24.0,
) -> None:
    """Compare codecs at equal seconds, bits and joules, at several bandwidths."""
    refuse_unknown("--codecs", names(codecs), CODECS)
    for name, mhz in itertools.product(names(codecs), numbers(band_mhz)):
        runs.add(cell(seconds, mhz) | {"upload": CODECS[name]}, labels={"band_mhz": mhz, "codec": name})
    study = runs.compare(against=[("codec", "none")] if "none" in names(codecs) else [])
    equal_cost.recommend(study, "band_mhz", "codec", FOREMOST, runs.formats)


if __name__ == "__main__":
    start(main)
