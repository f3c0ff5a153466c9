import pytest
from refusals import in_one_line

from edgesim.base.errors import EdgesimError
from edgesim.config import RunConfig
from edgesim.config_file import load, parse


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"devices.cuont": 3}, "'devices.cuont' ... did you mean 'devices.count'"),
        ({"tmax_s": 1}, "unknown key 'tmax_s' ... did you mean 'round.tmax_s'?"),
        ({"learning.count": 3}, "'learning.count' ... did you mean 'devices.count' or 'round.count'?"),
        ({"raund": {}}, "'raund' ... did you mean 'round'"),
        ({"DEVICES": {}}, "'DEVICES' ... did you mean 'devices'"),
        ({"xyzzy": 1}, "'xyzzy' ... known: ... devices"),
        ({"round.tmax_s": -1.0}, "round.tmax_s ... equal to 0.000001 ... -1.0"),
        ({"round.tmax_s": "fast"}, "round.tmax_s ... number ... 'fast'"),
        ({"round.tmax_s": float("nan")}, "round.tmax_s ... finite"),
        ({"round.delay_knowledge": "guess"}, "round.delay_knowledge ... 'known' ... 'guess'"),
        (
            {"round.delay_knowledge": "reported", "round.computes": "selected"},
            "delay_knowledge = 'reported' needs round.computes = 'candidates'",
        ),
        (
            {"round.tmax_s": 1.0, "round.report_by_s": 1.5, "round.delay_knowledge": "reported"},
            "report_by_s (1.5) ... tmax_s (1)",
        ),
        ({"round.plan_quantile": 0.9}, "plan_quantile = 0.9 needs round.delay_knowledge = 'planned', not 'known'"),
        ({"round.report_by_s": 0.9}, "report_by_s = 0.9 needs round.delay_knowledge = 'reported', not 'known'"),
        (
            {"round.report_by_s": 0.9, "round.delay_knowledge": "planned"},
            "report_by_s = 0.9 needs round.delay_knowledge = 'reported', not 'planned'",
        ),
        (
            {"topology.file": "one-cell", "topology.aggregation": "hierarchical"},
            "topology.aggregation = 'hierarchical' needs topology.cloud_every",
        ),
        (
            {"topology.file": "one-cell", "topology.cloud_every": 2},
            "cloud_every = 2 needs topology.aggregation = 'hierarchical', not 'flat'",
        ),
        ({"devices.radius_m": 5.0}, "min_distance_m (10) ... radius_m (5)"),
        ({"devices.battery_j": -5.0}, "devices.battery_j ... equal to 0.000001 ... -5.0"),
        ({"devices.battery_j": 5.0, "devices.battery_start": "full"}, "devices.battery_start ... 'drawn' ... 'full'"),
        (
            {"devices.battery_j": 5.0, "devices.battery_start": 0.1},
            "battery_start (0.1) is below battery_reserve (0.2) ... no device would ever check in; give recharge_w",
        ),
        ({"devices.recharge_w": 1.0}, "devices.recharge_w = 1 needs devices.battery_j"),
        ({"learning.steps": 3, "learning.epochs": 1}, "learning.steps = 3 does not go with learning.epochs = 1"),
        ({"learning.back_end": "loop", "learning.workers": 2}, "workers = 2 needs ... 'ray' or 'auto' ... not 'loop'"),
        ({"learning.back_end": "stacked", "learning.workers": 1}, "workers = 1 needs ... not 'stacked'"),
        ({"learning.lr": 0.1, "learning.lr_min": 0.2}, "lr_min (0.2) ... lr (0.1)"),
        (
            {"learning.momentum": 0.0, "learning.persist_momentum": True},
            "persist_momentum = true does not go with learning.momentum = 0",
        ),
        (
            {"learning.optimiser": "adam", "learning.momentum": 0.9},
            "optimiser = 'adam' needs learning.momentum = 0.5 or 0, not 0.9",
        ),
        (
            {"learning.optimiser": "adam", "learning.persist_momentum": True},
            "optimiser = 'adam' needs learning.persist_momentum = false",
        ),
        ({"learning.optimiser": "rmsprop"}, "learning.optimiser: input should be 'sgd' or 'adam'"),
        (
            {"learning.lr_offset": 1.0, "learning.lr_decay": 0.9},
            "lr_offset = 1 needs learning.lr_decay = 0.9992 or 1, not 0.9",
        ),
        ({"data.dataset": "none"}, "data.dataset = 'none' ... learning.training = 'none'"),
        ({"seed": -1}, "seed ... greater than or equal to 0"),
        ({"radio.bandwidth_hz": True}, "radio.bandwidth_hz ... True"),
    ],
)
def test_bad_values_get_one_line_that_names_the_key_and_what_was_expected(values, said):
    nested = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        (nested.setdefault(section, {}) if section else nested)[name] = value
    with in_one_line("^run.toml: ") as refusal:
        parse(nested, "run.toml")
    assert [word for word in said.split(" ... ") if word not in str(refusal.value)] == []


def test_a_broken_toml_names_the_file_and_the_line(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text("seed = 1\n[round\n")
    with pytest.raises(EdgesimError, match=r"run.toml: not valid TOML: .*line 2"):
        load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(EdgesimError, match=r"nowhere.toml: no such file"):
        load(tmp_path / "nowhere.toml")


def test_overrides_are_toml_values_or_bare_strings(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text("[round]\ntmax_s = 1.0\n")
    config = load(path, ["round.tmax_s=0.8", "selection.policy=fedteddi", "rounds=[3, 4]"])
    assert config.round.tmax_s == 0.8
    assert config.selection.policy == "fedteddi"
    assert config.rounds == [3, 4]


@pytest.mark.parametrize("override", ["round.tmax_s", "=3", "seed.deeper=1", "rounds=3\nseed=5"])
def test_a_malformed_override_is_refused(tmp_path, override):
    path = tmp_path / "run.toml"
    path.write_text("seed = 3\n")
    with pytest.raises(EdgesimError):
        load(path, [override])


def test_resolving_writes_out_the_defaults_that_hang_on_others():
    config = RunConfig().resolved()
    assert config.rounds == 60
    assert config.learning.steps == 5
    assert (config.round.report_by_s, config.round.plan_quantile) == (None, None)
    reported = parse({"round": {"delay_knowledge": "reported", "tmax_s": 0.8}}, "x").resolved()
    assert (reported.round.report_by_s, reported.round.plan_quantile) == (0.4, None)
    planned = parse({"round": {"delay_knowledge": "planned"}}, "x").resolved()
    assert (planned.round.report_by_s, planned.round.plan_quantile) == (None, 0.95)
    assert config.resolved() == config
    assert config.devices == RunConfig().devices
    battery = parse({"devices": {"battery_j": 9.0, "recharge_w": 1.0}}, "x").resolved().devices
    assert (battery.battery_start, battery.battery_reserve, battery.recharge_w) == (1.0, 0.2, 1.0)
    assert parse({"stop_at_s": 9.0}, "x").resolved().rounds is None
