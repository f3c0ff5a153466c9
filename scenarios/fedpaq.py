"""FedPAQ's first figure: do updates of few levels win in time, and not in rounds?

Reisizadeh et al., "FedPAQ: a communication-efficient federated learning method with periodic averaging and
quantization", AISTATS 2020, figure 1, top row: logistic regression of two classes, 50 devices with 200 samples each, of
which 25 at random take 5 steps in every round, and QSGD with the length of the whole update as its scale. Sending an
update as it is takes 100 times as long as a step. Here that is a link of its own for each device; bits are those of the
encoder, and encoding takes its time.

Compared is the mean training loss of the last tenth of the seconds, at equal simulated seconds, and that of the rounds
which the slowest runs made too, at equal rounds; paired by seed with updates as they are.
"""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
from typer import Option

import edgesim
from edgesim.scenario import Runs, Seconds, counts, figures, published, scenario, start, subset, tables

DEVICES, TAKEN, SAMPLES, STEPS, BATCH = 50, 25, 200, 5, 10
STEP_S, RATIO = 0.01, 100
"""Seconds of a step, and how many steps an update takes on its way that is not coded."""
CLASSES = (0, 8)
"""Classes told apart: digits 0 and 8 in the paper, T-shirts and bags in Fashion-MNIST."""
QUICK = {"dataset": "digits", "seconds": 8.0, "seeds": 2, "levels": "1,10"}


def write_phones(path: Path, pixels: int) -> None:
    """Write the speeds and links of the devices, for a model of two classes of so many ``pixels``."""
    link_bps = 32 * 2 * (pixels + 1) / (RATIO * STEP_S)
    rows = [f"{device},{STEP_S / BATCH},{link_bps}" for device in range(DEVICES)]
    path.write_text("\n".join(["device,s_per_sample,link_bps", *rows, ""]))


def cell(data: Path, phones: Path, seconds: float, rate: float, samples: int) -> dict[str, Any]:
    """The world and the training of all runs."""
    return {
        "stop_at_s": seconds,
        "devices": {"count": DEVICES, "profile": str(phones)},
        "radio": {"sharing": "own"},
        "round": {"admission": "count", "count": TAKEN, "computes": "selected", "tmax_s": 5.0},
        "data": {"dataset": str(data), "partition": "iid", "samples_per_device": samples},
        "learning": {
            "model": "linear",
            "pretrain": False,
            "steps": STEPS,
            "batch_size": BATCH,
            "momentum": 0.0,
            "lr": rate,
            "lr_decay": 1.0,
        },
        "evaluation": {"every_s": seconds / 10},
    }


def losses(run: edgesim.Run, rounds: int, seconds: float) -> dict[str, float]:
    """Training loss at equal seconds and behind so many rounds, and the rounds that were made."""
    table = run.rounds
    late, first = table["t_end_s"] > 0.9 * seconds, table["round"].between(0.8 * rounds, rounds)
    means = {"loss_in_time": table["train_loss"][late].mean(), "loss_in_rounds": table["train_loss"][first].mean()}
    return {name: float(mean) for name, mean in means.items()} | {"rounds_made": float(len(table))}


LOOKS = {
    "rounds_made": ("rounds", "{:.0f}"),
    "loss_in_time": ("loss in equal time", "{:.4f}"),
    "loss_in_rounds": ("loss in equal rounds", "{:.4f}"),
}


@scenario("runs/fedpaq", seeds=5, quick=QUICK)
def main(
    runs: Runs,
    levels: Annotated[str, Option(help="Levels of QSGD on each side of 0.")] = "1,5,10",
    dataset: Annotated[str, Option(help="Data set whose classes 0 and 8 are told apart.")] = "fashion-mnist",
    seconds: Seconds = 20.0,
    rate: Annotated[float, Option(help="Learning rate.")] = 0.01,
) -> None:
    """Compare numbers of levels by training loss, in time and in rounds."""
    files = runs.out.with_name(f"{runs.out.name}-files")
    data, phones = files / f"{Path(dataset).stem}-two-classes.npz", files / "phones.csv"
    subset.save_classes(dataset, runs.folder, CLASSES, data)
    with np.load(data) as arrays:
        pixels, images = int(np.prod(arrays["train_images"].shape[1:])), len(arrays["train_labels"])
    write_phones(phones, pixels)
    base = cell(data, phones, seconds, rate, min(SAMPLES, images // DEVICES))
    runs.add(base | {"upload": {"codec": "none"}}, labels={"codec": "none"})
    for number in counts(levels):
        whole = {"codec": "qsgd", "levels": number, "norm": "l2", "bucket": 2 * (pixels + 1)}
        runs.add(base | {"upload": whole}, labels={"codec": f"s = {number}"})
    study = runs.compare(against=[("codec", "none")])
    finished = study.plan.finished
    rounds = min(len(run.rounds) for run in finished)

    def own(run: edgesim.Run) -> dict[str, float]:
        return losses(run, rounds, seconds)

    table = published.beside(study.folder, [*LOOKS], lambda row: {}, own)
    published.show(table, f"{study.folder}: training loss in {seconds:g} s and in {rounds} rounds", ["codec"], LOOKS)
    differences = published.differences(study.folder, "codec", "none", [*LOOKS][1:], own)
    published.show_differences(differences, "none", LOOKS)
    tables.save(table, study.folder / "beside-the-paper.csv")
    tables.save(differences, study.folder / "beside-the-paper-differences.csv")
    album, panels = figures.Album(study.folder / "plots", runs.formats), figures.panels_of(finished)
    album.add("loss_seconds", lambda: figures.draw_training_loss(panels, "seconds"), finished)


if __name__ == "__main__":
    start(main)
