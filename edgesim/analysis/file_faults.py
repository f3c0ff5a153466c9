"""Whether the files of a run folder are what the run wrote."""

from pathlib import Path

from edgesim.base.errors import refusals
from edgesim.folder import checkpoints, digests
from edgesim.folder.records import read_config, read_run, read_table
from edgesim.folder.run_schema import SCHEMAS


def file_faults(folder: Path) -> list[str]:
    """Faults of the files of a run folder, a line each that names the file; empty if all are whole.

    The results are compared with their digests; those of a run without digests are only read. Checkpoints have digests
    of their own.
    """
    if faults := refusals(read_config, folder) + refusals(read_run, folder):
        return faults
    run = read_run(folder)
    if digests.KEY in run:
        missing = [name for name in run[digests.KEY] if not (folder / name).is_file()]
        faults += [f"{folder / name}: is missing" for name in missing]
        faults += [f"{folder / name}: {digests.DAMAGED}" for name in digests.damaged(folder, run)]
    elif run["status"] == "finished":
        faults += [fault for table in SCHEMAS for fault in refusals(read_table, folder, table)]
    return faults + _checkpoint_faults(folder, run["status"] == "finished")


def _checkpoint_faults(folder: Path, is_finished: bool) -> list[str]:
    """Checkpoints that are not what was written, or whose rows are no longer there in a run that is to go on."""
    faults: list[str] = []

    def note(damage: str) -> None:
        faults.append(f"{folder}/{damage}")

    for path in checkpoints.files(folder, *checkpoints.KINDS):
        saved = checkpoints.read(path, note)
        goes_on = not is_finished and path.name.startswith("checkpoint")
        if saved is not None and saved.about.format == checkpoints.FORMAT and goes_on:
            lack = checkpoints.lacking(folder, saved)
            faults += [f"{path}: the run cannot be resumed from it: {lack}"] if lack else []
    return faults
