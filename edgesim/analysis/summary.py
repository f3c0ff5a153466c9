"""The summary of a study: one row per combination of knobs, compared with the reference policy."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from edgesim.analysis import convergence, metrics
from edgesim.analysis.equal_time import stretched_payloads, unequal_time
from edgesim.analysis.measures import NAMES, TO_STAY, TO_TARGET, Measures
from edgesim.analysis.participation import ID_DEGREE, WE_ROUNDS, forgetting_names, why_undefined
from edgesim.analysis.products import Products, digest_of_study
from edgesim.analysis.runs import Knob, RunFolder, StudyFolder, own_metrics_of, read_study, studies_in
from edgesim.analysis.static_pairs import is_static, pairs
from edgesim.analysis.statistics import mean_interval, pair_by_seed, too_few
from edgesim.analysis.stored_measures import StoredMeasures
from edgesim.folder.records import read_run, write_whole

Key = tuple[Knob | None, ...]


def summarise(study_folder: Path, known: StoredMeasures | None = None) -> pd.DataFrame:
    """One row per combination of knobs, in the plan's order; ``known`` are the runs' measures as far as they are known.

    Raises `EdgesimError`.

    Combinations whose runs a tuning pruned have none. Columns: the knobs; ``seeds`` (finished runs) and ``left_out``
    (others); every measure that some run has, as its mean over seeds with ``_low`` and ``_high`` (95 % t interval).

    With a target, ``not_reached`` counts the runs that never reached it and ``not_stayed`` those that were below it at
    their last test. Rounds, seconds and joules to the target are means over the runs that reached it, NaN if none did.
    If some did not, ``<measure>_bound`` is the mean over all runs in which these count with what they had taken by
    their last test, a lower bound of the mean over all seeds. ``saving`` (1 - ratio of the mean rounds) compares with
    the reference policy at equal other knobs, over the seeds that both finished; it is empty unless all of these runs
    reached the target. ``pairs`` counts the seeds on which both reached it. Both columns are empty in the reference's
    own rows.

    The others stand in the order of `edgesim.analysis.measures.NAMES`; ``idp_points`` have runs under dynamic
    participation with a static run in the study (`edgesim.analysis.static_pairs.pairs`). Before
    `edgesim.analysis.convergence.MEASURES` ``id_degree`` and ``id_rounds`` (such as 51-100) say what ID was fitted to,
    and the forgetting of each class follows. Last are the metrics that configs add (``evaluation.metrics``), empty
    where they have no value.
    """
    study = read_study(study_folder)
    known = known or StoredMeasures(study_folder, study.target)
    measured = {run.folder: known.of(run) for run in study.finished}
    known.keep()
    names = study.knob_names
    groups: dict[Key, dict[int, Measures]] = {}
    left_out: dict[Key, int] = {}
    pruned: dict[Key, int] = {}
    tested = [run for run in study.finished if "best_accuracy" in measured[run.folder]]
    lost = {paired.run.folder: {"idp_points": paired.idp_points} for paired in pairs(tested)[0]}
    for entry in study.planned:
        key = tuple(entry.run.knobs.get(name) for name in names)
        group = groups.setdefault(key, {})
        if entry.status == "finished":
            group[entry.run.seed] = measured[entry.run.folder] | lost.get(entry.run.folder, {})
        else:
            left_out[key] = left_out.get(key, 0) + 1
            pruned[key] = pruned.get(key, 0) + (entry.status == "pruned")
    # Cells that a tuning pruned have no rows.
    groups = {key: group for key, group in groups.items() if group or pruned[key] < left_out[key]}
    present = {name for group in groups.values() for values in group.values() for name in values}
    apart = (*TO_TARGET, *TO_STAY, *convergence.MEASURES)
    averaged = [name for name in NAMES if name in present and name not in apart]
    own = sorted(
        {name for entry in study.planned if entry.status == "finished" for name in own_metrics_of(entry.config)}
    )
    rows = []
    for key, group in groups.items():
        row: dict[str, object] = dict(zip(names, key, strict=True))
        row |= {"seeds": len(group), "left_out": left_out.get(key, 0)}
        if "reached" in present:
            row |= _reaching(group, TO_TARGET, "reached") | _reaching(group, TO_STAY, "stayed")
            if "policy" in names:
                row |= _comparison(group, _reference_group(groups, names, key, study.reference))
        for name in averaged:
            row |= _averages(group, name)
        if "id_points" in present:
            row |= _window(group)
        last = [name for name in convergence.MEASURES if name in present] + own
        for name in (*forgetting_names(present), *last):
            row |= _averages(group, name)
        rows.append(row)
    return _whole_knobs(pd.DataFrame(rows), names)


def _whole_knobs(summary: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Make knobs with whole numbers integers again, which pandas turned into floats where a combination lacks them."""
    for name in names:
        known = summary[name].dropna()
        if pd.api.types.is_float_dtype(known) and len(known) < len(summary) and (known % 1 == 0).all():
            summary[name] = summary[name].astype("Int64")
    return summary


def write_summary(study_folder: Path, known: StoredMeasures | None = None) -> Path:
    """Write the summary as ``summary.csv`` into the study's folder, unless it is current, and return its path.

    ``known`` as for `summarise`.
    """
    path = study_folder / "summary.csv"
    products, digest = Products(study_folder), digest_of_study(read_study(study_folder))
    if products.current("summary", digest) is None:
        write_whole(path, summarise(study_folder, known).to_csv(index=False, lineterminator="\n"))
        products.note("summary", digest, [path])
    return path


def current_summary(study_folder: Path) -> pd.DataFrame:
    """The table of `summarise`, read where ``summary.csv`` is still current; raises `EdgesimError` as that does."""
    if Products(study_folder).current("summary", digest_of_study(read_study(study_folder))) is None:
        return summarise(study_folder)
    # Copied, since pandas warns of a table of many columns that was just read when one is added.
    return pd.read_csv(study_folder / "summary.csv").copy()


def notes(summary: pd.DataFrame, study_folder: Path) -> list[str]:
    """Footnotes of a summary, read from the study's folder while current: making them reads all runs' rounds."""
    products, digest = Products(study_folder), digest_of_study(read_study(study_folder), summary.to_csv())
    lines = products.current("notes", digest)
    if lines is None:
        lines = footnotes(summary, study_folder)
        products.note("notes", digest, [], lines)
    return lines


def footnotes(summary: pd.DataFrame, study_folder: Path) -> list[str]:
    """Notes for readers of the summary table, one or two sentences each."""
    study = read_study(study_folder)
    notes = [_how_to_read(summary, study)]
    if beside := studies_in(study_folder):
        notes.append(f"Not part of it are the studies in this folder: {', '.join(beside)}.")
    if "final_accuracy_low" in summary:
        few = too_few(summary["final_accuracy_low"].to_numpy(), summary["final_accuracy_high"].to_numpy())
        notes += [few] * bool(few)
    if "not_reached" in summary:
        missed, total = int(summary["not_reached"].sum()), int(summary["seeds"].sum())
        fell = int(summary["not_stayed"].sum()) - missed
        if missed or fell:
            notes.append(
                f"Target accuracy {study.target:.4g}: {missed} of {total} runs never reached it"
                + (f", and {fell} that did were below it at their end." if fell else ".")
                + " > b (k of n): k of n runs reached it. The mean lies above b, in which the other runs count with "
                "what they had taken by their last test; intervals leave them out, and a saving is given only where "
                "all runs of both policies reached it."
            )
            notes += unequal_time(study.finished)
    if "saving" in summary and summary["saving"].isna().all() and set(summary["policy"]) != {study.reference}:
        of_reference = summary[summary["policy"] == study.reference]
        if (of_reference["seeds"] > of_reference["not_reached"]).any():
            notes.append(
                f"No savings: no policy and the reference {study.reference!r} both reached the target on every seed."
            )
        else:
            notes.append(f"No savings: no run of the reference policy {study.reference!r} reached the target.")
    idle = [run for run in study.finished if not run.rounds["arrived"].any()]
    if idle:
        notes.append(f"No update arrived in any round of {_some(idle)}: the model never changed.")
    notes += stretched_payloads(study.finished) + _notes_of_metrics(study)
    notes += _notes_of_convergence(study) + _notes_of_participation(study, summary) + _notes_of_runs(study)
    replaced = [run for run in study.finished if "back_end_notice" in read_run(run.folder)]
    if replaced:
        notes.append(f"Not trained with the back end asked for: {_some(replaced)}; edgesim show RUN says why.")
    if given_up := sum(entry.status == "pruned" for entry in study.planned):
        notes.append(f"{given_up} {'run that was' if given_up == 1 else 'runs that were'} pruned are left out.")
    lost = sum(entry.status not in ("finished", "pruned") for entry in study.planned)
    if lost:
        notes.append(f"{lost} failed or unfinished {'run is' if lost == 1 else 'runs are'} left out.")
    return notes


def _how_to_read(summary: pd.DataFrame, study: StudyFolder) -> str:
    """Note on the columns of the tables that a summary has."""
    meanings = {
        "final_accuracy": f"accuracy: mean of a run's last {metrics.FINAL_EVALUATIONS} tests",
        "rounds_to_stay": "stays: no test from then on is below the target",
        "saving": f"saving: of the rounds of {study.reference}",
    }
    shown = [text for name, text in meanings.items() if name in summary and summary[name].notna().any()]
    several = bool((summary["seeds"] > 1).any())
    values = "Means over seeds ± 95 % t intervals" if several else "One seed each, so that no value has an interval"
    return f"{'; '.join([values, *shown])}."


def _notes_of_metrics(study: StudyFolder) -> list[str]:
    """Notes on runs that lack a metric of their configs, with the reason."""
    notes = []
    for name in sorted({name for run in study.finished for name in run.own_metrics}):
        without = [run for run in study.finished if run.why_without_metric(name)]
        notes += [f"No {name} of {_some(without)}: {without[0].why_without_metric(name)}."] if without else []
    return notes


def _notes_of_convergence(study: StudyFolder) -> list[str]:
    """Notes on measures that refer to a run's own peak, and on runs without ROC-AUC though it was asked for."""
    if not any(run.rounds["test_accuracy"].notna().any() for run in study.finished):
        return []
    share = f"{convergence.OF_PEAK:.0%}"
    notes = [
        f"Own peak: the first test with {share} of the run's best accuracy, which rewards a low peak. Roughness: mean "
        "size of second differences of the test loss. Macro F1, AUC: means of the last "
        f"{metrics.FINAL_EVALUATIONS} tests."
    ]
    without = [run for run in study.finished if run.why_without_roc_auc]
    return notes + ([f"No AUC of {_some(without)}: {without[0].why_without_roc_auc}."] if without else [])


def _notes_of_participation(study: StudyFolder, summary: pd.DataFrame) -> list[str]:
    """Notes on WE, IDP, ID and forgetting, and on runs that lack them; none where devices are always available."""
    tested = [run for run in study.finished if run.rounds["test_accuracy"].notna().any()]
    if all(is_static(run) for run in tested):
        return []
    refused = pairs(tested)[1]
    windows = " or ".join(summary["id_rounds"].dropna().unique()) if "id_rounds" in summary else ""
    notes = [
        f"WE: mean accuracy of the last {WE_ROUNDS} rounds in %, and its variance. IDP: accuracy of the static run of "
        "the same seed minus the run's, mean over rounds."
        + (f" ID: mean distance from the polynomial of degree {ID_DEGREE} through rounds {windows}." if windows else "")
        + " Forgetting: best accuracy of a class before the last round minus that of the last, mean over classes."
        + " All in points."
    ]
    if undefined := [run for run in tested if why_undefined(run)]:
        notes.append(f"No WE, IDP, ID and forgetting of {_some(undefined)}: {why_undefined(undefined[0])}.")
    if refused := [lone for lone in refused if lone.run not in undefined]:
        notes.append(f"No IDP of {_some([lone.run for lone in refused])}: {refused[0].reason}.")
    return notes


def _notes_of_runs(study: StudyFolder) -> list[str]:
    """The notes that finished runs have in ``run.json``: each subject once, in the words of the first run with it."""
    by_subject: dict[str, list[tuple[RunFolder, str]]] = {}
    for run in study.finished:
        for about, note in read_run(run.folder).get("notes", {}).items():
            by_subject.setdefault(about, []).append((run, note))
    return [f"{_some([run for run, _ in noted])}: {noted[0][1]}." for noted in by_subject.values()]


def _some(runs: Sequence[RunFolder]) -> str:
    """The folder of the first run, and how many other runs there are."""
    others = len(runs) - 1
    return runs[0].folder.name + (f" and {others} other{'s'[: others > 1]}" if others else "")


def _averages(group: Mapping[int, Measures], name: str) -> dict[str, float]:
    mean, low, high = mean_interval([values[name] for values in group.values() if name in values])
    return {name: mean, f"{name}_low": low, f"{name}_high": high}


def _window(group: Mapping[int, Measures]) -> dict[str, object]:
    """Degree and rounds of the fit of ID; runs of unequal length have several windows."""
    ends = [(values["id_first"], values["id_last"]) for values in group.values() if "id_last" in values]
    windows = dict.fromkeys(f"{first:.0f}-{last:.0f}" for first, last in ends)
    return {"id_degree": ID_DEGREE, "id_rounds": " and ".join(windows)} if windows else {}


def _reaching(group: Mapping[int, Measures], names: Sequence[str], got_there: str) -> dict[str, float]:
    """Means over the runs that reached the target, bounds if some did not, and how many did not."""
    missed = sum(values.get(got_there) == 0.0 for values in group.values())
    row: dict[str, float] = {}
    for name in names:
        taken = [
            values[name if values[got_there] else f"{name}_bound"] for values in group.values() if got_there in values
        ]
        row |= _averages(group, name) | {f"{name}_bound": float(np.mean(taken)) if missed else np.nan}
    return row | {f"not_{got_there}": missed}


def _reference_group(
    groups: Mapping[Key, dict[int, Measures]], names: list[str], key: Key, reference: str
) -> dict[int, Measures]:
    """Runs of the reference policy at the same other knobs; empty for the reference itself."""
    place = names.index("policy")
    if key[place] == reference:
        return {}
    return groups.get((*key[:place], reference, *key[place + 1 :]), {})


def _comparison(group: Mapping[int, Measures], reference: Mapping[int, Measures]) -> dict[str, float]:
    mine, theirs = pair_by_seed(
        *({seed: of["rounds_to_target"] if of.get("reached") else np.nan for seed, of in runs.items()}
          for runs in (group, reference))
    )  # fmt: skip
    # A pair in which a run never reached the target makes both means, and the saving, NaN.
    saving = metrics.saving(float(mine.mean()), float(theirs.mean())) if mine.size else np.nan
    return {"pairs": int((~np.isnan(mine - theirs)).sum()) if reference else np.nan, "saving": saving}
