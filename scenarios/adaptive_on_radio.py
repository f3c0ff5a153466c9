"""What matters more, whom one takes or how one merges? Five selectors crossed with five aggregations on one cell.

No paper has this comparison. The devices of a trace share FedTeddi's cell, its band and its deadline of 30 s, at the
speeds of recorded phones; least bandwidths decide who fits into a round, the rest of the band ends uploads earlier, and
a round ends with its last one. An update is that of FedTeddi's ResNet-18. Every device begins with samples of three
classes and moves in a line, by the clock, to those of three others. All runs of a seed have the same devices, trace,
drift and simulated seconds, and are tested at the same instants; whoever makes shorter rounds makes more of them.

Aggregations: FedAvg; the weights of FedStg (samples, speed, rarity; no skipped rounds, no joining) and of AFL (lambda
0.1); MIFA's and KPFL's servers, which remember what every device brought last. All options are edgesim's defaults, with
one learning rate for all, so that nothing is tuned for anybody.

Compared is the final accuracy, the mean of the last five tests, paired by seed: each selector with Random under each
aggregation, and each aggregation with FedAvg under each selector, all of them corrected together (Holm). The question
itself is one comparison, asked once and not among these: of each seed the standard deviation between the five selectors
(means over aggregations) against that between the five aggregations (means over selectors), by a paired t test.

Fixed before the runs, after a look at seed 1000 alone: FedScale's 100 most available phones (``--trace
fedscale100.parquet``), 1,800 s, ten seeds (0 to 9), none added, none left out, nothing stopped early.
docs/results.md has the results.
"""

from functools import partial
from typing import Annotated, Any

from feddance import availability
from typer import Option

from edgesim.scenario import Model, Runs, Target, figures, names, refuse_unknown, scenario, start, tables

SELECTORS = "random,fedteddi,feddance,oort,afl"
AGGREGATIONS: dict[str, dict[str, Any]] = {
    "fedavg": {},
    "fedstg": {"server": "fedstg"},
    "afl": {"server": "afl"},
    "mifa": {"server": "mifa"},
    "kpfl": {"kpfl": {}},
}
"""Keys of ``[algorithm]``; local training is FedAvg's under all of them."""
CLASSES, HELD = 10, 3
"""Classes of the data set, and how many of them a device holds at a time."""
MEASURE = "final_accuracy"
QUICK = {"selectors": "random,fedteddi,afl", "aggregations": "fedavg,mifa", "devices": 30, "seconds": 240.0}


def mix(first: int) -> list[float]:
    """Equal shares of `HELD` classes from ``first`` on, in a circle."""
    held = {(first + i) % CLASSES for i in range(HELD)}
    return [1 / HELD if label in held else 0.0 for label in range(CLASSES)]


def cell(trace: str, devices: int, seconds: float, dataset: str, model: str) -> dict[str, Any]:
    """The world and the training of all runs."""
    return {
        "stop_at_s": seconds,
        "devices": {"count": devices, "profile": "sample-phones"},
        "availability": availability(trace, "given"),
        "round": {"tmax_s": 30.0, "computes": "selected", "leftover": "equal_finish", "payload_bits": 357_500_000.0},
        "data": {"dataset": dataset, "samples_per_device": 60},
        "drift": {
            "law": "gradual",
            "pool": "shared",
            "start_s": 0.0,
            "end_s": seconds,
            "before": [mix(first) for first in range(CLASSES)],
            "after": [mix(first + CLASSES // 2) for first in range(CLASSES)],
        },
        "learning": {"model": model, "pretrain": False, "lr_decay": 1.0},
        # Whoever makes more rounds would be tested more often, and look better by chance.
        "evaluation": {"every_s": 30.0},
    }


@scenario("runs/adaptive-on-radio", seeds=10, quick=QUICK | {"target": 0.3, "seeds": 2})
def main(
    runs: Runs,
    selectors: Annotated[str, Option(help="Policies to compare with the first one.")] = SELECTORS,
    aggregations: Annotated[str, Option(help="Aggregations to compare with the first one.")] = ",".join(AGGREGATIONS),
    trace: Annotated[str, Option(help="FILE, synthetic or always; the generated week when absent.")] = "sample-week",
    devices: Annotated[int, Option(min=2, help="Number of devices.")] = 100,
    seconds: Annotated[float, Option(min=60, help="Simulated seconds of each run.")] = 1800.0,
    dataset: Annotated[str, Option(help="Data set of ten classes.")] = "digits",
    model: Model = "mlp",
    target: Target = 0.8,
) -> None:
    """Cross selectors with aggregations on one cell."""
    base = cell(trace, devices, seconds, dataset, model)
    taken, merged = names(selectors), names(aggregations)
    refuse_unknown("--aggregations", merged, AGGREGATIONS)
    for aggregation in merged:
        own = base | {"algorithm": AGGREGATIONS[aggregation]}
        runs.add(own, {"selection.policy": taken}, labels={"aggregation": aggregation})
    study = runs.compare(target=target, reference=taken[0], against=[("aggregation", merged[0])])
    draws = partial(figures.draw_heat_map, study.table(), "aggregation", "policy", MEASURE)
    figures.Album(study.folder / "plots", runs.formats).add("heat_map-accuracy", draws, study.plan.finished)
    tables.crossed(study.folder, ("policy", taken[0]), ("aggregation", merged[0]), MEASURE)


if __name__ == "__main__":
    start(main)
