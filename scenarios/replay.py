"""What does a fleet of recorded phones learn in a week, and who takes part at which hour?

Replays a availability trace, a recording of yours or the generated week that ships with edgesim, under one or several
policies: accuracy against simulated hours, participation over the day, work that interruptions cost. With ``--profile``
each phone also computes as fast, and uploads over the link, as it was recorded with; with ``--links`` that link changes
over time, as it was recorded.
"""

from typing import Annotated, Any

from typer import Argument, Option

from edgesim.scenario import Model, Policies, Runs, Target, names, recordings, scenario, start

PHONE_UPDATE_BITS = 17_881_664.0


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


@scenario(
    "runs/replay",
    seeds=3,
    quick={"profile": "sample-phones", "interruption": "abort,pause,ignore", "devices": 100, "hours": 3, "seeds": 1},
)
def main(
    runs: Runs,
    trace: Annotated[str, Argument(help="Trace of availability: a path, or a name under traces/.")] = "sample-week",
    policies: Policies = "random",
    interruption: Annotated[str, Option(help="abort, pause or ignore; several to compare.")] = "abort",
    profile: Annotated[
        str | None, Option(help="Profile of the same phones: seconds per sample and perhaps link_bps.")
    ] = None,
    links: Annotated[
        str | None, Option(help="Recorded uplinks of the same phones over time, which begin again at their ends.")
    ] = None,
    match: Annotated[
        str | None, Option(help="position: row k of profile and links is phone k, whatever the files call it.")
    ] = None,
    devices: Annotated[
        int | None, Option(min=1, help="Devices of the trace to replay; all of them when absent.")
    ] = None,
    count: Annotated[int, Option(min=1, help="Devices per round.")] = 10,
    tmax: Annotated[float, Option(min=0.1, help="Length of a round in seconds.")] = 600.0,
    hours: Annotated[float, Option(min=0.1, help="Simulated hours.")] = 168.0,
    dataset: Annotated[str, Option(help="Data set.")] = "digits",
    model: Model = "mlp",
    seconds_per_sample: Annotated[
        float, Option(min=1e-6, help="Compute time of a phone per sample, without --profile.")
    ] = 0.15,
    target: Target = 0.8,
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
        "data": {"dataset": dataset, "partition": "dirichlet-labels", "partition_options": {"alpha": 0.1}},
        "learning": {"model": model, "pretrain": False},
        "evaluation": {"every": 6},
    }
    runs.add(base, {"selection.policy": names(policies), "availability.interruption": names(interruption)})
    runs.compare(target=target)


if __name__ == "__main__":
    start(main)
