"""Files of channels and stations whose numbers tests work with by hand."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import tomli_w


def plain_channel(folder: Path) -> str:
    """FedTeddi's environment without shadowing."""
    text = Path("channels/fedteddi-macro.toml").read_text()
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("shadowing_std_db"))
    path = folder / "plain.toml"
    path.write_text(lines.replace("shadowing = ", "shadowing_std_db = 0.0\nshadowing = ", 1))
    return str(path)


def write_cells(
    folder: Path,
    places_m: Mapping[str, tuple[float, float]],
    links: Iterable[tuple[str, str, float, float]],
    shares: Mapping[str, float] | None = None,
    **more: Any,
) -> str:
    """A layout whose first station is the cloud; links are pairs with a rate in bit/s and a latency in s."""
    stations = [
        {"name": name, "x_m": x_m, "y_m": y_m, "bandwidth_share": (shares or {}).get(name, 1.0)}
        for name, (x_m, y_m) in places_m.items()
    ]
    wires = [{"between": [a, b], "rate_bps": bps, "latency_s": latency_s} for a, b, bps, latency_s in links]
    about = {"name": "some", "source": "test", "cloud": next(iter(places_m)), **more}
    path = folder / "cells.toml"
    path.write_text(tomli_w.dumps({**about, "stations": stations, "links": wires}))
    return str(path)
