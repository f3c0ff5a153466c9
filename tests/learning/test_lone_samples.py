import pytest

from edgesim.base.errors import EdgesimError


@pytest.fixture
def make(make_learner):
    def of_model(model, size=60, **learning):
        data = {"partition": "iid", "samples_per_device": size}
        return make_learner(data=data, learning={"model": model, **learning})

    return of_model


@pytest.mark.parametrize(
    ("work", "words"),
    [
        # 1,437 training images of the digits.
        ({"steps": 5, "batch_size": 4}, "4 leaves pre-training on 1437 samples a batch of one"),
        ({"epochs": 1, "size": 61, "pretrain": False, "batch_size": 20}, "20 leaves a device of 61 samples a batch of"),
        ({"steps": 1, "pretrain": False, "batch_size": 1}, "1 leaves a device of 60 samples a batch of one"),
    ],
)
def test_a_batch_of_one_is_refused_where_the_model_cannot_train_on_it(make, work, words):
    with pytest.raises(EdgesimError, match=rf"learning.batch_size: {words}.* 'resnet10-bn' cannot train"):
        make("resnet10-bn", **work)
    make("mlp", **work)


def test_batches_without_a_lone_sample_are_not(make):
    make("resnet10-bn", epochs=1, batch_size=20)
