"""Agents as policies: their networks, files and memory."""

import itertools
import json
import pickle

import numpy as np
import pytest
from refusals import in_one_line
from safetensors.numpy import save_file
from small_runs import TIMING

import edgesim
from edgesim.base.saved import pack, unpack
from edgesim.rl import Ages, Network, Observation, SchedulerEnv, load

DEVICES = 8
CONFIG = TIMING | {
    "rounds": 6,
    "devices": {"count": DEVICES},
    "round": {"payload_bits": 4e6, "tmax_s": 0.5, "admission": "count", "count": 3},
}
FEATURES = ("gain", "delay", "need", "samples", "age")


def linear(*weights, features=FEATURES, **how):
    """An agent whose score is a weighted sum of the features."""
    layers = [(np.array([[*weights, 0.0]], dtype=np.float32), np.zeros(1, dtype=np.float32))]
    return Network(layers, features, **how)


def by_agent(file, **others):
    return CONFIG | {"selection": {"policy": "edgesim.rl.Agent", "file": str(file)}} | others


def scheduled(run):
    """Devices that each round scheduled, as sets."""
    uploads = run.activities.query("activity == 'upload'")
    return [set(of["device"]) for _, of in uploads.groupby("round")]


def test_an_agent_of_one_weight_is_the_policy_that_sorts_by_the_feature(tmp_path):
    linear(1, 0, 0, 0, 0).save(tmp_path / "gain.safetensors")
    by_gain = edgesim.run(by_agent(tmp_path / "gain.safetensors"), tmp_path / "gain", quiet=True)
    best = edgesim.run(CONFIG, tmp_path / "best", {"selection.policy": "best-channel"}, quiet=True)
    assert scheduled(by_gain) == scheduled(best)
    for table in ("rounds", "activities", "updates"):
        files = (tmp_path / run / f"{table}.parquet" for run in ("gain", "best"))
        assert len({file.read_bytes() for file in files}) == 1
    # By age alone all devices come in turns.
    linear(0, 0, 0, 0, 1).save(tmp_path / "age.safetensors")
    in_turns = {"round": {"payload_bits": 4e6, "tmax_s": 0.5, "admission": "count", "count": 2}}
    run = edgesim.run(by_agent(tmp_path / "age.safetensors", **in_turns), tmp_path / "age", quiet=True)
    assert scheduled(run)[:4] == [{0, 1}, {2, 3}, {4, 5}, {6, 7}]


def test_large_weights_rank_as_small_ones_do(tmp_path):
    runs = []
    for weight in (-0.9, -9.0):
        linear(weight, features=("need",)).save(file := tmp_path / f"{weight}.safetensors")
        runs.append(scheduled(edgesim.run(by_agent(file), tmp_path / f"run{weight}", quiet=True)))
    assert runs[0] == runs[1] != [{0, 1, 2}] * 6


def test_an_agent_decides_in_the_environment_as_in_a_run(tmp_path):
    random = np.random.default_rng(1)
    narrow = CONFIG | {"radio": {"bandwidth_hz": 3e6}, "round": {"payload_bits": 4e6, "tmax_s": 0.5}}
    env = SchedulerEnv(narrow, action="subset")
    sizes = [DEVICES * 6 + 1, 5, DEVICES]
    layers = [
        (random.normal(size=(out, into)).astype(np.float32), random.normal(size=out).astype(np.float32))
        for into, out in itertools.pairwise(sizes)
    ]
    agent = Network(layers, FEATURES, "subset", DEVICES, "relu")
    agent.save(tmp_path / "agent.safetensors")
    (seen, _), rewards, ended = env.reset(seed=3), [], False
    while not ended:
        values = np.concatenate([seen["candidates"], seen["devices"].ravel(), seen["time"]]).astype(np.float64)
        values = layers[1][0] @ np.maximum(layers[0][0] @ values + layers[0][1], 0) + layers[1][1]
        scores = agent.scores(Observation(**seen))
        assert scores == pytest.approx(values)
        seen, reward, ended, _, _ = env.step((scores > 0).astype(np.int8))
        rewards.append(reward)
    run = edgesim.run(by_agent(tmp_path / "agent.safetensors", **narrow, seed=3), tmp_path / "run", quiet=True)
    assert run.rounds["arrived"].tolist() == rewards
    assert len(set(rewards)) > 1


def test_what_an_agent_remembers_is_saved_and_its_file_is_read_again_as_it_was(tmp_path):
    assert unpack(Ages, *pack(Ages(np.array([3, 0, 9])))).last.tolist() == [3, 0, 9]
    agent = linear(0.5, -0.25, 0, 1, 0, activation="relu")
    agent.save(tmp_path / "agent.safetensors")
    again = load(tmp_path / "agent.safetensors", "file")
    assert (again.features, again.action, again.devices, again.activation) == (FEATURES, "rank", None, "relu")
    assert np.array_equal(again.layers[0][0], agent.layers[0][0])


def test_agents_stand_in_studies_and_a_run_is_repeated_when_its_agent_changes(tmp_path, studies_here):
    linear(1, 0, 0, 0, 0).save(tmp_path / "agent.safetensors")
    config = by_agent(tmp_path / "agent.safetensors")
    runs = edgesim.grid(CONFIG, {"selection.policy": ["random"]}, range(2))
    runs += edgesim.grid(config, {}, range(2), labels={"policy": "learned"})
    study = edgesim.study(runs, out=tmp_path / "study", reference="random", jobs=1, check=True)
    assert {*study.compare("arrived").table["policy"]} == {"learned"}
    first = study.runs["learned-s0"].rounds
    # It is none of the user's own code, which user_code=False refuses.
    assert edgesim.run(config, tmp_path / "run", user_code=False, quiet=True).rounds.equals(first)
    linear(-1, 0, 0, 0, 0).save(tmp_path / "agent.safetensors")
    assert not edgesim.run(config, tmp_path / "run", quiet=True).rounds.equals(first)


FILE = r"^selection\.file: .*agent\.safetensors"


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda path: None, r"^selection\.file: no file '.*agent\.safetensors'$"),
        (lambda path: path.write_bytes(pickle.dumps([1])), f"{FILE}: not an agent's file: "),
        (lambda path: path.mkdir(), f"{FILE}: not an agent's file: "),
        (
            lambda path: of_whole(9).save(path),
            rf"{FILE}: an agent for 9 devices \(devices\.count is 8\); train one ",
        ),
        (
            lambda path: linear(1, 0, features=("gain", "delay"), action="shares").save(path),
            f"{FILE}: an agent that shares the band, which no policy does",
        ),
        (lambda path: linear(1, features=("loss",)).save(path), r"needs learning\.training = 'real'"),
    ],
)
def test_a_file_that_is_of_no_use_is_one_line(made, said, tmp_path):
    made(tmp_path / "agent.safetensors")
    with in_one_line(said):
        edgesim.run(by_agent(tmp_path / "agent.safetensors"), tmp_path / "run", quiet=True)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("about", "said"),
    [
        ([1], r"format None, expected 'edgesim-agent-1'$"),
        ({"features": [3]}, r"features: expected names \(got 3\)$"),
        ({"devices": "8"}, r"devices: expected a whole number from 1 or None \(got '8'\)$"),
        ("features", r"its metadata lack 'features'$"),
    ],
)
def test_a_file_with_other_metadata_is_one_line(about, said, tmp_path):
    whole = {"format": "edgesim-agent-1", "features": ["gain"], "action": "rank", "activation": "tanh", "devices": None}
    kept = {name: value for name, value in whole.items() if name != about}
    arrays = {"0.weights": np.ones((1, 2), dtype=np.float32), "0.biases": np.zeros(1, dtype=np.float32)}
    content = json.dumps(whole | about if isinstance(about, dict) else about if isinstance(about, list) else kept)
    save_file(arrays, tmp_path / "agent.safetensors", {"edgesim": content})
    with in_one_line(rf"^file: .*agent\.safetensors: not an agent's file: {said}"):
        load(tmp_path / "agent.safetensors", "file")


def of_whole(devices):
    """An agent that reads the whole observation of so many devices."""
    weights = np.zeros((devices, devices * 6 + 1), dtype=np.float32)
    return Network([(weights, np.zeros(devices, dtype=np.float32))], FEATURES, devices=devices)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"features": ("gain",)},
            r"^layer 0: expected weights \[out, 2\] and biases \[out\] \(got \[1, 6\] and \[1\]\)",
        ),
        ({"features": ("gian",)}, r"^features: unknown feature 'gian', did you mean 'gain'\?"),
        ({"action": "pick"}, r"^action: expected one of rank, subset, shares \(got 'pick'\)"),
        ({"activation": "sin"}, r"^activation: expected one of tanh, relu \(got 'sin'\)"),
        ({"layers": []}, r"^layers: expected 1 numbers behind the last layer \(got 6\)"),
        ({"layers": [([[1.0] * 6], [0.0])]}, r"^layer 0: expected arrays \(got list\)"),
        ({"layers": [(np.full((1, 6), np.nan), np.zeros(1))]}, r"^layer 0: expected finite numbers"),
        ({"layers": [(np.ones((2, 6)), np.zeros(2))]}, r"^layers: expected 1 numbers behind the last layer \(got 2\)"),
    ],
)
def test_layers_that_do_not_fit_are_one_line(change, said):
    with in_one_line(said):
        Network(**vars(linear(1, 0, 0, 0, 0)) | change)


@pytest.mark.parametrize("action", ["rank", "subset"])
def test_a_network_of_stable_baselines_acts_as_the_model_it_comes_from(action):
    pytest.importorskip("stable_baselines3")
    import torch
    from stable_baselines3 import PPO

    from edgesim.rl import network_of_ppo

    env = SchedulerEnv(CONFIG, action=action)
    how = {"net_arch": [7], "activation_fn": torch.nn.ReLU} if action == "rank" else {"net_arch": [6, 5]}
    model = PPO("MultiInputPolicy", env, n_steps=16, batch_size=16, policy_kwargs=how, seed=1, device="cpu")
    model.learn(32)
    network = network_of_ppo(model, env)
    seen, _ = env.reset(seed=9)
    for _ in range(4):
        action_of_model, _ = model.predict(seen, deterministic=True)
        scores = network.scores(Observation(**seen))
        scores = scores > 0 if action == "subset" else np.clip(scores, env.action_space.low, env.action_space.high)
        assert scores == pytest.approx(action_of_model, abs=1e-5)
        seen, *_ = env.step(action_of_model)


def test_models_of_stable_baselines_that_no_file_can_hold_are_refused():
    pytest.importorskip("stable_baselines3")
    from stable_baselines3 import PPO, SAC
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    from edgesim.rl import network_of_ppo

    env, how = SchedulerEnv(CONFIG), {"device": "cpu", "seed": 1}
    scaled = VecNormalize(DummyVecEnv([lambda: SchedulerEnv(CONFIG)]), norm_obs_keys=["devices"])
    model = PPO("MultiInputPolicy", scaled, n_steps=16, batch_size=16, **how)
    with in_one_line(r"^model: was trained under VecNormalize"):
        network_of_ppo(model, env)
    with in_one_line(r"^env: expected one edgesim/Scheduler-v0 \(got DummyVecEnv\)$"):
        network_of_ppo(model, scaled)
    other = PPO("MultiInputPolicy", env, n_steps=16, batch_size=16, **how)
    with in_one_line(r"^env: its action_space is MultiBinary.*, that of the model is Box"):
        network_of_ppo(other, SchedulerEnv(CONFIG, action="subset"))
    with in_one_line(r"^model: expected a PPO or A2C of .* \(got SAC\)$"):
        network_of_ppo(SAC("MultiInputPolicy", env, buffer_size=10, **how), env)
