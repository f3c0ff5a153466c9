"""Options that many scenarios have, the fields that options set, and lists of values."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from edgesim.base.errors import EdgesimError

Bands = Annotated[str, typer.Option(help="Bands in MHz.")]
Devices = Annotated[int, typer.Option(min=1, help="Number of devices.")]
Model = Annotated[str, typer.Option(help="Model.")]
Policies = Annotated[str, typer.Option(help="Policies to compare.")]
Rounds = Annotated[int, typer.Option(min=1, help="Rounds of each run.")]
Seconds = Annotated[float, typer.Option(min=3, help="Simulated seconds of each run.")]
Speeds = Annotated[str, typer.Option(help="Speeds of all devices in m/s.")]
Turn = Annotated[float, typer.Option(min=0.001, help="Mean seconds between two turns.")]
Deadlines = Annotated[str, typer.Option(help="Deadlines in seconds.")]
Sharing = Annotated[str, typer.Option(help="reserved or reshared bands.")]
TracesFolder = Annotated[Path, typer.Option(help="Where recordings lie that are given by name.")]
Target = Annotated[float, typer.Option(min=0, max=1, help="Accuracy to race to.")]
"""Options that several scenarios have."""

OPTIONS = (
    ("algorithm.name", "algorithms"),
    ("availability.file", "matrix"),
    ("availability.interruption", "interruption"),
    ("data.dataset", "dataset"),
    ("data.folder", "folder"),
    ("data.image_size", "image_size"),
    ("devices.count", "clients"),
    ("devices.count", "devices"),
    ("devices.links", "links"),
    ("devices.match", "match"),
    ("devices.profile", "profile"),
    ("devices.radius_m", "radius"),
    ("learning.model", "model"),
    ("mobility.speed_mps", "speeds"),
    ("mobility.turn_s", "turn"),
    ("radio.bandwidth_hz", "band_mhz"),
    ("radio.channel", "channel"),
    ("radio.sharing", "sharing"),
    ("round.close", "close"),
    ("round.count", "count"),
    ("round.count", "participants"),
    ("round.outage", "outage"),
    ("round.payload_bits", "payload_bits"),
    ("round.plan_quantile", "quantiles"),
    ("round.tmax_s", "tmax"),
    ("selection.policy", "policies"),
    ("selection.policy", "policy"),
    ("selection.policy", "selectors"),
    ("topology.cloud_every", "cloud_every"),
)
"""Fields of a config, and the names of the scenarios' options that set them."""


def refuse_unknown(option: str, given: Iterable[str], among: Iterable[str]) -> None:
    """Raise `EdgesimError` for the first of the values ``given`` to an option that is not ``among`` those known."""
    known = list(among)
    for name in given:
        if name not in known:
            raise EdgesimError(f"{option}: unknown {name!r}; known: {', '.join(known)}")


def names(text: str) -> list[str]:
    """A list of names separated by commas; raises `EdgesimError` if there is none."""
    listed = [name.strip() for name in text.split(",") if name.strip()]
    if not listed:
        raise EdgesimError(f"{text!r}: expected at least one value, several separated by commas")
    return listed


def numbers(text: str) -> list[float]:
    """A list of numbers separated by commas; raises `EdgesimError`."""
    try:
        return [float(number) for number in names(text)]
    except ValueError:
        raise EdgesimError(f"{text!r}: expected numbers separated by commas, such as 0.8,1.0,1.2") from None


def counts(text: str) -> list[int]:
    """A list of whole numbers separated by commas; raises `EdgesimError`."""
    try:
        return [int(number) for number in names(text)]
    except ValueError:
        raise EdgesimError(f"{text!r}: expected whole numbers separated by commas, such as 10,30") from None


def short_names(files: Sequence[str]) -> list[str]:
    """Names of files in tables and figures: without folder and suffix, or the whole path if two would be equal."""
    stems = [Path(name).stem for name in files]
    return [stem if stems.count(stem) == 1 else name for stem, name in zip(stems, files, strict=True)]
