"""Amiri et al.: how many devices should send at once, chosen by their channels, by their updates, or by both?

Amiri, Gündüz, Kulkarni, Poor, "Convergence of update aware device scheduling for federated learning at the wireless
edge", IEEE TWC 2021 (arXiv 2001.10402). K of 30 devices share a narrow band equally in each round, and each sends as
many places of the largest numbers of its update as its link carries: the sign whose mean is larger, at that mean, with
a residual for the rest. Gains are drawn anew in each round. A single-layer net of the digits, 650 numbers, is trained;
bits are those of the paper's net, 7,850 numbers. Devices have samples of all classes, or of two.

``BC`` takes the K best channels, ``BN2`` the K largest updates, ``BC-BN2`` the K largest of the 2 K best channels, and
``BN2-C`` the K largest as they would be sent. The abstract says: with data alike one device is best, else several; and
a policy by both channel and update is better than by either alone.

Compared is the mean accuracy over the last tenth of the rounds, paired by seed: every K with K = 1 of the same
policy, and every policy with BC-BN2 at the same K; p is corrected by Holm for all comparisons of a knob. A study ends
with its last seed: seeds are fixed beforehand, and none is added after a look at the tables.
"""

import itertools
from typing import Annotated, Any

from typer import Option

import edgesim
from edgesim.scenario import Rounds, Runs, counts, names, published, refuse_unknown, scenario, start, tables

NUMBERS = 7_850
"""Numbers of the paper's net, with which updates are charged."""
POLICIES: dict[str, dict[str, Any]] = {
    "BC": {"policy": "best-channel"},
    "BN2": {"policy": "best-norm", "norm": "trained"},
    "BC-BN2": {"policy": "best-norm", "norm": "trained"},
    "BN2-C": {"policy": "best-norm", "norm": "sent"},
}
DATA: dict[str, dict[str, Any]] = {
    "all classes": {"partition": "iid"},
    "two classes": {"partition": "classes", "partition_options": {"classes_per_device": 2}},
}
ACCURACY = {"accuracy_percent": ("accuracy (%)", "{:.1f}")}
LOOKS = ACCURACY | {
    "devices_merged": ("devices merged", "{:.1f}"),
    "three_percent": ("updates of the three most frequent (%)", "{:.0f}"),
}
QUICK = {"devices_at_once": "1,5", "rounds": 10, "seeds": 2}


def cell(rounds: int, at_once: int) -> dict[str, Any]:
    """The world and the training of all runs with so many devices at once."""
    return {
        "rounds": rounds,
        "devices": {"count": 30, "min_distance_m": 9e3, "radius_m": 10e3},
        "radio": {"bandwidth_hz": 1e3, "shadowing": "per_round"},
        "round": {
            "tmax_s": 0.8,
            "admission": "count",
            "count": at_once,
            "allocator": "equal_share",
            "payload_bits": 32.0 * NUMBERS,
        },
        "learning": {"model": "linear", "pretrain": False, "momentum": 0.0, "lr": 0.1, "lr_decay": 1.0},
        "upload": {"codec": "topk", "values": "one-sided", "coding": "enumerative", "size": "fit"},
    }


def measured(run: edgesim.Run) -> dict[str, float]:
    """Mean test accuracy over the last tenth of the rounds, in percent; how many devices had an update merged; and
    how many updates in a hundred came from the three that had most.
    """
    tests, merged = run.rounds["test_accuracy"], run.updates["device"].value_counts()
    return {
        "accuracy_percent": 100 * float(tests.iloc[-max(1, len(tests) // 10) :].mean()),
        "devices_merged": float(len(merged)),
        "three_percent": 100 * float(merged.iloc[:3].sum() / merged.sum()),
    }


@scenario("runs/amiri", seeds=10, quick=QUICK)
def main(
    runs: Runs,
    policies: Annotated[str, Option(help="Policies to compare.")] = ",".join(POLICIES),
    devices_at_once: Annotated[str, Option(help="Devices that send in a round, K.")] = "1,2,5,10",
    data: Annotated[str, Option(help="Whose data devices have: of all classes or of two.")] = ",".join(DATA),
    rounds: Rounds = 60,
) -> None:
    """Compare policies and numbers of devices at once, by accuracy in equal rounds."""
    refuse_unknown("--policies", names(policies), POLICIES)
    refuse_unknown("--data", names(data), DATA)
    for held, named, at_once in itertools.product(names(data), names(policies), counts(devices_at_once)):
        among = {"channels": 2 * at_once} if named == "BC-BN2" else {}
        base = cell(rounds, at_once) | {"data": DATA[held], "selection": POLICIES[named] | among}
        runs.add(base, labels={"data": held, "way": named, "K": at_once})
    study = runs.compare()
    table = published.beside(study.folder, [*LOOKS], lambda row: {}, measured)
    published.show(table, f"{study.folder}: accuracy over the last tenth of the rounds", ["data", "way", "K"], LOOKS)
    tables.save(table, study.folder / "beside-the-paper.csv")
    references = (("K", counts(devices_at_once)[0]), ("way", "BC-BN2" if "BC-BN2" in names(policies) else "BC"))
    for knob, reference in references:
        differences = published.differences(study.folder, knob, reference, [*ACCURACY], measured)
        published.show_differences(differences, str(reference), ACCURACY)
        tables.save(differences, study.folder / f"beside-the-paper-differences-{knob}.csv")


if __name__ == "__main__":
    start(main)
