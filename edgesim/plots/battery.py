"""The charge of the batteries over a run."""

from matplotlib.figure import Figure

from edgesim.analysis.runs import RunFolder
from edgesim.plots import palette, style
from edgesim.plots.common_past import COMMON_PAST, left_past, mark_past

_LINES = {
    "mean": ("mean", palette.PALETTE["blue"], "-"),
    "least": ("least charged device", palette.PALETTE["orange"], "-"),
}


def has_batteries(run: RunFolder) -> bool:
    """Whether the run's devices had batteries."""
    return bool((run.metrics["name"] == "battery_j").any())


def draw_battery(run: RunFolder) -> Figure:
    """Charge at every round's end, mean over devices and least; the reserve as a line, a full battery at the top.

    A dotted line stands where a fork leaves the past that it has in common with its run.
    """
    charge = run.metrics[run.metrics["name"] == "battery_j"].pivot(index="round", columns="key", values="value")
    end_s = run.rounds.set_index("round")["t_end_s"]
    charge = charge.reindex(end_s.index)
    capacity_j, reserve = run.battery
    labels = [label for label, _, _ in _LINES.values()] + ["reserve to check in"]
    with style.figure(style.COLUMN_IN, 1.8, labels) as figure:
        axes = figure.subplots()
        handles = [
            axes.plot(end_s, charge[key], color=color, linestyle=dash)[0] for key, (_, color, dash) in _LINES.items()
        ]
        handles.append(axes.axhline(reserve * capacity_j, color="black", linestyle=":", linewidth=0.8))
        if line := mark_past(axes, left_past([run], "seconds")):
            handles.append(line)
            labels.append(COMMON_PAST)
        axes.set(xlim=(0, end_s.iloc[-1]), ylim=(0, 1.04 * capacity_j))
        axes.set(xlabel="simulated time (s)", ylabel="charge (J)")
        axes.grid(axis="y")
        style.legend_below(figure, handles, labels)
    return figure
