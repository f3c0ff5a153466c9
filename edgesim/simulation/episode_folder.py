"""Run folders of episodes, whose decisions come from outside: written as other runs, without checkpoints."""

import time
from pathlib import Path

from edgesim.base.errors import EdgesimError
from edgesim.folder import records
from edgesim.simulation import named_code
from edgesim.simulation.complete import as_toml
from edgesim.simulation.composition import Status, close_tables, run_facts, write_results
from edgesim.simulation.inputs import input_digests
from edgesim.simulation.simulation import Simulation


class EpisodeFolder:
    """The folder of one episode's run, whose lease it holds until it is closed."""

    def __init__(self, folder: Path, simulation: Simulation) -> None:
        """Begin the folder, in place of an earlier episode's; raises `EdgesimError` if it holds anything else."""
        check_folder(folder)
        self._folder, self._simulation, self._started = folder, simulation, time.perf_counter()
        config = simulation.config
        facts = run_facts(simulation, input_digests(config, when_loaded=True)) | {"decisions": records.OUTSIDE}
        self.writer = records.RunWriter(folder, as_toml(config), facts)
        """Writer of the run's tables."""
        named_code.keep_code(config, folder)

    def close(self, status: Status, reason: str) -> None:
        """Write the tables of a run that has finished or, with the rounds until now, of one that ends early."""
        finished = status == "finished"
        if finished:
            write_results(self._simulation, self._folder)
        close_tables(self.writer, self._simulation, status, not finished, reason, self._started)


def check_folder(folder: Path) -> None:
    """Raise `EdgesimError` for a folder that holds anything but an earlier episode's run."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not records.is_episode(folder):
        raise EdgesimError(f"{folder}: not empty and not an episode's folder; choose another folder")
