"""Lines of the page's charts: runs of a study that differ in nothing but the seed, named by what tells them apart."""

from collections.abc import Sequence

from edgesim.analysis.runs import RunFolder, value_text
from edgesim.base.plain_text import printable
from edgesim.plots.groups import Series


def series_of(runs: Sequence[RunFolder]) -> list[Series]:
    """Runs by their knobs, in order of first appearance; a knob that all agree in names none of them."""
    names = list(dict.fromkeys(name for run in runs for name in run.knobs))
    varied = [name for name in names if len({run.knobs.get(name) for run in runs}) > 1]
    members: dict[str, list[RunFolder]] = {}
    for run in runs:
        parts = [_knob_text(name, run) for name in varied if name in run.knobs]
        members.setdefault(", ".join(parts) or str(run.knobs.get("policy", "all runs")), []).append(run)
    return [Series(printable(label, keep=""), tuple(group)) for label, group in members.items()]


def _knob_text(name: str, run: RunFolder) -> str:
    value = run.knobs[name]
    return value if isinstance(value, str) else f"{name} = {value_text(value)}"
