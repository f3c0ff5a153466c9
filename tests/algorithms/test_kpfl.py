"""KPFL: weights by age and data, the generator's objective, distillation, and what it does around each algorithm.

Numbers are those of its page, worked out by programs that share nothing with this one: three devices with the net of
`eight_weights`, device 0 away in round 2 and device 2 new in it.
"""

import math

import numpy as np
import pytest
import torch
from eight_weights import PUBLIC, ROUNDS, START, THREE, Bench, Holder, check_sum
from hypothesis import given
from hypothesis import strategies as st
from quadratics import Play, Quadratic

from edgesim.learning.algorithms import ALGORITHMS, data_free
from edgesim.learning.algorithms.distillation import likeness
from edgesim.learning.algorithms.finch import finch
from edgesim.learning.algorithms.knowledge_pool import MOST, age_weights, shares, shares_by_class
from edgesim.learning.algorithms.kpfl_settings import KpflOptions, tuned

COUNTS = np.array([[8, 2], [2, 8], [0, 10]])
EXPONENTS = {"age_active": 0.02, "age_idle": -0.18}
FIRST = {"keep": "first", **EXPONENTS}


def aged(active=(3, 0, 1), idle=(0, 5, 0), exponents=(0.02, -0.18)):
    return age_weights(np.array(active), np.array(idle), *exponents)


def test_weights_of_a_pool_of_three_worked_out_by_hand():
    """T3 of the page: two devices are here for the third and the first time, one is away for the fifth."""
    assert aged().tolist() == pytest.approx([0.426679, 0.163372, 0.409949], abs=1e-6)
    raw = np.exp([0.06, -0.9, 0.02])
    assert aged().tolist() == pytest.approx((raw / raw.sum()).tolist(), abs=1e-15)
    # The page's numbers, whose sum is 1 + 1e-10, are not all exact to their last digits.
    assert shares(aged(), COUNTS).tolist() == pytest.approx([0.4441697506, 0.2658430891, 0.2899871604], abs=1e-8)
    by_class = shares_by_class(aged(), COUNTS)
    assert by_class[:, 0].tolist() == pytest.approx([0.613339, 0.181686, 0.204974], abs=1e-6)
    assert by_class[:, 1].tolist() == pytest.approx([0.263339, 0.281686, 0.454974], abs=1e-6)


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=8),
    st.floats(-20, 20),
    st.floats(-20, 20),
)
def test_weights_are_shares_and_none_overflows(rows, age_active, age_idle):
    active, first, second = np.array(rows).T
    counts = np.stack([first, second], 1) + np.array([[1, 0]])
    aw = age_weights(active, np.where(active > 0, 0, 1 + first), age_active, age_idle)
    for found in (aw, shares(aw, counts), shares_by_class(aw, counts)):
        assert np.isfinite(found).all()
        assert (found >= 0).all()
        assert found.sum(0) == pytest.approx(1.0)
    # Two weights by age are never further apart than the bound on both exponents.
    assert aw.max() / aw.min() <= math.exp(2 * MOST) * (1 + 1e-9)


def test_without_exponents_weights_depend_on_data_alone_and_equal_data_on_nothing():
    """T4."""
    some = [aged(active, idle, (0.0, 0.0)) for active, idle in (((3, 0, 2), (0, 5, 0)), ((0, 1, 0), (9, 0, 1)))]
    assert shares(some[0], COUNTS).tolist() == shares(some[1], COUNTS).tolist()
    assert shares(some[0], np.full((3, 2), 4)).tolist() == pytest.approx([1 / 3] * 3)


def test_a_class_that_nobody_in_the_pool_holds_is_weighed_by_age_alone():
    counts = COUNTS * np.array([[1, 0]])
    assert shares_by_class(aged(), counts)[:, 1].tolist() == pytest.approx(aged().tolist())


def played(name="fedavg", options=(), rounds=ROUNDS, kpfl=FIRST, devices=THREE, **settings):
    play = Play(
        ALGORITHMS[name], devices, dict(options), START, **({"lr": 0.5, "bench": Bench(PUBLIC)} | settings), kpfl=kpfl
    )
    for ids in rounds:
        play.round(*ids)
    return play


def test_ages_count_merges_in_succession_with_and_without_the_device():
    """T7: present, present, away, away, away, present; device 2 is never seen."""
    play, ages = played(rounds=()), []
    for ids in ((0, 1), (0,), (1,), (1,), (1,), (0,)):
        play.round(*ids)
        ages.append((play.state.pool[0].active, play.state.pool[0].idle))
    assert ages == [(1, 0), (2, 0), (0, 1), (0, 2), (0, 3), (1, 0)]
    assert sorted(play.state.pool) == [0, 1]


def pooled(name="fedavg", options=(), rounds=ROUNDS[:2]):
    """A play, the entries of its pool and what each counts."""
    play = played(name, options, rounds)
    entries = list(play.state.pool.values())
    ages = [[getattr(entry, field) for entry in entries] for field in ("active", "idle")]
    return play, entries, shares(aged(*ages), np.stack([entry.class_counts for entry in entries]))


def test_weights_after_the_second_and_the_third_round_of_the_three_devices():
    two, three = (pooled(rounds=ROUNDS[:count])[2].tolist() for count in (2, 3))
    assert two == pytest.approx([0.5360962055, 0.3308624973, 0.1330412972], abs=1e-10)
    assert three == pytest.approx([0.5565088519, 0.3114051264, 0.1320860217], abs=1e-10)


def test_buffers_are_averaged_like_weights():
    devices = [Quadratic(1.0, samples=3, moments=(5.0,)), Quadratic(-2.0, samples=1, moments=(9.0,))]
    for device, counts in zip(devices, ([2, 1], [0, 1]), strict=True):
        object.__setattr__(device, "class_counts", counts)
    play = Play(ALGORITHMS["fedavg"], devices, start=(0.0, 4.0), kpfl=FIRST)
    play.round(0)
    play.round(1)
    pool = play.state.pool
    weights = shares(aged((0, 1), (1, 0)), np.array([[2, 1], [0, 1]]))
    expected = weights @ np.array([pool[0].model.tolist(), pool[1].model.tolist()])
    assert play.state.weights.tolist() == pytest.approx(expected.tolist(), abs=1e-12)
    assert play.state.weights[1] == pytest.approx(weights @ [5.0, 9.0])


IMAGES = torch.tensor([(0.8, -0.5), (-0.6, 0.9), (0.3, 0.2), (0.1, 1.2)], dtype=torch.float64)
LABELS = torch.tensor([0, 1, 0, 1])
NOISE = torch.tensor([(0, 0), (1, -1), (0.5, 0.5), (-1, 0)], dtype=torch.float64)


def taught_pool():
    """Bench, models, W^y and Theta after the second round of the three devices."""
    play, pool, _ = pooled()
    by_class = shares_by_class(aged((0, 2, 1), (1, 0, 0)), np.stack([entry.class_counts for entry in pool]))
    return Bench(PUBLIC), [entry.model for entry in pool], torch.tensor(by_class), play.state.weights


def test_terms_of_the_generators_objective_and_their_gradient_at_the_images():
    """Section 7 of the page on algorithms; half of the pool's models come in a second part."""
    bench, models, by_class, theta = taught_pool()
    assert by_class[:, 0].tolist() == pytest.approx([0.5191969597, 0.1796804761, 0.3011225643], abs=1e-10)
    assert by_class[:, 1].tolist() == pytest.approx([0.3108636263, 0.5130138094, 0.1761225643], abs=1e-10)
    images = IMAGES.clone().requires_grad_()
    ((_, outputs),) = bench.frozen([theta])(images)
    terms = (
        data_free.teaching(bench.frozen(models), by_class, images, LABELS),
        data_free.contrast(outputs.features[0], LABELS, 0.5),
        likeness(images, NOISE),
    )
    assert [term.item() for term in terms] == pytest.approx([0.5007769993, 0.0853806040, 0.5253187803], abs=1e-10)
    loss = data_free.objective(
        bench.inputs, bench.frozen(models), by_class, bench.frozen([theta]), 0.5, (5.0, 8.0, 7.0)
    )(images, NOISE, LABELS)
    (gradient,) = torch.autograd.grad(loss, images)
    assert float(gradient.norm()) == pytest.approx(6.6192867364, abs=1e-10)


def test_diversity_of_two_images():
    """T5 of the page."""
    made, noise = torch.tensor([[0.0] * 3, [3.0] * 3]), torch.tensor([[0.0, 0.0], [1.0, 1.0]])
    assert float(likeness(made, noise)) == pytest.approx(math.exp(-1.5))


def test_identical_models_in_the_pool_make_that_model():
    """T4: at a rate of 0 every device ends where it began, some of them rounds ago."""
    assert played(lr=0.0).state.weights.tolist() == pytest.approx(list(START), abs=1e-15)


def test_the_pools_logits_and_the_model_after_two_steps_towards_them(monkeypatch):
    bench, models, by_class, theta = taught_pool()
    taught = data_free.ensemble(bench.frozen(models), by_class, IMAGES, LABELS)
    expected = [
        [0.4394570282, -0.2105496381],
        [-0.4034280007, 0.1974120495],
        [0.0474943984, 0.0226135317],
        [-0.3245137937, 0.2612996761],
    ]
    assert taught.flatten().tolist() == pytest.approx(np.ravel(expected).tolist(), abs=1e-10)
    ((_, outputs),) = bench.frozen([theta])(IMAGES)
    apart = torch.nn.functional.kl_div(outputs.logits[0].log_softmax(1), taught.softmax(1), reduction="batchmean")
    assert apart.item() == pytest.approx(0.0004852634, abs=1e-10)
    monkeypatch.setattr(data_free, "_LR", 0.5)
    monkeypatch.setattr(data_free, "_WEIGHT_DECAY", 0)
    improved = data_free.distilled(bench, theta, [IMAGES] * 2, [taught] * 2)
    assert check_sum(theta) == pytest.approx(5.6059288003, abs=1e-10)
    assert check_sum(improved) == pytest.approx(5.5978225425, abs=1e-9)


def test_distillation_is_sgd_at_a_hundredth_with_decay_1e_5_and_gradients_no_longer_than_10():
    """On a net whose first layer has a large gradient, and with other images and logits in each step."""
    theta = torch.tensor([0.05, -0.03, 0.02, 0.04, 60.0, -10.0, -20.0, 30.0], dtype=torch.float64)
    batches, taught = [IMAGES, IMAGES.flip(0)], [-4 * IMAGES, 2 * IMAGES]
    own, lengths = theta.clone(), []
    for images, logits in zip(batches, taught, strict=True):
        weights = own.clone().requires_grad_()
        first, last = weights.view(2, 2, 2)
        target, found = logits.softmax(1), (torch.tanh(images @ first.T) @ last.T).log_softmax(1)
        loss = (target * (target.log() - found)).sum(1).mean()
        (gradient,) = torch.autograd.grad(loss, weights)
        lengths.append(float(gradient.norm()))
        own = own - 0.01 * (gradient * min(1.0, 10 / lengths[-1]) + 1e-5 * own)
    assert min(lengths) > 11
    found = data_free.distilled(Bench(PUBLIC), theta, batches, taught)
    # PyTorch divides by the norm plus 1e-6.
    assert torch.allclose(found, own, rtol=0, atol=1e-7)


ALIKE = (Holder([(1, 0), (0, 1)], [0, 1]), Holder([(-1, 1), (2, -1)], [1, 0]), Holder([(0.5, -1)] * 2, [0, 1]))
"""As many images of each class."""
EVERYONE = ((0, 1, 2),) * 4


@pytest.mark.parametrize(
    ("age_active", "age_idle", "devices", "rounds", "least", "most"),
    [
        (3.0, -7.0, ALIKE, EVERYONE, -1, 1e-12),
        (3.0, -7.0, ALIKE, ((0, 1, 2), (0, 1), (1, 2)), 0.02, 1),
        (3.0, -7.0, THREE, EVERYONE, 0.02, 1),
        (0.0, 0.0, ALIKE, EVERYONE, -1, 1e-12),
        (0.0, 0.0, ALIKE, ROUNDS, 0.04, 1),
        # The page's .035.
        (0.0, 0.0, THREE, EVERYONE, 0.0345, 0.0355),
    ],
)
def test_it_is_fedavg_with_equal_class_totals_and_nobody_away_alone(age_active, age_idle, devices, rounds, least, most):
    """Whatever the exponents, zero too."""
    exponents = {"keep": "first", "age_active": age_active, "age_idle": age_idle}
    plays = [played(rounds=(), kpfl=kpfl, devices=devices) for kpfl in (None, exponents)]
    gaps = []
    for ids in rounds:
        for play in plays:
            play.round(*ids)
        gaps.append(float((plays[0].state.weights - plays[1].state.weights).abs().max()))
    assert least < max(gaps) < most


def test_fedgens_generator_learns_from_the_arrivals_as_without_kpfl():
    """In round 1, whose devices begin with the same model."""
    plain, under = (played("fedgen", {"steps": 3}, ((0, 1),), kpfl) for kpfl in (None, FIRST))
    before = played("fedgen", {"steps": 3}, (), FIRST).state.inner.generator
    after = under.state.inner.generator
    assert torch.equal(after.weights, plain.state.generator.weights)
    assert not torch.equal(after.weights, before.weights)
    assert after.steps == 3
    assert torch.equal(under.state.shared["generator"], after.weights)


def test_scaffolds_control_is_the_mean_of_all_and_never_has_an_idle_device_twice():
    play = played("scaffold", rounds=(*ROUNDS, (1,), (1,)))
    own = play.state.inner.own
    expected = sum(own.values()) / 3
    assert play.state.shared["control"].tolist() == pytest.approx(expected.tolist(), abs=1e-12)


def test_prototypes_of_all_devices_of_the_pool_are_averaged_by_their_shares():
    play, pool, weights = pooled("fedproto", {"average_weights": True})
    for label in range(2):
        has = [n for n, holder in enumerate(THREE) if label in holder.labels]
        rows = torch.stack([pool[n].up["prototypes"][label] for n in has])
        expected = torch.tensor(weights[has]) @ rows / weights[has].sum()
        assert play.state.shared["prototypes"][label].tolist() == pytest.approx(expected.tolist(), abs=1e-12)
    # Device 0, which is away, is the only one of the pool that holds class 1 beside device 1.
    assert play.ledger.inner.counts.tolist() == [2, 2]


def test_fpls_clusters_are_of_the_whole_pool_and_weighted_within(monkeypatch):
    """They are looked for once in each merge, and not in the arrivals first."""
    asked = []
    monkeypatch.setattr("edgesim.learning.algorithms.fpl.finch", lambda rows: asked.append(len(rows)) or finch(rows))
    play, pool, weights = pooled("fpl", {"tau": 0.5})
    # Of class 0 one device and then two, of class 1 two.
    assert asked == [1, 2, 2, 2]
    table = play.state.shared["prototypes"]
    for label in range(2):
        has = np.array([n for n, holder in enumerate(THREE) if label in holder.labels])
        rows = np.stack([pool[n].up["prototypes"][label].numpy() for n in has])
        cluster = finch(rows)
        for number in range(cluster.max() + 1):
            own = cluster == number
            expected = weights[has][own] @ rows[own] / weights[has][own].sum()
            assert table[label, number].tolist() == pytest.approx(expected.tolist(), abs=1e-12)
    assert play.ledger.inner.prototypes_sent == int((~table[..., 0].isnan()).sum())


def test_fedmds_consensus_is_of_what_all_models_of_the_pool_make_of_the_images_now():
    options = {"average_weights": True, "public_share": 0.5, "public_subset": "fixed", "public_epochs": 0}
    play, pool, weights = pooled("fedmd", options)
    logits = [PUBLIC.outputs(entry.model).logits for entry in pool]
    expected = sum(weight * own for weight, own in zip(weights, logits, strict=True))
    assert play.state.shared["consensus"].flatten().tolist() == pytest.approx(expected.flatten().tolist(), abs=1e-12)


OFFICE_CALTECH = """
FedAvg   | 8/5 (6,6,3) 40, 0, 0  | 8/4 (8,5,7) 10, .02, -.18   | 5/3 (3,5,9) 40, .16, .2
FedProx  | 8/4 (8,5,7) 10, .02, -.18 | 8/4 (8,5,7) 10, .02, -.18 | 5/3 (3,5,9) 40, .16, .2
SCAFFOLD | 9/3 (5,6,1) 10, 0, 0  | 10/3 (8,6,2) 40, -.14, -.08 | 9/3 (1,6,7) 10, .2, .16
FedMD    | 2/4 (3,3,3) 40, 0, 0  | 5/1 (2,9,6) 40, -.04, -.16  | 5/4 (5,3,8) 50, -.06, .12
FedGen   | 8/1 (6,4,2) 30, 0, 0  | 4/2 (3,6,6) 30, -.1, .12    | 9/4 (7,6,4) 30, .04, -.16
MOON     | 3/3 (9,3,2) 10, 0, 0  | 6/1 (7,4,6) 50, -.2, -.14   | 3/1 (9,3,4) 40, .16, .06
FPL      | 7/4 (4,6,10) 30, 0, 0 | 1/2 (7,1,4) 1, .04, -.06    | 9/2 (10,4,10) 50, -.08, -.14
FLwF     | 3/3 (8,5,9) 20, 0, 0  | 7/1 (3,3,6) 20, -.04, .1    | 9/2 (3,3,8) 20, .16, -.12
CFeD     | 7/2 (3,5,4) 40, 0, 0  | 7/1 (3,3,6) 20, -.04, .1    | 7/1 (3,3,6) 20, -.04, .1
"""
CIFAR10 = "FedProx | 9/2 (1,3,5) 50, 0, 0 | 8/2 (7,3,2) 40, 0, -.04 | 8/2 (6,4,7) 40, .04, -1.86"
DEFAULT = "8/4 (8,5,7) 10, .16, .2"
LAWS_OF_THE_PAGE = ("always", "bernoulli", "markov")


def told(cell):
    """Options of a cell of the page: steps of generator and distillation, (contrast, cross-entropy, diversity),
    temperature, exponents of active and idle devices."""
    numbers = [float(number) for number in cell.translate(str.maketrans("/(),", "    ")).split()]
    names = ("generator_steps", "distil_steps", "contrast", "ce", "diversity", "T", "age_active", "age_idle")
    return dict(zip(names, numbers, strict=True))


def rows_of_the_page(table, dataset):
    for line in table.strip().splitlines():
        name, *cells = line.split("|")
        for law, cell in zip(LAWS_OF_THE_PAGE, cells, strict=True):
            yield name.strip().lower(), dataset, law, cell


@pytest.mark.parametrize(
    ("name", "dataset", "law", "cell"),
    [
        *rows_of_the_page(OFFICE_CALTECH, "office-caltech"),
        *rows_of_the_page(CIFAR10, "cifar10"),
        ("fedprox", "digits", "markov", "5/3 (3,5,9) 40, .16, .2"),
        ("moon", "cifar10", "markov", "3/1 (9,3,4) 40, .16, .06"),
    ],
)
def test_settings_of_the_paper_by_algorithm_law_and_data(name, dataset, law, cell):
    """Section 6 of the page; data sets on which an algorithm was not tuned have those of Office-Caltech-10."""
    assert tuned(name, dataset, law) == told(cell)


def test_settings_that_the_paper_does_not_have_are_its_programs_default_which_are_ours():
    assert tuned("fedcl", "digits", "markov") == tuned("fedavg", "digits", "solar") == {}
    assert {name: KpflOptions.model_fields[name].default for name in told(DEFAULT)} == told(DEFAULT)
