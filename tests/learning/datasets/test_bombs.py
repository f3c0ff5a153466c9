"""Files that ask for more memory than there is: refused by what they say, before anything is allocated."""

import gzip
import io
import pickle
import struct
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
from PIL import Image

from edgesim.base.errors import EdgesimError
from edgesim.base.unpickle import load_plain
from edgesim.config import DataConfig
from edgesim.learning.datasets import load_dataset
from edgesim.learning.datasets.idx import read_array
from edgesim.traces.readers.fedscale import read_fedscale


def refusal(act) -> str:
    """The line with which something is refused; fails where more than 20 MB were asked for on the way."""
    tracemalloc.start()
    try:
        with pytest.raises(EdgesimError) as caught:
            act()
        assert tracemalloc.get_traced_memory()[1] < 20e6
    finally:
        tracemalloc.stop()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def header(shape: str, kind: str = "|u1") -> bytes:
    text = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


@pytest.mark.parametrize("name", ["train_images", "train_labels", "test_images", "test_labels"])
@pytest.mark.parametrize(
    "shape", ["(1000000000000,)", "(40000000000, 1, 1)", "(-1, -4)", "(2, 2305843009213693952, 2, 2)"]
)
def test_an_npz_whose_header_says_more_than_it_holds_is_refused(name, shape, tmp_path):
    path = tmp_path / "own.npz"
    images, labels = header("(2, 1, 1)") + b"ab", header("(2,)") + b"\x00\x01"
    arrays = {"train_images": images, "train_labels": labels, "test_images": images, "test_labels": labels}
    with zipfile.ZipFile(path, "w") as archive:
        for entry, content in (arrays | {name: header(shape) + b"ab"}).items():
            archive.writestr(f"{entry}.npy", content)
    said = refusal(lambda: load_dataset(DataConfig(dataset=str(path))).images)
    assert f"{name}.npy is declared as " in said
    assert said.endswith("but holds 2 bytes")


def test_an_npz_header_that_goes_on_for_long_is_not_read_to_its_end(tmp_path):
    path = tmp_path / "own.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("train_images.npy", b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**25) + bytes(2**25))
    assert "not a readable .npz" in refusal(lambda: load_dataset(DataConfig(dataset=str(path))))


def test_an_npz_that_unpacks_to_more_than_is_free_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "own.npz"
    images, labels = np.zeros((2, 4000, 5000), np.uint8), np.arange(2)
    np.savez_compressed(path, train_images=images, train_labels=labels, test_images=images, test_labels=labels)
    load_dataset(DataConfig(dataset=str(path)))
    monkeypatch.setattr("edgesim.base.memory.free_bytes", lambda: 10**7)
    said = refusal(lambda: load_dataset(DataConfig(dataset=str(path))))
    assert said == f"{path}: train_images: needs 0.04 GB of memory, and 0.01 GB are free"


def test_cifar_labels_that_hold_one_list_many_times_over_are_refused(tmp_path):
    labels: list[object] = [0, 1]
    for _ in range(24):
        labels = [labels, labels]
    batch = {"data": np.zeros((2, 3072), np.uint8), "fine_labels": labels}
    for name in ("train", "test"):
        (tmp_path / name).write_bytes(pickle.dumps(batch, 2))
    said = refusal(lambda: load_dataset(DataConfig(dataset="cifar100", folder=str(tmp_path))))
    assert said == f"{tmp_path / 'train'}: fine_labels are not integers from 0 to 99"


HUGE = {
    "memo": (b"\x80\x02}r" + struct.pack("<I", 2**26) + b".", "has no entry", "expected a dict of clients"),
    "memo as text": (b"}p67108864\n.", "has no entry", "expected a dict of clients"),
    "bytes": (
        b"\x80\x05\x96" + struct.pack("<Q", 2**45) + b".",
        *["not a pickle of plain data: asks for a bytearray"] * 2,
    ),
    "length": (b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b".", *["not a pickle of plain data: "] * 2),
}
"""Pickles of one small object with a table or a text of a size that the file makes up; what CIFAR and FedScale say."""


@pytest.mark.parametrize("name", HUGE)
def test_a_pickle_that_asks_for_a_huge_table_or_text_is_refused(name, tmp_path):
    content, of_cifar, of_fedscale = HUGE[name]
    for file in ("train", "test"):
        (tmp_path / file).write_bytes(content)
    line = refusal(lambda: load_dataset(DataConfig(dataset="cifar100", folder=str(tmp_path))))
    assert line.startswith(f"{tmp_path / 'train'}: {of_cifar}")
    assert refusal(lambda: read_fedscale(tmp_path / "train")).startswith(f"{tmp_path / 'train'}: {of_fedscale}")


def doubled(levels: int, kind: type) -> object:
    """A few hundred bytes in a pickle; to look through it takes 2^levels steps."""
    value: object = kind((1,))
    for _ in range(levels):
        value = kind((value, value))
    return value


def as_keys(value: object) -> bytes:
    """A pickle of a dict with a key that this process cannot even hash, written by hand."""
    return pickle.dumps([value], 2)[:-1].replace(b"\x80\x02]q\x00", b"\x80\x02}q\x00", 1).removesuffix(b"a") + b"Ns."


@pytest.mark.parametrize("arrays", [False, True])
def test_a_pickle_with_keys_that_take_for_ever_to_hash_is_refused(arrays):
    assert load_plain(io.BytesIO(as_keys("a")), arrays) == {"a": None}
    with pytest.raises(pickle.UnpicklingError, match="a dict with keys that are no numbers or texts"):
        load_plain(io.BytesIO(as_keys(doubled(60, tuple))), arrays)


def test_a_record_that_takes_for_ever_to_print_is_refused_in_a_short_line(tmp_path):
    path = tmp_path / "client_behave_trace"
    path.write_bytes(pickle.dumps({1: {"active": [], "inactive": [], "finish_time": doubled(60, list)}}))
    said = refusal(lambda: read_fedscale(path))
    assert said.startswith(f"{path}: client 1: finish_time: expected a finite number above 0 (got [[")
    assert len(said) < 300


def test_a_list_that_is_that_of_very_many_clients_is_refused_where_it_does_not_fit(tmp_path, monkeypatch):
    path, instants = tmp_path / "client_behave_trace", list(range(1000))
    record = {"active": instants, "inactive": instants, "finish_time": 1000}
    path.write_bytes(pickle.dumps(dict.fromkeys(range(1000), record)))
    assert path.stat().st_size < 10_000
    monkeypatch.setattr("edgesim.base.memory.free_bytes", lambda: 10**7)
    assert refusal(lambda: read_fedscale(path)) == f"{path}: active: needs 0.064 GB of memory, and 0.01 GB are free"


def test_a_gzipped_idx_file_is_unpacked_no_further_than_its_header_says(tmp_path):
    path = tmp_path / "labels.gz"
    with gzip.open(path, "wb") as file:
        file.write(bytes((0, 0, 8, 1)) + struct.pack(">I", 4) + bytes(2**25))
    assert refusal(lambda: read_array(path, 1)) == f"{path}: holds more values than its header says, 4"


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    size = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(("width", "height"), [(9000, 9000), (10_000, 10_000), (60_000, 60_000), (2**31 - 1, 1)])
def test_an_image_of_too_many_pixels_is_refused_by_its_header(width, height, tmp_path):
    for half in ("train", "test"):
        (tmp_path / half / "cat").mkdir(parents=True)
        Image.new("RGB", (4, 4)).save(tmp_path / half / "cat" / "a.png")
    bomb = tmp_path / "train" / "cat" / "b.png"
    bomb.write_bytes(png(width, height))
    said = refusal(lambda: load_dataset(DataConfig(dataset=str(tmp_path), image_size=4)).images)
    assert said.startswith(f"{bomb}: ")
    assert "pixels" in said
