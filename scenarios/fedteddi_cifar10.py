"""FedTeddi on CIFAR-10 at the paper's size: why 75 % is not reached, and eight policies beside the paper's savings.

Four studies, one after another, each with ``--step``; what they decide and how was written down before their first run
(docs/papers/fedteddi.md). ``settings``: Random and FedTeddi under what the paper leaves open, on a seed that no other
study has. ``pictures``: what JPEG copies cost a model that is trained centrally. ``gathered``: how accurate that model
gets on the pictures that the devices hold. ``comparison``: all policies in the setting that the first study chose.
Whatever was simulated so far, ``report`` draws it without running anything.

All tests of all runs are kept in one Parquet file, to which each step adds (``--tests``), so that tables and figures
can be made again when the run folders are gone. ``cifar10.npz`` is for the user to bring; digits stand in for it in
``--quick``.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from fedteddi import DIGITS, POLICIES, TEN_CLASSES
from typer import Option

import edgesim
from edgesim.scenario import Runs, figures, known, names, pictures, refuse_unknown, scenario, start, tables, work

TMAX_S = 1.2
EVERY_ROUNDS = 5
SETTINGS: dict[str, dict[str, Any]] = {
    "tau5": {"steps": 5},
    "tau5-kept": {"steps": 5, "persist_momentum": True},
    "tau10": {"steps": 10},
    "tau24": {"steps": 24},
    "tau10-kept": {"steps": 10, "persist_momentum": True},
    "tau24-kept": {"steps": 24, "persist_momentum": True},
    "tau5-lr0.03": {"steps": 5, "lr": 0.03},
    "tau5-lr0.09": {"steps": 5, "lr": 0.09},
}
"""What the paper leaves open, the smallest change of the first setting first; the last two only if all others fail."""
FIRST_SETTINGS = ",".join(list(SETTINGS)[:6])
SETTINGS_SEED = 1000
MARK = 0.75
LAST_ROUND = 300
HELD_TESTS = 5
"""Tests in a row at the mark after which a run of the comparison ends."""
QUALITY, BLOCK_SHIFT = 75, 4
"""How the copies of CIFAR-10 were compressed, and by how many pixels the blocks of another compression are moved."""
PAPER = {"fedcgd": 0.111, "random": 0.584, "pure-drift": 0.385}
"""Savings in rounds to 75 % at 1.2 s; of Pure Drift the paper does not say at which deadline."""
SAVING = {
    "pairs": ("seeds", "{:.0f}"),
    "never": ("never", "{:.0f}"),
    "never_policy": ("FedTeddi never", "{:.0f}"),
    "rounds": ("rounds", "{:.1f}"),
    "rounds_policy": ("FedTeddi's", "{:.1f}"),
    "saving": ("saving at least", "{:.1%}"),
    "saving_most": ("at most", "{:.1%}"),
    "low": ("from", "{:.1%}"),
    "high": ("to", "{:.1%}"),
    "paper": ("paper, to 75 %", "{:.1%}"),
    "p_holm": ("p (Holm)", "{:.3g}"),
    "reading": ("the policy needs", "{}"),
    "seeds_needed": ("seeds for 10 %", "{:.0f}"),
}
PROGRESS = {
    "last_round": ("rounds", "{:.0f}"),
    "start": ("start", "{:.3f}"),
    "best": ("best", "{:.3f}"),
    "last_five": ("last five tests", "{:.3f}"),
    "round_at_mark": ("at the mark", "{:.0f}"),
    "clients": ("clients", "{:.2f}"),
    "energy_kj": ("kJ", "{:.3g}"),
}
WHAT = {
    "rounds_to_target": "Rounds to the mark",
    # A run that ended at the mark counts as if it stayed there.
    "rounds_to_stay": "Rounds until no later test of the run is below the mark",
}
STEPS = ("settings", "pictures", "gathered", "comparison", "report")
KNOBS = {"settings": ["setting", "policy"], "comparison": ["setting", "policy", "tmax_s"]}
"""Knobs of the studies on devices, without which a run cannot be placed."""
LEGEND = """\
Means over seeds. never: seeds on which the policy, or FedTeddi, was never there; then the saving lies between two ends,
and rounds has the last round. from, to: 95 % t interval, not corrected. the policy needs: fewer or more rounds than
FedTeddi, by p (Holm). seeds for 10 %: to detect a tenth of FedTeddi's rounds at a power of 80 %, at this spread."""
QUICK = {
    "step": "comparison",
    "dataset": "digits",
    "policies": "random,fedteddi",
    "tmax": 0.8,
    "rounds": 20,
    "seeds": 2,
}


def base(dataset: str, rounds: int, tmax_s: float) -> dict[str, Any]:
    """Config of the runs on devices, less setting and policy."""
    of = DIGITS if dataset == "digits" else TEN_CLASSES
    return {
        **of,
        "rounds": rounds,
        "round": {**of.get("round", {}), "tmax_s": tmax_s, "delay_knowledge": "known"},
        "data": {"dataset": dataset, "partition": "fedteddi", **of["data"]},
        "evaluation": {"every": EVERY_ROUNDS},
    }


def in_setting(config: Mapping[str, Any], setting: str) -> dict[str, Any]:
    """A config in one of `SETTINGS`; raises `EdgesimError` for another name."""
    refuse_unknown("--settings", [setting], SETTINGS)
    return {**config, "learning": config["learning"] | SETTINGS[setting]}


def add_settings(
    runs: Runs, config: Mapping[str, Any], settings: Sequence[str], policies: Sequence[str], last_round: int
) -> None:
    """Plan runs of policies in settings that end after ``last_round`` of the rounds that the config has."""
    ends = {"stop_at_s": last_round * config["round"]["tmax_s"]}
    for name in settings:
        axes = {"selection.policy": policies}
        runs.add(in_setting(config, name) | ends, axes, labels={"setting": name}, seeds=[SETTINGS_SEED])


def add_comparison(runs: Runs, config: Mapping[str, Any], setting: str, policies: Sequence[str], mark: float) -> None:
    """Plan runs of all policies on each seed, those of one seed before the next."""
    ends = {"stop_at_accuracy": mark, "stop_after_tests": HELD_TESTS}
    axes = {"selection.policy": policies, "round.tmax_s": [config["round"]["tmax_s"]]}
    for seed in range(runs.seeds):
        runs.add(in_setting(config, setting) | ends, axes, labels={"setting": setting}, seeds=[seed])


def add_pictures(runs: Runs, dataset: str, epochs: int) -> None:
    """Plan central training, a test after each epoch, on a data set and on JPEG copies of its pictures."""
    # Pictures that were compressed before would stay as they are on the same grid of blocks.
    shift = BLOCK_SHIFT if dataset.endswith(".npz") else 0
    copy = runs.out / "copies" / Path(dataset).stem / "compressed.npz"
    made = work.Kept(copy.parent, [dataset], QUALITY, shift)
    if not made.is_current:
        pictures.compress(dataset, runs.folder, copy, QUALITY, shift)
        made.keep([copy])
    for name, source in (("given", dataset), ("compressed", str(copy))):
        runs.add(central(source, epochs), labels={"data": Path(dataset).stem, "pictures": name}, seeds=[SETTINGS_SEED])


def add_gathered(runs: Runs, config: Mapping[str, Any], epochs: int) -> None:
    """Write what all devices of a run of settings hold, and plan central training on it, a test after each epoch."""
    of_devices = Runs(folder=runs.folder, set_=runs.set_)
    of_devices.add(config, seeds=[SETTINGS_SEED])
    copy = runs.out / "copies" / "gathered.npz"
    pictures.gather(of_devices.planned[0].config, copy)
    runs.add(central(str(copy), epochs), labels={"pictures": "gathered"}, seeds=[SETTINGS_SEED])


def central(dataset: str, epochs: int) -> dict[str, Any]:
    """Config of the paper's CNN that trains on a whole data set in one place."""
    return {
        "rounds": epochs,
        "devices": {"count": 1},
        "round": {"tmax_s": 1e6, "payload_bits": 1, "admission": "count", "count": 1, "allocator": "equal_share"},
        "data": {"dataset": dataset, "partition": "dirichlet"},
        "learning": {"model": TEN_CLASSES["learning"]["model"], "lr": 0.01, "epochs": 1, "pretrain": False},
    }


def chosen(runs: Sequence[tables.KeptRun]) -> tuple[str, float] | None:
    """Setting and mark of the comparison by Random's runs; None while it is open which.

    The first setting in which a test is at `MARK`, if all before were simulated to the last round. If none of them is,
    the first one, with the highest whole per cent that a test in it has as mark.
    """
    of = {run.knobs["setting"]: run for run in runs if run.knobs["policy"] == "random"}
    for name in SETTINGS:
        if name not in of:
            return None
        tests = of[name].tests
        if (tests["accuracy"] >= MARK).any():
            return name, MARK
        if tests.empty or tests["round"].max() < LAST_ROUND:
            return None
    first = next(iter(SETTINGS))
    return first, whole_percent(of[first].tests["accuracy"].max())


def in_words(by_rule: tuple[str, float] | None) -> str:
    """What `chosen` says."""
    return "still open" if by_rule is None else f"{by_rule[0]}, mark {by_rule[1]:g}"


def whole_percent(accuracy: float) -> float:
    """The highest whole per cent that is not above an accuracy."""
    # 100 x 0.29 is below 29 in floating point.
    return math.floor(round(100 * accuracy, 6)) / 100


def progress(runs: Sequence[tables.KeptRun], mark: float) -> pd.DataFrame:
    """How far each run got: a row each, with its knobs, seed and status."""
    rows = []
    for run in runs:
        tests, start = run.tests, run.rows["accuracy"].iloc[0]
        there = tests.loc[tests["accuracy"] >= mark, "round"]
        rows.append(
            {
                **run.knobs,
                "seed": run.seed,
                "status": run.status,
                "last_round": tests["round"].max(),
                "start": start,
                "best": tests["accuracy"].max(),
                "last_five": tests["accuracy"].tail(5).mean(),
                "round_at_mark": there.min(),
                "clients": run.rounds["selected"].mean(),
                "energy_kj": run.rounds["energy_j"].sum() / 1e3,
            }
        )
    return pd.DataFrame(rows)


def default_mark(tests: pd.DataFrame) -> float:
    """The comparison's mark by the rule; while it is open `MARK`, or less where runs ended early at less."""
    by_rule = chosen(tables.kept_runs(tests, "settings"))
    held = ended_early(tables.kept_runs(tests, "comparison")).values()
    return min([MARK, *map(whole_percent, held)]) if by_rule is None else by_rule[1]


def ended_early(runs: Sequence[tables.KeptRun]) -> dict[Path, float]:
    """Folders of finished runs with fewer rounds than others, with the least accuracy of the tests that ended them."""
    last_round = max((run.tests["round"].max() for run in runs), default=0)
    return {
        run.folder: run.tests["accuracy"].tail(HELD_TESTS).min()
        for run in runs
        if run.status == "finished" and run.tests["round"].max() < last_round
    }


def refuse_other_tests(tests: pd.DataFrame, path: Path, test_images: int | None = None) -> None:
    """Raise `EdgesimError` for tests without the knobs of this study's runs, and for tests on other pictures.

    Expected are ``test_images`` pictures, as many as the first test has when absent.
    """
    for study, knobs in KNOBS.items():
        rows = tests[tests["study"] == study]
        for knob in knobs:
            if len(rows) and (knob not in rows or rows[knob].isna().any()):
                raise edgesim.EdgesimError(f"{path}: {study}: a run has no {knob!r}; expected runs of this script")
    tested = tests[tests["study"].isin([*KNOBS])]["test_images"]
    expected = test_images or next(iter(tested), None)
    other = tested[tested != expected]
    if len(other):
        raise edgesim.EdgesimError(
            f"{path}: it, or the folder of --out, has tests on {other.iloc[0]:g} pictures; expected one data set, here "
            f"with {expected:g}; give another --tests or --out"
        )


def whole_seeds(runs: Sequence[tables.KeptRun]) -> list[tables.KeptRun]:
    """The runs of those seeds of which every policy is finished, in each setting at each deadline; prints the others.

    Without this, policies that end early would have more seeds than others, and results would choose the seeds.
    """
    place = ["setting", "tmax_s"]
    table = pd.DataFrame([{**run.knobs, "seed": run.seed, "finished": run.status == "finished"} for run in runs])
    policies = table.groupby(place)["policy"].transform("nunique")
    whole = table.groupby([*place, "seed"])["finished"].transform("sum") == policies
    for (setting, tmax_s, seed), _ in table[~whole].groupby([*place, "seed"]):
        print(f"{setting}, {tmax_s:g} s, seed {seed}: left out of savings, since not all policies are finished")
    return [run for run, is_whole in zip(runs, whole, strict=True) if is_whole]


def report(tests: pd.DataFrame, out: Path, given_mark: float | None, formats: figures.Formats) -> None:
    """Print the tables of all studies of a table of tests and draw their figures, into the folder ``out``."""
    # A run has a row of its start model from its first round on, and its first test later.
    tests = tests[tests.groupby(["study", "run"])["round"].transform("max") > 0]
    studies = {study: tables.kept_runs(tests, study) for study in dict.fromkeys(tests["study"])}
    if not studies:
        print("no run has a test so far")
        return
    marks = dict.fromkeys(studies, given_mark or MARK) | {"comparison": given_mark or default_mark(tests)}
    # First what can be refused, so that nothing is written then.
    saved = compare(whole_seeds(studies["comparison"]), marks["comparison"]) if "comparison" in studies else {}
    out.mkdir(parents=True, exist_ok=True)
    for study, runs in studies.items():
        table = progress(runs, marks[study])
        tables.save(table, out / f"{study}.csv")
        tables.show(table, f"{study}: {len(runs)} runs, {(table['status'] == 'finished').sum()} finished", PROGRESS)
        draw(runs, out / "plots", study, marks[study], formats)
        if study == "settings":
            print(f"by the rule: {in_words(chosen(runs))}")
    for measure, table in saved.items():
        against = table["policy"].iloc[0] + ", " if table["policy"].nunique() == 1 else ""
        title = f"{WHAT[measure]} of {100 * marks['comparison']:g} %: {against}saved by FedTeddi"
        tables.save(table, out / f"savings-{measure}.csv")
        tables.show(table, title, SAVING)
    if saved:
        print(LEGEND)


def draw(runs: Sequence[tables.KeptRun], out: Path, study: str, mark: float, formats: figures.Formats) -> None:
    """Draw accuracy over rounds and, of policies, who was scheduled and the rounds to several accuracies."""
    panels = figures.panels_of(runs)
    target = None if study == "pictures" else mark
    figures.save(figures.draw_accuracy(panels, "rounds", target), out / f"{study}_accuracy", formats)
    if study == "comparison":
        figures.save(figures.draw_scheduled(panels), out / f"{study}_scheduled", formats)
        # Runs end at the mark, so that higher levels say nothing.
        levels = [level for level in figures.levels_around(mark, runs) if level <= mark]
        figures.save(figures.draw_rounds_to_target(panels, levels), out / f"{study}_rounds_to_target", formats)


def compare(runs: Sequence[tables.KeptRun], mark: float) -> dict[str, pd.DataFrame]:
    """What FedTeddi saves against the others, beside the paper's numbers, by each measure that has pairs.

    Raises `EdgesimError` for a mark above the one at which a run ended, of which nobody knows when it would be there.
    """
    for folder, held in ended_early(runs).items():
        if held < mark:
            raise edgesim.EdgesimError(
                f"mark {mark:g}: {folder} ended early, after {HELD_TESTS} tests at {held:g} or above; expected a "
                "--mark that is not higher"
            )
    saved = {}
    for measure in WHAT:
        table = tables.savings(runs, "fedteddi", mark, measure)
        if not table.empty:
            saved[measure] = table.assign(paper=table["policy"].map(PAPER).where(table["tmax_s"] == TMAX_S))
    return saved


@scenario("runs/fedteddi-cifar10", quick=QUICK)
def main(
    runs: Runs,
    step: Annotated[str, Option(help=f"One of {', '.join(STEPS)}.")] = "report",
    dataset: Annotated[str, Option(help="cifar10.npz; of pictures any data set of 10 classes.")] = "cifar10.npz",
    settings: Annotated[
        str | None,
        Option(help="Settings, the first six when absent; the comparison's, what the rule says when absent."),
    ] = None,
    policies: Annotated[
        str | None, Option(help="Policies; random,fedteddi (settings) or all (comparison) when absent.")
    ] = None,
    mark: Annotated[
        float | None,
        Option(min=0.01, max=1, help="Accuracy to race to; 0.75, of the comparison what the rule says, when absent."),
    ] = None,
    tmax: Annotated[float, Option(help="Deadline in s.")] = TMAX_S,
    rounds: Annotated[int, Option(min=1, help="Rounds of a run, K of FedTeddi.")] = LAST_ROUND,
    last_round: Annotated[int, Option(min=1, help="Round with which a run of settings ends.")] = 150,
    epochs: Annotated[int, Option(min=1, help="Epochs of central training (pictures, gathered).")] = 10,
    tests: Annotated[Path | None, Option(help="File of all tests; OUT/tests.parquet when absent.")] = None,
) -> None:
    """Run one step of the study and report all that was simulated so far."""
    refuse_unknown("--step", [step], STEPS)
    config, path, target = base(dataset, rounds, tmax), tests or runs.out / "tests.parquet", None
    folders = [runs.out / name for name in STEPS]
    if path.suffix != ".parquet":
        raise edgesim.EdgesimError(f"--tests {path}: expected a name that ends in .parquet")
    is_begun = path.exists() or any(tables.is_study(folder) for folder in folders)
    # Read before any run, which may take hours.
    before = tables.all_tests(path, folders) if step == "report" or is_begun else None
    if step == "report":
        refuse_other_tests(before, path)
        report(before, runs.out, mark, runs.formats)
        return
    if step != "pictures":
        test_images, *shape = known.test_shape(dataset, runs.folder)
        refuse_other_pictures(dataset, shape)
        if before is not None:
            refuse_other_tests(before, path, test_images)
    if step == "settings":
        wanted = names(settings or FIRST_SETTINGS)
        add_settings(runs, config, wanted, names(policies or "random,fedteddi"), last_round)
    elif step == "comparison":
        by_rule = None if before is None else chosen(tables.kept_runs(before, "settings"))
        setting, target = by_rule or (next(iter(SETTINGS)), MARK)
        setting, target = names(settings)[0] if settings else setting, mark or target
        print(f"comparison in {setting}, mark {target:g} (by the rule: {in_words(by_rule)})")
        add_comparison(runs, config, setting, names(policies or POLICIES), target)
    elif step == "pictures":
        add_pictures(runs, dataset, epochs)
    else:
        add_gathered(runs, config, epochs)
    runs.study(runs.out / step, target=target)
    kept = tables.all_tests(path, folders)
    tables.write_tests(path, kept)
    report(kept, runs.out, mark, runs.formats)


def refuse_other_pictures(dataset: str, shape: Sequence[int]) -> None:
    """Raise `EdgesimError` for a file whose pictures, of so many channels, rows and columns, are not as CIFAR-10's."""
    if dataset != "digits" and shape != [3, 32, 32]:
        channels, height, width = shape
        raise edgesim.EdgesimError(
            f"--dataset {dataset}: its pictures are {height}x{width} with {channels} channels; expected those of "
            "CIFAR-10, 32x32 with 3 channels, for which the paper's model has its size"
        )


if __name__ == "__main__":
    start(main)
