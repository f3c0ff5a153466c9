"""FedCL: which public images the server looks at, in which batches, and what it makes of their gradients."""

import numpy as np
import pytest
import torch
from eight_weights import START, Bench, Holder
from torch.nn.functional import cross_entropy

from edgesim.learning.algorithms.fedcl import FedCl
from edgesim.learning.algorithms.records import Sizes, State
from edgesim.streams import Streams


class Watched(Bench):
    """Writes down the batches of which it is asked for gradients."""

    def gradients(self, weights, batches):
        self.asked = [batch.tolist() for batch in batches]
        return super().gradients(weights, batches)


def prepared(public, private, classes=2, **options):
    """The state before a round, and the batches of public images that were looked at for it."""
    images = np.random.default_rng(3).normal(size=(public, 2)).tolist()
    bench = Watched(Holder(images, [0, 1] * (public // 2)), private_count=private)
    algorithm = FedCl.Server(FedCl.Options(**options), Sizes(1.0, 8, 4, classes, public=public), Streams(0))
    state = algorithm.prepare(State(torch.tensor(START, dtype=torch.float64)), bench)
    return state, bench


@pytest.mark.parametrize(
    ("private", "classes", "share", "images"),
    [
        (20_000, 2, 0.01, 200),
        (1_300, 4, 0.01, 12),  # 13 are three of each class.
        (1_100, 4, 0.01, 8),  # 11 are two of each class.
        (100, 4, 0.01, 8),  # One is none of each class; there are two all the same.
        (100, 3, 0.57, 57),  # In floating point 0.57 times 100 is 56.99.
        (90_000, 2, 0.01, 400),  # 900 are more than there are.
    ],
)
def test_the_proxy_is_a_share_of_the_devices_data_with_as_many_of_each_class_and_at_least_two(
    private, classes, share, images
):
    _, bench = prepared(400, private, classes, proxy_share=share)
    assert np.concatenate(bench.asked).tolist() == list(range(images))


def test_devices_are_pulled_to_their_start_by_twice_the_coefficient_times_omega_of_each_tensor():
    local = FedCl.Local(FedCl.Options(coe=0.25), Sizes(1.0, 8, 4, 2, tensor_sizes=(1, 3)), Streams(0))
    assert local.pull({"omega": torch.tensor([2.0, 6.0])}).to_start.tolist() == [1.0, 3.0, 3.0, 3.0]


def test_omega_sums_square_gradients_of_batches_of_64_by_tensor_over_the_number_of_images():
    """1 % of 20,000 are 200 images: three batches of 64, and one of 8. An oracle in plain torch."""
    state, bench = prepared(400, 20_000)
    first, last = torch.tensor(START, dtype=torch.float64).view(2, 2, 2)
    images, labels = torch.tensor(bench.of.images, dtype=torch.float64), torch.tensor(bench.of.labels)
    expected = [0.0, 0.0]
    for begin, stop in ((0, 64), (64, 128), (128, 192), (192, 200)):
        matrices = [first.clone().requires_grad_(), last.clone().requires_grad_()]
        logits = torch.tanh(images[begin:stop] @ matrices[0].T) @ matrices[1].T
        cross_entropy(logits, labels[begin:stop]).backward()
        expected = [sum_ + float((each.grad**2).sum()) / 200 for sum_, each in zip(expected, matrices, strict=True)]
    assert state.shared["omega"].tolist() == pytest.approx(expected, rel=1e-12)
    assert [len(batch) for batch in bench.asked] == [64, 64, 64, 8]


def test_timing_alone_needs_no_public_images():
    FedCl.check(FedCl.Options(), Sizes(1.0, 8, 4, classes=10, public=0))
