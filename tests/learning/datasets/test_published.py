"""Downloads, for real: from a server on this machine, by the code that fetches from the publishers."""

import functools
import gzip
import hashlib
import http.server
import io
import pickle
import struct
import tarfile
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torchvision
from refusals import in_one_line

from edgesim.config import DataConfig
from edgesim.learning.datasets import cifar, load_dataset, mnist


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def server(tmp_path):
    """An empty folder and its address."""
    folder = tmp_path / "server"
    folder.mkdir()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def _publish(server, monkeypatch, name, archives, servers=()):
    """Have the server, and those before it, publish a data set as archives, by file name, of these bytes."""
    folder, address = server
    for file, content in archives.items():
        (folder / file).write_bytes(content)
    sums = {file: hashlib.md5(content).hexdigest() for file, content in archives.items()}
    if name.startswith("cifar"):
        sets, true = cifar._SETS, cifar._SETS[name]
        monkeypatch.setitem(sets, name, replace(true, servers=[*servers, address], archives=sums))
    else:
        sets, (true, classes) = mnist._SETS, mnist._SETS[name]
        monkeypatch.setitem(sets, name, (replace(true, servers=[*servers, address], archives=sums), classes))


def _idx(prefix, halves):
    """Images and labels of both halves as IDX files, by name; small, but in every other way as they are published."""
    files = {}
    for half, count in halves.items():
        for part, array in (("images-idx3", np.zeros((count, 28, 28))), ("labels-idx1", np.arange(count) % 10)):
            header = bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape)
            files[f"{prefix}{half}-{part}-ubyte.gz"] = gzip.compress(header + array.astype(np.uint8).tobytes())
    return files


@pytest.fixture
def served(server, monkeypatch):
    """A folder whose files are the published MNIST."""
    _publish(server, monkeypatch, "mnist", _idx("", {"train": 20, "t10k": 10}))
    return server[0]


def _load(folder: Path, download: bool):
    return load_dataset(DataConfig(dataset="mnist", folder=str(folder), download=download))


def test_a_data_set_is_downloaded_only_when_asked_and_only_once(tmp_path, served):
    with in_one_line(r"or data.download = true"):
        _load(tmp_path / "data", download=False)
    assert not (tmp_path / "data").exists()
    assert _load(tmp_path / "data", download=True).train_labels.tolist() == [*range(10)] * 2
    for path in served.iterdir():
        path.unlink()
    assert len(_load(tmp_path / "data", download=True).images[1]) == 10
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["MNIST"]
    assert {path.name for path in (tmp_path / "data/MNIST/raw").iterdir()} == {*mnist._FILES}


def _downloaded(tmp_path, name):
    """A data set and the files that are there once it was fetched."""
    folder = tmp_path / "data"
    dataset = load_dataset(DataConfig(dataset=name, folder=str(folder), download=True))
    return dataset, {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_emnist_is_unpacked_from_an_archive_of_archives(tmp_path, server, monkeypatch):
    halves = {"train": 20, "test": 10}
    inner = _idx("emnist-digits-", halves) | _idx("emnist-mnist-", halves)
    _publish(server, monkeypatch, "emnist-digits", {"gzip.zip": _zip({f"gzip/{k}": v for k, v in inner.items()})})
    dataset, files = _downloaded(tmp_path, "emnist-digits")
    assert dataset.test_labels.tolist() == [*range(10)]
    assert files == {f"EMNIST/raw/{name.removesuffix('.gz')}" for name in inner}
    # The other splits came with it.
    (server[0] / "gzip.zip").unlink()
    _downloaded(tmp_path, "emnist-mnist")


def test_cifar_is_unpacked_from_a_tar(tmp_path, server, monkeypatch):
    batch = pickle.dumps({b"data": np.zeros((10, 3072), np.uint8), b"labels": [*range(10)]})
    names = [f"cifar-10-batches-py/{file}" for file in [*cifar._BATCHES, "batches.meta"]]
    archive = _tar([_member(name, size=len(batch)) for name in names], batch)
    _publish(server, monkeypatch, "cifar10", {"cifar-10-python.tar.gz": archive})
    dataset, files = _downloaded(tmp_path, "cifar10")
    assert dataset.train_labels.tolist() == [*range(10)] * 5
    assert files == {*names}


def test_the_next_server_is_asked_where_one_fails(tmp_path, server, monkeypatch, capsys):
    archives = _idx("", {"train": 20, "t10k": 10})
    gone = f"{server[1]}gone/"
    _publish(server, monkeypatch, "mnist", archives, [gone])
    _load(tmp_path / "data", download=True)
    asked = [f"fetching {place}{name}" for name in archives for place in (gone, server[1])]
    assert capsys.readouterr().err.splitlines() == asked


def test_checksums_are_those_that_torchvision_states():
    sets = torchvision.datasets
    for name, kind in (("mnist", sets.MNIST), ("fashion-mnist", sets.FashionMNIST)):
        assert [*mnist._SETS[name][0].archives.items()] == [*kind.resources]
    assert {*mnist._SETS["emnist-letters"][0].archives.values()} == {sets.EMNIST.md5}
    for name, kind in (("cifar10", sets.CIFAR10), ("cifar100", sets.CIFAR100)):
        assert [*cifar._SETS[name].archives.items()] == [(kind.filename, kind.tgz_md5)]


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(b"something else")])
def test_a_download_that_fails_is_one_line_and_leaves_nothing(tmp_path, served, damage):
    damage(served / "t10k-labels-idx1-ubyte.gz")
    with in_one_line(r"data.download: mnist could not be fetched into .*data: "):
        _load(tmp_path / "data", download=True)
    assert list((tmp_path / "data").iterdir()) == []


def _tar(members, content=b"evil"):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for member in members:
            tar.addfile(member, io.BytesIO(content) if member.isfile() else None)
    return archive.getvalue()


def _member(name, **facts):
    member = tarfile.TarInfo(name)
    for key, value in ({"size": 4} | facts).items():
        setattr(member, key, value)
    return member


def _zip(files):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, inner in files.items():
            archive.writestr(name, inner)
    return content.getvalue()


INNER = "cifar-10-batches-py/out"
LINKED = [_member(INNER, type=tarfile.SYMTYPE, linkname="../../.."), _member(f"{INNER}/evil")]
OUTSIDE, KIND, BROKEN = "would lie outside", "is neither a file nor a folder", "cannot be unpacked"
# Each takes the path of a folder elsewhere.
ARCHIVES = {
    "tar, dots": ("tar.gz", lambda _: _tar([_member("../../evil")]), OUTSIDE),
    "tar, absolute": ("tar.gz", lambda elsewhere: _tar([_member(f"{elsewhere}/evil")]), OUTSIDE),
    "tar, through a link": ("tar.gz", lambda _: _tar(LINKED), KIND),
    "tar, hard link": ("tar.gz", lambda _: _tar([_member("x", type=tarfile.LNKTYPE, linkname="../../victim")]), KIND),
    "tar, device": ("tar.gz", lambda _: _tar([_member("x", type=tarfile.CHRTYPE)]), KIND),
    "tar, broken": ("tar.gz", lambda _: _tar([_member("x")])[:60], BROKEN),
    "zip, dots": ("zip", lambda _: _zip({"../../evil": b"evil"}), OUTSIDE),
    "zip, absolute": ("zip", lambda elsewhere: _zip({f"{elsewhere}/evil": b"evil"}), OUTSIDE),
    "zip, broken": ("zip", lambda _: _zip({"x": b"evil"})[:-9], BROKEN),
    "gz, broken": ("gz", lambda _: gzip.compress(b"evil")[:-9], BROKEN),
}  # fmt: skip


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_is_unpacked_in_its_folder_only(tmp_path, server, monkeypatch, name):
    """Archives as a publisher could serve them, with their right checksum."""
    kind, make, reason = ARCHIVES[name]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    _publish(server, monkeypatch, "cifar10", {f"archive.{kind}": make(elsewhere)})
    (tmp_path / "victim").write_text("precious")
    folder = tmp_path / "deep" / "data"
    with in_one_line(rf"data.download: cifar10 .*: archive.{kind}: .*{reason}"):
        load_dataset(DataConfig(dataset="cifar10", folder=str(folder), download=True))
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    assert left == {"victim", "elsewhere", "deep", "deep/data", "server", f"server/archive.{kind}"}
    assert (tmp_path / "victim").read_text() == "precious"
