"""Whole runs off the processor, on a device that the tests emulate: where a tensor would stay behind, they fail."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from torch.utils import backend_registration

SCRIPT = Path(__file__).parent / "emulated/run.py"

pytestmark = pytest.mark.skipif(
    not hasattr(backend_registration, "_setup_privateuseone_for_python_backend"),
    reason="this torch has no back ends in Python",
)

COUNT = {"admission": "count", "count": 5}
#: Each policy that looks at models, each protocol and each codec once.
SETTINGS = {
    "fedcgd and qsgd": {"selection": {"policy": "fedcgd"}, "upload": {"codec": "qsgd"}},
    "best norm, topk and sign": {
        "selection": {"policy": "best-norm"},
        "upload": {"codec": "topk"},
        "download": {"codec": "sign"},
    },
    "power of choice and half": {"selection": {"policy": "power-of-choice"}, "upload": {"codec": "half"}},
    "feddance and natural": {"selection": {"policy": "feddance"}, "upload": {"codec": "natural"}, "round": COUNT},
    "late updates and stc": {
        "selection": {"policy": "refl"},
        "round": {**COUNT, "late": "keep"},
        "staleness": {"weight": "refl"},
        "upload": {"codec": "stc"},
    },
    "buffered": {
        "round": {**COUNT, "protocol": "buffered", "protocol_options": {"buffer": 3}},
        "staleness": {"weight": "refl"},
    },
    "asynchronous and randk": {
        "round": {**COUNT, "protocol": "asynchronous"},
        "upload": {"codec": "randk", "ratio": 0.1},
    },
    "safa": {"selection": {"policy": "safa"}, "algorithm": {"name": "safa"}},
    "augmented": {
        "data": {"augment": "crop-flip"},
        "learning": {"weight_decay": 0.01, "epochs": 1},
        "algorithm": {"name": "fedprox", "mu": 0.1},
    },
}
#: A round of few samples on small images.
MODELS = {
    name: {
        "rounds": 1,
        "devices": {"count": 4},
        "data": {"partition": "iid", "samples_per_device": 20, "image_size": pixels},
        "learning": {"model": name, "steps": 2, "batch_size": 10, "pretrain": False},
        "evaluation": {"samples": 20},
        "selection": {"policy": policy},
    }
    for name, pixels, policy in (
        ("small-cnn", 8, "fedteddi"),
        ("fedteddi-cnn", 16, "random"),
        ("resnet10-gn", 8, "random"),
        ("torchvision:shufflenet_v2_x0_5", 32, "random"),
    )
}


def config(sections: dict, **learning: str) -> dict:
    values = {"seed": 3, "rounds": 2, **sections}
    values["round"] = {"payload_bits": 17_881_664.0, "tmax_s": 0.8, **sections.get("round", {})}
    values["data"] = {"partition": "fedteddi", **sections.get("data", {})}
    values["learning"] = {"pretrain": True, "pretrain_max_epochs": 1, **sections.get("learning", {}), **learning}
    return values


def on_both_devices(folder: Path, configs: dict[str, dict]) -> dict[str, dict]:
    """What `emulated/run.py` prints."""
    command = [sys.executable, str(SCRIPT), str(folder), json.dumps(configs)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("back_end", "names"),
    [
        ("stacked", [*SETTINGS, "small-cnn", "fedteddi-cnn", "resnet10-gn"]),
        ("loop", ["augmented", "torchvision:shufflenet_v2_x0_5"]),
    ],
)
def test_policies_protocols_and_models_run_off_the_processor_to_the_same_bytes(tmp_path, back_end, names):
    configs = {name: config((SETTINGS | MODELS)[name], back_end=back_end) for name in names}
    for name, found in on_both_devices(tmp_path, configs).items():
        assert found["operations"] > 300, name
        assert found["accelerator"] == found["processor"], name
        assert len(found["processor"]["files"]) > 5
