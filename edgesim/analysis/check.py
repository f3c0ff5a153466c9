"""The check of a folder: all that is checked of every run in it."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from edgesim.analysis.file_faults import file_faults
from edgesim.analysis.invariants import broken_invariants
from edgesim.analysis.runs import has_runs, read_study, studies_in
from edgesim.base.errors import EdgesimError
from edgesim.base.lease import is_of_lease
from edgesim.folder.digests import KEY
from edgesim.folder.records import read_run
from edgesim.folder.state import state_of


@dataclass
class Checked:
    """The result of the check of a folder."""

    folder: Path
    faults: dict[Path, list[str]] = field(default_factory=dict)
    """Lines on the faults of each run folder; empty lists for runs that are whole."""
    unverifiable: list[Path] = field(default_factory=list)
    """Finished runs without digests: their tables can be read, but may have been changed since."""
    unfinished: dict[Path, str] = field(default_factory=dict)
    """Status of each run that has files but is not finished."""
    not_begun: int = 0
    """Planned runs of a study without files."""
    left_out: list[str] = field(default_factory=list)
    """Names of the studies that lie in the folder and are no part of it."""

    @property
    def damaged(self) -> list[str]:
        """All faults."""
        return [fault for faults in self.faults.values() for fault in faults]

    def summary(self) -> str:
        """Line with the numbers of runs that are whole, unfinished, damaged, not to be verified and not begun.

        It names the studies that are left out.
        """
        damaged = sum(map(bool, self.faults.values()))
        unverifiable = [run for run in self.unverifiable if not self.faults[run]]
        so_far = Counter(f"{status}, whole so far" for run, status in self.unfinished.items() if not self.faults[run])
        counts = {
            "whole": len(self.faults) - damaged - len(unverifiable) - so_far.total(),
            **so_far,
            "damaged": damaged,
            "readable, but without digests to compare with": len(unverifiable),
            "not begun": self.not_begun,
        }
        line = f"{self.folder}: runs: " + "; ".join(f"{count} {what}" for what, count in counts.items() if count)
        return line + (f"; not checked: the studies {', '.join(self.left_out)}" if self.left_out else "")


def check(folder: Path) -> Checked:
    """Check the run of a folder, or every run of a study.

    Raises `EdgesimError` for a folder that is neither, and for a study whose plan cannot be read.
    """
    checked = Checked(folder)
    if not has_runs(folder):
        if not folder.is_dir() or not ((folder / "run.json").exists() or (folder / "config.toml").exists()):
            what = "no such folder" if not folder.exists() else "is neither the folder of a run nor of a study"
            raise EdgesimError(f"{folder}: {what}")
        _check_run(folder, checked)
        return checked
    for entry in read_study(folder).planned:
        run = entry.run.folder
        if run.is_dir() and not all(is_of_lease(path.name) for path in run.iterdir()):
            _check_run(run, checked)
        else:
            checked.not_begun += 1
    checked.left_out = studies_in(folder)
    return checked


def run_faults(folder: Path) -> list[str]:
    """Faults of the files of a run folder, and of a finished run what its tables contradict; a line each."""
    faults = file_faults(folder)
    return faults if faults or read_run(folder)["status"] != "finished" else broken_invariants(folder)


def _check_run(folder: Path, checked: Checked) -> None:
    checked.faults[folder] = run_faults(folder)
    if (status := state_of(folder).status) != "finished":
        checked.unfinished[folder] = status
    if not checked.faults[folder]:
        run = read_run(folder)
        if run["status"] == "finished" and KEY not in run:
            checked.unverifiable.append(folder)
