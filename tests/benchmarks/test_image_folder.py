"""What a folder of images costs at a run's first start and at every later one, beside a plain loop over Pillow."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sizes import size, wall_s

from edgesim.config import DataConfig
from edgesim.learning.datasets import load_dataset

SIZE = 64
CLASSES, PER_CLASS = size((50, 100), (2, 10))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Pictures of Tiny-ImageNet's size and layout, a twentieth of it."""
    monkeypatch.setenv("EDGESIM_CACHE", str(tmp_path / "cache"))
    random = np.random.default_rng(0)
    for label in range(CLASSES):
        for half, count in (("train", PER_CLASS), ("test", PER_CLASS // 10)):
            place = tmp_path / f"pictures/{half}/n{label:08d}"
            place.mkdir(parents=True)
            for index in range(count):
                rough = Image.fromarray(random.integers(0, 256, (8, 8, 3), dtype=np.uint8))
                rough.resize((SIZE, SIZE), Image.Resampling.BICUBIC).save(place / f"{index}.jpg")
    return tmp_path / "pictures"


def start(folder: Path) -> None:
    """Have digest, images and moments at hand, as real training needs them."""
    dataset = load_dataset(DataConfig(dataset=str(folder)))
    assert dataset.digest
    assert dataset.images[0].shape == (CLASSES * PER_CLASS, 3, SIZE, SIZE)
    assert dataset.normalisation[0].shape == (3,)


def plain_loop(folder: Path) -> None:
    for path in sorted(folder.rglob("*.jpg")):
        np.asarray(Image.open(io.BytesIO(path.read_bytes())).convert("RGB"))


def test_the_second_start_on_a_folder_of_images(benchmark, folder):
    """Aim: a first start, which also hashes the files, in twice the time of a plain loop; later ones in a quarter."""
    plain_s, first_s = wall_s(lambda: plain_loop(folder)), wall_s(lambda: start(folder))
    later_s = benchmark.pedantic(lambda: wall_s(lambda: start(folder)), rounds=3)
    benchmark.extra_info |= {"plain_loop_s": plain_s, "first": first_s / plain_s, "later": later_s / plain_s}
