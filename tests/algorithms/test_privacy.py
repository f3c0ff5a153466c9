"""Clipping, noise and their account: the oracles T11 and T12 of AFL's page, and what stands in the tables of runs."""

import json
import math

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from edgesim.analysis.measures import measure
from edgesim.analysis.runs import RunFolder
from edgesim.config_file import parse
from edgesim.folder.records import read_table
from edgesim.learning.algorithms import privacy
from edgesim.learning.algorithms.privacy import epsilon_of
from edgesim.learning.learner import TorchLearner
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams

TABLE = [
    # z, T, delta, exact epsilon, by the Renyi accountant, by the PRV accountant
    (1, 1, 1e-5, 4.3771780957, 4.728507, 4.3874),
    (4, 1, 1e-5, 0.9263415040, 1.012551, 0.9364),
    (5, 100, 1e-5, 9.9972561464, 10.725510, 10.0077),
    (10, 250, 1e-5, 7.5112759007, 8.079406, 7.5216),
    (50, 250, 1e-5, 1.1993695738, 1.308497, 1.2095),
    (20, 250, 1e-3, 2.3518408421, 2.662939, 2.3621),
]


def test_epsilon_is_exact():
    for noise, releases, delta, exact, renyi, prv in TABLE:
        found = epsilon_of(noise, releases, delta)
        assert found == pytest.approx(exact, abs=1e-9)
        assert found <= min(renyi, prv)
    # Of much and of little noise.
    assert epsilon_of(3.7306316348, 1, 1e-5) == pytest.approx(1, abs=1e-9)
    assert epsilon_of(1, 250, 1e-5) == pytest.approx(191.55, abs=0.005)
    assert epsilon_of(0.1, 250, 1e-5) == pytest.approx(13200, rel=5e-3)
    assert epsilon_of(1e6, 1, 1e-5) == epsilon_of(1, 0, 1e-5) == 0


def test_epsilon_falls_with_noise_rises_with_releases_and_goes_by_their_root():
    """T12."""
    by_noise = [epsilon_of(z, 10, 1e-5) for z in (0.5, 1, 2, 4)]
    by_releases = [epsilon_of(2, count, 1e-5) for count in (1, 2, 10, 100)]
    assert (by_noise[::-1], by_releases) == (sorted(by_noise), sorted(by_releases))
    assert epsilon_of(3, 25, 1e-5) == pytest.approx(epsilon_of(6, 100, 1e-5), abs=1e-12)


def config(tmp_path, mechanism="local", **more):
    privacy = {"mechanism": mechanism} | ({} if mechanism in ("none", "clip") else {"noise": 0.5})
    return parse(
        {
            "seed": 2,
            "rounds": 4,
            "devices": {"count": 6, "mu_samples_per_s": 400.0},
            "radio": {"bandwidth_hz": 2e6},
            "round": {"tmax_s": 0.5} | more.pop("round", {}),
            "data": {"partition": "quantity", "samples_per_device": 20},
            "learning": {"pretrain": False, "precision": "float64"} | more.pop("learning", {}),
            "privacy": privacy | more.pop("privacy", {}),
            **more,
        },
        "test",
    )


def run(tmp_path, name, *arguments, **more):
    """The run's account, its model, flat, and its table of metrics."""
    simulation.run(config(tmp_path, *arguments, **more), tmp_path / name)
    model = torch.cat([tensor.flatten() for tensor in load_file(tmp_path / name / "model.safetensors").values()])
    said = json.loads((tmp_path / name / "run.json").read_text())
    return said.get("privacy"), model, read_table(tmp_path / name, "metrics")


def test_a_clip_that_no_update_reaches_and_no_table_at_all_are_the_same_run(tmp_path):
    without, plain, _ = run(tmp_path, "none", "none")
    loose, same, metrics = run(tmp_path, "loose", "clip", privacy={"clip": 1e6})
    _, clipped, shares = run(tmp_path, "clip", "clip", privacy={"clip": 0.01})
    assert without is None
    assert torch.equal(plain, same)
    assert not torch.equal(plain, clipped)
    assert (loose["epsilon"], loose["reason"]) == (None, "clipping without noise protects nothing")
    assert [set(of[of["name"] == "privacy"]["value"]) for of in (metrics, shares)] == [{0.0}, {1.0}]


@pytest.mark.parametrize("mechanism", ["local", "central"])
@pytest.mark.parametrize(
    "algorithm", [{"name": "fedavg"}, {"name": "fedprox", "server": "fedavgm"}, {"name": "afl"}], ids=str
)
def test_models_of_a_run_are_worked_out_again_from_its_updates(tmp_path, monkeypatch, mechanism, algorithm):
    """By what each job brought, clipped here once more, and the streams of the noise; lengths and weights of AFL are of
    the noised updates under local noise, and of the clipped ones under central.
    """
    merge, rounds = TorchLearner.merge, []

    def spied(learner, arrived, *rest):
        before, results = learner.global_weights, learner.results([one.promise for one in arrived])
        updates = [result.update.clone() for result in results]
        tasks = [one.promise.task for one in arrived]
        merged = merge(learner, arrived, *rest)
        rounds.append((merged, tasks, updates, learner.global_weights - before))
        return merged

    monkeypatch.setattr(TorchLearner, "merge", spied)
    told, _, metrics = run(tmp_path, "run", mechanism, algorithm=algorithm)
    metrics = metrics[metrics["name"] == "privacy"].set_index(["round", "key"])["value"]
    streams, momentum = Streams(2), 0.0
    for number, (merged, tasks, updates, moved) in enumerate(rounds, start=1):
        if not updates:
            continue
        clipped = [update * min(1, 1 / float(update.norm())) for update in updates]
        received = clipped
        if mechanism == "local":
            draws = [
                streams.generator("privacy/local", device, task) for device, task in zip(merged.ids, tasks, strict=True)
            ]
            noise = [
                0.5 * torch.from_numpy(one.standard_normal(len(update)))
                for one, update in zip(draws, updates, strict=True)
            ]
            received = [update + drawn for update, drawn in zip(clipped, noise, strict=True)]
        samples = read_table(tmp_path / "run", "devices").query("frame == 1").set_index("device")["samples"]
        alpha = samples.loc[merged.ids].to_numpy() / 1.0
        if algorithm["name"] == "afl":
            alpha = alpha / (1 + 0.1 * np.array([float(update.norm()) for update in received]))
        alpha = alpha / alpha.sum()
        assert merged.weight == pytest.approx(alpha, rel=1e-9)
        change = sum(share * update for share, update in zip(alpha, received, strict=True))
        scale = 0.5 * np.sqrt(np.sum(alpha**2))
        if mechanism == "central":
            scale = 0.5 * alpha.max()
            drawn = streams.generator("privacy/central", 0, number).standard_normal(len(change))
            change = change + scale * torch.from_numpy(drawn)
        momentum = change + (0.9 * momentum if "server" in algorithm else 0.0)
        torch.testing.assert_close(moved, momentum, rtol=0, atol=1e-9)
        mean = sum(share * update for share, update in zip(alpha, clipped, strict=True))
        expected = scale * math.sqrt(len(mean)) / float(mean.norm())
        assert metrics[number, "noise_to_update"] == pytest.approx(expected, rel=1e-9)
    assert sum(bool(updates) for _, _, updates, _ in rounds) >= 3
    unknown = mechanism == "central" and algorithm["name"] == "afl"
    assert (told["epsilon"] is None) == unknown
    if unknown:
        assert "weights that look at the updates" in told["reason"]
    elif mechanism == "central":
        models = sum(bool(updates) for _, _, updates, _ in rounds)
        assert told["epsilon"] == epsilon_of(0.5, models, 1e-5)


def test_every_upload_that_leaves_a_device_is_a_release_whatever_becomes_of_it(tmp_path):
    """Counted by hand in the table of activities: some are late, some of devices that left."""
    late = {"delay_knowledge": "planned", "plan_quantile": 0.3}
    told, *_ = run(tmp_path, "run", rounds=12, round=late, availability={"model": "markov"})
    activities = read_table(tmp_path / "run", "activities")
    uploads = activities[activities["activity"] == "upload"]
    assert set(uploads["outcome"]) > {"done"}
    each = uploads.drop_duplicates(["device", "task"])["device"].value_counts()
    assert told["releases"] == each.max()
    assert told["epsilon"] == epsilon_of(0.5, int(each.max()), 1e-5)
    assert told["epsilon_median"] == pytest.approx(float(np.median([epsilon_of(0.5, n, 1e-5) for n in each])))
    assert told["covers"] == privacy.COVERS


NET = {"learning": {"model": f"{__name__}.with_batch_norm"}}


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("mechanism", "sections", "reason"),
    [
        ("central", {"algorithm": {"name": "afl", "sensitivity": 0.0}}, None),
        ("central", {"algorithm": {"name": "fedstg", "rarity": False}}, None),
        ("central", {"algorithm": {"name": "fedstg"}}, "the classes of all devices"),
        ("central", NET, "batch norm"),
        ("local", NET, "batch norm"),
    ],
    ids=str,
)
def test_an_epsilon_is_told_unless_something_that_is_not_noised_depends_on_the_data(
    tmp_path, mechanism, sections, reason
):
    told, *_ = run(tmp_path, "run", mechanism, **sections)
    assert (told["epsilon"] is None) == (reason is not None)
    assert (reason or "") in told.get("reason", "")


def with_batch_norm(image_shape, class_count):
    size = int(np.prod(image_shape))
    return nn.Sequential(nn.Flatten(), nn.Linear(size, 8), nn.BatchNorm1d(8), nn.Linear(8, class_count))


def test_noise_is_the_same_in_every_back_end_and_in_a_run_again(tmp_path):
    models = [
        run(tmp_path, f"{back_end} {turn}", learning={"back_end": back_end})[1]
        for turn, back_end in enumerate(["loop", "loop", "stacked"])
    ]
    assert torch.equal(models[0], models[1])
    torch.testing.assert_close(models[0], models[2], rtol=0, atol=1e-12)


def test_a_study_has_epsilon_and_the_noise_in_its_summary_where_there_are_any(tmp_path):
    told, _, metrics = run(tmp_path, "local", "local")
    run(tmp_path, "none", "none")
    noise = metrics[(metrics["name"] == "privacy") & (metrics["key"] == "noise_to_update")]["value"]
    measures = [measure(RunFolder(tmp_path / name, {}, 0), None) for name in ("local", "none")]
    assert measures[0]["epsilon"] == told["epsilon"]
    assert measures[0]["noise_to_update"] == pytest.approx(noise.mean(), rel=1e-12)
    assert not {"epsilon", "noise_to_update"} & set(measures[1])
