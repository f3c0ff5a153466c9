"""Episodes: decisions from outside, in memory, beside runs in folders."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import edgesim
from edgesim.analysis.runs import runs_of
from edgesim.base.errors import EdgesimError
from edgesim.commands.cli import app
from edgesim.folder.run_schema import SCHEMAS
from edgesim.selection import SELECTORS, make_selector

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
    "late": COUNT | {"late": "keep", "over_commitment": 1.5, "allocator": "equal_share"},
    "on reports": COUNT | {"delay_knowledge": "reported", "report_by_s": 0.3},
    "buffered": COUNT | {"protocol": "buffered", "protocol_options": {"buffer": 3}},
    "asynchronous": COUNT | {"protocol": "asynchronous"},
}


def best_channels(view):
    """Ids that the policy ``best-channel`` offers, in its order."""
    offers = make_selector("best-channel", {}, DEVICES, 0).choose(view)
    return [int(device) for offer in offers for device in np.atleast_1d(offer)]


TRAINED = WORLD | {
    "rounds": 4,
    "data": {"dataset": "digits", "partition": "iid", "samples_per_device": 20},
    "learning": {"model": "mlp", "pretrain": False, "steps": 2},
    "evaluation": {"every": 2},
}


def played(config, seed=None, shares_hz=None):
    """All outcomes of an episode that takes what the best channels offer."""
    with edgesim.episode(config) as episode:
        turn, outcomes = episode.reset(seed), []
        while turn is not None:
            outcomes += turn.outcomes
            turn = episode.decide(best_channels(turn.view), shares_hz)
        return outcomes + episode.outcomes


def contents(folder):
    """Bytes of a run's tables and model by file, but for the wall times."""
    files = [*folder.glob("*.parquet"), folder / "model.safetensors"]
    return {file.name: file.read_bytes() for file in files if file.name != "timing.parquet"}


def offers_of(episode, policy, view):
    """Ids that a policy offers in the open decision, in its order; it hears which of them admission takes."""
    offered = []

    def heard():
        choice, answer = policy.choose(view), None
        while True:
            try:
                offer = choice.send(answer)
            except StopIteration:
                return
            offered.extend(np.atleast_1d(offer).tolist())
            answer = yield offer

    episode._open.admit(heard())
    return offered


WITHOUT_ROUNDS = ("random", "fedteddi", "power-of-choice", "oort")


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("policy", "kind"),
    [(policy, "by band") for policy in SELECTORS if policy != "safa"]
    + [("best-channel", kind) for kind in PROTOCOLS if kind != "by band"]
    + [(policy, kind) for policy in WITHOUT_ROUNDS for kind in ("buffered", "asynchronous")],
)
def test_an_episode_that_takes_a_policys_offers_is_the_run_of_that_policy(policy, kind, tmp_path):
    """Its bytes and its outcomes. SAFA drafts after arrivals, and is refused."""
    config = TRAINED | {"selection": {"policy": policy}, "round": PROTOCOLS[kind]}
    run = edgesim.run(config, tmp_path / "run", quiet=True)
    selector, out = make_selector(policy, {}, DEVICES, 10), tmp_path / "episode"
    with edgesim.episode(config, looks_at=selector.looks_at, on_report=selector.hear, out=out) as episode:
        turn, outcomes = episode.reset(), []
        while turn is not None:
            outcomes += turn.outcomes
            turn = episode.decide(offers_of(episode, selector, turn.view))
        outcomes += episode.outcomes
    assert len(contents(out)) == len(SCHEMAS)
    assert contents(out) == contents(tmp_path / "run")
    progress = [outcome.progress for outcome in outcomes]
    assert [at.round for at in progress] == run.rounds["round"].tolist()
    columns = {"t_s": "t_end_s", "bits_up": "bits_up", "bits_down": "bits_down", "energy_j": "energy_j"}
    for name, column in columns.items():
        assert [getattr(at, name) for at in progress] == run.rounds[column].tolist()
    merged = [device for outcome in outcomes for device in outcome.report.feedback.ids.tolist()]
    assert sorted(merged) == sorted(run.updates["device"])


def test_two_episodes_in_turns_and_an_episode_reset_are_as_one_alone():
    config = WORLD | {"round": PROTOCOLS["late"]}
    alone = [at.progress for at in played(config, seed=5)]
    with edgesim.episode(config) as first, edgesim.episode(config) as second:
        first.reset(4)
        turns, seen = [first.reset(5), second.reset(5)], [[], []]
        while any(turn is not None for turn in turns):
            for place, episode in enumerate((first, second)):
                seen[place] += [at.progress for at in turns[place].outcomes]
                turns[place] = episode.decide(np.array(best_channels(turns[place].view)))
        for place, episode in enumerate((first, second)):
            assert seen[place] + [at.progress for at in episode.outcomes] == alone
    assert [at.progress for at in played(config, seed=6)] != alone


def test_what_learning_brings_is_in_the_outcomes_and_lazy_parts_are_asked_for_in_on_report():
    config, sums = TRAINED | {"round": PROTOCOLS["by band"], "rounds": 3, "evaluation": {}}, []

    def on_report(report):
        sums.append(float(report.gradients.class_gradient_distances(report.arrived, "all").distances.sum()))

    with edgesim.episode(config, looks_at=["losses"], on_report=on_report) as episode:
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


def looking(config, start=None):
    """An episode whose past and future ask for norms, which run jobs, and for class gradients."""
    sums = []

    def on_report(report):
        sums.append(float(report.gradients.class_gradient_distances(report.selected, "all").distances.sum()))

    looks_at = ["update_norms", "class_gradients"]
    return edgesim.episode(config, looks_at=looks_at, on_report=on_report, start=start), sums


def decided(episode, turn, seen, order, count=99):
    """The turn behind up to ``count`` decisions for the devices with the largest norms, or with the smallest."""
    while turn is not None and count > 0:
        norms = turn.view.knowledge.update_norms(turn.view.ids)
        turn, count = episode.decide(turn.view.ids[np.argsort(order * norms, kind="stable")]), count - 1
        for outcome in episode.outcomes:
            report = outcome.report
            jobs = episode._simulation.learner.jobs_trained
            seen.append((outcome.progress, outcome.lasted_s, report.selected.tolist(), report.arrived.tolist(), jobs))
    return turn


@pytest.mark.parametrize(("kind", "later"), [*zip(PROTOCOLS, (0, 2, 2, 0, 2), strict=True)])
def test_two_futures_of_a_snapshot_are_those_of_two_whole_runs(kind, later):
    first = 2
    config = TRAINED | {"rounds": 14 if kind == "asynchronous" else 7, "round": PROTOCOLS[kind]}
    whole, sums = {}, {}
    for order in (1, -1):
        episode, sums[order] = looking(config)
        with episode:
            whole[order] = []
            turn = decided(episode, episode.reset(7), whole[order], 1, first + later)
            assert decided(episode, turn, whole[order], order) is None
    assert whole[1] != whole[-1]
    episode, _ = looking(config)
    with episode:
        past = []
        turn = decided(episode, episode.reset(7), past, 1, first)
        snapshot = episode.snapshot()
        assert snapshot.record is None
        turn = decided(episode, turn, past, 1, later)
        snapshot = episode.snapshot()
        assert (snapshot.record is not None) == (later > 0)
        assert decided(episode, turn, past, 1) is None
        assert past == whole[1]
    before = sum(outcome in past for outcome in snapshot.outcomes)
    for order in (-1, 1):
        episode, heard = looking(config, snapshot)
        with episode:
            turn, future = episode.reset(), []
            assert turn.outcomes == snapshot.outcomes
            again = episode.snapshot()
            assert decided(episode, turn, future, order) is None
            assert before + len(future) < len(whole[order])
            assert future == whole[order][-len(future) :]
            assert heard == sums[order][-len(future) :]
    episode, _ = looking(config, again)
    with episode:
        future = []
        assert decided(episode, episode.reset(7), future, -1) is None
        assert future == whole[-1][-len(future) :]


def test_a_snapshot_of_another_config_or_seed_and_one_without_a_decision_are_one_line():
    config = WORLD | {"round": COUNT}
    with edgesim.episode(config) as episode:
        with pytest.raises(EdgesimError, match=r"^snapshot: there is no decision to make: it has not begun; reset"):
            episode.snapshot()
        episode.reset(3)
        snapshot = episode.snapshot()
    with pytest.raises(EdgesimError, match=r"^start: is a snapshot of another config \(round\.count differs\)"):
        edgesim.episode(config, {"round.count": 3}, start=snapshot)
    with pytest.raises(EdgesimError, match=r"^reset: seed 4: the snapshot is of a run with seed 3$"):
        edgesim.episode(config, start=snapshot).reset(4)
    with pytest.raises(EdgesimError, match=r"^start: expected the snapshot of an episode \(got 3\)$"):
        edgesim.episode(config, start=3)
    with pytest.raises(EdgesimError, match=r"^out: an episode that begins with a snapshot lacks the rows of its past"):
        edgesim.episode(config, start=snapshot, out="unused")


def test_lazy_parts_of_a_view_are_known_until_the_decision():
    with edgesim.episode(TRAINED | {"round": COUNT}, looks_at=["losses"]) as episode:
        turn = episode.reset()
        view, losses = turn.view, turn.view.knowledge.losses
        gain = np.asarray(view.gain)
        episode.decide(view.ids)
        assert view.gain[3] == gain[3]
        with pytest.raises(EdgesimError, match=r"^view\.need_hz: the decision is made; ask for it before decide$"):
            view.need_hz[[3]]
        with pytest.raises(EdgesimError, match=r"^view\.estimates\.places: the decision is made"):
            view.estimates.places()
        with pytest.raises(EdgesimError, match=r"^view\.knowledge\.losses: the decision is made"):
            losses(view.ids)
    # Nor once the episode is closed.
    with edgesim.episode(WORLD | {"round": COUNT}) as episode:
        turn = episode.reset()
    with pytest.raises(EdgesimError, match=r"^view\.gain: the decision is made; ask for it before decide$"):
        np.asarray(turn.view.gain)


def test_what_a_report_has_of_the_round_is_what_its_row_has(tmp_path):
    config = TRAINED | {"round": PROTOCOLS["late"], "rounds": 5, "evaluation": {"every": 2}}
    heard = []

    def on_report(report):
        heard.append((report.t_s, report.accuracy, report.spent.bits_up, report.spent.bits_down, report.spent.energy_j))

    with edgesim.episode(config, on_report=on_report, out=tmp_path / "run") as episode:
        turn = episode.reset()
        while turn is not None:
            turn = episode.decide(turn.view.ids)
        (last,) = episode.outcomes
    with pytest.raises(EdgesimError, match=r"^report\.spent: the round is over; ask for it in on_report$"):
        last.report.__class__.spent.func(last.report)
    run = edgesim.open(tmp_path / "run")
    columns = (run.rounds[name].tolist() for name in ("t_end_s", "bits_up", "bits_down", "energy_j"))
    tested = run.rounds["test_accuracy"].tolist()
    start = run.metrics.query("name == 'test_accuracy'")["value"].item()
    before = [start, start, tested[1], tested[1], tested[3]]
    t_s, bits_up, bits_down, energy_j = columns
    assert heard == list(zip(t_s, before, bits_up, bits_down, energy_j, strict=True))


def test_an_episode_is_shown_and_compared_as_decided_from_outside(tmp_path):
    for seed in range(2):
        for policy in ("best-channel", "fedteddi"):
            config = TRAINED | {"selection": {"policy": policy}, "round": COUNT, "seed": seed}
            edgesim.run(config, tmp_path / f"{policy}-{seed}", quiet=True)
        # Of the last config, whose options of its policy are none of the episode's.
        with edgesim.episode(config, out=tmp_path / f"episode-{seed}") as episode:
            turn = episode.reset()
            while turn is not None:
                turn = episode.decide(turn.view.ids)
    shown = CliRunner().invoke(app, ["show", str(tmp_path / "episode-1")]).output
    assert re.search(r"policy, seed +│ outside, 1\b", shown), shown
    folders = [str(tmp_path / f"{name}-{seed}") for name in ("best-channel", "episode") for seed in range(2)]
    compared = CliRunner().invoke(app, ["compare", *folders, "--metric", "arrived", "--by", "policy"]).output
    assert re.search(r"\boutside\b.* best-channel|best-channel.* outside\b", compared), compared
    both = [tmp_path / "fedteddi-0", tmp_path / "episode-0"]
    assert [run.knobs["policy"] for run in runs_of(both)] == ["fedteddi", "outside"]
    assert {*runs_of(both)[1].knobs} == {"policy", "tmax_s"}


def test_an_episodes_folder_is_kept_apart_from_runs(tmp_path):
    config, folder = WORLD | {"round": COUNT}, tmp_path / "episode"
    with edgesim.episode(config, out=folder) as episode:
        episode.reset()
        turn = episode.reset(seed=2)
        for _ in range(2):
            turn = episode.decide(turn.view.ids)
    run = edgesim.open(folder)
    assert (run.status, len(run.rounds), run.config["seed"]) == ("stopped", 2, 2)
    with pytest.raises(EdgesimError, match=r"holds an episode, whose decisions came from outside; choose another"):
        edgesim.run(config, folder, {"seed": 2}, quiet=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/file").touch()
    with pytest.raises(EdgesimError, match=r"other: not empty and not an episode's folder; choose another folder"):
        edgesim.episode(config, out=tmp_path / "other")


def test_an_episode_that_fails_says_why_in_its_folder(tmp_path):
    diverging = TRAINED | {
        "round": COUNT,
        "learning": TRAINED["learning"] | {"lr": 1e6, "weight_decay": 1e6, "steps": 12},
    }
    episode = edgesim.episode(diverging, out=tmp_path / "run")
    turn = episode.reset()
    with pytest.raises(EdgesimError, match=r"learning\.lr") as failure:
        episode.decide(turn.view.ids)
    facts = json.loads((tmp_path / "run/run.json").read_text())
    assert (facts["status"], facts["reason"]) == ("failed", str(failure.value))
    assert episode.reason == f"the run failed: {failure.value}"
    episode.close()
    assert edgesim.open(tmp_path / "run").status == "failed"
    # Whatever on_report raises ends the run as well.
    episode = edgesim.episode(WORLD | {"round": COUNT}, out=tmp_path / "other", on_report=lambda _: 1 / 0)
    episode.reset()
    with pytest.raises(ZeroDivisionError):
        episode.decide([0])
    with pytest.raises(EdgesimError, match=r"no decision to make: the run failed: ZeroDivisionError: division by zero"):
        episode.decide([0])
    assert edgesim.open(tmp_path / "other").status == "failed"
    assert episode.reset() is not None
    episode.close()


@pytest.mark.parametrize("method", ["decide", "reset", "close", "snapshot"])
def test_an_episode_refuses_to_be_changed_while_it_is_reported_on(method):
    def on_report(_):
        with pytest.raises(EdgesimError, match=f"^{method}: the run goes on while on_report is called; do so when"):
            getattr(episode, method)(*[[0]][: method == "decide"])
        heard.append(method)

    heard, episode = [], edgesim.episode(WORLD | {"round": COUNT}, on_report=on_report)
    with episode:
        episode.reset()
        assert episode.decide([0]) is not None
    assert heard == [method]


def test_shares_of_a_decision_are_what_the_devices_upload_on(tmp_path):
    config = WORLD | {"round": COUNT | {"count": 3, "tmax_s": 5.0, "payload_bits": 1e6}}
    with edgesim.episode(config, out=tmp_path / "run") as episode:
        turn = episode.reset()
        assert turn.free_hz.tolist() == [20e6]
        assert turn.station.tolist() == [0] * DEVICES
        # Admission takes three, so that the share of the fourth goes unused.
        turn = episode.decide([7, 2, 5, 1], [8e6, 4e6, 2e6, 20e6])
        episode.decide(np.array([4, 6]), np.array([0.0, 20e6]))
        (outcome,) = episode.outcomes
        assert outcome.report.arrived.tolist() == [6]
    uploads = edgesim.open(tmp_path / "run").activities.query("activity == 'upload'")
    by_device = dict(zip(uploads["device"], uploads["bandwidth_hz"], strict=True))
    assert by_device == pytest.approx({7: 8e6, 2: 4e6, 5: 2e6, 4: 0.0, 6: 20e6})
    # The same shares as those of an allocator of the config.
    equal = played(config | {"round": config["round"] | {"allocator": "equal_share"}})
    outcomes = played(config, shares_hz=np.full(DEVICES, 20e6 / 3))
    assert [outcome.progress for outcome in outcomes] == [outcome.progress for outcome in equal]


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ([1e6, -1.0], r"shares_hz: expected a finite number of Hz, 0 or more, for each device \(got -1\)$"),
        ([1e6, math.nan], r"shares_hz: expected a finite number of Hz, 0 or more, for each device \(got nan\)$"),
        ([math.inf, 0.0], r"shares_hz: expected a finite number of Hz, 0 or more, for each device \(got inf\)$"),
        ([15e6, 5e6 + 1], r"shares_hz: 20000001 Hz for the 2 devices taken, expected at most 20000000 Hz"),
        ([1e6], r"shares_hz: expected one number for each of 2 offers \(got shape \(1,\)\)$"),
        (["much", 1.0], r"shares_hz: expected numbers \(got \"\['much', 1\.0\]\"\)$"),
        (["5e6", "1e6"], r"shares_hz: expected numbers \(got "),
        ([True, False], r"shares_hz: expected numbers \(got '\[True, False\]'\)$"),
        ([None, 1e6], r"shares_hz: expected numbers \(got '\[None, 1000000\.0\]'\)$"),
        ([[1e6], [1e6, 2e6]], r"shares_hz: expected numbers \(got "),
        (5e6, r"shares_hz: expected one number for each of 2 offers \(got shape \(\)\)$"),
    ],
)
def test_bad_shares_are_one_line_and_the_decision_stays_open(shares, said):
    with edgesim.episode(WORLD | {"round": COUNT}) as episode:
        episode.reset()
        with pytest.raises(EdgesimError, match=rf"^decide in round 1: {said}"):
            episode.decide([0, 1], shares)
        assert episode.decide([0, 1], [15e6, 5e6]) is not None


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"round": PROTOCOLS["buffered"]}, r"round\.protocol = 'buffered' has no rounds to share bands in$"),
        ({"radio": {"sharing": "reshared"}}, r"with radio\.sharing = 'reshared' a band is shared anew"),
        ({"radio": {"sharing": "own"}}, r"with radio\.sharing = 'own' each device has a link of its own$"),
    ],
)
def test_shares_are_refused_where_no_allocator_shares_bands(other, said, tmp_path):
    links = tmp_path / "links.csv"
    links.write_text("device,t_s,bps\n" + "".join(f"{device},0,1e7\n" for device in range(DEVICES)))
    if other.get("radio") == {"sharing": "own"}:
        other = {**other, "devices": {"count": DEVICES, "links": {"file": str(links), "after_end": "hold"}}}
    with edgesim.episode({**WORLD, "round": COUNT, **other}) as episode:
        episode.reset()
        with pytest.raises(EdgesimError, match=rf"^decide in round 1: shares_hz: {said}"):
            episode.decide([0], [1e6])


@pytest.mark.parametrize(
    ("offers", "said"),
    [
        ([99], r"^decide in round 1: offered device 99, which is not among the candidates \(12\)$"),
        ([3, 3], r"^decide in round 1: offered device 3 twice$"),
        ([True], r"^decide in round 1: offered True; expected integer device ids"),
        ([0, 1, 2, 3, 99], r"^decide in round 1: offered device 99, which is not among the candidates \(12\)$"),
        (np.array([0, 1, 2, 3, 3]), r"^decide in round 1: offered device 3 twice$"),
        ([0, 1, 2, 3, 3], r"^decide in round 1: offered device 3 twice$"),
        ([2**70], r"^decide in round 1: offered device 1180591620717411303424, which is not among"),
        ([np.array([0, 1])], r"^decide in round 1: offered an array of int64 and shape \(2,\); expected"),
        (np.array(3), r"^decide in round 1: offered an array of int64 and shape \(\); expected integer device ids"),
        (3, r"^decide in round 1: offers: expected device ids in the order in which they are offered \(got '3'\)$"),
        (None, r"^decide in round 1: offers: expected device ids in the order in which they are offered"),
        ("12", r"^decide in round 1: offers: expected device ids in the order in which they are offered"),
        (np.array([0.5]), r"^decide in round 1: offered an array of float64"),
    ],
)
def test_bad_offers_are_one_line_and_the_decision_stays_open(offers, said):
    with edgesim.episode(WORLD | {"round": COUNT}) as episode:
        turn = episode.reset()
        for shares_hz in (None, [1e6]):
            with pytest.raises(EdgesimError, match=said):
                episode.decide(offers, shares_hz)
        assert episode.decide(turn.view.ids) is not None


@pytest.mark.parametrize("kind", ["buffered", "asynchronous"])
def test_without_rounds_somebody_has_to_be_taken_while_nobody_works(kind):
    with edgesim.episode(WORLD | {"round": PROTOCOLS[kind]}) as episode:
        turn = episode.reset()
        assert turn.must_take
        with pytest.raises(
            EdgesimError, match=r"^decide in round 1: takes none of the 12 devices that are there while no device is at"
        ):
            episode.decide([])
        later = episode.decide(turn.view.ids[:2])
        assert later is not None
        assert not later.must_take
        assert episode.decide([]) is not None


def test_no_decision_before_the_reset_and_after_the_end():
    with edgesim.episode(WORLD | {"rounds": 1, "round": COUNT}) as episode:
        with pytest.raises(EdgesimError, match=r"^decide: there is no decision to make: it has not begun; reset"):
            episode.decide([0])
        turn = episode.reset()
        assert episode.decide(turn.view.ids) is None
        assert len(episode.outcomes) == 1
        with pytest.raises(EdgesimError, match=r"^decide: there is no decision to make: all rounds done; reset"):
            episode.decide([0])


def test_a_round_without_an_offer_passes():
    with edgesim.episode(WORLD | {"round": COUNT}) as episode:
        episode.reset()
        (outcome,) = episode.decide([]).outcomes
        assert outcome.report.selected.tolist() == []
        assert outcome.progress.t_s == pytest.approx(0.5)


def test_a_policy_that_picks_among_arrivals_and_a_bad_look_are_refused():
    safa = WORLD | {"selection": {"policy": "safa"}, "round": COUNT, "algorithm": {"name": "safa"}}
    with pytest.raises(EdgesimError, match=r"selection\.policy 'safa': picks among arrivals"):
        edgesim.episode(safa).reset()
    for looks_at, said in (
        (["losses"], r"^needs learning\.training = 'real', not 'none': looks_at has losses$"),
        (["loss"], r"^looks_at: unknown looks_at 'loss', did you mean 'losses'\? known: class_counts, losses"),
        ("losses", r"^looks_at: expected several names, such as a list \(got 'losses'\)$"),
        (None, r"^looks_at: expected several names, such as a list \(got None\)$"),
        ([3], r"^looks_at: expected a name \(got 3\)$"),
    ):
        with pytest.raises(EdgesimError, match=said):
            edgesim.episode(WORLD | {"round": COUNT}, looks_at=looks_at)


def test_the_pages_examples_of_episodes_run(capsys, tmp_path, monkeypatch):
    page, names = (Path(__file__).parents[2] / "docs/agents.md").read_text(), {}
    monkeypatch.chdir(tmp_path)
    for heading in ("An episode", "Two futures of one past", "A saved agent as a policy"):
        exec(page.partition(f"## {heading}\n")[2].partition("```python\n")[2].partition("```")[0], names)
    assert len(capsys.readouterr().out.splitlines()) >= 20 + 2 + 1
