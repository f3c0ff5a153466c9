"""Tuning: an optimiser proposes cells of knobs, and the runs of a study measure them."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from edgesim.analysis.runs import is_study
from edgesim.analysis.summary import write_summary
from edgesim.api.configs import Config, Overrides, folder_for
from edgesim.api.run import tell_new_defaults, tell_user_code
from edgesim.base.errors import EdgesimError
from edgesim.base.paths import system_errors
from edgesim.base.processes import INTERRUPTED, Stopped, cores, stopped_by, why_stopped_printed
from edgesim.plots.formats import USUAL, known_formats
from edgesim.screen.console import PlainConsole
from edgesim.simulation.feasibility import check_files
from edgesim.studies.plan import Study
from edgesim.studies.plan_file import grow, read_plan
from edgesim.studies.pool import Crew
from edgesim.studies.running import executor_in_use
from edgesim.tuning.findings import Tuned, conclude
from edgesim.tuning.journal import forget, need_optuna, opened
from edgesim.tuning.knobs import Spec
from edgesim.tuning.messages import say_begin, say_trial
from edgesim.tuning.search import pruner, search
from edgesim.tuning.task import base_of, cells_planned, finished_cells, make_task, named_of
from edgesim.tuning.trial import Trials


@why_stopped_printed()
def tune(
    config: Config,
    knobs: Mapping[str, Spec],
    objectives: str | Sequence[str],
    trials: int = 60,
    out: str | Path | None = None,
    *,
    target: float | None = None,
    seeds: int = 3,
    seed: int = 0,
    set: Overrides | None = None,
    jobs: int | None = None,
    prune: bool = True,
    judge: int = 3,
    fresh: bool = False,
    user_code: bool = True,
    quiet: bool = False,
    format: str = USUAL,
) -> Tuned:
    """Find the values of ``knobs`` that are best by ``objectives``, in ``trials`` trials of ``seeds`` runs each.

    ``config`` is as for `edgesim.run`, with keys ``set`` to other values. A knob is a key such as ``round.tmax_s`` with
    a range, as a tuple of two numbers, or a list of values. ``objectives`` are names such as ``seconds-to-target``,
    which needs a ``target``. Trials that several processes ask, now or later, with the same ``out`` (by default
    ``runs/`` and the file's name with ``-tune``) count together. The runs are those of a study in ``out``; finished
    ones that it has already answer trials before any is asked. A trial that can no longer be among the best ``judge``
    is given up (``prune``). At the end the ``judge`` best cells are run over as many fresh seeds, in the folder ``out``
    with ``-fresh`` behind its name. With ``fresh`` all trials are asked anew, their runs begin from the start, and
    cells that are there already no longer count unless a trial asks for them. ``jobs`` runs are at work at a time;
    with the same ``seed`` and ``jobs`` one process asks the same trials. ``user_code`` is whether configs may name
    code outside edgesim. ``format`` is that of the figures: one or several of png, svg and
    pdf. Scripts call this below ``if __name__ == "__main__":``, since the processes read them again.

    Needs Optuna. Raises `EdgesimError` for bad input, before anything is written, and where all trials fail. Ctrl-C,
    SIGTERM and SIGUSR1 save all runs and raise `Stopped`; the same call, without ``fresh``, resumes it.
    """
    need_optuna()
    formats = known_formats(format, "format")
    if executor_in_use() is not None:
        raise EdgesimError("executor: a tuning runs in processes of this machine; leave it out")
    for what, number, least in (("trials", trials, 1), ("jobs", jobs, 1), ("judge", judge, 0)):
        if number is not None and number < least:
            raise EdgesimError(f"{what} {number}: expected {least} or more")
    console, at_once = PlainConsole(quiet=quiet), jobs or cores()
    names = [objectives] if isinstance(objectives, str) else list(objectives)
    base, where = base_of(config, knobs, set)
    settings = named_of(base, knobs, where)
    for of_cell in settings:
        tell_user_code(of_cell, where, not user_code, console)
    tell_new_defaults(settings, console)
    task = make_task(base, knobs, names, target, seeds, seed)
    check_files(task.a_cell()[0].config)
    if out is None and isinstance(config, str | Path):
        out = Path("runs") / f"{Path(config).stem}-tune"
    out = folder_for(out, config, "tune", [task.a_cell()[0].config])
    with system_errors(f"{out}: cannot be a study's folder", "; choose another folder"):
        is_new = not out.exists() or not is_study(out)
    planned = [] if is_new else cells_planned(task, out)
    known = [] if fresh else finished_cells(task, out, planned)
    anew: Collection[str] = ()
    if fresh and not is_new:
        forget(out)
        anew = [run.folder for run in read_plan(out).runs]
    study = Study(out.name, [], target, task.reference)
    if is_new:
        grow(study, out)
    try:
        with (
            stopped_by(""),
            closing(Crew()) as crew,
            opened(out, task.facts(), task.knobs, task.objectives, seed) as journal,
        ):
            if fresh:
                journal.leave_out(planned)
            for values, measured in known:
                journal.add(values, measured)
            rule = pruner(journal, task.objectives, max(1, judge)) if prune else None
            say_begin(console, task, journal.trials(), rule is not None)
            search(
                journal,
                task.runs,
                Trials(out, study, task.objectives, at_once, console, crew, anew={*anew}),
                trials,
                max(1, at_once // seeds),
                rule,
                lambda trial, all_trials: say_trial(console, task, trial, all_trials, trials),
                lambda others: console.print(f"other processes work on {others} trials; waiting for them"),
            )
            all_trials, importances = journal.trials(), journal.importances()
    except KeyboardInterrupt as interrupt:
        status = interrupt.status if isinstance(interrupt, Stopped) else INTERRUPTED
        same = "the same command without fresh" if fresh else "the same command"
        raise Stopped(f"stopped; all runs are saved, and {same} resumes {out}", status) from None
    with console.status("summing up"):
        write_summary(out)
    return conclude(out, task, all_trials, importances, judge, jobs, fresh, console, formats)
