"""Downloads, for real: from a server on this machine, by torchvision's own code."""

import functools
import gzip
import hashlib
import http.server
import struct
import threading
from pathlib import Path

import numpy as np
import pytest
import torchvision

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
