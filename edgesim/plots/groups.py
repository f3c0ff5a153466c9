"""Grouping of runs into panels and series: one panel per deadline, one line or bar per policy."""

from collections.abc import Sequence
from dataclasses import dataclass

from edgesim.analysis.runs import Knob, RunFolder
from edgesim.base.plain_text import figure_text
from edgesim.base.quantities import UNITS

_TITLE_KNOB = "tmax_s"

MOST_SERIES = 9
"""Most lines or bars that a panel can show readably."""


@dataclass(frozen=True)
class Series:
    """Runs that differ in nothing but the seed: one line or one bar."""

    label: str
    runs: tuple[RunFolder, ...]


@dataclass(frozen=True)
class Panel:
    """The series of one deadline."""

    title: str
    series: tuple[Series, ...]


def panels_of(runs: Sequence[RunFolder]) -> list[Panel]:
    """Panels by ascending deadline; a series is named by its policy, and by other knobs where needed.

    Another knob is needed if runs of one policy in one panel differ in it; the policy is left out if there is only one.
    The title is empty if there is one panel. If one deadline would have more than `MOST_SERIES` series, the first of
    the knobs needed makes the panels instead, unless nothing else distinguishes the series.
    """
    needed = _distinguishing(runs)
    one_policy = len({run.knobs.get("policy") for run in runs}) == 1
    titled, places = _TITLE_KNOB, sorted({run.knobs.get(_TITLE_KNOB) for run in runs}, key=lambda v: (v is None, v))
    if (
        len(places) == 1
        and len(needed) + (not one_policy) > 1
        and len({_label(run, needed, one_policy) for run in runs}) > MOST_SERIES
    ):
        titled, *needed = needed
        places = list(dict.fromkeys(run.knobs.get(titled) for run in runs))
    panels = []
    for place in places:
        members: dict[str, list[RunFolder]] = {}
        for run in runs:
            if run.knobs.get(titled) == place:
                members.setdefault(_label(run, needed, one_policy), []).append(run)
        title = f"{knob_text(titled, place)}" if place is not None and len(places) > 1 else ""
        panels.append(Panel(title, tuple(Series(label, tuple(group)) for label, group in members.items())))
    return panels


def beyond_labels(runs: Sequence[RunFolder]) -> list[str]:
    """Knobs in which runs of different policies or deadlines differ, but not those of one: no label names them."""
    named = {"policy", _TITLE_KNOB, *_distinguishing(runs)}
    # Options that some runs do not have belong to what their labels name.
    common = [name for name in runs[0].knobs if name not in named and all(name in run.knobs for run in runs)]
    return [name for name in common if len({run.knobs[name] for run in runs}) > 1]


def labels_of(panels: Sequence[Panel]) -> list[str]:
    """Labels of all panels' series, each once, in order of first appearance."""
    return list(dict.fromkeys(series.label for panel in panels for series in panel.series))


def runs_of(panels: Sequence[Panel]) -> list[RunFolder]:
    """The runs of all panels' series."""
    return [run for panel in panels for series in panel.series for run in series.runs]


def _distinguishing(runs: Sequence[RunFolder]) -> list[str]:
    names = dict.fromkeys(name for run in runs for name in run.knobs if name not in ("policy", _TITLE_KNOB))
    values: dict[tuple[str, Knob | None, Knob | None], set[Knob | None]] = {}
    for run in runs:
        for name in names:
            place = (name, run.knobs.get("policy"), run.knobs.get(_TITLE_KNOB))
            values.setdefault(place, set()).add(run.knobs.get(name))
    return [name for name in names if any(len(seen) > 1 for (key, *_), seen in values.items() if key == name)]


def _label(run: RunFolder, needed: Sequence[str], one_policy: bool) -> str:
    parts = [knob_text(name, run.knobs[name]) for name in needed if name in run.knobs]
    if not (one_policy and parts):
        parts.insert(0, figure_text(str(run.knobs.get("policy", "all runs"))))
    return ", ".join(parts)


def setting_text(run: RunFolder) -> str:
    """Knobs and seed of a run of a study, as written above the figures that show this run alone."""
    return ", ".join([*(knob_text(name, value) for name, value in run.knobs.items()), f"seed {run.seed}"])


_NAMES = {
    "tmax_s": "$T_{\\max}$",
    "scheduled": "scheduled",
    "arrived": "arrived",
    "miss_rate": "miss rate",
    "infeasible_share": "infeasible share",
    "spectral_efficiency_bps_per_hz": "spectral efficiency",
    "rounds_to_target": "rounds to the target",
    "seconds_to_target": "time to the target",
    "joules_to_target": "energy to the target",
    "wasted_share_j": "wasted share of the energy",
    "final_accuracy": "final accuracy",
    "we_percent": "WE",
    "idp_points": "IDP",
    "id_points": "ID",
    "plan_quantile": "planned quantile $q$",
    "devices": "number of devices",
    "speed_mps": "speed of devices",
}
_SYMBOLS = {"plan_quantile": "$q$", "speed_mps": "speed"}
"""Short symbols for names that are too long beside a value."""
_WHOLE_UNITS = {
    "spectral_efficiency_bps_per_hz": "bit/s/Hz",
    "seconds_to_target": "s",
    "joules_to_target": "J",
    "wasted_share_j": "",
    "scheduled": "clients/round",
    "arrived": "updates/round",
    "we_percent": "points",
    "idp_points": "points",
    "id_points": "points",
}


@dataclass(frozen=True)
class DisplayedQuantity:
    """Label of a knob or a measure: its name, its unit and the factor from SI to that unit."""

    name: str
    unit: str
    """Empty for counts, and for what has no dimension."""
    factor: float

    @property
    def axis(self) -> str:
        """Label of an axis: the name, then the unit in parentheses if there is one."""
        return self.with_unit(self.name)

    def with_unit(self, text: str) -> str:
        """A text with the quantity's unit in parentheses behind it, if there is one."""
        return f"{text} ({self.unit})" if self.unit else text


def quantity(name: str, largest: float = 0.0) -> DisplayedQuantity:
    """Name and unit of a knob or measure, from the suffix of its name; hertz in kHz from 1e3 on, in MHz from 1e6."""
    text, unit = _NAMES.get(name), _WHOLE_UNITS.get(name)
    stem, _, suffix = name.rpartition("_")
    if unit is None:
        unit = UNITS.get(suffix, "") if stem else ""
    text = text or figure_text(stem.replace("_", " ") if unit else name)
    if unit == "Hz" and largest >= 1e3:
        return DisplayedQuantity(text, "MHz", 1e-6) if largest >= 1e6 else DisplayedQuantity(text, "kHz", 1e-3)
    return DisplayedQuantity(text, unit, 1.0)


def bits_unit(most_bits: float) -> tuple[str, float]:
    """Unit of an axis of bits that ends at ``most_bits``, and its size in bits."""
    return ("Gbit", 1e9) if most_bits >= 1e9 else ("Mbit", 1e6)


def knob_text(name: str, value: Knob) -> str:
    """A knob's value as written in titles and legends: ``known``, ``bandwidth = 20 MHz``."""
    if isinstance(value, str):
        return figure_text(value)
    if isinstance(value, bool):
        return f"{figure_text(name)} = {str(value).lower()}"
    what = quantity(name, abs(value))
    return f"{_SYMBOLS.get(name, what.name)} = {value * what.factor:g} {what.unit}".rstrip()
