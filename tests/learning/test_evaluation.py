import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score
from torch import nn

from edgesim.learning.evaluation import evaluation_of, predictions


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6)), min_size=1, max_size=40))
def test_f1_by_class_and_its_mean_are_those_of_scikit_learn_over_the_classes_tested(pairs):
    labels, predicted = np.array(pairs).T
    classes = np.unique(labels)
    expected = f1_score(labels, predicted, labels=classes, average=None, zero_division=0)
    found = evaluation_of(np.zeros(len(labels)), predicted, labels)
    assert list(found.class_f1) == classes.tolist()
    assert list(found.class_f1.values()) == pytest.approx(expected.tolist(), abs=1e-12)
    assert found.macro_f1 == pytest.approx(expected.mean(), abs=1e-12)


def test_more_cores_change_no_byte_of_a_convolutional_nets_evaluation(make_dataset, make_flat):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(12, 4))
    dataset = make_dataset(np.arange(300) % 4)
    flat, data = make_flat(module, dataset)
    samples = np.random.default_rng(0).permutation(300)
    alone, spread = (predictions(flat, data, samples, test=False, cores=cores) for cores in (1, 3))
    np.testing.assert_array_equal(alone[0], spread[0])
    np.testing.assert_array_equal(alone[1], spread[1])
    logits = flat.module(data.train(torch.from_numpy(samples))[0])
    assert alone[1].tolist() == logits.argmax(1).tolist()


def test_an_evaluation_agrees_with_one_plain_forward_pass(make_dataset, make_flat):
    torch.manual_seed(0)
    dataset = make_dataset(np.arange(150) % 4)
    flat, data = make_flat(nn.Sequential(nn.Flatten(), nn.Dropout(0.5), nn.Linear(16, 4)), dataset)
    samples = np.flatnonzero(dataset.test_labels != 2)
    found = evaluation_of(*predictions(flat, data, samples, test=True), dataset.test_labels[samples])
    images, labels = data.test(torch.from_numpy(samples))
    logits = flat.module.eval()(images)
    right = (logits.argmax(1) == labels).numpy()
    assert found.loss == pytest.approx(F.cross_entropy(logits, labels).item(), rel=1e-5)
    assert found.accuracy == pytest.approx(right.mean())
    assert found.class_accuracy == {c: pytest.approx(right[labels.numpy() == c].mean()) for c in (0, 1, 3)}
