from dataclasses import replace

import numpy as np
import pytest
import torch
from refusals import in_one_line

from edgesim.config import AlgorithmConfig, LearningConfig
from edgesim.learning.accounts import Accounts
from edgesim.learning.algorithms import ALGORITHMS
from edgesim.learning.datasets import Dataset
from edgesim.learning.drift.frames import Framed
from edgesim.learning.drift.holdings import Frame
from edgesim.learning.federation import Federation, make_federation
from edgesim.learning.flat import FlatModel
from edgesim.learning.models import MODELS, make_model
from edgesim.learning.payload import PARAMETER_COUNTS, TORCHVISION_COUNTS, known_network, parameter_count
from edgesim.learning.timing_only import TimingOnlyLearner
from edgesim.streams import Streams


@pytest.mark.parametrize(
    ("name", "shape", "classes", "parameters"),
    [
        ("fedteddi-cnn", (3, 32, 32), 10, 558_802),  # fedteddi.md, section 6
        ("resnet18-gn", (3, 32, 32), 100, 11_220_132),  # fedteddi.md, section 6
        ("small-cnn", (1, 28, 28), 10, 25 * 16 + 16 + 400 * 32 + 32 + 1568 * 10 + 10),
        ("linear", (1, 8, 8), 10, 650),
        ("linear", (1, 28, 28), 10, 7_850),
        ("mlp", (1, 8, 8), 10, 64 * 32 + 32 + 32 * 10 + 10),
        # afl.md, section 6: CIFAR-10, Fashion-MNIST and digits; breast cancer, wine, digits and covertype.
        ("afl-cnn", (3, 32, 32), 10, 545_098),
        ("afl-cnn", (1, 28, 28), 10, 421_642),
        ("afl-cnn", (1, 8, 8), 10, 53_002),
        ("afl-mlp", (1, 1, 30), 2, 12_354),
        ("afl-mlp", (1, 1, 13), 3, 10_243),
        ("afl-mlp", (1, 8, 8), 10, 17_226),
        # FedStg's page, oracle T9.
        ("fedstg-cnn", (3, 32, 32), 10, 2_474_506),
        ("fedstg-cnn", (3, 32, 32), 100, 2_520_676),
        ("afl-mlp", (1, 1, 54), 7, 15_751),
        # torchvision's own documentation of its weights for 1,000 classes.
        ("resnet18-bn-imagenet", (3, 224, 224), 1000, 11_689_512),
        ("resnet34-bn-imagenet", (3, 224, 224), 1000, 21_797_672),
        ("torchvision:shufflenet_v2_x1_0", (3, 224, 224), 1000, 2_278_604),
        ("torchvision:mobilenet_v2", (3, 224, 224), 1000, 3_504_872),
    ],
)
def test_the_closed_form_gives_the_published_parameter_count(name, shape, classes, parameters):
    assert (PARAMETER_COUNTS | TORCHVISION_COUNTS)[name](shape, classes) == parameters


@pytest.mark.parametrize("name", sorted(MODELS))
@pytest.mark.parametrize("shape", [(1, 28, 28), (2, 17, 21)])
def test_the_closed_form_agrees_with_torch(name, shape):
    # So a timing-only run, which makes no network, has nothing to refuse where an algorithm looks at features.
    assert check(name, shape, 7).features > 0


@pytest.mark.parametrize("name", sorted(TORCHVISION_COUNTS))
def test_the_closed_form_of_a_torchvision_name_agrees_with_torch(name):
    check(name, (1, 32, 32), 7)


def check(name, shape, classes):
    """Parameters, features and tensors as torch's own module has them."""
    dataset = Dataset("made", np.zeros(1), np.zeros(1), classes, shape, lambda: ())
    blank = Frame(np.ones(1), np.ones((1, classes)), np.arange(classes), np.zeros(1))
    with torch.device("meta"):
        module = FlatModel(make_model(name, shape, classes), torch.device("meta"))
    found = known_network(LearningConfig(model=name), Federation(dataset, Framed([blank])), charged=True)
    assert found == replace(module.network, tensor_sizes=())
    return found


NARROW = {"model": "torchvision:mobilenet_v2", "model_options": {"width_mult": 0.5}}


@pytest.mark.parametrize(
    ("learning", "dataset", "said"),
    [
        ({"model": "mine.net"}, "digits", r"round.payload_bits: a number is needed.*'mine.net'"),
        (NARROW, "digits", r"size of model 'torchvision:mobilenet_v2' with options \{'width_mult': 0.5"),
        ({}, "none", "round.payload_bits: a number is needed with data.dataset = 'none'"),
    ],
    ids=["own", "options", "no data"],
)
def test_a_model_of_unknown_size_needs_its_payload_as_a_number(make_config, learning, dataset, said):
    config = make_config(data={"dataset": dataset}, learning={"training": "none"})
    with in_one_line(said):
        parameter_count(LearningConfig(**learning), make_federation(config, Streams(0)))


@pytest.mark.parametrize("name", [name for name, kind in ALGORITHMS.items() if kind.Local.features])
def test_a_users_model_is_refused_where_its_features_are_needed_and_unknown(name, make_config):
    config = make_config(
        learning={"model": "mine.net", "training": "none"},
        round={"payload_bits": 1e5, "download_s": 0.0},
        algorithm={"name": name},
    )
    said = rf"^algorithm.name: '{name}' needs features, .*learning.model = 'mine.net' are unknown; train, or"
    with in_one_line(said):
        TimingOnlyLearner(config, make_federation(config, Streams(0)), Streams(0))
    plain = config.model_copy(update={"algorithm": AlgorithmConfig()})
    TimingOnlyLearner(plain, make_federation(plain, Streams(0)), Streams(0))


@pytest.mark.parametrize(
    ("model", "algorithm", "down", "up"),
    [
        ("resnet10-gn", {"name": "fedavg"}, 156_903_744, 156_903_744),
        ("resnet10-gn", {"name": "scaffold"}, 313_807_488, 313_807_488),
        ("resnet10-gn", {"name": "scaffold", "derive_control": True}, 313_807_488, 156_903_744),
        ("resnet10-gn", {"name": "fpl"}, 156_903_744, 157_067_584),
        ("resnet10-gn", {"name": "fedproto"}, 0, 163_840),
        ("fedteddi-cnn", {"name": "fedavg"}, 17_881_664, 17_881_664),
        ("fedteddi-cnn", {"name": "fedproto"}, 0, 38_400),
    ],
)
def test_published_payloads_of_ten_classes(model, algorithm, down, up, make_config):
    """Section 2 of the page of algorithms: in round 1, when no device has sent a prototype; a device holds all ten."""
    config = make_config(devices={"count": 2}, learning={"model": model}, algorithm=algorithm)
    dataset = Dataset("made", np.zeros(1), np.zeros(1), 10, (3, 32, 32), lambda: ())
    frame = Frame(np.array([20, 1]), np.array([[2] * 10, [1] + [0] * 9]), np.arange(10), np.zeros(21))
    federation = Federation(dataset, Framed([frame, frame]))
    accounts = Accounts(config, federation, Streams(0), known_network(config.learning, federation, charged=True))
    ids = np.array([0])
    assert accounts.download_bits(ids, 1).tolist() == [down]
    assert accounts.settle(ids, 1).tolist() == [up]
