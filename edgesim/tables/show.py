"""Tables on the terminal about a run or a study, made from run folders alone."""

import functools
import operator
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table

from edgesim.analysis.convergence import convergence_measures, growth_table
from edgesim.analysis.energy_use import energy_by_activity_j, energy_by_device_j, energy_j
from edgesim.analysis.measures import TO_STAY, TO_TARGET
from edgesim.analysis.metrics import bits_down, bits_up, tests
from edgesim.analysis.participation import (
    BY_CLASS,
    ID_DEGREE,
    WE_ROUNDS,
    course_measures,
    forgetting_names,
    why_undefined,
)
from edgesim.analysis.runs import RunFolder, StudyFolder, read_study
from edgesim.analysis.skew import holdings, skew
from edgesim.analysis.static_pairs import is_static
from edgesim.analysis.summary import current_summary, notes
from edgesim.analysis.waste import AMOUNTS, totals, work_by_kind
from edgesim.base.errors import EdgesimError
from edgesim.config import RoundConfig
from edgesim.folder import records
from edgesim.folder.state import state_of
from edgesim.tables.show_coding import coding_rows
from edgesim.tables.show_differences import CONVERGENCE, LEARNING, PARTICIPATION, TIMING, print_comparison
from edgesim.tables.table_text import (
    USUAL_WIDTH,
    add_in_sections,
    bare_table,
    number,
    plain,
    print_whole,
    span,
    width,
    with_interval,
)

#: Measures of learning, shown with their intervals.
_WITH_INTERVALS = (
    *TO_TARGET,
    *TO_STAY,
    "final_accuracy",
    "we_percent",
    "idp_points",
    "id_points",
    "forgetting_points",
    "rounds_to_own_peak",
    "final_macro_f1",
)
#: Parts of the wall time of a run, by their names in the table ``timing``.
_PARTS = {"train": "training", "server": "merges and training at the server", "evaluate": "evaluation"}
_NOTES_OF_THE_WHOLE = ("Own peak:", "WE:")
"""Beginnings of notes on tables that are shown of the whole alone."""
_MOST_KNOBS = 3
_CLASSES_AT_ONCE = 10
"""Classes in one table."""
#: Columns about the devices' data sets: (heading, measure, statistic, format).
_SKEW = (
    ("samples\nleast", "samples", "min", "{:,.0f}"),
    ("\nmedian", "samples", "median", "{:,.0f}"),
    ("\nmost", "samples", "max", "{:,.0f}"),
    ("classes\nleast", "classes", "min", "{:.0f}"),
    ("\nmedian", "classes", "median", "{:.0f}"),
    ("\nmost", "classes", "max", "{:.0f}"),
    ("EMD\nmean", "emd", "mean", "{:.2f}"),
    ("\nmedian", "emd", "median", "{:.2f}"),
    ("\nmost", "emd", "max", "{:.2f}"),
)
_SKEW_NOTE = (
    "EMD: sum over classes of |share of a device - share of all|, from 0 to 2; frame 0 is before the first round"
)


def _how_it_learnt(config: Mapping[str, Any], run: Mapping[str, Any]) -> str:
    """Algorithm and protocol, as ``fedprox (mu 0.1), server safa, buffered``; FedAvg where the config names none.

    Without the option ``weights`` where the run says that the algorithm has a rule of its own.
    """
    algorithm, round_ = (config[key] if isinstance(config.get(key), dict) else {} for key in ("algorithm", "round"))
    name, server = algorithm.get("name", "fedavg"), algorithm.get("server", "own")
    # All algorithms come with it.
    from edgesim.learning.algorithms import WRAPPERS

    named_apart = ["name", "server", *WRAPPERS] + ["weights"] * ("update_weights" in run)
    options = _options_text({key: value for key, value in algorithm.items() if key not in named_apart})
    halves = [f"{name} ({options})" if options else str(name)] + [f"server {server}"] * (server not in ("own", name))
    for key, wrapper in WRAPPERS.items():
        if key in algorithm:
            halves.append(f"{key} ({_options_text(wrapper.effective(algorithm[key]))})")
    return ", ".join([*halves, str(round_.get("protocol", RoundConfig().protocol))])


def _options_text(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in options.items())


def _status(folder: Path) -> str:
    """State of a run, and why."""
    state = state_of(folder)
    if state.status == "lost":
        return f"lost (its process is gone; edgesim resume {folder} resumes it)"
    return state.status + (f" ({state.reason})" if state.reason else "")


def print_run(folder: Path, console: Console, whole: bool = True) -> None:
    """Print how a run ended, its accuracy, time and energy, who took part and what was lost; the rest if ``whole``.

    Raises `EdgesimError` if the folder is not a run's.
    """
    run = records.read_run(folder)
    config = records.read_config(folder)
    rounds = records.read_table(folder, "rounds")
    devices = records.read_table(folder, "devices")
    table = Table(title=str(folder), show_header=False, title_justify="left")
    table.add_row("status", _status(folder))
    policy = run.get("decisions") or records.setting(folder, config, "selection.policy", str)
    seed = records.setting(folder, config, "seed", int)
    table.add_row("policy, seed", f"{policy}, {seed}")
    table.add_row("algorithm, protocol", _how_it_learnt(config, run))
    activities, metrics, updates = (
        _of_the_run(run, rounds, records.read_table(folder, name)) for name in ("activities", "metrics", "updates")
    )
    for note in run.get("notes", {}).values():
        table.add_row("note", note)
    if run["status"] != "running" and rounds.empty:
        ends = activities["outcome"].value_counts()
        work = ", ".join(f"{count:,} {outcome}" for outcome, count in ends.items()) or "none"
        table.add_row(
            "note", f"the run has no finished round, so no model was made; rows of its work by outcome: {work}"
        )
    worked = len(rounds) or len(activities)
    if worked:
        _add_tests(table, rounds, metrics, run.get("metric_notices", {}), whole)
    if len(rounds):
        _add_course(table, RunFolder(folder, {}, seed), whole)
        table.add_row("simulated time", f"{rounds['t_end_s'].iloc[-1]:,.3f} s")
    table.add_row("rounds", f"{len(rounds)}{_skipped(metrics, updates)}")
    if worked:
        _add_energy(table, activities, metrics, records.read_rows(folder, "devices"), whole)
        _add_cancelled(table, rounds, activities)
        _add_battery(table, metrics)
        table.add_row("bits up", f"{bits_up(activities):.4g}")
        table.add_row("bits down", f"{bits_down(rounds, metrics):.4g}")
        for name, text in coding_rows(config, run, metrics):
            table.add_row(name, text)
    if len(rounds):
        took_part = f"{updates['device'].nunique():,} of {devices['device'].nunique():,} devices, by an update merged"
        table.add_row("took part", took_part)
        for name in ("candidates", "selected", "arrived", "late", "dropped", *["jobs_trained"] * whole):
            table.add_row(name.replace("_", " "), f"{rounds[name].mean():.2f} per round, {rounds[name].sum():,} in all")
    if worked:
        table.add_row("joules lost", _lost(activities, updates))
    if run.get("unobserved_share"):
        unseen = f"not observed {run['unobserved_share']:.1%} of the time (counted as {run['unobserved_as']})"
        table.add_row("availability", unseen)
    if whole:
        _add_machine(table, folder, run)
    console.print(table)
    if whole:
        _print_data(devices, console)
    else:
        console.print(f"more: edgesim show {folder} --all", highlight=False)
    if worked and whole:
        console.print(_work_table(activities, updates))


def _add_machine(table: Table, folder: Path, run: Mapping[str, Any]) -> None:
    """Add rows of what the run trained on, and how long that took."""
    if "device_kind" in run:
        notice = f" ({run['back_end_notice']})" if "back_end_notice" in run else ""
        table.add_row("back end", f"{run['back_end']} on {run['device_kind']}{notice}")
    if "wall_s" in run:
        parts_s = records.read_table(folder, "timing").groupby("part")["wall_s"].sum()
        parts = [f"{parts_s[part]:.1f} s {what}" for part, what in _PARTS.items() if part in parts_s]
        table.add_row("wall time", f"{run['wall_s']:.1f} s" + (f" ({', '.join(parts)})" if parts else ""))


def _lost(activities: pd.DataFrame, updates: pd.DataFrame) -> str:
    """Joules of work that came to nothing, with their share and kinds."""
    joules = totals(work_by_kind(activities, updates))["joules"]
    lost = joules.drop("useful")
    share = f" ({lost.sum() / joules.sum():.1%})" if joules.sum() else ""
    kinds = ", ".join(f"{kind} {of:,.1f}" for kind, of in lost.items() if of > 0)
    return f"{lost.sum():,.1f} of {joules.sum():,.1f}{share}" + (f": {kinds}" if kinds else "")


def _of_the_run(run: Mapping[str, Any], rounds: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows to show: of a run that goes on or was killed those of finished rounds, otherwise all."""
    return rows if run["status"] != "running" else rows[rows["round"] <= rounds["round"].max()]


def _skipped(metrics: pd.DataFrame, updates: pd.DataFrame) -> str:
    """Numbers of rounds with and without a new model, where a schedule decides."""
    due = metrics.loc[metrics["name"] == "due", "value"]
    if due.empty:
        return ""
    merged, skipped = updates["round"].nunique(), int((due == 0).sum())
    without = len(due) - merged - skipped
    rest = f", {without} due but without an update" if without else ""
    return f" ({merged} merged, {skipped} skipped{rest})"


def _add_cancelled(table: Table, rounds: pd.DataFrame, activities: pd.DataFrame) -> None:
    """Add a row of the work that the end of the run cancelled, which belongs to no round."""
    cut = activities[~activities["round"].isin(rounds["round"])]
    if len(cut):
        tasks = len(cut.drop_duplicates(["device", "task"]))
        joules = cut["energy_j"].sum()
        table.add_row("of it, in no round", f"{joules:,.1f} J of {tasks} task(s) between the last round and the stop")


_OTHER_ACCURACIES = {
    "head": "by the greatest logit, not the nearest prototype",
    "own_classes": "on the classes that each device holds",
    "ensemble": "of the mean softmax of the devices merged last",
}


def _add_tests(
    table: Table, rounds: pd.DataFrame, metrics: pd.DataFrame, undefined: Mapping[str, str], whole: bool
) -> None:
    """Add a row of the last test, and one of tests of the edge servers' mean model, which no server held."""
    tested = rounds.dropna(subset="test_accuracy")
    if tested.empty:
        return
    last, of_means = tested.iloc[-1], tested["model_held"].eq(False)
    mean = " (a mean of edge models)" if of_means.iloc[-1] else ""
    at_s = tests(tested, metrics)["t_s"].iloc[-1]
    scores = f"accuracy {last['test_accuracy']:.4f}, macro F1 {last['macro_f1']:.4f}"
    values: dict[str, dict[str, float]] = {}
    for row in metrics[metrics["round"] == last["round"]].itertuples():
        values.setdefault(row.name, {})[row.key] = row.value
    others = values.get("accuracy", {})
    if "ensemble" in others:
        mean = " (means over the models of the devices that were ever merged)"
    table.add_row("last test", f"{scores}{mean}, at {at_s:,.3f} s")
    if texts := ", ".join(f"{text} {others[key]:.4f}" for key, text in _OTHER_ACCURACIES.items() if key in others):
        table.add_row("other accuracies", texts)
    for name, value in values.get("metric", {}).items():
        table.add_row(name, f"{value:.4f}")
    for name, why in undefined.items():
        table.add_row(name, f"undefined: {why}")
    if domains := ", ".join(f"{name} {value:.4f}" for name, value in values.get("domain_accuracy", {}).items()):
        table.add_row("accuracy by domain", domains)
    by_class = ", ".join(f"{label}: {value:.3f}" for label, value in values.get("class_f1", {}).items())
    if by_class and whole:
        table.add_row("F1 by class", by_class)
    if of_means.any():
        table.add_row(
            "note",
            f"{of_means.sum()} of {len(tested)} tests, between two averages in the cloud, are of the mean of the edge "
            "servers' models, which no server held then (rounds.model_held)",
        )


def _add_course(table: Table, run: RunFolder, whole: bool) -> None:
    """Add rows of how the accuracy went over the rounds of a run that is tested, or why that is undefined."""
    values = course_measures(run)
    if not values:
        return
    values = {**values, **convergence_measures(run)}
    where = f" in round {values['best_round']:.0f}" if "best_round" in values else ""
    if (run.metrics["name"] == "models_tested").any():
        where += ", of tests since the last device came new into the mean"
    table.add_row("best accuracy", f"{values['best_accuracy']:.4f}{where}")
    if not whole:
        return
    if "rounds_to_own_peak" in values:
        peak = f"in round {values['rounds_to_own_peak']:.0f}, at {values['seconds_to_own_peak']:,.3f} s"
        table.add_row("95 % of it", peak)
    if "loss_roughness" in values:
        table.add_row("roughness of loss", f"{values['loss_roughness']:.4g}, mean size of second differences")
    if "update_cosine" in values:
        table.add_row("cosine of updates", f"{values['update_cosine']:+.4f} of the model's successive changes, mean")
    if "final_roc_auc" in values:
        table.add_row("ROC-AUC", f"{values['final_roc_auc']:.4f}, mean of the last tests")
    elif run.why_without_roc_auc:
        table.add_row("ROC-AUC", f"undefined: {run.why_without_roc_auc}")
    if reason := why_undefined(run):
        table.add_row("WE, ID, forgetting", f"undefined: {reason}")
        return
    variance = f"variance {values['we_variance']:.2f}"
    table.add_row(
        "WE", f"{values['we_percent']:.2f} %, {variance}, of the last {min(WE_ROUNDS, len(run.rounds))} rounds"
    )
    if "id_points" in values:
        window = f"{values['id_first']:.0f} to {values['id_last']:.0f}"
        line = f"from a polynomial of degree {ID_DEGREE} through rounds {window}"
        table.add_row("ID", f"{values['id_points']:.2f} points {line}")
    if "forgetting_points" in values:
        table.add_row(
            "forgetting", f"{values['forgetting_points']:.2f} points, best before the last round minus last, mean"
        )
        by_class = [f"{label}: {values[name]:.1f}" for name, label in forgetting_names(values).items()]
        table.add_row("forgetting by class", ", ".join(by_class))


def _print_data(devices: pd.DataFrame, console: Console) -> None:
    """Print how the data sets of the devices differ; nothing for a run without classes."""
    held = holdings(devices)
    if held:
        rows = [([holding.when], skew(holding.counts)) for holding in held]
        console.print(_skew_table("data per device", ["frame"], rows))
        console.print(_SKEW_NOTE, highlight=False)


def print_skews(folder: Path, console: Console) -> None:
    """Print how the devices' data sets differ, means over seeds for each combination of a study's knobs."""
    skews: dict[tuple[str, ...], list[pd.DataFrame]] = {}
    study = read_study(folder)
    for run in study.finished:
        knobs = [plain(run.knobs[name]) if name in run.knobs else "" for name in study.knob_names]
        for holding in holdings(run.devices):
            skews.setdefault((*knobs, holding.when), []).append(skew(holding.counts))
    rows = [(names, functools.reduce(operator.add, tables) / len(tables)) for names, tables in skews.items()]
    print_whole(console, _skew_table(f"{folder}: data per device", [*study.knob_names, "frame"], rows))
    console.print(_SKEW_NOTE, highlight=False)


def _skew_table(title: str, names: Sequence[str], rows: Iterable[tuple[Sequence[str], pd.DataFrame]]) -> Table:
    """A table with a row per division of the data, which ``names`` distinguish."""
    cells = (
        [*of_row, *(form.format(measures.at[measure, column]) for _, measure, column, form in _SKEW)]
        for of_row, measures in rows
    )
    return bare_table(title, names, [heading for heading, *_ in _SKEW], cells)


def _add_energy(
    table: Table, activities: pd.DataFrame, metrics: pd.DataFrame, devices: pd.DataFrame, whole: bool
) -> None:
    """Add rows of the run's energy, by activity and, if ``whole``, over its devices."""
    by_activity = energy_by_activity_j(activities, metrics).sum()
    parts = ", ".join(f"{name} {joules:,.1f} J" for name, joules in by_activity.items() if joules > 0)
    table.add_row("energy", f"{energy_j(activities, metrics):,.1f} J" + (f" ({parts})" if parts else ""))
    if whole:
        low, middle, high = np.quantile(energy_by_device_j(activities, metrics, devices), [0.0, 0.5, 1.0])
        table.add_row("energy per device", f"{low:,.2f} J least, {middle:,.2f} J median, {high:,.2f} J most")


def _add_battery(table: Table, metrics: pd.DataFrame) -> None:
    """Add a row of the charge at the end, if the devices have batteries."""
    charge = metrics[metrics["name"] == "battery_j"]
    if len(charge):
        at_the_end = charge[charge["round"] == charge["round"].max()].drop_duplicates("key").set_index("key")["value"]
        at_the_end = at_the_end.reindex(["least", "mean"])
        table.add_row("charge per device", f"{at_the_end['least']:,.2f} J least, {at_the_end['mean']:,.2f} J mean")


def _work_table(activities: pd.DataFrame, updates: pd.DataFrame) -> Table:
    """A table of what came of the devices' work, with a row per kind and one for all."""
    work = totals(work_by_kind(activities, updates))
    whole = work.sum()
    table = Table(title="work by what came of it", title_justify="left", box=box.SIMPLE_HEAD, show_edge=False)
    table.add_column("kind")
    for heading in ("device seconds", "bits", "joules", "of these joules"):
        table.add_column(heading, justify="right", no_wrap=True)
    for kind, amounts in [*work.iterrows(), ("all", whole)]:
        if kind == "all":
            table.add_section()
        share = f"{amounts['joules'] / whole['joules']:.1%}" if whole["joules"] else ""
        seconds, bits, joules = (float(amounts[name]) for name in AMOUNTS)
        table.add_row(str(kind), f"{seconds:,.1f}", f"{bits:.4g}", f"{joules:,.1f}", share)
    return table


def print_study(folder: Path, console: Console, whole: bool = True) -> None:
    """Print the summary of a study as tables with notes, if ``whole`` with all measures of how accuracy went.

    Where more than `_MOST_KNOBS` knobs would make a table too wide, its rows have numbers, which are explained before.

    Raises `EdgesimError` if no run is finished.
    """
    study = read_study(folder)
    if not study.finished:
        raise EdgesimError(f"{folder}: no run of the study is finished{_became(study)}; run it again")
    summary = current_summary(folder)
    knobs = list(summary.columns[: summary.columns.get_loc("seeds")])
    same = [knob for knob in knobs if summary[knob].nunique(dropna=False) == 1]
    alike = ", ".join([*(f"{knob} {plain(summary[knob].iloc[0])}" for knob in same), span(summary["seeds"], "seeds")])
    varied = [knob for knob in knobs if knob not in same] or knobs[:1]
    by_setting = summary
    widths = [width(_table("", summary, varied, columns)) for columns in (LEARNING, TIMING)]
    if len(varied) > _MOST_KNOBS and max(widths) > USUAL_WIDTH:
        for number_of, values in enumerate(summary[varied].to_dict("records"), start=1):
            known = [f"{knob} {plain(value)}" for knob, value in values.items() if plain(value)]
            console.print(f"setting {number_of}: {', '.join(known)}", highlight=False)
        by_setting, varied = summary.assign(setting=range(1, len(summary) + 1)), ["setting"]
    if any(name in summary for name in LEARNING):
        target = study.target
        goal = "" if target is None else f"rounds, seconds and joules to accuracy {target:g}, "
        goal = goal and f"{goal}until it stays, "
        print_whole(console, _table(f"{folder}: {goal}final accuracy ({alike})", by_setting, varied, LEARNING))
    if whole and "we_percent" in summary and not all(is_static(run) for run in study.finished):
        title = f"{folder}: accuracy under dynamic participation ({alike})"
        print_whole(console, _table(title, by_setting, varied, PARTICIPATION))
        by_class = list(forgetting_names(summary).items())
        for first in range(0, len(by_class), _CLASSES_AT_ONCE):
            columns = {name: (label, "{:.1f}") for name, label in by_class[first : first + _CLASSES_AT_ONCE]}
            title = f"{folder}: forgetting by class, in points from its best accuracy to its last ({alike})"
            print_whole(console, _table(title, by_setting, varied, columns))
    if whole and "final_accuracy" in summary:
        print_whole(console, _table(f"{folder}: own peak, smoothness, bits ({alike})", by_setting, varied, CONVERGENCE))
    title = f"{folder}: clients per round, shares (waste: of the joules), totals per run ({alike})"
    print_whole(console, _table(title, by_setting, varied, TIMING))
    print_growth(growth_table(study.finished), console)
    print_comparison(folder, console)
    for note in notes(summary, folder):
        if whole or not note.startswith(_NOTES_OF_THE_WHOLE):
            console.print(note, highlight=False)
    if not whole and "final_accuracy" in summary:
        console.print(f"more: edgesim show {folder} --all", highlight=False)


def _became(study: StudyFolder) -> str:
    """How many runs of a study have each status, and why the first of them ended that did; empty without a run."""
    states = {entry.run.folder.name: state_of(entry.run.folder, entry.config) for entry in study.planned}
    count = Counter(state.status for state in states.values())
    counts = ", ".join(f"{count[status]} {status}" for status in count)
    reason = next((f"; {name}: {state.reason}" for name, state in states.items() if state.reason), "")
    return f" ({counts}{reason})" if states else ""


def print_growth(table: pd.DataFrame, console: Console) -> None:
    """Print a table as from `growth_table`; nothing for an empty one."""
    if table.empty:
        return
    knobs = list(table.columns[: table.columns.get_loc("runs")])
    varied = [knob for knob in knobs if table[knob].nunique(dropna=False) > 1]
    title = "seconds of a round = a devices^b: b ± 95 % t interval"
    rows = (
        [*(plain(row[knob]) for knob in varied), f"{row['fewest']} to {row['most']}", str(row["runs"])]
        + [with_interval(row, name, "{:.2f}") for name in ("simulated", "wall")]
        for row in table.to_dict("records")
    )
    print_whole(console, bare_table(title, [*varied, "devices", "runs"], ["simulated time", "wall time"], rows))


def print_frame(frame: pd.DataFrame, title: str, columns: Mapping[str, tuple[str, str]], console: Console) -> None:
    """Print a table of the knobs and then the measures, ``columns`` -> (heading, format)."""
    knobs = [name for name in frame.columns if name not in columns]
    varied = [knob for knob in knobs if frame[knob].nunique(dropna=False) > 1] or knobs[:1]
    rows = (
        [*(plain(row[knob]) for knob in varied), *(number(row[name], form) for name, (_, form) in columns.items())]
        for row in frame.to_dict("records")
    )
    print_whole(console, bare_table(title, varied, [heading for heading, _ in columns.values()], rows))


def _table(title: str, summary: pd.DataFrame, knobs: list[str], columns: Mapping[str, tuple[str, str]]) -> Table:
    """A table with one row per combination of knobs, and a rule where a knob other than the policy changes."""
    # With one policy there is nothing to compare.
    shown = {
        name: look for name, look in columns.items() if name in summary and (name != "saving" or summary[name].any())
    }
    table = bare_table(title, knobs, [heading for heading, _ in shown.values()])
    add_in_sections(
        table, summary, knobs, lambda row: [mean_text(row, name, form) for name, (_, form) in shown.items()]
    )
    return table


def mean_text(row: Mapping[Any, Any], name: str, form: str) -> str:
    """A measure of a row of the summary: the mean with its interval, or a lower bound with how many runs reached it.

    Measures of learning alone are shown with their intervals: `_WITH_INTERVALS` and the forgetting of single classes.
    """
    if name in TO_TARGET + TO_STAY and row["seeds"]:
        got_there = row["seeds"] - row["not_reached" if name in TO_TARGET else "not_stayed"]
        if got_there < row["seeds"]:
            return f"> {number(row[f'{name}_bound'], form)} ({got_there:.0f} of {row['seeds']:.0f})"
    has_interval = name in _WITH_INTERVALS or name.startswith(BY_CLASS)
    return with_interval(row, name, form) if has_interval else number(row[name], form)
