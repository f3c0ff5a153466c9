import os

import numpy as np
import pytest
import torch
import torchvision
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from refusals import in_one_line

from edgesim.config import DataConfig, RunConfig
from edgesim.learning.cache import cache_folder
from edgesim.learning.datasets import load_dataset
from edgesim.learning.datasets.held_out import a_fifth
from edgesim.learning.datasets.image_files import ImageFiles
from edgesim.simulation.inputs import input_digests


def _picture(seed, size=(6, 5), mode="RGB"):
    pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    return Image.fromarray(pixels).convert(mode)


def _save(root, file, seed=0, **look):
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    _picture(seed, **look).save(path)


@pytest.fixture
def classes(tmp_path, own_cache):
    """Two classes, in train/ and test/."""
    root = tmp_path / "pictures"
    for half, count in (("train", 3), ("test", 2)):
        for label in ("cat", "dog"):
            for index in range(count):
                _save(root, f"{half}/{label}/{index}.png", sum(f"{half}{label}{index}".encode()))
    return root


def _load(root, **knobs):
    return load_dataset(DataConfig(dataset=str(root), **knobs))


def test_class_folders_are_what_torchvision_reads(classes, tmp_path):
    dataset = _load(classes)
    assert (dataset.name, dataset.class_count, dataset.image_shape, dataset.domains) == ("pictures", 2, (3, 5, 6), None)
    labels_of = dataset.train_labels, dataset.test_labels
    for images, labels, half in zip(dataset.images, labels_of, ("train", "test"), strict=True):
        theirs = torchvision.datasets.ImageFolder(classes / half)
        assert labels.tolist() == theirs.targets
        np.testing.assert_array_equal(images, [np.asarray(image).transpose(2, 0, 1) for image, _ in theirs])
    # Val stands in for test, and a link to a folder elsewhere is followed.
    (classes / "test").rename(classes / "val")
    (classes / "train/cat").rename(tmp_path / "cats")
    (classes / "train/cat").symlink_to(tmp_path / "cats")
    dataset = _load(classes)
    assert np.bincount(dataset.train_labels).tolist() == [3, 3]
    assert len(dataset.test_labels) == 4


def test_tiny_imagenets_layout_is_understood(tmp_path):
    for label, index in ((label, index) for label in ("n01443537", "n01629819") for index in range(2)):
        _save(tmp_path, f"train/{label}/images/{label}_{index}.JPEG", index)
        (tmp_path / f"train/{label}/{label}_boxes.txt").write_text("")
    lines = []
    for index, label in enumerate(("n01629819", "n01443537", "n01629819")):
        _save(tmp_path, f"val/images/val_{index}.JPEG", index)
        lines.append(f"val_{index}.JPEG\t{label}\t0\t0\t63\t63\n")
    (tmp_path / "val/val_annotations.txt").write_text("".join(lines))
    _save(tmp_path, "test/images/test_0.JPEG")
    dataset = _load(tmp_path)
    assert dataset.train_labels.tolist() == [0, 0, 1, 1]
    assert dataset.test_labels.tolist() == [1, 0, 1]
    assert dataset.images[1].shape == (3, 3, 5, 6)
    (tmp_path / "val/val_annotations.txt").write_text(lines[0] + "val_7.JPEG\tn01443537\n")
    with in_one_line(r"val_annotations.txt: line 2: expected an image"):
        _load(tmp_path)


def test_domains_are_recorded_for_every_image(tmp_path):
    counts = {("train", "photo", "cat"): 3, ("train", "sketch", "cat"): 1, ("train", "sketch", "dog"): 2}
    counts |= {("test", "art", "dog"): 1, ("test", "photo", "cat"): 2}
    for (half, domain, label), count in counts.items():
        for index in range(count):
            _save(tmp_path, f"{half}/{domain}/{label}/{index}.png", index)
    dataset = _load(tmp_path)
    assert dataset.domains is not None
    assert dataset.domains.names == ("art", "photo", "sketch")
    assert (dataset.domains.train.tolist(), dataset.train_labels.tolist()) == ([1, 1, 1, 2, 2, 2], [0, 0, 0, 0, 1, 1])
    assert (dataset.domains.test.tolist(), dataset.test_labels.tolist()) == ([0, 1, 1], [1, 0, 0])


def test_without_halves_a_fifth_of_each_class_and_domain_is_for_testing(tmp_path):
    for domain, label, count in (("a", "x", 10), ("a", "y", 4), ("b", "x", 1), ("b", "y", 17)):
        for index in range(count):
            _save(tmp_path, f"{domain}/{label}/{index}.png")
    dataset = _load(tmp_path)
    test = list(zip(dataset.domains.test.tolist(), dataset.test_labels.tolist(), strict=True))
    for group, count in (((0, 0), 10), ((0, 1), 4), ((1, 0), 1), ((1, 1), 17)):
        assert test.count(group) == a_fifth(count)
    assert len(dataset.train_labels) + len(test) == 32
    np.testing.assert_array_equal(_load(tmp_path).train_labels, dataset.train_labels)


def test_a_second_start_reads_no_file_and_a_copy_decodes_none(classes, tmp_path, monkeypatch):
    first = _load(classes)
    before = [images.copy() for images in first.images]

    def refuse(*_):
        raise AssertionError("a file was read or decoded again")

    with monkeypatch.context() as patch:
        patch.setattr(ImageFiles, "_pixels", refuse)
        patch.setattr(ImageFiles, "_contents", refuse)
        second = _load(classes)
        assert second.digest == first.digest
        for mine, theirs in zip(second.images, before, strict=True):
            np.testing.assert_array_equal(mine, theirs)
    classes.rename(tmp_path / "moved")
    with monkeypatch.context() as patch:
        patch.setattr(ImageFiles, "_pixels", refuse)
        np.testing.assert_array_equal(_load(tmp_path / "moved").images[0], before[0])


def test_a_changed_image_is_decoded_anew(classes):
    before = _load(classes)
    old = before.images[0].copy()
    _save(classes, "train/cat/1.png", 999)
    after = _load(classes)
    assert after.digest != before.digest
    assert not np.array_equal(after.images[0][1], old[1])
    np.testing.assert_array_equal(np.delete(after.images[0], 1, 0), np.delete(old, 1, 0))
    # One of the same size and time, too, as where files are copied over others with their times.
    path = classes / "train/cat/1.png"
    content, time_ns = path.read_bytes(), path.stat().st_mtime_ns
    path.write_bytes(bytes([*content[:-1], content[-1] ^ 1]))
    os.utime(path, ns=(time_ns, time_ns))
    assert _load(classes).digest != after.digest


def test_what_is_written_into_the_images_stays_out_of_the_cache(classes):
    dataset = _load(classes)
    dataset.images[0][:] = 7
    assert not (_load(classes).images[0] == 7).all()
    torch.from_numpy(_load(classes).images[0])


def test_decoding_gives_the_same_bytes_whatever_the_threads_and_a_damaged_entry_of_the_cache_is_replaced(
    classes, monkeypatch
):
    def decoded(threads):
        monkeypatch.setattr(os, "cpu_count", lambda: threads)
        _load(classes, image_size=4).images[0].sum()
        (folder,) = cache_folder("images").iterdir()
        return {path: path.read_bytes() for path in folder.iterdir()}

    alone = decoded(1)
    assert {path.name for path in alone} == {"test.npy", "train.npy"}
    for path, content in alone.items():
        path.write_bytes(content[: len(content) // 2])
    assert decoded(4) == alone


@settings(max_examples=15)
@given(st.sampled_from(["L", "RGBA", "P", "1", "CMYK", "LA"]), st.integers(0, 99))
def test_every_usual_kind_of_pixel_becomes_rgb(tmp_path_factory, mode, seed):
    root = tmp_path_factory.mktemp("modes")
    suffix = "tif" if mode == "CMYK" else "png"
    _save(root, "train/a/0.png", 1)
    _save(root, f"train/a/1.{suffix}", seed, mode=mode)
    _save(root, "test/a/0.png", 2)
    expected = np.asarray(_picture(seed, mode=mode).convert("RGB")).transpose(2, 0, 1)
    np.testing.assert_array_equal(_load(root).images[0][1], expected)


def test_images_of_mixed_size_are_refused_by_name_or_brought_to_one(classes):
    _save(classes, "train/dog/1.png", 4, size=(9, 7))
    with in_one_line(r"train/dog/1.png: is 7x9, but train/cat/0.png is 5x6; set data.image_size"):
        _ = _load(classes).images
    dataset = _load(classes, image_size=4)
    assert dataset.image_shape == (3, 4, 4)
    expected = _picture(4, size=(9, 7)).resize((4, 4), Image.Resampling.BILINEAR)
    np.testing.assert_array_equal(dataset.images[0][4], np.asarray(expected).transpose(2, 0, 1))


@pytest.mark.parametrize(
    ("file", "damage", "words"),
    [
        ("train/cat/0.png", lambda path: path.write_bytes(path.read_bytes()[:-40]), ""),
        ("train/dog/1.png", lambda path: path.write_bytes(b"no picture"), "no format that Pillow knows"),
        ("test/cat/1.png", lambda path: path.write_bytes(b""), ""),
        ("train/dog/1.png", lambda path: Image.fromarray(np.zeros((5, 6), dtype=np.uint16)).save(path), "more than 8 "),
    ],
)
@pytest.mark.whole_family
def test_a_broken_image_is_one_line_that_names_it(classes, file, damage, words):
    """Not before it is decoded: labels are known at once."""
    damage(classes / file)
    dataset = _load(classes)
    assert dataset.train_labels.tolist() == [0, 0, 0, 1, 1, 1]
    with in_one_line(rf"{file}: .*{words or 'not a readable image: '}"):
        _ = dataset.images
    assert not cache_folder("images").exists() or list(cache_folder("images").iterdir()) == []


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("train/loose.png", r"train/loose.png: lies 0 folders deep; expected CLASS/FILE"),
        ("train/a/b/c/deep.png", r"train/a/b/c/deep.png: lies 3 folders deep; expected CLASS/FILE"),
        ("train/sketch/cat/0.png", r"train/sketch/cat/0.png: some images lie in CLASS/FILE and some"),
        ("test/horse/0.png", r"test/horse/0.png: its class 'horse' has no image for training"),
        ("evaluation", "no images to test with; expected CLASS/FILE"),
        ("link", "cat/0.png: not a readable image"),
    ],
)
def test_a_layout_that_says_nothing_is_one_line(classes, file, words):
    if file == "evaluation":
        (classes / "test").rename(classes / file)
    elif file == "link":
        (classes / "train/cat/0.png").unlink()
        (classes / "train/cat/0.png").symlink_to("gone")
    else:
        _save(classes, file)
    with in_one_line(words):
        _load(classes)


def test_links_that_lead_up_make_no_folders_without_end(classes):
    # Two links double what lies below with every step; the system's own limit comes behind 2^40 folders.
    for label in ("cat", "dog"):
        (classes / "train" / label / "up").symlink_to("..")
    with in_one_line(r"/up/cat: lies 6 folders below .*; expected at most 5, and no link"):
        _load(classes)
    assert "data.dataset" not in input_digests(RunConfig(data=DataConfig(dataset=str(classes))))


def test_a_folder_without_images_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("nothing to see")
    _save(tmp_path, ".hidden/cat/0.png")
    _save(tmp_path, "cat/.0.png")
    with in_one_line("no images to train with; expected CLASS/FILE"):
        _load(tmp_path)


def test_too_small_a_disk_is_one_line(classes, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 10}))
    with in_one_line(r"images: cannot be written: 0 MB needed .*; set EDGESIM_CACHE"):
        _ = _load(classes).images
