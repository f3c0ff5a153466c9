"""What a run read is known by its content: a finished run is not reused on files that hold something else."""

import importlib
import json
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
from edgesim.learning.algorithms import ALGORITHMS
from edgesim.learning.partitions import PARTITIONS
from edgesim.selection import SELECTORS
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
    assert "radio.channel" in json.loads((folder / "run.json").read_text())["inputs"]
    assert simulation.run(config, folder).reused
    before = (folder / "activities.parquet").read_bytes()
    channel.write_text(CHANNEL.format(deviation=8))
    again = simulation.run(config, folder)
    assert (again.reused, again.restarted) == (False, "radio.channel changed since it was finished")
    assert (folder / "activities.parquet").read_bytes() != before
    assert simulation.run(config, folder).reused
    channel.unlink()
    assert simulation.run(config, folder).reused


POLICY = """
from edgesim.selection.stateless import Stateless

class Mine(Stateless):
    def choose(self, view):
        import policys_helper
        yield policys_helper.order(view.ids)
"""
PARTITION = """
from edgesim.learning.partitions.iid import Iid

class Mine(Iid):
    pass
"""
ALGORITHM = """
from edgesim.learning.algorithms.fedavg import FedAvg

class Mine(FedAvg):
    pass
"""
NET = """
from nets_helper import width
from torch import nn

def net(image_shape, class_count):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, width), nn.Linear(width, class_count))
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A policy, a partition, both halves of an algorithm and a model of the user's own, with what two of them import.

    And a config of all of them.
    """
    (tmp_path / "policys_helper.py").write_text("order = lambda ids: ids")
    (tmp_path / "nets_helper.py").write_text("width = 4")
    texts = {"own_policy": POLICY, "own_partition": PARTITION, "own_half": ALGORITHM, "own_server": ALGORITHM}
    for name, text in (texts | {"own_net": NET}).items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    # Python takes byte code for that of a file which has another text of the same length within the same second.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name in (*texts, "own_net", "policys_helper", "nets_helper"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(SELECTORS, "mine", importlib.import_module("own_policy").Mine)
    monkeypatch.setitem(PARTITIONS, "mine", importlib.import_module("own_partition").Mine)
    monkeypatch.setitem(ALGORITHMS, "mine", importlib.import_module("own_half").Mine)
    monkeypatch.setitem(ALGORITHMS, "yours", importlib.import_module("own_server").Mine)
    digest_when_loaded.cache_clear()
    base = {
        "rounds": 1,
        "devices": {"count": 3},
        "round": {"payload_bits": 1e5},
        "data": {"partition": "mine", "samples_per_device": 10},
        "learning": {"model": "own_net.net", "pretrain": False, "steps": 1},
        "algorithm": {"name": "mine", "server": "yours"},
        "selection": {"policy": "mine"},
    }
    return parse(base, "test")


@pytest.mark.parametrize(
    ("edited", "key"),
    [
        ("own_policy", "selection.policy"),
        ("policys_helper", "selection.policy"),
        ("own_partition", "data.partition"),
        ("own_half", "algorithm.name"),
        ("own_server", "algorithm.server"),
        ("own_net", "learning.model"),
        ("nets_helper", "learning.model"),
    ],
)
def test_a_run_whose_code_was_edited_is_run_again_and_says_which(tmp_path, mine, edited, key):
    simulation.run(mine, tmp_path / "run")
    assert simulation.run(mine, tmp_path / "run").reused
    with (tmp_path / f"{edited}.py").open("a") as file:
        file.write("\n# edited\n")
    again = simulation.run(mine, tmp_path / "run")
    assert (again.reused, again.restarted) == (False, f"the code of {key} changed since it was finished")


def test_a_run_notes_the_code_that_its_process_has_loaded_not_what_was_saved_meanwhile(tmp_path, mine):
    simulation.run(mine, tmp_path / "run")
    before = json.loads((tmp_path / "run/run.json").read_text())["inputs"]
    with (tmp_path / "own_policy.py").open("a") as file:
        file.write("\n# edited\n")
    simulation.run(mine, tmp_path / "other")
    assert json.loads((tmp_path / "other/run.json").read_text())["inputs"] == before
    assert simulation.why_run(tmp_path / "other", simulation.complete(mine))


@pytest.fixture
def packaged(tmp_path, monkeypatch):
    """A config of a policy that imports, by a helper, an installed package of two folders."""
    site = tmp_path / "site-packages"
    (site / "shared_ranks/inner").mkdir(parents=True)
    (site / "shared_ranks/__init__.py").write_text("")
    (site / "shared_ranks/inner/__init__.py").write_text("sign = 1")
    about = site / "shared_ranks-2.5.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: shared-ranks\nVersion: 2.5\n")
    (about / "top_level.txt").write_text("shared_ranks\n")
    helper = "import numpy\nimport json\nfrom shared_ranks.inner import sign\norder = lambda ids: ids[::sign]"
    (tmp_path / "ranks_helper.py").write_text(helper)
    (tmp_path / "ranked_policy.py").write_text(POLICY.replace("policys_helper", "ranks_helper"))
    monkeypatch.syspath_prepend(site)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    for name in ("ranks_helper", "ranked_policy", "shared_ranks", "shared_ranks.inner", "shared_ranks.policy"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    for cached in (digest_when_loaded, packages.package_digest_when_loaded, packages._distributions):
        cached.cache_clear()
    yield parse(TIMING | {"selection": {"policy": "ranked_policy.Mine"}}, "test")
    packages._distributions.cache_clear()


def test_a_run_names_the_installed_package_that_its_policy_imports_and_is_run_again_once_that_changes(
    tmp_path, packaged
):
    simulation.run(packaged, tmp_path / "run")
    noted = json.loads((tmp_path / "run/run.json").read_text())["inputs"]
    # Nothing that belongs to Python, and of NumPy, which edgesim requires, the version alone.
    assert [key for key in noted if key.startswith("package ")] == ["package numpy", "package shared_ranks"]
    assert noted["package numpy"] == metadata.version("numpy")
    version, digest = noted["package shared_ranks"].split()
    assert (version, len(digest)) == ("2.5", 64)
    inner = tmp_path / "site-packages/shared_ranks/inner"
    (inner / "__pycache__").mkdir()
    (inner / "__pycache__/made.pyc").write_text("by Python itself")
    assert simulation.run(packaged, tmp_path / "run").reused
    # A file that no import statement names, as in an upgrade.
    (inner / "further.py").write_text("sign = -1")
    again = simulation.run(packaged, tmp_path / "run")
    assert (again.reused, again.restarted) == (False, "package shared_ranks changed since it was finished")


def test_an_installed_package_that_offers_a_policy_counts_with_all_its_files(tmp_path, packaged):
    """The policy's own module imports nothing of the file that changes."""
    site = tmp_path / "site-packages"
    text = POLICY.replace("        import policys_helper\n", "").replace("policys_helper.order(view.ids)", "view.ids")
    (site / "shared_ranks/policy.py").write_text(text)
    config = packaged.model_copy(update={"selection": SelectionConfig(policy="shared_ranks.policy.Mine")})
    simulation.run(config, tmp_path / "run")
    (site / "shared_ranks/inner/__init__.py").write_text("sign = -1")
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
