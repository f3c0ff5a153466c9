"""Runs in folders: simulations advanced to their ends, with tables and checkpoints, or reused, resumed, restarted."""

import platform
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from edgesim.base import processes
from edgesim.base.errors import Diverged, EdgesimError
from edgesim.base.lease import Lease, Taken, is_of_lease, leased
from edgesim.base.paths import system_errors
from edgesim.base.registry import blamed, plug_ins_named
from edgesim.config import RunConfig
from edgesim.engine.server import RunEnd
from edgesim.folder import digests, records
from edgesim.folder.rows_file import ABSENCES, WAYS
from edgesim.folder.run_progress import RunProgress
from edgesim.folder.run_schema import SCHEMAS
from edgesim.learning.interface import MODEL_FILE, Learner
from edgesim.mobility.corners import corners
from edgesim.simulation import named_code, resumption
from edgesim.simulation.complete import as_toml, complete
from edgesim.simulation.inputs import input_digests, version_of
from edgesim.simulation.notes import end_notes
from edgesim.simulation.past import extend, is_longer, refuse_other_end
from edgesim.simulation.simulation import Simulation
from edgesim.traces import models
from edgesim.traces.absences import absences

UNFINISHED, SHORTER = "was unfinished", "was shorter"
"""Reasons why a run is restarted or resumed."""

CHECKPOINT_S = 10.0
"""Least wall time between two checkpoints of a run."""

_MOST_SHOWN = 10_000
"""Devices from which on pictures show groups of them, and nothing is written of the absences of each."""

_MOST_CORNERS = 1_000_000
"""Corners of all devices' ways above which nothing is written of them."""

Status = Literal["finished", "failed", "interrupted"]


@dataclass(frozen=True)
class RunResult:
    """End of a run: its folder, its status and the reason."""

    folder: Path
    status: Status
    reason: str
    reused: bool = False
    restarted: str = ""
    """Reason why the folder's earlier run was restarted; empty if there was none or if it was resumed."""
    resumed_after: int = 0
    """Round after which the folder's earlier run was resumed; 0 if it was not."""


@plug_ins_named()
def run(
    config: RunConfig,
    folder: Path,
    on_round: Callable[[RunProgress], None] = lambda _: None,
    on_start: Callable[[str], None] = lambda _: None,
    target: float | None = None,
    cores: int | None = None,
    on_note: Callable[[str, str], None] = lambda about, note: None,
    fresh: bool = False,
    checkpoint_s: float = CHECKPOINT_S,
    strict: bool = False,
    other_machine: bool = False,
    keep_failure: bool = False,
    until: int | None = None,
    on_lease: Callable[[], None] = lambda: None,
) -> RunResult:
    """Simulate one run into a folder.

    A finished run of the same config on the same files and code is reused, unless ``fresh`` is true; an unfinished one
    resumes from its last checkpoint, and a shorter one from its end, where its rounds do not depend on how many there
    are. A checkpoint is written at the end of a round, at most every ``checkpoint_s`` seconds of wall time, and when
    SIGTERM or SIGUSR1 asks the process to end. Where it is of other files, code or another machine the run
    restarts, or with ``strict`` raises `EdgesimError`; ``other_machine`` is whether it may be of another machine, by
    which results may differ in their last bits. All finished tables but ``timing`` and the model are the same bytes,
    however often a run was stopped. Behind the round ``until`` a run is saved and ends, as `Stopped`.

    ``on_round`` is called after every round, ``on_start`` with what is being prepared, and ``on_note`` before the first
    round with the subject and text of each note. ``target`` is an accuracy that the start model must not have reached.
    ``cores`` is the number of processor cores that the run may use, all of this process's when absent. ``on_lease`` is
    called when no other process can write to the folder any more and nothing is written yet; what it raises is raised.

    Raises `EdgesimError` for bad input before anything is written (with ``keep_failure`` the reason is noted in the
    folder), if another process works on the run (`Taken`), and if the start model reaches the target, training fails or
    not one round ends. A diverging loss ends the run as ``failed``; Ctrl-C ends it as ``interrupted`` and is raised
    again, as `processes.Stopped` where the process was asked to end, or nothing is written yet. In all these cases the
    finished rounds are kept.
    """
    config = complete(config)
    if why_run(folder, config, fresh) is None:
        return _reused(folder)
    with leased(folder) as lease:
        # Another process may have finished it in between.
        restarted = why_run(folder, config, fresh)
        if restarted is None:
            return _reused(folder)
        on_lease()
        may_resume = restarted in (UNFINISHED, SHORTER) and not fresh
        try:
            if restarted == SHORTER and may_resume:
                extend(folder, records.read_config(folder), as_toml(config))
            how = restarted, may_resume, strict, other_machine, checkpoint_s, until
            return _simulated(config, folder, lease, *how, on_round, on_start, on_note, target, cores)
        except (Taken, BrokenPipeError):
            raise
        except KeyboardInterrupt as interrupt:
            if isinstance(interrupt, processes.Stopped) or (folder / "run.json").is_file():
                raise
            # The lease takes an empty folder with it.
            raise processes.Stopped(
                f"stopped before the first round; nothing is kept in {folder}", processes.INTERRUPTED
            ) from None
        except Exception as error:
            if keep_failure:
                reason = str(error) if isinstance(error, EdgesimError) else blamed(error)
                with suppress(EdgesimError):
                    records.note_failure(folder, as_toml(config), reason or f"an error in the program: {error!r}")
            raise


def write_results(simulation: Simulation, folder: Path) -> None:
    """Write what a finished run leaves beside its tables: the model, when devices were absent and where they were."""
    simulation.learner.save(folder)
    world, end_s = simulation.world, simulation.server.parts.clock.now
    if (count := world.config.devices.count) >= _MOST_SHOWN:
        return
    if world.config.availability.model != "always":
        # A table for pictures alone: a model that cannot answer for all of the run does not end it.
        with suppress(EdgesimError):
            ABSENCES.write(folder, absences(world.availability, count, end_s))
    if world.moving is not None:
        WAYS.write(folder, corners(world.moving.paths, count, end_s, _MOST_CORNERS))


def close_tables(
    writer: records.RunWriter, simulation: Simulation, status: Status, cut: bool, reason: str, started: float
) -> None:
    """Close the tables of a run that has begun and ends now, with its last notes and facts.

    ``cut`` is as for the writer's `close`, ``started`` the instant of its start by `time.perf_counter`.
    """
    world, learner = simulation.world, simulation.learner
    report, t_end_s = simulation.server.parts.report, simulation.server.parts.clock.now
    if (cells := simulation.server.parts.cells) is not None:
        cells.write_last(writer)
    report.write_row()
    wall_s = round(time.perf_counter() - started, 3)
    empty = models.empty_slots(world.availability, report.totals.empty_slots, t_end_s)
    notes = end_notes(world, simulation.notes, report.totals, empty or 0)
    counted = (
        learner.facts()
        | learner.privacy(report.totals.uploads or {})
        | ({} if empty is None else {"empty_slots": empty})
    )
    writer.close(status, cut, reason=reason, wall_s=wall_s, t_end_s=t_end_s, **counted, notes=notes)


def _reused(folder: Path) -> RunResult:
    with suppress(OSError):
        # Of a process that was killed when the run had just finished.
        records.remove_streams(folder)
    return RunResult(folder, "finished", "finished before", reused=True)


def _simulated(
    config: RunConfig,
    folder: Path,
    lease: Lease,
    restarted: str,
    may_resume: bool,
    strict: bool,
    other_machine: bool,
    checkpoint_s: float,
    until: int | None,
    on_round: Callable[[RunProgress], None],
    on_start: Callable[[str], None],
    on_note: Callable[[str, str], None],
    target: float | None,
    cores: int | None,
) -> RunResult:
    """Simulate a complete config that is not finished in the folder, whose lease is held; arguments as in `run`."""
    # Hashed before the files are read, so that a file that changes meanwhile makes the run be repeated next time.
    inputs = input_digests(config, when_loaded=True)
    with Simulation(config, on_start, cores) as simulation, ExitStack() as contexts:
        learner = simulation.learner
        for subject, note in simulation.notes.items():
            on_note(subject, note)
        facts = run_facts(simulation, inputs)
        about = resumption.about(as_toml(config), facts)
        resumed = None
        if may_resume:
            modules = named_code.own_files(config)
            resumed = resumption.find(folder, about, modules, on_note, strict, other_machine, simulation.place)
        if resumed is None:
            learner.prepare(on_start)
            facts |= _machine(learner)
        else:
            restarted, facts = "", facts | resumed.facts
        contexts.enter_context(resumption.names_checkpoint(None if resumed is None else resumed.checkpoint.path))
        # From here until its end is written below a run counts as running: signals end it only where they are let in.
        asked = contexts.enter_context(processes.asked_to_end())
        signals = contexts.enter_context(processes.uninterrupted())
        checkpoint = None if resumed is None else resumed.checkpoint
        writer = records.RunWriter(folder, as_toml(config), facts, checkpoint, lease)
        server = simulation.make_server(writer)
        started = time.perf_counter() - (0.0 if resumed is None else resumed.checkpoint.about.wall_s)
        status: Status = "failed"
        reason, cut = "an error in the program", True
        try:
            with signals.let_in():
                named_code.keep_code(config, folder)
                if resumed is None:
                    start = simulation.begin()
                    if start is not None and target is not None and start.accuracy >= target:
                        had = f"the start accuracy {start.accuracy:g}"
                        raise EdgesimError(f"target {target:g} must lie above {had}; choose a higher target")
                else:
                    try:
                        simulation.resume(resumed.state)
                    except EdgesimError as error:
                        raise EdgesimError(f"{resumed.checkpoint.path}: {error}") from None
                keep_at = config.checkpoint_at or ()
                save = resumption.Saver(
                    server, writer, folder, about, checkpoint_s, asked, started, on_note, keep_at, until
                )
                while not isinstance(done := simulation.advance(), RunEnd):
                    assert isinstance(done, RunProgress), "the policy answers all decisions at once"
                    on_round(done)
                    save.if_due()
                server.stop()
                reason, cut = done.reason, False
                if not server.parts.report.totals.rounds:
                    raise EdgesimError(f"no {simulation.protocol.none_made}: {reason}")
                write_results(simulation, folder)
                status = "finished"
        except EdgesimError as error:
            reason = str(error)
            if not isinstance(error, Diverged):
                raise
            reason += _other_rates(config)
        except BrokenPipeError:
            status, reason = "interrupted", processes.UNREAD
            raise
        except Exception as error:
            reason = blamed(error) or reason
            raise
        except KeyboardInterrupt as interrupt:
            status, reason = "interrupted", "stopped by Ctrl-C or SIGTERM"
            if asked.signal is None or isinstance(interrupt, processes.Stopped):
                raise
            raise resumption.stopped(folder, asked.status) from None
        except SystemExit as end:
            # So a console ends that prints into a pipe without a reader.
            if end.code == processes.READER_LEFT:
                status, reason = "interrupted", processes.UNREAD
            raise
        finally:
            close_tables(writer, simulation, status, cut, reason, started)
    resumed_after = 0 if resumed is None else resumed.checkpoint.about.round
    return RunResult(folder, status, reason, restarted=restarted, resumed_after=resumed_after)


def _other_rates(config: RunConfig) -> str:
    """Learning rates beside the devices' own that a diverging run may lower, as the end of a message."""
    rates = ["algorithm.lr"] if "lr" in config.algorithm.options else []
    rates += ["round.protocol_options.server_lr"] if config.round.protocol_options.get("server_lr", 1) > 1 else []
    return "".join(f" or {rate}" for rate in rates)


def why_run(folder: Path, config: RunConfig, fresh: bool = False) -> str | None:
    """Reason to run a complete config into a folder; None if the folder has its run, finished and current.

    The reason is empty if the folder is empty or does not exist. With ``fresh`` a finished run is run again too. Raises
    `EdgesimError` for a folder that holds anything else, or a shorter run that would not be the beginning of this one.
    """
    with system_errors(f"{folder}: cannot be a run folder", "; choose another folder"):
        if folder.exists() and not folder.is_dir():
            raise EdgesimError(f"{folder}: is a file, not a folder; choose another folder")
        # The first file that a run writes may be all that one has left that was killed then.
        left = {"config.toml.part"}
        if not folder.exists() or all(is_of_lease(path.name) or path.name in left for path in folder.iterdir()):
            return ""
    if not (folder / "config.toml").is_file():
        raise EdgesimError(f"{folder}: not empty and not a run folder; choose another folder")
    existing = records.read_config(folder)
    key = resumption.other_setting(existing, as_toml(config))
    if key is not None and not is_longer(existing, as_toml(config)):
        raise EdgesimError(
            f"{folder}: holds a run of another config ({key} differs); choose another folder or remove it"
        )
    # A run that was killed between writing the two files has a config.toml but no run.json.
    run = records.read_run(folder) if (folder / "run.json").is_file() else {}
    if run.get("decisions") == records.OUTSIDE:
        raise EdgesimError(f"{folder}: holds an episode, whose decisions came from outside; choose another folder")
    if key is None and run.get("status") != "finished":
        return UNFINISHED
    if fresh:
        return "finished before" if key is None else SHORTER
    if run.get("status") == "finished" and (faults := digests.damaged(folder, run)):
        return f"had a damaged {faults[0]}"
    if key is not None:
        refuse_other_end(config, f"{folder}: holds a shorter run; choose another folder, or run it anew (fresh)")
        return SHORTER
    files = [f"{name}.parquet" for name in SCHEMAS]
    files += [] if config.learning.training == "none" else [MODEL_FILE]
    if lacking := [name for name in files if not (folder / name).is_file()]:
        return f"lacked {lacking[0]}"
    # A key without a hash now is not a change: its file is missing.
    earlier = run.get("inputs", {})
    changed = [key for key, digest in input_digests(config).items() if earlier.get(key) != digest]
    code = named_code.modules(config)
    names = [f"the code of {key}" if key in code else key for key in changed]
    return f"{', '.join(names)} changed since it was finished" if names else None


def run_facts(simulation: Simulation, inputs: dict[str, str]) -> dict[str, Any]:
    """Facts about a run for its ``run.json``; ``inputs`` are the hashes of its files and code."""
    config, facts = simulation.config, _machine(simulation.learner) | simulation.world.availability.facts()
    facts |= {"inputs": inputs, "notes": simulation.notes, "ends": records.ends(as_toml(config))}
    facts |= {} if simulation.world.moving is None else simulation.world.moving.facts()
    return facts | {"has_rounds": simulation.protocol.has_rounds}


def _machine(learner: Learner) -> dict[str, Any]:
    """Versions and machine, for ``run.json``."""
    packages = ["numpy", "scipy", "simpy", "pyarrow"]
    return {
        "edgesim": version_of("edgesim"),
        "git_commit": _git_commit(),
        "python": platform.python_version(),
        "versions": {name: version_of(name) for name in packages},
        "platform": f"{sys.platform} {platform.machine()}",
        "command": sys.argv,
        "cpu": _cpu(),
        **learner.facts(),
    }


@cache
def _cpu() -> str:
    """The processor's model name, or its architecture if the system does not know it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


@cache
def _git_commit() -> str | None:
    """Commit of the checkout that runs, with ``+`` if files were changed since; None for an installed copy.

    Asked once per process, since the process keeps the code that it has loaded.
    """
    root = Path(__file__).parents[2]
    if not (root / ".git").exists():
        return None
    command = ["git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=+"]
    try:
        answer = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return answer.stdout.strip() or None
