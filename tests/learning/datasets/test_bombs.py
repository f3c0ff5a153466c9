"""Files that ask for more memory than there is: refused by what they say, before anything is allocated."""

import gzip
import pickle
import struct
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from edgesim.config import DataConfig
from edgesim.errors import EdgesimError
from edgesim.learning.datasets import load_dataset
from edgesim.learning.datasets.idx import read_array


def refusal(act) -> str:
    """The line with which something is refused; fails where more than 50 MB were asked for on the way."""
    tracemalloc.start()
    try:
        with pytest.raises(EdgesimError) as caught:
            act()
        assert tracemalloc.get_traced_memory()[1] < 50e6
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
def test_an_npz_whose_header_says_more_than_it_holds_is_refused(name: str, shape: str, tmp_path: Path) -> None:
    path = tmp_path / "own.npz"
    images, labels = header("(2, 1, 1)") + b"ab", header("(2,)") + b"\x00\x01"
    arrays = {"train_images": images, "train_labels": labels, "test_images": images, "test_labels": labels}
    with zipfile.ZipFile(path, "w") as archive:
        for entry, content in (arrays | {name: header(shape) + b"ab"}).items():
            archive.writestr(f"{entry}.npy", content)
    said = refusal(lambda: load_dataset(DataConfig(dataset=str(path))).images)
    assert f"{name}.npy is said to be " in said
    assert said.endswith("but holds 2 bytes")


def test_an_npz_header_that_goes_on_for_long_is_not_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "own.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("train_images.npy", b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**27) + bytes(2**27))
    assert "not a readable .npz" in refusal(lambda: load_dataset(DataConfig(dataset=str(path))))


def test_an_npz_that_unpacks_to_more_than_is_free_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "own.npz"
    images, labels = np.zeros((2, 5000, 8000), np.uint8), np.arange(2)
    np.savez_compressed(path, train_images=images, train_labels=labels, test_images=images, test_labels=labels)
    load_dataset(DataConfig(dataset=str(path)))
    monkeypatch.setattr("edgesim.files.memory.free_bytes", lambda: 10**7)
    said = refusal(lambda: load_dataset(DataConfig(dataset=str(path))))
    assert said == f"{path}: train_images: needs 0.08 GB of memory, and 0.01 GB are free"


def test_cifar_labels_that_hold_one_list_many_times_over_are_refused(tmp_path: Path) -> None:
    labels: list[object] = [0, 1]
    for _ in range(24):
        labels = [labels, labels]
    batch = {"data": np.zeros((2, 3072), np.uint8), "fine_labels": labels}
    for name in ("train", "test"):
        (tmp_path / name).write_bytes(pickle.dumps(batch, 2))
    said = refusal(lambda: load_dataset(DataConfig(dataset="cifar100", folder=str(tmp_path))))
    assert said == f"{tmp_path / 'train'}: fine_labels are not integers from 0 to 99"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            b"\x80\x02}r" + struct.pack("<I", 2**26) + b".",
            "has the memo index 67108864, beyond its own 9 bytes",
        ),
        (b"}p67108864\n.", "has the memo index 67108864, beyond its own 12 bytes"),
        (b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b".", "expected 4611686018427387904 bytes"),
    ],
    ids=["memo", "memo as text", "length"],
)
def test_a_pickle_that_asks_for_a_huge_table_or_text_is_refused(content: bytes, said: str, tmp_path: Path) -> None:
    for name in ("train", "test"):
        (tmp_path / name).write_bytes(content)
    line = refusal(lambda: load_dataset(DataConfig(dataset="cifar100", folder=str(tmp_path))))
    assert line.startswith(f"{tmp_path / 'train'}: not a pickle of plain data: {said}")


def test_a_gzipped_idx_file_is_unpacked_no_further_than_its_header_says(tmp_path: Path) -> None:
    path = tmp_path / "labels.gz"
    with gzip.open(path, "wb") as file:
        file.write(bytes((0, 0, 8, 1)) + struct.pack(">I", 4) + bytes(2**27))
    assert refusal(lambda: read_array(path, 1)) == f"{path}: holds more values than its header says, 4"


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    size = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size) + chunk(b"IDAT", zlib.compress(bytes(1000))) + chunk(b"IEND", b"")
    )


@pytest.mark.parametrize(("width", "height"), [(9000, 9000), (10_000, 10_000), (60_000, 60_000), (2**31 - 1, 1)])
def test_an_image_of_too_many_pixels_is_refused_by_its_header(width: int, height: int, tmp_path: Path) -> None:
    for half in ("train", "test"):
        (tmp_path / half / "cat").mkdir(parents=True)
        Image.new("RGB", (4, 4)).save(tmp_path / half / "cat" / "a.png")
    bomb = tmp_path / "train" / "cat" / "b.png"
    bomb.write_bytes(png(width, height))
    said = refusal(lambda: load_dataset(DataConfig(dataset=str(tmp_path), image_size=4)).images)
    assert said.startswith(f"{bomb}: ")
    assert "pixels" in said
