"""What does noise for privacy cost, and what epsilon does it buy?

FedAvg on the world and the local training of `afl.py`: random devices, 35 % in a round, updates clipped to the length
S. Noise of z S in each coordinate is added to every update on its device (``local``), or of z S times the largest
weight to their mean at the server (``central``), for every z of ``--noise``; 0 is clipping alone, which protects
nothing. Epsilon is exact, by the analytic Gaussian mechanism, without amplification by sampling: under ``local`` that
of the device with most uploads, for each of its updates, also from the server; under ``central`` that of the sequence
of models. With ``--afl`` devices are chosen and updates weighed by AFL, whose weights under ``central`` leave no
epsilon.
"""

from pathlib import Path
from typing import Annotated, Any

from afl import AFL, RATE, SKEWS, config, dealt, world
from typer import Option

from edgesim.scenario import Runs, figures, names, numbers, refuse_unknown, scenario, start, tables

NOISE = "0,1e-4,3e-4,1e-3,3e-3,1e-2,3e-2,1e-1,1"
COLUMNS = {
    "final_accuracy": ("accuracy", "{:.3f}"),
    "noise_to_update": ("noise / update", "{:.3g}"),
    "epsilon": ("epsilon", "{:.4g}"),
}


def mechanisms(noise: float, clip: float, delta: float, chosen: list[str]) -> dict[str, dict[str, Any]]:
    """By name, the privacy sections of runs with a noise multiplier; those without noise are of both mechanisms."""
    if noise == 0:
        return {"clip": {"mechanism": "clip", "clip": clip}}
    return {name: {"mechanism": name, "clip": clip, "noise": noise, "delta": delta} for name in chosen}


@scenario(quick={"noise": "0,1e-2,1", "clients": 10, "rounds": 6, "seeds": 2, "out": "runs/privacy-quick"})
def main(
    runs: Runs,
    noise: Annotated[str, Option(help="Noise multipliers z; 0 is clipping alone.")] = NOISE,
    mechanism: Annotated[str, Option(help="local, central or both.")] = "local,central",
    clip: Annotated[float, Option(help="S, the longest update.")] = 1.0,
    delta: Annotated[float, Option(help="The delta for which epsilon is told.")] = 1e-5,
    afl: Annotated[bool, Option("--afl", help="AFL's choice and weights instead of FedAvg.")] = False,
    skew: Annotated[str, Option(help="Label skew: iid, moderate or high.")] = "iid",
    clients: Annotated[int, Option(min=2, help="Number of devices.")] = 50,
    rounds: Annotated[int, Option(min=3, help="Rounds of each run.")] = 100,
    dataset: Annotated[str, Option(help="Data set: a name, an .npz or a folder.")] = "digits",
    model: Annotated[str | None, Option(help="Model; afl-mlp on small sets, else afl-cnn.")] = None,
) -> None:
    """Compare mechanisms and amounts of noise."""
    refuse_unknown("--skew", [skew], SKEWS)
    runs.name_folder(f"privacy-{Path(dataset).stem}{'-afl' * afl}")
    common, method = world(dataset, rounds, model, clients), AFL if afl else {"share": RATE}
    for multiplier in dict.fromkeys(numbers(noise)):
        for name, section in mechanisms(multiplier, clip, delta, names(mechanism)).items():
            base = config(common, method | {"privacy": section}, dealt(SKEWS[skew]))
            # Clipping alone has no noise to differ in, so that all others are compared with it.
            runs.add(base, labels={"mechanism": name} | ({"noise": multiplier} if multiplier else {}))
    study = runs.compare(against=[("mechanism", "clip")] if 0 in numbers(noise) else [])
    summary = study.table()
    shown = ["mechanism", "noise", *(name for name in COLUMNS if name in summary)]
    title = f"{study.folder}: accuracy, noise on the mean over the mean update, epsilon at delta {delta:g}"
    tables.show(summary[shown], title, {name: COLUMNS[name] for name in shown[2:]})
    finished = [*study.runs.values()]
    figures.Album(study.folder / "plots", runs.formats).add("noise", lambda: figures.draw_noise(finished), finished)


if __name__ == "__main__":
    start(main)
