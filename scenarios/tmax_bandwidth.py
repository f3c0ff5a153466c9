"""How many clients can a deadline and a band serve?

Timing only: a grid of Tmax x band x devices under `known` (mean scheduled clients, infeasible share, spectral
efficiency), and of Tmax x quantile under `planned` (mean arrivals).
"""

from pathlib import Path
from typing import Annotated

import typer

import edgesim
from edgesim.scenario import (
    Folder,
    Fresh,
    Jobs,
    Seeds,
    Set,
    conclude,
    counts,
    numbers,
    plain_errors,
    quick_option,
    start,
)

PAPER_CNN_BITS = 17_881_664.0
QUICK = quick_option(
    tmax="0.8,1.2", band_mhz="10,20", devices="10,30", quantiles="0.8,0.95", seeds=1, rounds=5,
    out="runs/tmax-bandwidth-quick",
)  # fmt: skip


@plain_errors
def main(
    tmax: Annotated[str, typer.Option(help="Deadlines in seconds.")] = "0.6,0.8,1.0,1.2,1.6,2.0",
    band_mhz: Annotated[str, typer.Option(help="Bands in MHz.")] = "5,10,20,40",
    devices: Annotated[str, typer.Option(help="Numbers of devices.")] = "10,30,100",
    quantiles: Annotated[str, typer.Option(help="Quantiles that `planned` plans on.")] = "0.5,0.632,0.8,0.9,0.95,0.99",
    payload_bits: Annotated[float, typer.Option(help="Bits of one upload (the paper's CNN).")] = PAPER_CNN_BITS,
    seeds: Seeds = 3,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of each run.")] = 40,
    folder: Folder = Path("data"),
    set_: Set = None,
    quick: Annotated[bool, QUICK] = False,
    jobs: Jobs = None,
    fresh: Fresh = False,
    out: Annotated[Path, typer.Option(help="Folder of the two studies.")] = Path("runs/tmax-bandwidth"),
) -> None:
    """Map deadlines, bands and plans to clients served."""
    base = {
        "rounds": rounds,
        "data": {"dataset": "none", "folder": str(folder)},
        "learning": {"training": "none"},
        "round": {"payload_bits": payload_bits},
    }
    known = edgesim.grid(
        base,
        {
            "devices.count": counts(devices),
            "radio.bandwidth_hz": [mhz * 1e6 for mhz in numbers(band_mhz)],
            "round.tmax_s": numbers(tmax),
        },
        range(seeds),
        set_,
    )
    edgesim.study(known, out=out / "known", jobs=jobs, fresh=fresh)
    conclude(out / "known")
    planned = edgesim.grid(
        base | {"round": {"payload_bits": payload_bits, "delay_knowledge": "planned"}},
        {"round.plan_quantile": numbers(quantiles), "round.tmax_s": numbers(tmax)},
        range(seeds),
        set_,
    )
    edgesim.study(planned, out=out / "planned", jobs=jobs, fresh=fresh)
    conclude(out / "planned")


if __name__ == "__main__":
    start(main)
