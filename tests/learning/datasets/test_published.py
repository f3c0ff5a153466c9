"""Downloads, for real: from a server on this machine, by torchvision's own code."""

import functools
import gzip
import hashlib
import http.server
import io
import struct
import tarfile
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torchvision
from torchvision.datasets.utils import extract_archive

from edgesim.config import DataConfig
from edgesim.errors import EdgesimError
from edgesim.learning.datasets import load_dataset


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A folder whose files torchvision takes for the published MNIST; small, but in every other way the same."""
    folder = tmp_path / "server"
    folder.mkdir()
    resources = []
    for half, count in (("train", 20), ("t10k", 10)):
        for part, array in (("images-idx3", np.zeros((count, 28, 28))), ("labels-idx1", np.arange(count) % 10)):
            header = bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape)
            path = folder / f"{half}-{part}-ubyte.gz"
            path.write_bytes(gzip.compress(header + array.astype(np.uint8).tobytes()))
            resources.append((path.name, hashlib.md5(path.read_bytes()).hexdigest()))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(torchvision.datasets.MNIST, "mirrors", [f"http://127.0.0.1:{server.server_port}/"])
        monkeypatch.setattr(torchvision.datasets.MNIST, "resources", resources)
        yield folder
        server.shutdown()


def _load(folder: Path, download: bool):
    return load_dataset(DataConfig(dataset="mnist", folder=str(folder), download=download))


def test_a_data_set_is_downloaded_only_when_asked_and_only_once(tmp_path, served):
    with pytest.raises(EdgesimError, match=r"or data.download = true"):
        _load(tmp_path / "data", download=False)
    assert not (tmp_path / "data").exists()
    assert _load(tmp_path / "data", download=True).train_labels.tolist() == [*range(10)] * 2
    for path in served.iterdir():
        path.unlink()
    assert len(_load(tmp_path / "data", download=True).images[1]) == 10
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["MNIST"]


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"something else")])
def test_a_download_that_fails_is_one_line_and_leaves_nothing(tmp_path, served, damage):
    damage(served / "t10k-labels-idx1-ubyte.gz")
    with pytest.raises(EdgesimError, match=r"data.download: mnist could not be fetched into .*data: ") as caught:
        _load(tmp_path / "data", download=True)
    assert "\n" not in str(caught.value)
    assert list((tmp_path / "data").iterdir()) == []


def _tar(members):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for member in members:
            archive.addfile(member, io.BytesIO(b"evil") if member.isfile() else None)
    return content.getvalue()


def _member(name, **facts):
    member = tarfile.TarInfo(name)
    member.size = 4
    for key, value in facts.items():
        setattr(member, key, value)
    return member


def _zip(name):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr(name, b"evil")
    return content.getvalue()


INNER = "cifar-10-batches-py/out"
LINKED = [_member(INNER, type=tarfile.SYMTYPE, linkname="../../.."), _member(f"{INNER}/evil")]
ARCHIVES = {
    "tar, dots": ("a.tar.gz", _tar([_member("../../evil")])),
    "tar, absolute": ("a.tar.gz", _tar([_member("/tmp/edgesim-evil")])),
    "tar, through a link": ("a.tar.gz", _tar(LINKED)),
    "tar, hard link": ("a.tar.gz", _tar([_member("x", type=tarfile.LNKTYPE, linkname="../../victim")])),
    "tar, device": ("a.tar.gz", _tar([_member("x", type=tarfile.CHRTYPE)])),
    "tar, broken": ("a.tar.gz", _tar([_member("x")])[:-9]),
    "zip, dots": ("a.zip", _zip("../../evil")),
    "zip, absolute": ("a.zip", _zip("/tmp/edgesim-evil")),
    "zip, broken": ("a.zip", _zip("x")[:-9]),
}  # fmt: skip


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_is_unpacked_in_its_folder_only(tmp_path, monkeypatch, name):
    file, content = ARCHIVES[name]

    class CIFAR10:
        """Unpacks what was fetched as torchvision's own class does, by torchvision's function."""

        def __init__(self, root, download):
            (Path(root) / "cifar-10-batches-py").mkdir()
            (Path(root) / file).write_bytes(content)
            extract_archive(str(Path(root) / file), root)

    monkeypatch.setattr("torchvision.datasets.CIFAR10", CIFAR10)
    (tmp_path / "victim").write_text("precious")
    folder = tmp_path / "deep" / "data"
    with pytest.raises(EdgesimError, match="cifar10") as caught:
        load_dataset(DataConfig(dataset="cifar10", folder=str(folder), download=True))
    assert "\n" not in str(caught.value)
    # What has no bad name may have been unpacked into a folder of its own, which is gone.
    assert {path.name for path in tmp_path.rglob("*")} <= {"victim", "deep", "data", "cifar-10-batches-py"}
    assert (tmp_path / "victim").read_text() == "precious"
    assert not Path("/tmp/edgesim-evil").exists()
