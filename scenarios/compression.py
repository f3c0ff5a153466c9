"""With this band and this deadline: should devices send more coarsely, or less, or should fewer devices send?

No paper has this comparison. In FedTeddi's cell (30 devices within 250 m, Rayleigh fading) each update is charged as
one of FedTeddi's CNN, 558,802 numbers, by what is sent of it: codecs of one size, sizes that fit what the channel
carries, and streams that the deadline ends, in several bands, with several deadlines, under several policies. Codecs of
one size are planned on a reserve of gain (``round.outage``) and end their rounds early; sizes that follow the channel
share the band by allocators of their own. All runs end after the same simulated seconds; what to take is tested at
equal seconds, at equal bits sent up and at equal joules, paired by seed, with Holm's correction over all bands and
deadlines of a policy. In the map of winners a place, which is a band and a deadline, is grey where no codec is shown to
be better than all others. What each codec saves against none to a target accuracy, in seconds and joules, is tested
beside it (``differences-codec.csv``).

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

A study ends with its last seed: seeds are fixed beforehand (0 to 9), and none is added after a look at the tables. The
whole takes an hour on two cores; docs/results.md has what it found.
"""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from typer import Option

from edgesim.scenario import (
    Bands,
    Policies,
    Runs,
    Seconds,
    Target,
    equal_cost,
    names,
    numbers,
    published,
    reach,
    refuse_unknown,
    scenario,
    start,
    tables,
)

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
OF_ONE_SIZE = [name for name, (_, knobs) in CODECS.items() if knobs is ONE_SIZE]
THAT_FIT = ("topk that fits", "qsgd that fits")
FOREMOST = ("none", "topk", "topk that fits", "topk stream")
"""Thick in the figures of curves."""
NUMBERS = 558_802
POINT = 0.01
"""Accuracy below which a gain counts as none, where that it is smaller has been shown."""
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


Pairs = Mapping[tuple[str, str], tuple[float, bool]]
"""At one place, for two codecs: the upper end of what the first gains over the second, and whether it is shown to."""


def pairs_of(folder: Path) -> dict[str, Pairs]:
    """Comparisons at equal seconds in a study's folder, by place; both orders of two codecs are there."""
    table = pd.read_csv(folder / "pairs.csv")
    places: dict[str, dict[tuple[str, str], tuple[float, bool]]] = {}
    for row in table[table["cost"] == "seconds"].to_dict("records"):
        of = places.setdefault(row["place"], {})
        of[row["better"], row["worse"]] = row["high"], row["p_holm"] < 0.05
        of[row["worse"], row["better"]] = -row["low"], False
    return places


def winner_by_band(studies: Mapping[str, Path], places: Mapping[str, tuple[float, float]]) -> tuple[str, str]:
    """Prediction (a)."""
    changes = same = 0
    for folder in studies.values():
        table = pd.read_csv(folder / "recommendation.csv")
        won = table[(table["cost"] == "seconds") & table["take"].isin(CODECS)].set_index("place")["take"]
        for tmax_s in {tmax_s for _, tmax_s in places.values()}:
            here = [won[place] for place, (_, at_s) in places.items() if at_s == tmax_s and place in won]
            changes, same = changes + (len({*here}) > 1), same + (len(here) > 1 and len({*here}) == 1)
    pairs = len(studies) * len({tmax_s for _, tmax_s in places.values()})
    because = (
        f"in {changes + same} of {pairs} pairs of policy and deadline two bands or more have a winner, in {changes} "
        "different ones"
    )
    return "confirmed" if changes else "refuted" if same else "inconclusive", because


def widest_band(studies: Mapping[str, Path], places: Mapping[str, tuple[float, float]]) -> tuple[str, str]:
    """Prediction (b)."""
    widest = max(mhz for mhz, _ in places.values())
    gains = [
        gain
        for folder in studies.values()
        for place, pairs in pairs_of(folder).items()
        for (first, second), gain in pairs.items()
        if second == "none" and places[place][0] == widest
    ]
    shown, none = sum(is_shown for _, is_shown in gains), sum(high < POINT for high, _ in gains)
    because = (
        f"in {shown} of {len(gains)} comparisons with none (codec, deadline, policy) a gain is shown, in {none} that "
        "it is less than a point"
    )
    return "refuted" if shown else "confirmed" if gains and none == len(gains) else "inconclusive", because


def fitting_sizes(studies: Mapping[str, Path], places: Mapping[str, tuple[float, float]]) -> tuple[str, str]:
    """Prediction (c)."""
    beaten = unbeaten = count = 0
    for folder in studies.values():
        for pairs in pairs_of(folder).values():
            present = {name for pair in pairs for name in pair}
            fits, fixed = present.intersection(THAT_FIT), present.intersection(OF_ONE_SIZE)
            count += bool(fits and fixed)
            beaten += bool(fixed) and any(all(pairs[fit, one][1] for one in fixed) for fit in fits)
            unbeaten += bool(fits) and all(any(pairs[fit, one][0] < POINT for one in fixed) for fit in fits)
    because = (
        f"in {beaten} of {count} pairs of place and policy a size that fits is shown to beat all codecs of one size; "
        f"in {unbeaten} it is shown that none beats all by a point"
    )
    return "refuted" if 2 * beaten > count else "confirmed" if 2 * unbeaten >= count > 0 else "inconclusive", because


def policies_apart(studies: Mapping[str, Path], places: Mapping[str, tuple[float, float]]) -> tuple[str, str]:
    """Prediction (d)."""
    scores = pd.concat([pd.read_csv(folder / "scores.csv") for folder in studies.values()])
    values = scores[scores["cost"] == "seconds"].groupby(["place", "seed", "codec"])["value"]
    apart = (values.max() - values.min()).unstack("codec")
    if len(studies) < 2 or "none" not in apart or len(apart.columns) < 2:
        return "inconclusive", "it takes two policies, none and a codec"
    apart = apart[apart["none"].notna()]
    further = (apart["none"] - apart.drop(columns="none").mean(axis=1)).groupby("seed").mean()
    mean, low, high = (100 * end for end in published.mean_interval(further.to_numpy()))
    because = (
        f"without a codec policies lie {mean:.1f} [{low:.1f}, {high:.1f}] points further apart than with one, "
        f"{len(further)} seeds"
    )
    return "confirmed" if low > 0 else "refuted" if high < 0 else "inconclusive", because


PREDICTIONS = {
    "(a) the winner changes with the band": winner_by_band,
    "(b) in the widest band no codec is more accurate than none": widest_band,
    "(c) sizes that fit are best in at most half of the places": fitting_sizes,
    "(d) policies differ less with codecs": policies_apart,
}


def verdicts(studies: Mapping[str, Path], places: Mapping[str, tuple[float, float]]) -> Iterator[dict[str, str]]:
    """Each prediction with its verdict, by the studies' folders and each place's band in MHz and deadline in s."""
    for prediction, judge in PREDICTIONS.items():
        verdict, because = judge(studies, places)
        yield {"prediction": prediction, "verdict": verdict, "because": because}


@scenario("runs/compression", seeds=10, quick=QUICK)
def main(
    runs: Runs,
    codecs: Annotated[str, Option(help="What is sent.")] = ",".join(CODECS),
    band_mhz: Bands = "1,2,5,20",
    tmax: Annotated[str, Option(help="Deadlines in seconds.")] = "0.4,0.8,1.6",
    policies: Policies = "random,fedteddi,best-channel",
    seconds: Seconds = 16.0,
    target: Target = 0.8,
) -> None:
    """Map bands and deadlines to what to send, at equal seconds, bits and joules: a study for each policy."""
    refuse_unknown("--codecs", names(codecs), CODECS)
    places = {f"{mhz:g} MHz, {tmax_s:g} s": (mhz, tmax_s) for mhz in numbers(band_mhz) for tmax_s in numbers(tmax)}
    studies = {policy: runs.out / policy for policy in names(policies)}
    for policy, folder in studies.items():
        for (place, (mhz, tmax_s)), name in itertools.product(places.items(), names(codecs)):
            base, (upload, knobs) = cell(seconds, mhz, tmax_s, policy), CODECS[name]
            labels = {"place": place, "codec": name}
            runs.add(base | {"upload": upload, "round": base["round"] | knobs}, labels=labels)
        silent = reach.leave_out_silent(runs, ["place", "codec"])
        against = [("codec", "none")] if "none" in names(codecs) else []
        study = runs.compare(folder, target=target, against=against)
        equal_cost.recommend(study, "place", "codec", FOREMOST, runs.formats)
        equal_cost.name_silent(study, silent, "place", "codec")
        equal_cost.map_winners(study, "place", ("radio.bandwidth_hz", "round.tmax_s"), runs.formats)
    judged = pd.DataFrame(verdicts(studies, places))
    tables.save(judged, runs.out / "predictions.csv")
    tables.show_texts(judged, "Predictions", [*judged])


if __name__ == "__main__":
    start(main)
