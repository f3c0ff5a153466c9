"""How many clients can a deadline and a band serve?

Timing only: a grid of Tmax x band x devices under `known` (mean scheduled clients, infeasible share, spectral
efficiency), and of Tmax x quantile under `planned` (mean arrivals).
"""

from typing import Annotated

from typer import Option

from edgesim.scenario import Bands, Rounds, Runs, counts, numbers, scenario, start

PAPER_CNN_BITS = 17_881_664.0
QUICK = {"tmax": "0.8,1.2", "band_mhz": "10,20", "devices": "10,30", "quantiles": "0.8,0.95", "seeds": 1, "rounds": 5}


@scenario("runs/tmax-bandwidth", seeds=3, quick=QUICK)
def main(
    runs: Runs,
    tmax: Annotated[str, Option(help="Deadlines in seconds.")] = "0.6,0.8,1.0,1.2,1.6,2.0",
    band_mhz: Bands = "5,10,20,40",
    devices: Annotated[str, Option(help="Numbers of devices.")] = "10,30,100",
    quantiles: Annotated[str, Option(help="Quantiles that `planned` plans on.")] = "0.5,0.632,0.8,0.9,0.95,0.99",
    payload_bits: Annotated[float, Option(help="Bits of one upload (the paper's CNN).")] = PAPER_CNN_BITS,
    rounds: Rounds = 40,
) -> None:
    """Map deadlines, bands and plans to clients served: two studies, in OUT/known and OUT/planned."""
    base = {
        "rounds": rounds,
        "data": {"dataset": "none", "partition": "fedteddi"},
        "learning": {"training": "none", "pretrain": True},
        "round": {"payload_bits": payload_bits},
    }
    bands_hz = [mhz * 1e6 for mhz in numbers(band_mhz)]
    tmax_s = {"round.tmax_s": numbers(tmax)}
    runs.add(base, {"devices.count": counts(devices), "radio.bandwidth_hz": bands_hz} | tmax_s)
    runs.compare(runs.out / "known")
    planned = base | {"round": {"payload_bits": payload_bits, "delay_knowledge": "planned"}}
    runs.add(planned, {"round.plan_quantile": numbers(quantiles)} | tmax_s)
    runs.compare(runs.out / "planned")


if __name__ == "__main__":
    start(main)
