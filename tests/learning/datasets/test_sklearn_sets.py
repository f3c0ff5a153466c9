import numpy as np
import pytest
import sklearn.datasets
from sklearn.datasets import load_digits

from edgesim.config import DataConfig
from edgesim.learning.datasets import load_dataset


def test_digits_have_36_test_images_per_class_and_lose_none():
    dataset = load_dataset(DataConfig(dataset="digits"))
    assert np.bincount(dataset.test_labels).tolist() == [36] * 10
    assert len(dataset.train_labels) == 1797 - 360
    train, test = dataset.images
    assert train.shape == (1437, 1, 8, 8)
    assert test.dtype == np.uint8
    whole = load_digits()
    mine = sorted(
        (int(label), image.tobytes())
        for images, labels in ((train, dataset.train_labels), (test, dataset.test_labels))
        for image, label in zip(images, labels, strict=True)
    )
    theirs = sorted(
        (int(label), image.astype(np.uint8).tobytes()) for image, label in zip(whole.images, whole.target, strict=True)
    )
    assert mine == theirs


@pytest.mark.parametrize(
    ("name", "sizes"), [("iris", (150, 4, 3)), ("wine", (178, 13, 3)), ("breast-cancer", (569, 30, 2))]
)
def test_a_table_is_whole_and_each_feature_is_standardised_by_itself(name, sizes):
    dataset = load_dataset(DataConfig(dataset=name))
    train, test = (images[:, :, 0, 0] for images in dataset.images)
    assert (len(train) + len(test), *dataset.image_shape, dataset.class_count) == (sizes[0], sizes[1], 1, 1, sizes[2])
    features, target = getattr(sklearn.datasets, f"load_{name.replace('-', '_')}")(return_X_y=True)
    theirs = np.column_stack([features.astype(np.float32), target])
    labels = np.concatenate([dataset.train_labels, dataset.test_labels])
    mine = np.column_stack([np.concatenate([train, test]), labels])
    np.testing.assert_array_equal(mine[np.lexsort(mine.T)], theirs[np.lexsort(theirs.T)])
    mean, deviation = dataset.normalisation
    np.testing.assert_allclose(mean, train.mean(axis=0, dtype=float), rtol=1e-6)
    np.testing.assert_allclose(deviation, train.std(axis=0, dtype=float), rtol=1e-6)
    for label, size in enumerate(np.bincount(target)):
        assert (dataset.test_labels == label).sum() == round(size / 5)
