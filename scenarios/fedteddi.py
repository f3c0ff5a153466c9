"""FedTeddi's study: which of eight scheduling policies learns new classes fastest, at three deadlines?

30 devices in a 250 m cell share 20 MHz; at the start, 12 of them have just met a new class. Compares rounds and
simulated seconds to a target accuracy, final accuracy, and who was scheduled (FedTeddi, figs. 3 to 7), and says for
each policy whether it differs from FedTeddi, seed by seed.
"""

from pathlib import Path
from typing import Annotated, Any

from typer import Option

from edgesim.scenario import Runs, known, names, numbers, scenario, start

POLICIES = "random,best-channel,best-norm,power-of-choice,pure-drift,fed-cbs,fedcgd,fedteddi"
PAPER_CNN_BITS = 17_881_664.0

DIGITS = {
    "data": {"samples_per_device": 60},
    "learning": {"model": "mlp", "lr": 0.1, "pretrain": True},
    "round": {"payload_bits": PAPER_CNN_BITS},
    "rounds": 60,
}
TEN_CLASSES = {
    "data": {"samples_per_device": 750},
    "learning": {"model": "fedteddi-cnn", "lr": 0.01, "pretrain": True},
    "rounds": 300,
}
HUNDRED_CLASSES = {
    "data": {"samples_per_device": 300},
    "learning": {"model": "resnet18-gn", "lr": 0.01, "pretrain": True},
    "rounds": [200, 200],
}
SEEDS, SEEDS_AT_FIRST = 5, 12
TARGETS = {"digits": 0.75, "ten": 0.75, "hundred": 0.5}


def settings(dataset: str) -> tuple[str, dict[str, Any], str]:
    """The paper's setting for a data set, its default deadlines and its name."""
    if dataset == "digits":
        return "digits", DIGITS, "0.8,1.0,1.2"
    if dataset == "cifar100" or (Path(dataset).exists() and known.class_count(dataset) > 10):
        return "hundred", HUNDRED_CLASSES, "30"
    return "ten", TEN_CLASSES, "0.8,1.0,1.2"


@scenario(quick={"seeds": 2, "rounds": 20})
def main(
    runs: Runs,
    dataset: Annotated[str, Option(help="A name, an .npz or a folder; 10 or 100 classes.")] = "digits",
    seeds: Annotated[
        int | None, Option(min=1, help="Number of seeds; 5 when absent, and 12 at the first deadline of digits.")
    ] = None,
    tmax: Annotated[str | None, Option(help="Deadlines in s, such as 0.8,1.0,1.2; one with --quick.")] = None,
    policies: Annotated[str, Option(help="Policies, such as random,fedteddi.")] = POLICIES,
    rounds: Annotated[int | None, Option(min=1, help="Rounds of each frame.")] = None,
    target: Annotated[float | None, Option(min=0, max=1, help="Accuracy to race to.")] = None,
    reference: Annotated[
        str | None, Option(help="Policy that the others are compared with; fedteddi, or the first, when absent.")
    ] = None,
    evaluate_every: Annotated[int, Option(min=1, help="Test every so many rounds.")] = 1,
    test_samples: Annotated[int | None, Option(min=1, help="Size of the test sample; all when absent.")] = None,
) -> None:
    """Run FedTeddi's study and print its table."""
    kind, base, deadlines = settings(dataset)
    base = base | {"data": {"dataset": dataset, "partition": "fedteddi", **base["data"]}}
    base["evaluation"] = {"every": evaluate_every} | ({"samples": test_samples} if test_samples else {})
    deadlines = deadlines.split(",")[0] if runs.quick else deadlines
    if rounds:
        base["rounds"] = [rounds, rounds] if kind == "hundred" else rounds
    compared = names(policies)
    deadlines_s = numbers(deadlines if tmax is None else tmax)
    # One deadline tells policies apart that five seeds do not; twelve at every one would take twice as long.
    more = SEEDS_AT_FIRST if kind == "digits" else SEEDS
    seeds_at = [(deadline_s, seeds or (SEEDS if place else more)) for place, deadline_s in enumerate(deadlines_s)]
    runs.name_folder(f"fedteddi-{Path(dataset).stem}{'-quick' * runs.quick}")
    told = ", ".join(f"{count} seeds at {deadline_s:g} s" for deadline_s, count in seeds_at)
    print(f"30 devices, 250 m cell, 20 MHz; {dataset}, {base['rounds']} rounds; {told}.")
    if kind == "digits":
        cnn = f"{PAPER_CNN_BITS:,.0f} bits, the paper's CNN (the digits model is smaller)"
        print(f"Payload charged to the radio: {cnn}.")
    for deadline_s, count in seeds_at:
        axes = {"selection.policy": compared, "round.tmax_s": [deadline_s], "round.delay_knowledge": ["known"]}
        runs.add(base, axes, seeds=range(count))
    reference = reference or ("fedteddi" if "fedteddi" in compared else compared[0])
    runs.compare(target=TARGETS[kind] if target is None else target, reference=reference)


if __name__ == "__main__":
    start(main)
