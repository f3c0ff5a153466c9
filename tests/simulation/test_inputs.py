"""What a run read is known by its content: a finished run is not reused on files that hold something else."""

import os
import sys
import typing
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pydantic import BaseModel
from rich.console import Console
from small_runs import TIMING
from whole_runs import TIMED, merged

from edgesim import Study, grid, run_study
from edgesim.base.sources import digest_when_loaded
from edgesim.config import RunConfig, SelectionConfig
from edgesim.config_file import parse
from edgesim.folder.records import read_run
from edgesim.simulation import composition as simulation
from edgesim.simulation import packages
from edgesim.simulation.inputs import input_digests

CHANNEL = """
name = "mine"
source = "a test"
shadowing = "per_run"
shadowing_std_db = {deviation}
noise_figure_db = 0
[path_loss]
law = "free-space"
carrier_hz = 2e9
station_height_m = 25.0
device_height_m = 1.5
"""
RECORDED = """
name = "recorded"
source = "a test"
capacity = {{ file = "{table}", after_end = "hold" }}
"""


def digests(**sections) -> dict[str, str]:
    return input_digests(simulation.complete(parse(merged(TIMED, sections), "test")))


CODE = {"edgesim", "selection.policy", "algorithm.name", "data.partition"}
"""What is noted of every run beside files, the partition where there are data."""


def save_images(path: Path, value: int) -> None:
    images = np.full((4, 8, 8), value, dtype=np.uint8)
    labels = np.arange(4) % 2
    np.savez(path, train_images=images, train_labels=labels, test_images=images, test_labels=labels)


def change(path: Path) -> None:
    """One byte of a file, whose size and time of change stay."""
    content, time_ns = path.read_bytes(), path.stat().st_mtime_ns
    path.write_bytes(bytes([*content[:-3], content[-3] ^ 1, *content[-2:]]))
    os.utime(path, ns=(time_ns, time_ns))


def names_of_files(model: type[BaseModel], above: str = "") -> set[str]:
    """Keys of a config whose names say that they name a file."""
    found = set()
    for name, field in model.model_fields.items():
        found |= {above + name} & {above + "file", above + "profile", above + "channel"}
        kinds = typing.get_args(field.annotation) or (field.annotation,)
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                found |= names_of_files(kind, f"{above}{name}.")
    return found


def test_every_key_that_names_a_file_has_the_hash_of_its_content(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    names = {
        "radio.channel": "mine.toml",
        "topology.file": "stations.toml",
        "devices.profile": "speed.csv",
        "devices.links.file": "links.csv",
        "availability.file": "availability.csv",
        "data.dataset": "images.npz",
        "learning.model": "my_own_model.py",
    }
    files = {key: tmp_path / name for key, name in names.items()}
    for path in files.values():
        path.write_text(f"name = 'of {path.name}'\n")
    links = {"file": str(files["devices.links.file"]), "after_end": "hold"}
    config = {
        "radio": {"channel": str(files["radio.channel"]), "sharing": "own"},
        "topology": {"file": str(files["topology.file"])},
        "devices": {"profile": str(files["devices.profile"]), "links": links},
        "availability": {"model": "table", "file": str(files["availability.file"])},
        "data": {"dataset": str(files["data.dataset"])},
        "learning": {"model": "my_own_model.make", "training": "real"},
    }
    before = digests(**config)
    assert set(before) == set(files) | CODE
    assert digests(**config) == before
    for key, path in files.items():
        change(path)
        after = digests(**config)
        assert {name for name in files if after[name] != before[name]} == {key}
        before = after
    by_name = {key for key in files if key.endswith((".file", ".profile", ".channel"))}
    assert by_name == names_of_files(RunConfig) | {"availability.file"}, "a key that names a file is forgotten"
    files["devices.profile"].unlink()
    assert set(digests(**config)) == (set(files) | CODE) - {"devices.profile"}


def test_a_recorded_capacity_counts_with_the_file_that_names_it(tmp_path):
    (tmp_path / "uplink.csv").write_text("t_s,bps\n0,1e6\n")
    (tmp_path / "recorded.toml").write_text(RECORDED.format(table="uplink.csv"))
    radio = {"channel": str(tmp_path / "recorded.toml")}
    before = digests(radio=radio)
    (tmp_path / "uplink.csv").write_text("t_s,bps\n0,2e6\n")
    assert digests(radio=radio)["radio.channel"] != before["radio.channel"]


def test_a_folder_counts_by_the_sizes_and_times_of_its_files(tmp_path):
    for half, name in (("train", "a"), ("train", "b"), ("test", "a")):
        (tmp_path / half / name).mkdir(parents=True)
        Image.new("RGB", (4, 4)).save(tmp_path / half / name / "0.png")
    data = {"dataset": str(tmp_path)}
    before = digests(data=data)
    (tmp_path / "train/.hidden").write_text("")
    assert digests(data=data) == before
    os.utime(tmp_path / "train/b/0.png", ns=(1, 1))
    touched = digests(data=data)
    (tmp_path / "train/b/0.png").rename(tmp_path / "train/b/1.png")
    assert len({found["data.dataset"] for found in (before, touched, digests(data=data))}) == 3


def test_a_pipe_or_a_device_in_the_place_of_a_data_set_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "device.npz").symlink_to("/dev/zero")
    for name in ("pipe.npz", "device.npz"):
        assert "data.dataset" not in digests(data={"dataset": str(tmp_path / name)})


def test_published_sets_count_by_their_files_and_packaged_ones_by_none(tmp_path):
    data = {"dataset": "mnist", "folder": str(tmp_path)}
    assert "data.dataset" not in digests(data=data)
    for half in ("train", "t10k"):
        for part in ("images-idx3-ubyte", "labels-idx1-ubyte"):
            (tmp_path / f"{half}-{part}").write_text("numbers")
    before = digests(data=data)
    change(tmp_path / "t10k-labels-idx1-ubyte")
    assert digests(data=data)["data.dataset"] != before["data.dataset"]
    # Without code of the user no package is named.
    assert set(digests(data={"dataset": "digits"})) == {"radio.channel"} | CODE


def test_a_finished_run_is_run_again_when_a_file_that_it_read_has_changed(tmp_path):
    channel, folder = tmp_path / "mine.toml", tmp_path / "run"
    config = parse(TIMING | {"radio": {"channel": str(channel), "bandwidth_hz": 1e6}}, "test")
    channel.write_text(CHANNEL.format(deviation=0))
    simulation.run(config, folder)
    assert "radio.channel" in read_run(folder)["inputs"]
    assert simulation.run(config, folder).reused
    before = (folder / "activities.parquet").read_bytes()
    channel.write_text(CHANNEL.format(deviation=8))
    again = simulation.run(config, folder)
    assert (again.reused, again.restarted) == (False, "radio.channel changed since it was finished")
    assert (folder / "activities.parquet").read_bytes() != before
    assert simulation.run(config, folder).reused
    channel.unlink()
    assert simulation.run(config, folder).reused


def test_a_run_by_another_version_of_edgesim_is_run_again(tmp_path):
    config, file = parse(TIMING, "test"), tmp_path / "run.json"
    simulation.run(config, tmp_path)
    version = f'"edgesim": "{metadata.version("edgesim")}"'
    assert version in file.read_text()
    file.write_text(file.read_text().replace(version, '"edgesim": "0.0.9"'))
    assert simulation.run(config, tmp_path).restarted == "edgesim changed since it was finished"


POLICY = """
from edgesim.selection.stateless import Stateless

class Mine(Stateless):
    def choose(self, view):
        import policys_helper
        yield policys_helper.order(view.ids)
"""
RANKED = POLICY.replace("import policys_helper\n", "").replace("policys_helper.order(view.ids)", "view.ids")
NET = """
from nets_helper import width
from torch import nn

def net(image_shape, class_count):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, width), nn.Linear(width, class_count))
"""
HELPER = "import json\nimport numpy\nfrom shared_ranks.inner import sign\norder = lambda ids: ids[::sign]"
SITE, RANKS = "site-packages", "site-packages/shared_ranks"
FILES = {
    "policys_helper.py": HELPER,
    "nets_helper.py": "width = 4",
    "own_policy.py": POLICY,
    "own_partition.py": "from edgesim.learning.partitions.iid import Iid\nclass Mine(Iid): pass",
    "own_half.py": "from edgesim.learning.algorithms.fedavg import FedAvg\nclass Mine(FedAvg): pass",
    "own_server.py": "from edgesim.learning.algorithms.fedavg import FedAvg\nclass Mine(FedAvg): pass",
    "own_net.py": NET,
    f"{RANKS}/__init__.py": "",
    f"{RANKS}/inner/__init__.py": "sign = 1",
    f"{RANKS}/policy.py": RANKED,
    f"{SITE}/shared_ranks-2.5.dist-info/METADATA": "Metadata-Version: 2.1\nName: shared-ranks\nVersion: 2.5\n",
    f"{SITE}/shared_ranks-2.5.dist-info/top_level.txt": "shared_ranks\n",
}


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A config of a policy, a partition, both halves of an algorithm and a model of the user's own.

    Two of them import helpers, and the policy's helper an installed package of two folders.
    """
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        module = name.removeprefix(f"{SITE}/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        monkeypatch.delitem(sys.modules, module, raising=False)
    for place in (tmp_path / SITE, tmp_path):
        monkeypatch.syspath_prepend(place)
    # Python takes byte code for that of a file which has another text of the same length within the same second.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for cached in (digest_when_loaded, packages.package_digest_when_loaded, packages._distributions):
        cached.cache_clear()
    base = {
        "rounds": 1,
        "devices": {"count": 3},
        "round": {"payload_bits": 1e5},
        "data": {"partition": "own_partition.Mine", "samples_per_device": 10},
        "learning": {"model": "own_net.net", "pretrain": False, "steps": 1},
        "algorithm": {"name": "own_half.Mine", "server": "own_server.Mine"},
        "selection": {"policy": "own_policy.Mine"},
    }
    yield parse(base, "test")
    packages._distributions.cache_clear()


@pytest.mark.parametrize(
    ("edited", "changed"),
    [
        ("own_policy.py", "the code of selection.policy"),
        ("policys_helper.py", "the code of selection.policy"),
        ("own_partition.py", "the code of data.partition"),
        ("own_half.py", "the code of algorithm.name"),
        ("own_server.py", "the code of algorithm.server"),
        ("own_net.py", "the code of learning.model"),
        ("nets_helper.py", "the code of learning.model"),
        # A file that no import statement names, as in an upgrade.
        (f"{RANKS}/inner/further.py", "package shared_ranks"),
    ],
)
def test_a_run_whose_code_was_edited_is_run_again_and_says_which(tmp_path, mine, edited, changed):
    simulation.run(mine, tmp_path / "run")
    (tmp_path / RANKS / "inner/__pycache__").mkdir()
    (tmp_path / RANKS / "inner/__pycache__/made.pyc").write_text("by Python itself")
    assert simulation.run(mine, tmp_path / "run").reused
    with (tmp_path / edited).open("a") as file:
        file.write("\n# edited\n")
    again = simulation.run(mine, tmp_path / "run")
    assert (again.reused, again.restarted) == (False, f"{changed} changed since it was finished")


def test_a_run_notes_the_code_that_its_process_has_loaded_not_what_was_saved_meanwhile(tmp_path, mine):
    simulation.run(mine, tmp_path / "run")
    before = read_run(tmp_path / "run")["inputs"]
    with (tmp_path / "own_policy.py").open("a") as file:
        file.write("\n# edited\n")
    simulation.run(mine, tmp_path / "other")
    assert read_run(tmp_path / "other")["inputs"] == before
    assert simulation.why_run(tmp_path / "other", simulation.complete(mine))


def test_a_run_names_the_installed_packages_that_its_code_imports(tmp_path, mine):
    """Nothing that belongs to Python, and of those that edgesim requires the version alone."""
    simulation.run(mine, tmp_path / "run")
    noted = {key: of for key, of in read_run(tmp_path / "run")["inputs"].items() if key.startswith("package ")}
    version, digest = noted.pop("package shared_ranks").split()
    assert (version, len(digest)) == ("2.5", 64)
    assert {"package numpy", "package torch"} <= noted.keys()
    assert all(of == metadata.version(key.removeprefix("package ")) for key, of in noted.items())


def test_an_installed_package_that_offers_a_policy_counts_with_all_its_files(tmp_path, mine):
    """The policy's own module imports nothing of the file that changes."""
    config = mine.model_copy(update={"selection": SelectionConfig(policy="shared_ranks.policy.Mine")})
    simulation.run(config, tmp_path / "run")
    (tmp_path / RANKS / "inner/__init__.py").write_text("sign = -1")
    assert simulation.run(config, tmp_path / "run").restarted == "package shared_ranks changed since it was finished"


def test_a_namespace_package_counts_with_its_files_in_all_places(tmp_path, monkeypatch):
    places = [tmp_path / f"{place}/site-packages/ranks_of_many" for place in ("first", "second")]
    for place in places:
        place.mkdir(parents=True)
        (place / "shared.py").write_text("sign = 1")
        monkeypatch.syspath_prepend(place.parent)
    digests = {packages.package_digest("ranks_of_many")}
    for place in places:
        (place / "shared.py").write_text("sign = -1")
        digests.add(packages.package_digest("ranks_of_many"))
    assert len(digests) == 3


def test_a_start_model_by_other_code_behind_the_same_weights_is_not_taken_from_the_cache(tmp_path, mine, monkeypatch):
    config = mine.model_copy(update={"learning": mine.learning.model_copy(update={"pretrain": True})})
    net = NET.replace("nn.Linear(width", "nets_helper.between(), nn.Linear(width")
    (tmp_path / "own_net.py").write_text(f"import nets_helper\n{net}")

    def weights(activation: str, cache: str) -> bytes:
        (tmp_path / "nets_helper.py").write_text(f"from torch.nn import {activation} as between\nwidth = 4\n")
        monkeypatch.setenv("EDGESIM_CACHE", str(tmp_path / cache))
        # As in a process of its own.
        for name in ("own_net", "nets_helper"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        digest_when_loaded.cache_clear()
        simulation.run(config, tmp_path / f"{activation}-{cache}")
        return (tmp_path / f"{activation}-{cache}/model.safetensors").read_bytes()

    weights("ReLU", "shared")
    assert weights("Tanh", "shared") == weights("Tanh", "new")


@pytest.mark.parametrize("changed", [False, True])
def test_a_study_says_which_runs_it_runs_again_and_why(tmp_path, studies_here, changed):
    images, out = tmp_path / "images.npz", tmp_path / "study"
    save_images(images, 1)
    data = {"dataset": str(images), "partition": "iid", "samples_per_device": 2}
    base = TIMING | {"devices": {"count": 2}, "data": data}
    study = Study("s", grid(base, {"round.tmax_s": [1.0, 2.0]}, [0]))
    run_study(study, out, jobs=1, console=Console(file=(tmp_path / "log").open("w")))
    if changed:
        save_images(images, 2)
    with (tmp_path / "log").open("w") as log:
        endings = run_study(study, out, jobs=1, console=Console(file=log, width=300))
    said = "2 of 2 runs: data.dataset changed since it was finished, run again from the start"
    assert (said in (tmp_path / "log").read_text()) == changed
    assert {ending.reason for ending in endings.values()} == {"all rounds done" if changed else "finished before"}
