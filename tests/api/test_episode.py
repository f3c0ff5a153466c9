"""Episodes: decisions from outside, in memory, beside runs in folders."""

from pathlib import Path

import numpy as np
import pytest

import edgesim
from edgesim.base.errors import EdgesimError
from edgesim.selection import make_selector

DEVICES = 12
WORLD = {
    "rounds": 6,
    "devices": {"count": DEVICES},
    "data": {"dataset": "none", "partition": "iid"},
    "learning": {"training": "none", "pretrain": False},
    "selection": {"policy": "best-channel"},
}
COUNT = {"payload_bits": 4e6, "tmax_s": 0.5, "admission": "count", "count": 4}
PROTOCOLS = {
    "by band": {"payload_bits": 4e6, "tmax_s": 0.5},
    "late": COUNT | {"late": "keep", "allocator": "equal_share"},
    "buffered": COUNT | {"protocol": "buffered", "protocol_options": {"buffer": 3}},
    "asynchronous": COUNT | {"protocol": "asynchronous"},
}


def best_channels(view):
    """Ids that the policy ``best-channel`` offers, in its order."""
    offers = make_selector("best-channel", {}, DEVICES, 0).choose(view)
    return [int(device) for offer in offers for device in np.atleast_1d(offer)]


def played(config, seed=None, choose=best_channels):
    """All outcomes of an episode whose decisions ``choose`` makes, and how many there were."""
    with edgesim.Episode(config) as episode:
        turn, outcomes, decisions = episode.reset(seed), [], 0
        while turn is not None:
            outcomes += turn.outcomes
            decisions += 1
            turn = episode.decide(choose(turn.view))
        return outcomes + episode.outcomes, decisions


@pytest.mark.parametrize("kind", PROTOCOLS)
def test_an_episode_that_takes_a_policys_offers_is_the_run_of_that_policy(kind, tmp_path):
    config = WORLD | {"round": PROTOCOLS[kind]}
    run = edgesim.run(config, tmp_path / "run", quiet=True)
    outcomes, decisions = played(config)
    assert decisions > 1
    progress = [outcome.progress for outcome in outcomes]
    assert [at.round for at in progress] == run.rounds["round"].tolist()
    columns = {"t_s": "t_end_s", "bits_up": "bits_up", "bits_down": "bits_down", "energy_j": "energy_j"}
    for name, column in columns.items():
        assert [getattr(at, name) for at in progress] == run.rounds[column].tolist()
    merged = [device for outcome in outcomes for device in outcome.report.feedback.ids.tolist()]
    assert sorted(merged) == sorted(run.updates["device"])
    selected = [outcome.report.selected.tolist() for outcome in outcomes]
    others, _ = played(config, choose=lambda view: view.ids[::-1])
    assert [outcome.report.selected.tolist() for outcome in others] != selected


def test_two_episodes_in_turns_and_an_episode_reset_are_as_one_alone():
    config = WORLD | {"round": PROTOCOLS["late"]}
    alone = [at.progress for at in played(config, seed=5)[0]]
    with edgesim.Episode(config) as first, edgesim.Episode(config) as second:
        first.reset(4)
        turns, seen = [first.reset(5), second.reset(5)], [[], []]
        while any(turn is not None for turn in turns):
            for place, episode in enumerate((first, second)):
                seen[place] += [at.progress for at in turns[place].outcomes]
                turns[place] = episode.decide(np.array(best_channels(turns[place].view)))
        for place, episode in enumerate((first, second)):
            assert seen[place] + [at.progress for at in episode.outcomes] == alone
    assert [at.progress for at in played(config, seed=6)[0]] != alone


def test_what_learning_brings_is_in_the_outcomes_and_lazy_parts_are_asked_for_in_on_report():
    config = WORLD | {
        "data": {"dataset": "digits", "partition": "iid", "samples_per_device": 20},
        "learning": {"model": "mlp", "pretrain": False},
        "round": PROTOCOLS["by band"],
        "rounds": 3,
    }
    sums = []

    def on_report(report):
        sums.append(float(report.gradients.class_gradient_distances(report.arrived, "all").distances.sum()))

    with edgesim.Episode(config, looks_at=["losses"], on_report=on_report) as episode:
        turn = episode.reset()
        assert np.all(turn.view.knowledge.losses(turn.view.ids) > 1)
        while (after := episode.decide(turn.view.ids)) is not None:
            turn = after
            (outcome,) = turn.outcomes
            assert 0 < outcome.progress.accuracy < 1
            with pytest.raises(EdgesimError, match=r"report\.gradients\.class_gradient_distances: the round is over"):
                outcome.report.gradients.class_gradient_distances(turn.view.ids, "all")
    assert len(sums) == 3
    assert min(sums) > 0


@pytest.mark.parametrize(
    ("offers", "said"),
    [
        ([99], r"^decide in round 1: offered device 99, which is not among the candidates \(12\)$"),
        ([3, 3], r"^decide in round 1: offered device 3 twice$"),
        ([True], r"^decide in round 1: offered True; expected integer device ids"),
        (np.array([0.5]), r"^decide in round 1: offered an array of float64"),
    ],
)
def test_bad_offers_are_one_line_and_the_decision_stays_open(offers, said):
    with edgesim.Episode(WORLD | {"round": COUNT}) as episode:
        turn = episode.reset()
        with pytest.raises(EdgesimError, match=said):
            episode.decide(offers)
        assert episode.decide(turn.view.ids) is not None


def test_no_decision_before_the_reset_and_after_the_end():
    with edgesim.Episode(WORLD | {"rounds": 1, "round": COUNT}) as episode:
        with pytest.raises(EdgesimError, match=r"^decide: there is no decision to make: it has not begun; reset"):
            episode.decide([0])
        turn = episode.reset()
        assert episode.decide(turn.view.ids) is None
        assert len(episode.outcomes) == 1
        with pytest.raises(EdgesimError, match=r"^decide: there is no decision to make: all rounds done; reset"):
            episode.decide([0])


def test_a_round_without_an_offer_passes():
    with edgesim.Episode(WORLD | {"round": COUNT}) as episode:
        episode.reset()
        (outcome,) = episode.decide([]).outcomes
        assert outcome.report.selected.tolist() == []
        assert outcome.progress.t_s == pytest.approx(0.5)


def test_a_policy_that_picks_among_arrivals_and_a_bad_look_are_refused():
    safa = WORLD | {"selection": {"policy": "safa"}, "round": COUNT, "algorithm": {"name": "safa"}}
    with pytest.raises(EdgesimError, match=r"selection\.policy 'safa': picks among arrivals"):
        edgesim.Episode(safa).reset()
    with pytest.raises(EdgesimError, match=r"needs learning\.training = 'real'"):
        edgesim.Episode(WORLD | {"round": COUNT}, looks_at=["losses"]).reset()


def test_the_pages_example_runs(capsys):
    page = (Path(__file__).parents[2] / "docs/python.md").read_text().partition("## Decisions from outside")[2]
    exec(page.partition("```python\n")[2].partition("```")[0], {})
    assert len(capsys.readouterr().out.splitlines()) == 20
