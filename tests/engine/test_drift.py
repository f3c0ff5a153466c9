"""Whole runs on data that move: who holds what when, under every protocol and whichever policy chooses."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from small_runs import DRIFTS as LAWS
from whole_runs import Played, configs, merged
from whole_runs import play as simulate

from edgesim.base.errors import EdgesimError
from edgesim.engine.make_world import make_world
from edgesim.learning.drift.law import When
from edgesim.learning.federation import make_federation
from edgesim.selection.pure_drift import PureDrift
from edgesim.simulation import composition as simulation
from edgesim.streams import Streams

BITS = 3e6
PROTOCOLS = {
    "synchronous": {"admission": "count", "count": 4, "tmax_s": 2.0},
    "late": {"late": "keep", "delay_knowledge": "planned", "plan_quantile": 0.5, "tmax_s": 0.6},
    "buffered": {"protocol": "buffered", "admission": "count", "count": 4, "protocol_options": {"buffer": 3}},
    "asynchronous": {"protocol": "asynchronous", "admission": "count", "count": 4},
}
TRAINING = {"pretrain": False, "epochs": 1, "batch_size": 8, "back_end": "loop"}
TIMED = {"learning": {"training": "none"}}
MOVED = {
    "rounds": 12,
    "devices": {"count": 8},
    "evaluation": {"samples": 20, "every": 6},
    "learning": TRAINING,
    "round": {"payload_bits": BITS},
}


def of(law, protocol="synchronous"):
    """Sections of a run under a law."""
    size = {} if law == "rotation" else {"data": {"samples_per_device": 20}}
    return merged(MOVED, size, {"drift": LAWS[law], "round": PROTOCOLS[protocol]})


@pytest.fixture
def play(tmp_path):
    """Runs a config."""

    def play(law, protocol="synchronous", **sections):
        return simulate(tmp_path / f"run-{len(list(tmp_path.iterdir()))}", of(law, protocol), sections)

    return play


@pytest.fixture(scope="module")
def timed(tmp_path_factory):
    """The run of each law and protocol without training, simulated once."""
    found: dict[tuple[str, str], Played] = {}

    def timed(law, protocol):
        if (law, protocol) not in found:
            found[law, protocol] = simulate(tmp_path_factory.mktemp("timed") / "run", of(law, protocol), TIMED)
        return found[law, protocol]

    return timed


def trained_on(played):
    """Class counts of what each update was trained on, by round of the merge and device."""
    found = {}
    for row in played.metrics.query("name == 'class_samples'").itertuples():
        device, label = map(int, row.key.split("/"))
        found.setdefault((row.round, device), np.zeros(10, dtype=int))[label] = row.value
    return found


@pytest.mark.parametrize(("law", "protocol"), [*zip(LAWS, [*PROTOCOLS, "synchronous"], strict=True)])
def test_a_timing_only_run_sees_the_same_events_and_data(law, protocol, play, timed):
    both = play(law, protocol), timed(law, protocol)
    for name in ("activities", "devices"):
        pd.testing.assert_frame_equal(*(getattr(played, name) for played in both))
    columns = ["round", "t_start_s", "t_end_s", "candidates", "selected", "arrived", "bits_up", "energy_j"]
    pd.testing.assert_frame_equal(*(played.rounds[columns] for played in both))
    trained, untrained = (trained_on(played) for played in both)
    assert trained.keys() == untrained.keys()
    assert all((trained[key] == untrained[key]).all() for key in trained)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("law", LAWS)
def test_each_update_was_trained_on_what_its_device_held_when_it_began(law, protocol, timed):
    """The instant is that of the task's first row; the law answers anew for it."""
    played, config = timed(law, protocol), simulation.complete(configs(of(law, protocol))(**TIMED))
    drift = make_federation(config, Streams(config.seed)).drift
    began_s = played.activities.groupby(["device", "task"])["t_start_s"].min()
    found, starts_s = trained_on(played), played.rounds.set_index("round")["t_start_s"]
    assert len(played.updates) >= 12
    for row in played.updates.itertuples():
        t_s = began_s[row.device, row.task]
        # Without rounds the task was begun while the model was made whose stretch contains the instant.
        number = int(starts_s.index[starts_s <= t_s].max()) if "protocol" in PROTOCOLS[protocol] else row.task
        expected = drift.at(When(number, 1, t_s)).class_counts[row.device]
        assert found[row.round, row.device].tolist() == expected.tolist(), row


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_device_computes_for_as_long_as_its_data_of_that_instant_take(protocol, play):
    """Data sets grow by several samples from round to round; an epoch over them takes longer."""
    quick = {"drift": {"rate_per_s": 20.0}}
    config = simulation.complete(configs(of("arrival", protocol))(**quick, **TIMED))
    streams = Streams(config.seed)
    drift, world = make_federation(config, streams).drift, make_world(config, streams)
    acts = play("arrival", protocol, **quick, **TIMED).activities
    computed = acts.query("activity == 'compute' and outcome == 'done'")
    sizes = []
    for row in computed.itertuples():
        size = drift.at(When(row.task, 1, row.t_start_s)).sizes[row.device]
        expected_s = world.compute_s(np.array([row.device]), row.task, np.array([float(size)]))
        assert row.t_end_s - row.t_start_s == pytest.approx(float(expected_s[0]), rel=1e-9)
        sizes.append(size)
    assert len(set(sizes)) > 4


def test_policies_compare_with_the_round_before_and_take_the_run_as_their_horizon(play, monkeypatch):
    views = []

    def choose(self, view):
        views.append(
            (view, view.knowledge.previous_class_counts(view.ids), view.knowledge.class_counts(view.ids, "dataset"))
        )
        yield view.ids

    monkeypatch.setattr(PureDrift, "choose", choose)
    play("rotation", **TIMED, selection={"policy": "pure-drift"})
    assert [view.round for view, _, _ in views] == list(range(1, 13))
    assert {(view.frame, view.rounds_in_frame) for view, _, _ in views} == {(1, 12)}
    assert [view.round_in_frame for view, _, _ in views] == list(range(1, 13))
    for (view, _, now), (_, before, _) in pairwise(views):
        assert (now == before).all()
        assert view.samples.tolist() == view.work_samples.tolist() == now.sum(axis=1).tolist()
    assert any((now != before).any() for _, before, now in views)


def test_a_run_trains_on_the_classes_that_the_law_deals(play):
    """A model that meets the high classes after the swap alone learns them then."""
    played = play("swap", rounds=20, learning={"epochs": 3, "lr": 0.2}, evaluation={"every": 1})
    metrics = played.metrics.query("name == 'class_accuracy'")
    rounds = played.rounds.set_index("round")
    tested = metrics.groupby("round")["key"].apply(lambda keys: sorted(map(int, keys)))
    after = rounds.index[rounds["t_start_s"] >= 4.1]
    assert 3 < after[0] < 15
    assert all(tested[number] == list(range(5)) for number in rounds.index if number < after[0])
    assert all(tested[number] == list(range(10)) for number in after)
    accuracy = metrics.astype({"key": int}).pivot(index="round", columns="key", values="value")
    assert accuracy.loc[after[0] - 1, :4].mean() > 0.7
    assert accuracy.loc[20, 5:].mean() > 0.7


def test_a_drift_that_aliases_is_noted(play):
    notes = play("rotation", drift={"speed": 7.0}, **TIMED).facts["notes"]
    assert notes["drift"].startswith("the drift goes through 0.583 of its cycle in a round")
    assert "drift" not in play("rotation", **TIMED).facts["notes"]


ROTATION, SWAP = ({"drift": LAWS[law]} for law in ("rotation", "swap"))


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"drift": {"law": "rotatoin"}}, r"^drift.law: unknown law 'rotatoin', did you mean 'rotation'\? known: "),
        ({"drift": {"law": "frames", "speed": 1.0}}, r"^drift.speed: is an option of law 'rotation', not of 'frames'"),
        (ROTATION | {"data": {"partition": "fedteddi"}}, r"'rotation' does not go with data\.partition = 'fedteddi'"),
        (ROTATION | {"data": {"partition_options": {"alpha": 0.1}}}, r"needs data\.partition_options = \{\}, not \{'a"),
        (SWAP | {"rounds": [5, 6]}, r"drift\.law = 'swap' does not go with rounds = \[5, 6\]: it has no frames"),
        (SWAP | TIMED | {"data": {"dataset": "none"}}, r"law = 'swap' does not go with data\.dataset = 'none'"),
        ({"drift": LAWS["swap"] | {"t_s": -1.0}}, r"^law 'swap': drift.t_s: input should be greater than 0 \(got"),
        ({"drift": {"law": "swap", "t_s": 1.0}}, r"^law 'swap': drift.before: field required$"),
    ],
)  # fmt: skip
def test_what_cannot_be_dealt_is_refused_before_anything_is_written(sections, message, tmp_path):
    with pytest.raises(EdgesimError, match=message):
        simulate(tmp_path / "run", sections)
    assert not (tmp_path / "run").exists()
