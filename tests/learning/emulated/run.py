"""Runs configs on the processor and on the emulated accelerator; what came out goes to standard output, as JSON.

``python run.py FOLDER CONFIGS``, with the configs as a JSON object by name.
"""

import hashlib
import json
import os
import sys
from pathlib import Path

import accelerator
import torch

from edgesim.config_file import parse
from edgesim.folder.records import read_table
from edgesim.learning import learner
from edgesim.simulation import composition as simulation


def outcome(folder: Path, sections: dict, device: torch.device) -> dict:
    """Test losses, and a hash of each file that the run left, but for how long it took."""
    learner.pick_device = lambda wanted: device
    # Start models are made on each device anew.
    os.environ["EDGESIM_CACHE"] = str(folder / f"cache-{device.type}")
    run = folder / device.type
    simulation.run(parse(sections, "test"), run)
    files = [*run.glob("*.parquet"), run / "model.safetensors"]
    hashes = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.stem != "timing"}
    back_end = json.loads((run / "run.json").read_text())["back_end"]
    return {"test_loss": read_table(run, "rounds")["test_loss"].tolist(), "files": hashes, "back_end": back_end}


if __name__ == "__main__":
    found = {}
    for name, sections in json.loads(sys.argv[2]).items():
        accelerator.operations.clear()
        processor, emulated = (
            outcome(Path(sys.argv[1]) / name, sections, device) for device in (torch.device("cpu"), accelerator.DEVICE)
        )
        operations = sum(accelerator.operations.values())
        found[name] = {"processor": processor, "accelerator": emulated, "operations": operations}
    print(json.dumps(found))
