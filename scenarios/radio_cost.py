"""Which algorithm should a user take at which bandwidth, if each pays for what it sends and computes?

No paper has this comparison. In FedTeddi's cell (30 devices within 250 m, its radio and its computing) ten devices
drawn at random train 20 steps in every round and share the whole band; a round ends with the last upload. The station
sends to all of them at once, at `BROADCAST_BPS_PER_HZ` in the same band. Everything is charged as it is: a model of 77
kbit, SCAFFOLD's (option II, controls sent) twice that each way, FedGen's generator, eight times the model, on the way
down, FedMD's logits of public images and FedProto's prototypes instead of models. MOON computes 5/3 as long as FedAvg.
All runs end after the same simulated seconds and are tested at the same instants.

Fixed before the run: 45, 180 (one carrier of NB-IoT) and 720 kHz, in which FedAvg makes about as many rounds as it does
with FedTeddi's CNN in 10 to 80 MHz; 30 s, in which accuracy is still rising; seeds 0 to 9; none added, none left out,
nothing stopped early. Compared is the mean accuracy over the last tenth of a budget, paired by seed: at
equal seconds, at equal bits sent up and at equal joules. An algorithm is ruled out where another one is more accurate
(paired t test, p < 0.05 after Holm's correction for all pairs of algorithms at all bandwidths and budgets together); an
algorithm is to be taken where it alone is left. The final accuracy of the study's own table is something else: the mean
of the last five models, which in the narrowest band are most of a run.

Data: digits, a public part carved out, the rest divided by Dirichlet(0.3); no momentum, no decay of the learning rate.
FedMD and FedProto train an own model on each device, and their accuracy is the mean of these. ``--tune`` tries for
every algorithm the `RATES` with each value of its own options in `TUNED`, at 180 kHz, on seeds 1000 to 1002, which no
comparison uses; `CHOSEN` is what was most accurate at equal seconds. All other options are the defaults.

SAFA is left out, though ``--algorithms fedavg,safa`` runs it: its server remembers models of devices that are late or
away, which here none is, and it comes with a policy of its own, while here all algorithms get the same devices.
"""

import itertools
from typing import Annotated, Any

import numpy as np
from typer import Option

import edgesim
from edgesim.scenario import Bands, Runs, Seconds, equal_cost, names, numbers, scenario, start, tables

MODEL_BITS = 77_120.0
"""32 per parameter of the MLP."""
BROADCAST_BPS_PER_HZ = 2.0
ALGORITHMS = (
    "fedavg,fedprox,scaffold,feddyn,mifa,fedavgm,fedadam,fedyogi,moon,fedproto,fpl,fedmd,feddf,fedgen,flwf,cfed,fedcl"
)
FOREMOST = ("fedavg", "scaffold", "moon", "fedgen", "fedmd")
"""Thick in the figure: the yardstick, two that send more, one that computes more and one that sends less."""
RATES = [0.2, 0.4, 0.8, 1.6]
TUNED: dict[str, dict[str, list[float]]] = {
    "fedprox": {"mu": [0.001, 0.01, 0.1, 1.0]},
    "feddyn": {"alpha": [0.001, 0.003, 0.01, 0.03, 0.1, 0.3]},
    "fedavgm": {"lr": [0.1, 0.3, 1.0, 3.0]},
    "fedadam": {"lr": [0.03, 0.1, 0.3]},
    "fedyogi": {"lr": [0.03, 0.1, 0.3]},
    "moon": {"mu": [0.001, 0.003, 0.01, 0.1, 1.0, 5.0]},
    "fedproto": {"strength": [0.1, 1.0, 10.0]},
    "fpl": {"tau": [0.02, 0.1, 0.5, 2.0]},
    "fedmd": {"digest_epochs": [1, 3]},
    "feddf": {"lr": [1e-4, 1e-3]},
    "fedgen": {"a_0": [0.1, 1.0, 10.0]},
    "flwf": {"alpha": [0.1, 1.0, 5.0]},
    "cfed": {"strength": [0.1, 1.0]},
    "fedcl": {"coe": [0.1, 0.5, 2.0]},
}
TUNING_SEEDS = range(1000, 1003)
TUNING_MHZ = 0.18
CHOSEN: dict[str, tuple[float, dict[str, float]]] = {
    "fedavg": (0.8, {}),
    "fedprox": (0.8, {"mu": 0.001}),
    "scaffold": (0.4, {}),
    "feddyn": (0.8, {"alpha": 0.01}),
    "mifa": (0.8, {}),
    "fedavgm": (0.4, {"lr": 1.0}),
    "fedadam": (0.4, {"lr": 0.1}),
    "fedyogi": (0.4, {"lr": 0.1}),
    "moon": (0.8, {"mu": 0.001}),
    "fedproto": (0.4, {"strength": 1.0}),
    "fpl": (0.4, {"tau": 0.1}),
    "fedmd": (0.4, {"digest_epochs": 3}),
    "feddf": (0.8, {"lr": 1e-4}),
    "fedgen": (0.4, {"a_0": 0.1}),
    "flwf": (0.8, {"alpha": 0.1}),
    "cfed": (0.8, {"strength": 0.1}),
    "fedcl": (0.8, {"coe": 0.1}),
}
"""Learning rate and own options of each algorithm."""
QUICK = {"algorithms": "fedavg,scaffold,moon", "band_mhz": "0.045,0.72", "seconds": 12.0, "seeds": 2}


def cell(seconds: float, band_mhz: float) -> dict[str, Any]:
    """The world and the training of all runs in a band."""
    return {
        "stop_at_s": seconds,
        "round": {
            "admission": "count",
            "count": 10,
            "computes": "selected",
            "leftover": "equal_finish",
            # Far longer than any upload, so that a round takes as long as its work.
            "tmax_s": min(60.0, seconds),
            "download_s": MODEL_BITS / (BROADCAST_BPS_PER_HZ * band_mhz * 1e6),
        },
        "data": {"public": "carved", "partition": "dirichlet", "partition_options": {"alpha": 0.3}},
        "learning": {"pretrain": False, "steps": 20, "momentum": 0.0, "lr_decay": 1.0},
        # An algorithm with more rounds would be tested more often, and look better by chance.
        "evaluation": {"every_s": 1.0},
    }


def add(runs: Runs, seconds: float, algorithms: list[str], bands_mhz: list[float]) -> None:
    """Plan runs of every algorithm, with the options chosen for it, at every bandwidth."""
    for name, mhz in itertools.product(algorithms, bands_mhz):
        rate, options = CHOSEN.get(name, CHOSEN["fedavg"])
        base = cell(seconds, mhz)
        own = base | {"learning": base["learning"] | {"lr": rate}, "algorithm": options}
        runs.add(own, {"radio.bandwidth_hz": [mhz * 1e6], "algorithm.name": [name]})


def tune_algorithms(runs: Runs, seconds: float, algorithms: list[str]) -> None:
    """Run every algorithm with every choice of its options, and print how accurate each was, the best one first."""
    base = cell(seconds, TUNING_MHZ) | {"radio": {"bandwidth_hz": TUNING_MHZ * 1e6}}
    for name in algorithms:
        own = {f"algorithm.{key}": values for key, values in TUNED.get(name, {}).items()}
        runs.add(base, {"algorithm.name": [name], "learning.lr": RATES, **own}, seeds=TUNING_SEEDS)
    study = runs.study(runs.out.with_name(f"{runs.out.name}-tuning"))
    found: dict[str, list[float]] = {}
    for run in study.runs.values():
        found.setdefault(run.folder.name.rpartition("-")[0], []).append(measured(run, seconds)["accuracy_percent"])
    for name, values in sorted(found.items(), key=lambda item: (item[0].partition("-")[0], -np.mean(item[1]))):
        print(f"{name:30} {np.mean(values):.2f} % over {len(values)} seeds")


def measured(run: edgesim.Run, seconds: float) -> dict[str, float]:
    """Mean accuracy over the last tenth of so many seconds, in percent, and the rounds that were made."""
    accuracy = tables.accuracy_within(tables.spending(run), "seconds", seconds)
    return {"accuracy_percent": 100 * accuracy, "rounds_made": float(len(run.rounds))}


@scenario("runs/radio-cost", seeds=10, quick=QUICK)
def main(
    runs: Runs,
    algorithms: Annotated[str, Option(help="Algorithms to compare.")] = ALGORITHMS,
    band_mhz: Bands = "0.045,0.18,0.72",
    seconds: Seconds = 30.0,
    tune: Annotated[bool, Option("--tune", help="Compare options of each algorithm instead.")] = False,
) -> None:
    """Compare algorithms at equal seconds, bits and joules, at several bandwidths; --tune writes into OUT-tuning."""
    if tune:
        tune_algorithms(runs, seconds, names(algorithms))
        return
    add(runs, seconds, names(algorithms), numbers(band_mhz))
    equal_cost.recommend(runs.compare(), "bandwidth_hz", "algorithm", FOREMOST, runs.formats)


if __name__ == "__main__":
    start(main)
