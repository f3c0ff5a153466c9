"""The environment of Gymnasium: its contract, random steps, the same bytes for a seed, its actions and rewards."""

import importlib
import sys
import warnings

import gymnasium
import numpy as np
import pytest
import small_runs
from gymnasium.utils.env_checker import check_env
from refusals import in_one_line

import edgesim
import edgesim.rl
from edgesim.base.errors import EdgesimError
from edgesim.rl import SchedulerEnv

DEVICES = 10
TIMING = small_runs.TIMING | {
    "rounds": 8,
    "devices": {"count": DEVICES},
    "round": {"payload_bits": 4e6, "tmax_s": 0.5, "admission": "count", "count": 4},
}
TRAINED = TIMING | {
    "rounds": 5,
    "data": {"dataset": "digits", "partition": "iid", "samples_per_device": 20},
    "learning": {"model": "mlp", "pretrain": False, "steps": 2, "lr": 0.1},
}
OTHERS = {
    "presence": {"devices": {"count": DEVICES}, "availability": {"model": "markov"}},
    "frames": {"rounds": [3, 3]},
    "late": {"round": TIMING["round"] | {"late": "keep", "allocator": "equal_share", "payload_bits": 1e7}},
    "buffered": {"round": TIMING["round"] | {"protocol": "buffered", "protocol_options": {"buffer": 3}}},
    "asynchronous": {"round": TIMING["round"] | {"protocol": "asynchronous"}},
    "cells": {"topology": {"file": "three-cells"}},
}


@pytest.mark.parametrize("action", ["rank", "subset", "shares"])
def test_gymnasium_finds_nothing_to_say_about_it(action):
    env = gymnasium.make("edgesim/Scheduler-v0", config=TIMING, action=action)
    with warnings.catch_warnings(), env:
        warnings.simplefilter("error")
        check_env(env.unwrapped)


def random_steps(env, count):
    """Observations, rewards and ends of so many random steps, each checked against the spaces."""
    env.action_space.seed(3)
    (seen, _), steps = env.reset(seed=5), []
    for _ in range(count):
        assert env.observation_space.contains(seen)
        seen, reward, ended, cut, about = env.step(env.action_space.sample())
        assert np.isfinite(reward)
        steps.append((*(part.tobytes() for part in seen.values()), reward, ended, cut, str(about)))
        if ended:
            assert env.observation_space.contains(seen)
            assert seen["time"].tolist() == [1.0]
            assert not seen["candidates"].any()
            seen, _ = env.reset()
    return steps


@pytest.mark.parametrize(
    ("kind", "action"),
    [(kind, "rank") for kind in OTHERS] + [("late", "subset"), ("buffered", "subset"), ("late", "shares")],
)
def test_random_steps_stay_within_the_spaces_and_repeat_for_a_seed(kind, action):
    with gymnasium.make("edgesim/Scheduler-v0", config=TIMING, set=None, action=action) as plain:
        config = {**TIMING, **OTHERS[kind]}
        first, second = (SchedulerEnv(config, action=action) for _ in range(2))
        steps = random_steps(first, 30)
        assert steps == random_steps(second, 30)
        assert steps != random_steps(plain, 30)


def rewards_of(env, policy, seed):
    """Rewards, information and observations of an episode whose actions ``policy`` makes of observations."""
    (seen, _), steps = env.reset(seed=seed), []
    while True:
        after, reward, ended, _, about = env.step(policy(seen))
        steps.append((seen, reward, about))
        if ended:
            return steps
        seen = after


def test_an_episode_that_ranks_by_gain_is_the_run_of_best_channel(tmp_path):
    env = SchedulerEnv(TIMING, features=["gain", "age"])
    steps = rewards_of(env, lambda seen: seen["devices"][:, 0], 4)
    run = edgesim.run(TIMING, tmp_path / "run", {"selection.policy": "best-channel", "seed": 4}, quiet=True)
    assert [reward for _, reward, _ in steps] == run.rounds["arrived"].tolist()
    assert [about["t_s"] for _, _, about in steps] == run.rounds["t_end_s"].tolist()
    assert [about["energy_j"] for _, _, about in steps] == run.rounds["energy_j"].tolist()
    assert [float(seen["time"][0]) for seen, _, _ in steps] == pytest.approx(np.arange(8) / 8)
    # Ages by hand, from who was scheduled.
    uploads = run.activities.query("activity == 'upload'")
    for number, (seen, _, _) in enumerate(steps, start=1):
        before = uploads[uploads["round"] < number].groupby("device")["round"].max()
        ages = number - before.reindex(range(DEVICES), fill_value=0)
        assert seen["devices"][:, 1] == pytest.approx(ages / (ages + 10))
    # Time begins anew with each frame.
    steps = rewards_of(SchedulerEnv(TIMING, {"rounds": [3, 2]}), lambda seen: seen["devices"][:, 0], 4)
    assert [float(seen["time"][0]) for seen, _, _ in steps] == pytest.approx([0, 1 / 3, 2 / 3, 0, 1 / 2])


def test_what_features_say_of_the_devices():
    env = SchedulerEnv(TRAINED, {"round.payload_bits": 1e6}, features=["gain", "delay", "need", "samples", "loss"])
    seen, _ = env.reset(seed=2)
    with edgesim.episode(TRAINED, {"round.payload_bits": 1e6}, looks_at=["losses"]) as episode:
        view = episode.reset(2).view
        gain_db, need_hz = 10 * np.log10(view.gain), np.asarray(view.need_hz)
        losses = view.knowledge.losses(view.ids)
        columns = [(gain_db + 160) / 120, np.asarray(view.delay_s) / 0.5, np.log10(need_hz / 1e4) / 4]
        columns += [view.samples / 20, losses / (losses + 1)]
        assert seen["devices"] == pytest.approx(np.clip(np.array(columns).T, 0, 1), abs=1e-6)
        assert (np.array(columns) < 1).any(axis=1).tolist() == [True, True, True, False, True]


def test_a_subset_offers_the_candidates_marked_and_shares_split_the_band(tmp_path):
    reports = []

    def reward(outcomes):
        reports.extend(outcome.report for outcome in outcomes)
        return 0.5

    env = SchedulerEnv(TIMING, action="subset", reward=reward)
    env.reset(seed=1)
    marks = np.zeros(DEVICES, dtype=np.int8)
    marks[[2, 5, 7]] = 1
    _, given, _, _, _ = env.step(marks)
    assert (given, reports[0].selected.tolist()) == (0.5, [2, 5, 7])
    asked = []
    env = SchedulerEnv(TIMING, action="shares", reward=reward)
    decide = env._episode.decide
    env._episode.decide = lambda *how: asked.append(how) or decide(*how)
    env.reset(seed=1)
    for factor in (0.1, 1.0):
        env.step(factor * np.array([0, 1, 0, 4, 0, 5, 0, 0, 0, 0], dtype=np.float32) / 5)
    for (offers, shares_hz), factor in zip(asked, (0.1, 0.5), strict=True):
        assert offers.tolist() == [5, 3, 1]
        assert shares_hz == pytest.approx(20e6 * factor * np.array([1.0, 0.8, 0.2]))


@pytest.mark.parametrize(("reward", "per"), [("accuracy_per_s", "t_s"), ("accuracy_per_j", "energy_j")])
def test_rewards_for_accuracy_add_up_to_what_was_gained(reward, per, tmp_path):
    env = SchedulerEnv(TRAINED, reward=reward)
    steps = rewards_of(env, lambda seen: np.arange(DEVICES) / 10, 3)
    spent = np.array([about[per] for _, _, about in steps])
    spent = np.diff(spent, prepend=0) if per == "t_s" else spent
    gained = spent * [given for _, given, _ in steps]
    folder = edgesim.run(TRAINED, tmp_path / "run", {"seed": 3}, quiet=True)
    start = folder.metrics.query("round == 0 and name == 'test_accuracy'")["value"].item()
    assert gained.sum() == pytest.approx(steps[-1][2]["accuracy"] - start)
    assert np.count_nonzero(gained) > 2


@pytest.mark.parametrize("mode", ["sync", pytest.param("async", marks=pytest.mark.slow)])
def test_environments_side_by_side_are_each_as_one_alone_and_an_error_in_a_process_is_the_same_line_here(mode):
    context = {"context": "spawn"} if mode == "async" else {}
    both = gymnasium.make_vec(
        "edgesim/Scheduler-v0", num_envs=2, vectorization_mode=mode, vector_kwargs=context, config=TIMING
    )
    both.action_space.seed(1)
    actions = [both.action_space.sample() for _ in range(3)]
    together, _ = both.reset(seed=[4, 9])
    seen = [together["devices"]] + [both.step(action)[0]["devices"] for action in actions]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(EdgesimError, match=r"^step: expected a finite number for each of 10 devices \(got "):
            both.step(np.full((2, DEVICES), np.nan))
    both.close(**{"terminate": True} if mode == "async" else {})
    for place, seed in enumerate((4, 9)):
        env = SchedulerEnv(TIMING)
        alone = [env.reset(seed=seed)[0]["devices"]] + [env.step(action[place])[0]["devices"] for action in actions]
        assert np.array_equal(alone, [step[place] for step in seen])


def test_a_subset_of_nobody_offers_everybody_where_the_run_could_not_go_on():
    config = TIMING | OTHERS["buffered"]
    some, all_ = (SchedulerEnv(config, action="subset") for _ in range(2))
    assert [env.reset(seed=1)[1] for env in (some, all_)] == [{"run_seed": 1}] * 2
    nobody, everybody = (np.full(DEVICES, value, dtype=np.int8) for value in (0, 1))
    for _ in range(2):
        first, second = some.step(nobody), all_.step(everybody)
        assert first[0]["candidates"].tolist() == second[0]["candidates"].tolist()
        everybody = nobody


SHARES = {"action": "shares"}


@pytest.mark.parametrize(
    ("how", "said"),
    [
        (
            {"features": ["gain", "gian"]},
            r"^features: unknown feature 'gian', did you mean 'gain'\? known: gain, d",
        ),
        ({"features": ["gain", "gain"]}, r"^features: expected different features"),
        ({"action": "ranks"}, r"^action: unknown action 'ranks', did you mean 'rank'\?"),
        ({"reward": "arrival"}, r"^reward: unknown reward 'arrival', did you mean 'arrivals'\?"),
        ({"reward": "accuracy_per_s"}, r"^reward: 'accuracy_per_s' needs learning\.training = 'real'$"),
        ({"features": ["loss"]}, r"needs learning\.training = 'real'"),
        ({"features": [3]}, r"^features: expected names \(got 3\)$"),
        ({"features": "gain"}, r"^features: expected a list of names \(got 'gain'\)$"),
        ({"action": 3}, r"^action: expected a name \(got 3\)$"),
        ({"reward": None}, r"^reward: expected a name \(got None\)$"),
        (
            SHARES | {"set": {"round.protocol": "asynchronous"}},
            r"^shares_hz: round\.protocol = 'asynchronous' has no rounds to share bands in$",
        ),
        (SHARES | {"set": {"radio.sharing": "reshared"}}, r"^shares_hz: with radio\.sharing = 'reshared'"),
    ],
)
def test_bad_settings_are_one_line(how, said):
    with in_one_line(said):
        SchedulerEnv(TIMING, **how)


@pytest.mark.parametrize("action", ["rank", "subset", "shares"])
@pytest.mark.parametrize(
    "given",
    [np.ones(DEVICES - 1), np.ones((1, DEVICES)), np.full(DEVICES, np.nan), ["a"] * DEVICES, None, [[1], [1, 2]]],
)
def test_a_bad_action_is_one_line_and_the_decision_stays_open(action, given):
    env = SchedulerEnv(TIMING, action=action)
    env.reset(seed=1)
    with in_one_line(r"^step: expected a finite number for each of 10 devices \(got "):
        env.step(given)
    env.step(env.action_space.sample())


def test_information_keeps_the_last_models_facts_where_a_step_makes_none():
    env = SchedulerEnv(TIMING | OTHERS["buffered"], {"round.protocol_options.buffer": 5})
    steps = rewards_of(env, lambda seen: np.arange(DEVICES) / 10, 2)
    models = [about["models"] for _, _, about in steps]
    assert sum(models) == 8
    first = next(place for place, made in enumerate(models) if made)
    assert all({*about} == {"models"} for _, _, about in steps[:first])
    for (_, _, before), (_, _, about) in zip(steps[first:], steps[first + 1 :], strict=False):
        assert about["round"] - before["round"] == about["models"]
        assert "t_s" in about
    assert 0 in models[first:]
    assert env.reset()[1].keys() == {"run_seed"}


def test_a_step_behind_the_end_is_one_line():
    env = SchedulerEnv(TIMING | {"rounds": 1})
    with in_one_line(r"^step: there is no decision to make: it has not begun; reset the env"):
        env.step(env.action_space.sample())
    env.reset()
    assert env.step(env.action_space.sample())[2]
    with in_one_line(r"^step: there is no decision to make: all rounds done; reset the env"):
        env.step(env.action_space.sample())


def test_without_gymnasium_one_line_names_the_pip_command(monkeypatch):
    for name in [*sys.modules]:
        if name.startswith(("gymnasium", "edgesim.rl")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    import edgesim.rl as without

    assert without.Agent.__name__ == "Agent"
    with in_one_line(r"^rl: a package that it needs is not installed .*edgesim\[rl\]'$"):
        without.SchedulerEnv(TIMING)
    with in_one_line(r"^rl: a package that it needs is not installed .*edgesim\[rl\]'$"):
        importlib.import_module("edgesim.rl.scheduler")
    with in_one_line(r"^ppo: a package that it needs is not installed .*edgesim\[ppo\]'$"):
        without.network_of_ppo(None, None)
