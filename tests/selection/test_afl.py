"""AFL's choice: the oracles T6 to T8 of its page, and what its scores are made of."""

from dataclasses import replace

import numpy as np
import pytest
from candidates import PlainKnowledge, offers, report_of, view_of
from whole_runs import play

from edgesim.selection import make_selector
from edgesim.selection.afl import share_of, to_unit, weighted

QUALITY = np.array([0.5, 0.2, 0, -0.1])
LINK_S = 1 / np.array([1.0, 2, 4, 2])
SPEED = np.array([0.9, 0.5, 1, 0.7])
THIRDS = (1 / 3, 1 / 3, 1 / 3)


def afl(devices=4, **options):
    return make_selector("afl", options, devices, 3)


def view(ids=(0, 1, 2, 3), **how):
    counts = np.full((max(ids) + 1, 3), 10)
    return view_of(PlainKnowledge(counts), list(ids), **how)


def with_speeds(made, speed):
    """A view in which devices work so many samples a second."""
    return replace(made, delay_s=made.work_samples / speed)


def of_the_page(**how):
    estimates = {"download": LINK_S / 4, "upload": 3 * LINK_S / 4}
    return with_speeds(view(estimates=estimates, **how), SPEED)


def test_the_two_best_of_the_page_are_offered_and_others_where_these_are_not_taken():
    """T6, with times of links and computing in the place of scores."""
    assert to_unit(QUALITY) == pytest.approx([1, 0.5, 1 / 6, 0], abs=1e-15)
    assert to_unit(1 / LINK_S) == pytest.approx([0, 1 / 3, 1, 1 / 3], abs=1e-15)
    policy = afl(explore=0.0, share=0.5)
    policy.state.loss_drop[:] = QUALITY
    seen = of_the_page()
    assert policy.scores(seen) == pytest.approx([0.633333, 0.444444, 0.722222, 0.344444], abs=1e-6)
    assert offers(policy.choose(seen), lambda device, taken: True) == ([2, 0], [2, 0])
    assert offers(policy.choose(seen), lambda device, taken: device != 2) == ([2, 0, 1], [0, 1])
    assert offers(policy.choose(seen), lambda device, taken: False) == ([2, 0, 1, 3], [])


def test_where_all_loss_drops_are_equal_links_and_speeds_decide():
    """T7; the terms are then .5 for all."""
    policy = afl()
    policy.state.loss_drop[:] = 0.7
    rest = weighted((QUALITY, 1 / LINK_S, SPEED), (0, 1 / 3, 1 / 3))
    assert policy.scores(of_the_page()) == pytest.approx(0.5 / 3 + rest, abs=1e-15)


def test_with_all_weight_on_quality_devices_go_by_their_loss_drops():
    """T7."""
    policy = afl(quality=1.0, communication=0.0, resources=0.0, explore=0.0, share=1.0)
    policy.state.loss_drop[:] = [0.1, -0.3, 0.8, 0.2]
    assert offers(policy.choose(of_the_page()), lambda device, taken: True)[0] == [2, 3, 0, 1]


@pytest.mark.parametrize("part", ["quality", "communication", "resources"])
def test_a_part_of_weight_zero_does_not_count(part):
    policy = afl(**{part: 0.0})
    policy.state.loss_drop[:] = QUALITY
    betas = [1 / 3 * (part != name) for name in ("quality", "communication", "resources")]
    expected = weighted((QUALITY, 1 / LINK_S, SPEED), betas)
    assert policy.scores(of_the_page()) == pytest.approx(expected, abs=1e-15)
    assert policy.looks_at == ({"loss_drops"} if part != "quality" else set())


def test_scores_are_of_the_candidates_that_are_there():
    """Of devices 1 and 3 alone: Q 1 and 0, C .5 each, R 5/7 and 1."""
    policy = afl()
    policy.state.loss_drop[:] = QUALITY
    estimates = {"upload": LINK_S[[1, 3]]}
    seen = with_speeds(view(ids=(1, 3), estimates=estimates), SPEED[[1, 3]])
    assert policy.scores(seen) == pytest.approx([(1 + 0.5 + 5 / 7) / 3, (0 + 0.5 + 1) / 3], abs=1e-15)


def test_links_and_jobs_without_time_are_the_best_and_links_that_never_end_the_worst():
    policy = afl(quality=0.0, communication=1.0, resources=1.0)
    seen = view(estimates={"upload": np.array([0.0, 1.0, np.inf, 0.0])})
    assert policy.scores(with_speeds(seen, np.array([np.inf, np.inf, 1.0, 2.0]))) == pytest.approx([2, 1, 0, 1])


def played(policy, rounds, ids=tuple(range(10)), seed=0):
    """Devices taken in each round; each of them improves by its number."""
    times, chosen = np.zeros(10, dtype=np.int64), []
    for round in range(1, rounds + 1):
        seen = view(ids=ids, round=round, times_selected=times, seed=seed)
        _, taken = offers(policy.choose(seen), lambda device, taken: True)
        times[taken] += 1
        policy.hear(report_of(round, selected=taken, loss_drop=np.array(taken) / 10))
        chosen.append(sorted(taken))
    return chosen


def test_without_exploration_the_first_devices_are_chosen_for_ever():
    """T8: no other device ever gets a Q."""
    chosen = played(afl(10, explore=0.0), 30)
    assert len(chosen[0]) == 3
    assert chosen == [chosen[0]] * 30


@pytest.mark.parametrize("seed", range(3))
def test_by_default_every_device_is_visited_before_any_is_a_second_time(seed):
    """T8: 10 devices, 3 at a time, 4 rounds; the two places left over in the fourth are of the best so far."""
    chosen = played(afl(10), 4, seed=seed)
    assert sorted(device for round in chosen[:3] for device in round) == sorted(set().union(*chosen[:3]))
    assert set().union(*chosen) == set(range(10))
    assert [len(round) for round in chosen] == [3] * 4


def test_a_tenth_of_the_places_is_drawn_at_random_and_the_others_are_of_the_best():
    """Ten devices that improve by their numbers, three places: .3 of a place a round, over 400 rounds."""
    chosen = played(afl(10), 404)[4:]
    explored = [len(set(round) - {7, 8, 9}) for round in chosen]
    assert all(set(round) >= {8, 9} for round in chosen)
    # A place that is drawn goes to one of the eight devices that are not chosen, seven of which are not among the best.
    assert np.mean(explored) == pytest.approx(0.3 * 7 / 8, abs=0.07)
    assert set().union(*chosen) == set(range(10))


def test_devices_without_a_loss_drop_come_after_those_with_one():
    """Such as those whose updates never arrived; in an order by lot."""
    policy = afl(10, explore=0.0, share=1.0)
    policy.state.loss_drop[[4, 6]] = [0.2, 0.9]
    orders = [offers(policy.choose(view(ids=range(10), round=round)), lambda *_: True)[0] for round in range(1, 9)]
    assert {tuple(order[:2]) for order in orders} == {(6, 4)}
    assert len({tuple(order) for order in orders}) == 8


@pytest.mark.parametrize(("count", "places"), [(1, 1), (2, 1), (10, 3), (20, 7), (50, 17), (180, 63)])
def test_a_fixed_number_is_rounded_down(count, places):
    assert share_of(0.35, count) == places


@pytest.mark.parametrize(
    ("drops", "wanted"),
    [([0.0] * 10, 5), ([1.0] + [0.0] * 9, 1), ([1.0, 1.0, 1.0] + [0.0] * 7, 3), ([1.0] * 9 + [0.0], 5)],
)
def test_an_adaptive_number_is_of_those_that_score_no_less_than_the_mean(drops, wanted):
    """Of ten devices, between one and five."""
    policy = afl(10, participants="adaptive", explore=0.0, communication=0.0, resources=0.0, quality=1.0)
    policy.state.loss_drop[:] = drops
    taken = offers(policy.choose(view(ids=range(10))), lambda *_: True)[1]
    assert len(taken) == wanted
    assert sum(drops[device] for device in taken) == min(wanted, sum(drops))


BASE = {
    "rounds": 3,
    "devices": {"count": 6, "mu_samples_per_s": 1e4},
    "round": {"payload_bits": 1e5, "tmax_s": 5.0},
    "data": {"partition": "quantity"},
    "learning": {"pretrain": False, "model": f"{__name__}.with_dropout", "precision": "float64", "epochs": 1},
    "selection": {"policy": "afl"},
}


def with_dropout(image_shape, class_count):
    from torch import nn

    size = int(np.prod(image_shape))
    return nn.Sequential(nn.Flatten(), nn.Linear(size, 8), nn.Dropout(0.4), nn.Linear(8, class_count))


@pytest.mark.parametrize("back_end", ["loop", "stacked"])
def test_loss_drops_are_those_of_whole_data_sets_in_evaluation_mode(tmp_path, monkeypatch, back_end):
    """Worked out again from the models themselves, by torch alone; updates are of the models as they were trained."""
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy

    from edgesim.learning.learner import TorchLearner

    merge, found = TorchLearner.merge, []

    def loss(learner, weights, samples):
        module = with_dropout(learner.dataset.image_shape, 10).double().eval()
        nn.utils.vector_to_parameters(weights, module.parameters())
        images, labels = learner.data.train(torch.from_numpy(samples))
        with torch.no_grad():
            return float(cross_entropy(module(images.double()), labels))

    def spied(learner, arrived, *rest):
        results = learner.results([one.promise for one in arrived])
        clients = learner.federation.frames[1].clients
        expected = []
        for one, result in zip(arrived, results, strict=True):
            start, own = one.promise.job.start, clients[one.promise.device]
            expected.append(loss(learner, start, own) - loss(learner, start + result.update, own))
        merged = merge(learner, arrived, *rest)
        found.append((merged.loss_drop, expected))
        return merged

    monkeypatch.setattr(TorchLearner, "merge", spied)
    play(tmp_path / "run", BASE, learning={"back_end": back_end})
    assert len(found) == 3
    for told, expected in found:
        assert len(told) == 2
        assert told == pytest.approx(expected, abs=1e-12)
        assert np.all(np.abs(told) > 1e-4)


def test_both_passes_lengthen_the_computing_and_other_policies_pay_nothing(tmp_path):
    """One epoch is three units on every sample, the passes two more: 5/3 of the mean time, which a device draws."""

    def seconds(name, **selection):
        activities = play(tmp_path / name, BASE, selection=selection).activities
        computed = activities[(activities["activity"] == "compute") & (activities["round"] == 1)]
        return (computed["t_end_s"] - computed["t_start_s"]).groupby(computed["device"]).sum()

    scored, without, other = seconds("afl"), seconds("no-q", quality=0.0), seconds("random", policy="random")
    assert (scored / other).to_numpy() == pytest.approx(np.full(6, 5 / 3), rel=0.02)
    assert without.tolist() == other.tolist()


def test_a_timing_only_run_goes_by_links_and_speeds_alone(tmp_path):
    none = {"training": "none", "model": "mlp", "precision": "float32"}
    assert len(play(tmp_path / "run", BASE, learning=none, selection={"quality": 0.0}).rounds) == 3
