"""What does a fleet of recorded phones learn in a week, and who takes part at which hour?

Replays a availability trace, a recording of yours or the generated week that ships with edgesim, under one or several
policies: accuracy against simulated hours, participation over the day, work that interruptions cost. With ``--profile``
each phone also computes as fast, and uploads over the link, as it was recorded with; with ``--links`` that link changes
over time, as it was recorded.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

import edgesim
from edgesim.scenario import (
    Folder,
    Fresh,
    Jobs,
    Out,
    Seeds,
    Set,
    conclude,
    names,
    plain_errors,
    quick_option,
    recordings,
    start,
)

PHONE_UPDATE_BITS = 17_881_664.0
QUICK = quick_option(
    profile="sample-phones", interruption="abort,pause,ignore", devices=100, hours=3, seeds=1, out="runs/replay-quick"
)


def phones(
    profile: str | None, links: str | None, match: str | None, seconds_per_sample: float
) -> dict[str, dict[str, Any]]:
    """Config sections of how fast each phone computes and sends: as recorded, or drawn and over one shared band."""
    if profile is None:
        devices: dict[str, Any] = {"a_s_per_sample": seconds_per_sample, "mu_samples_per_s": 2 / seconds_per_sample}
        has_links = False
    else:
        devices = {"profile": profile}
        has_links = recordings.has_links(profile)
    if match is not None:
        devices["match"] = match
    if links is not None:
        devices["links"] = {"file": links, "after_end": "wrap"}
    if has_links or links is not None:
        return {"devices": devices, "radio": {"sharing": "own"}, "round": {}}
    return {"devices": devices, "round": {"allocator": "equal_share"}}


@plain_errors
def main(
    trace: Annotated[
        str, typer.Argument(help="Trace of availability: a path, or a name under traces/.")
    ] = "sample-week",
    policies: Annotated[str, typer.Option(help="Policies to compare.")] = "random",
    interruption: Annotated[str, typer.Option(help="abort, pause or ignore; several to compare.")] = "abort",
    profile: Annotated[
        str | None, typer.Option(help="Profile of the same phones: seconds per sample and perhaps link_bps.")
    ] = None,
    links: Annotated[
        str | None, typer.Option(help="Recorded uplinks of the same phones over time, which begin again at their ends.")
    ] = None,
    match: Annotated[
        str | None, typer.Option(help="position: row k of profile and links is phone k, whatever the files call it.")
    ] = None,
    devices: Annotated[
        int | None, typer.Option(min=1, help="Devices of the trace to replay; all of them when absent.")
    ] = None,
    count: Annotated[int, typer.Option(min=1, help="Devices per round.")] = 10,
    tmax: Annotated[float, typer.Option(min=0.1, help="Length of a round in seconds.")] = 600.0,
    hours: Annotated[float, typer.Option(min=0.1, help="Simulated hours.")] = 168.0,
    dataset: Annotated[str, typer.Option(help="Data set.")] = "digits",
    folder: Folder = Path("data"),
    model: Annotated[str, typer.Option(help="Model.")] = "mlp",
    seconds_per_sample: Annotated[
        float, typer.Option(min=1e-6, help="Compute time of a phone per sample, without --profile.")
    ] = 0.15,
    target: Annotated[float, typer.Option(min=0, max=1, help="Accuracy to race to.")] = 0.8,
    seeds: Seeds = 3,
    set_: Set = None,
    quick: Annotated[bool, QUICK] = False,
    jobs: Jobs = None,
    fresh: Fresh = False,
    out: Out = Path("runs/replay"),
) -> None:
    """Replay recorded phones."""
    given = phones(profile, links, match, seconds_per_sample)
    everyone = recordings.device_count(trace) if devices is None else devices
    base = {
        "stop_at_s": 3600 * hours,
        **given,
        "devices": {"count": everyone} | given["devices"],
        "availability": {"model": "table", "file": trace, "after_end": "wrap"},
        "round": {
            "tmax_s": tmax,
            "payload_bits": PHONE_UPDATE_BITS,
            "computes": "selected",
            "admission": "count",
            "count": count,
            "close": "deadline",
            "delay_knowledge": "planned",
        }
        | given["round"],
        "data": {
            "dataset": dataset,
            "folder": str(folder),
            "partition": "dirichlet-labels",
            "partition_options": {"alpha": 0.1},
        },
        "learning": {"model": model, "pretrain": False},
        "evaluation": {"every": 6},
    }
    axes = {"selection.policy": names(policies), "availability.interruption": names(interruption)}
    runs = edgesim.grid(base, axes, range(seeds), set_)
    edgesim.study(runs, out=out, target=target, jobs=jobs, fresh=fresh)
    conclude(out)


if __name__ == "__main__":
    start(main)
