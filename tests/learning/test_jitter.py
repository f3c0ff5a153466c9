"""FedStg's augmentation against torchvision's own functions, image by image, and against its random transforms."""

import numpy as np
import pytest
import torch
from torchvision.transforms import RandomResizedCrop
from torchvision.transforms import functional as T

from edgesim.base.errors import EdgesimError
from edgesim.learning import augmentation, jitter
from edgesim.learning.algorithms.records import Phase
from edgesim.learning.back_ends.stacked import StackedBackEnd
from edgesim.learning.jobs import Job, Optimiser
from edgesim.learning.tensors import DeviceData
from edgesim.streams import Streams


def changes_of(count, size, seed=0, device=0, number=1):
    (found,) = augmentation.draw_changes("fedstg", Streams(seed), "augmentation", [device], number, [count], size)
    return found


def as_torchvision(image, change, brightest):
    """One image, [C, H, W] of values from 0 to 1, changed by functions of torchvision one after another."""
    flip, cosine, sine, bright, contrast, contrast_first, *crop = change.astype(float)
    height, width = image.shape[1:]
    image = image / brightest
    image = T.hflip(image) if flip else image
    image = T.rotate(image, float(np.rad2deg(np.arctan2(sine, cosine))))
    steps = [(T.adjust_brightness, bright), (T.adjust_contrast, contrast)]
    for adjust, factor in reversed(steps) if contrast_first else steps:
        image = adjust(image, factor)
    top, left, tall, wide = (round(share * side) for share, side in zip(crop, [height, width] * 2, strict=True))
    return brightest * T.resized_crop(image, top, left, tall, wide, [height, width], antialias=True)


@pytest.mark.parametrize(("shape", "brightest"), [((3, 32, 32), 255.0), ((1, 28, 20), 1.0), ((3, 9, 9), 16.0)])
def test_images_are_changed_as_by_torchvisions_functions(shape, brightest):
    images = torch.rand(150, *shape, generator=torch.Generator().manual_seed(0)) * brightest
    images = images.round().to(torch.uint8) if brightest == 255 else images
    changes = changes_of(150, shape[1:])
    mine = augmentation.apply(images, torch.from_numpy(changes), brightest)
    for image, result, change in zip(images.float(), mine, changes, strict=True):
        assert (result - as_torchvision(image, change, brightest)).abs().max() < 3e-6 * brightest
    # Each part of a change does something.
    for parts in ({0: 1.0}, {2: 0.2}, {3: 0.8}, {4: 1.2}, {8: 0.5}, {9: 0.5}, {6: 0.5, 8: 0.5}, {7: 0.5, 9: 0.5}):
        whole = np.array([jitter.UNCHANGED], dtype=np.float32)
        whole[0, list(parts)] = list(parts.values())
        assert not torch.equal(augmentation.apply(images[:1], torch.from_numpy(whole), brightest), images[:1].float())


def test_an_image_is_changed_alike_in_whichever_company_and_stays_as_it_is_without_a_change():
    images = torch.rand(40, 3, 16, 16)
    changes = torch.from_numpy(changes_of(40, (16, 16)))
    together = augmentation.apply(images, changes)
    alone = torch.cat([augmentation.apply(images[i : i + 1], changes[i : i + 1]) for i in range(40)])
    assert torch.equal(together, alone)
    assert torch.equal(augmentation.apply(images, torch.tensor([jitter.UNCHANGED] * 40)), images)
    assert augmentation.unchanged(changes.shape[1]) == jitter.UNCHANGED


def test_draws_have_the_ranges_and_means_of_the_published_transforms():
    changes = changes_of(20_000, (32, 32)).astype(float)
    angles = np.rad2deg(np.arctan2(changes[:, 2], changes[:, 1]))
    for values, low, high in ((angles, -15, 15), (changes[:, 3], 0.8, 1.2), (changes[:, 4], 0.8, 1.2)):
        assert low <= values.min() < low + (high - low) / 100
        assert high - (high - low) / 100 < values.max() <= high
        assert abs(values.mean() - (low + high) / 2) < 5 * (high - low) / np.sqrt(12 * 20_000)
    for share in (changes[:, 0], changes[:, 5]):
        assert set(share) == {0.0, 1.0}
        assert abs(share.mean() - 0.5) < 5 * 0.5 / np.sqrt(20_000)


@pytest.mark.parametrize("size", [(32, 32), (20, 60)])
def test_crops_are_as_likely_as_torchvisions(size):
    """First row and column, height and width: the mean of each against 2,000 draws of RandomResizedCrop."""
    torch.manual_seed(0)
    image = torch.zeros(1, *size)
    theirs = np.array([RandomResizedCrop.get_params(image, [0.8, 1.0], [3 / 4, 4 / 3]) for _ in range(2000)])
    mine = np.rint(changes_of(2000, size)[:, 6:] * np.array([*size, *size]))
    for own, other in zip(mine.T, theirs.T, strict=True):
        spread = np.sqrt((own.var() + other.var()) / 2000)
        assert abs(own.mean() - other.mean()) <= 5 * spread
        assert abs(own.std() - other.std()) <= 0.1 * other.std()


def test_phases_without_changes_stay_as_they_are_beside_others():
    changes = changes_of(3, (4, 4))
    phases = (Phase(np.arange(2), np.array([0, 2])), Phase(np.arange(3), np.array([0, 3]), changes))
    job = Job(0, 1, 1, phases, {"start": torch.zeros(1)}, Optimiser(0.1, 0.0))
    np.testing.assert_array_equal(job.changes, np.concatenate([[jitter.UNCHANGED] * 2, changes]).astype(np.float32))
    assert job.changes.dtype == np.float32


def test_all_back_ends_train_on_the_same_changed_images(make_learner):
    updates = []
    for back_end in ("loop", "stacked"):
        learning = {"pretrain": False, "back_end": back_end, "precision": "float64"}
        data = {"partition": "fedteddi"}
        learner = make_learner(data=data | {"augment": "fedstg"}, learning=learning)
        assert isinstance(learner.back_end, StackedBackEnd) == (back_end == "stacked")
        promises = learner.open_round(1, 1).start(np.arange(3))
        assert all(promise.job.changes.shape[1] == 10 for promise in promises)
        updates.append(torch.stack([result.update for result in learner.results(promises)]))
        other = make_learner(data=data, learning=learning)
        unchanged = other.results(other.open_round(1, 1).start(np.arange(3)))
        assert not torch.equal(updates[-1], torch.stack([result.update for result in unchanged]))
    torch.testing.assert_close(updates[0], updates[1], rtol=0, atol=1e-9)


def test_images_are_cut_off_at_the_brightest_pixel_of_the_set(make_dataset):
    """Digits are bytes of 0 to 16."""
    dataset = make_dataset([0, 1, 2, 3], shape=(1, 4, 4))
    vars(dataset)["images"] = tuple(images // 16 for images in dataset.images)
    data = DeviceData(dataset, torch.device("cpu"))
    brighter = torch.tensor([jitter.UNCHANGED])
    brighter[0, 3] = 1.2
    offset, divisor = dataset.normalisation
    for sample in range(4):
        images, _ = data.train(torch.tensor([sample]), brighter)
        expected = (1.2 * dataset.images[0][sample].astype(float)).clip(max=dataset.images[0].max())
        np.testing.assert_allclose(images[0].numpy() * divisor + offset, expected, atol=1e-4)


def test_pixels_below_black_are_refused(tmp_path, make_learner):
    images = np.linspace(-1, 1, 40 * 16, dtype=np.float32).reshape(40, 4, 4)
    labels = np.arange(40) % 4
    np.savez(tmp_path / "made.npz", train_images=images, train_labels=labels, test_images=images, test_labels=labels)
    data = {"dataset": str(tmp_path / "made.npz"), "augment": "fedstg", "partition": "iid", "samples_per_device": 4}
    with pytest.raises(EdgesimError, match=r"data.augment: 'fedstg' is for pixels from 0 on, .* has pixels of -1"):
        make_learner(data=data, devices={"count": 5}, learning={"pretrain": False})
