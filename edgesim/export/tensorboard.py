"""A run for TensorBoard: rounds are steps, and TensorBoard's wall time is the simulated time."""

from pathlib import Path

import tomli_w

from edgesim.analysis.runs import RunFolder
from edgesim.base.errors import EdgesimError
from edgesim.base.optional import needed
from edgesim.base.paths import refuse_link, system_errors
from edgesim.export.measures import measures


def write_tensorboard(run: RunFolder, folder: Path) -> Path:
    """Write the measures of a run as scalars, and its config as a text; answers the file.

    Raises `EdgesimError` if TensorBoard is not installed, or the folder holds such a file, which it would add to.
    """
    needed("tensorboard", "tensorboard")
    writer_of = needed("torch.utils.tensorboard", "tensorboard").SummaryWriter
    measured = measures(run)
    refuse_link(folder)
    if folder.is_dir() and any(folder.glob("events.out.tfevents.*")):
        raise EdgesimError(f"tensorboard {folder}: holds a run already; choose another folder, or remove it")
    with system_errors(f"tensorboard {folder}: cannot be written", "; choose another folder"):
        folder.mkdir(parents=True, exist_ok=True)
        writer = writer_of(str(folder))
        try:
            for name, table in measured.by_name.items():
                for row in table.itertuples():
                    writer.add_scalar(name, row.value, global_step=row.round, walltime=row.t_s)
            settings = "\n".join(f"    {line}" for line in tomli_w.dumps(run.config).splitlines())
            writer.add_text("config", settings, global_step=0, walltime=0.0)
        finally:
            writer.close()
    (file,) = folder.glob("events.out.tfevents.*")
    return file
