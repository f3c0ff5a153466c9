import re
from pathlib import Path

import numpy as np
import pytest
from refusals import in_one_line
from scipy import stats

from edgesim.config_file import parse
from edgesim.engine.make_world import make_world
from edgesim.radio.environment import Environment, RecordedEnvironment, load_environment
from edgesim.simulation.composition import complete
from edgesim.streams import Streams

CHANNELS = Path(__file__).parents[2] / "channels"
MACRO = (CHANNELS / "fedteddi-macro.toml").read_text()
UMI = (CHANNELS / "umi-street-canyon.toml").read_text()
IDS = np.arange(20_000)


def environment(shadowing_std_db: float = 8.0, shadowing: str = "per_round") -> Environment:
    return load_environment("fedteddi-macro").model_copy(
        update={"shadowing_std_db": shadowing_std_db, "shadowing": shadowing}
    )


@pytest.mark.parametrize("path", sorted(CHANNELS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_shipped_environment_loads_by_name_and_by_path_and_cites_a_source(path):
    by_name, by_path = load_environment(path.stem), load_environment(str(path))
    assert isinstance(by_name, RecordedEnvironment) or by_name == by_path
    assert by_name.name == by_path.name == path.stem
    assert len(by_name.source) > 40


def test_fedteddis_cell_has_the_papers_numbers():
    cell = load_environment("fedteddi-macro")
    assert cell.path_loss.loss_db(250.0) == pytest.approx(105.4625, abs=5e-5)
    assert (cell.shadowing_std_db, cell.shadowing) == (8.0, "per_round")
    assert cell.noise_w_per_hz == pytest.approx(3.981071706e-21, rel=1e-9, abs=0)


def test_the_noise_figure_multiplies_the_noise():
    noisy = environment().model_copy(update={"noise_figure_db": 10.0})
    assert noisy.noise_w_per_hz == pytest.approx(3.981071706e-20, rel=1e-9, abs=0)


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("text", "before", "after", "said"),
    [
        (MACRO, '"log-distance"', '"log-distence"', "path_loss.law: unknown law 'log-distence', did you mean 'log-"),
        (
            MACRO,
            '"log-distance"',
            '"x"',
            "path_loss.law: unknown law 'x'; known: free-space, inh-office, log-distance,",
        ),
        (MACRO, 'law = "log-distance"', "", "path_loss: expected a table [path_loss] with law = one of: free-space,"),
        (MACRO, "[path_loss]", "[loss]", "unknown key 'loss'; known: "),
        (MACRO, "shadowing_std_db = 8.0", "", "shadowing_std_db: field required"),
        (MACRO, "= 8.0", "= inf", "shadowing_std_db: input should be a finite number"),
        (MACRO, "= 8.0", "= -8.0", "shadowing_std_db: input should be greater than or equal to 0"),
        (MACRO, "= 8.0", '= "8 dB"', "shadowing_std_db: input should be a valid number"),
        (MACRO, "noise_dbm", "noise_dbw", "unknown key 'noise_dbw_per_hz', did you mean 'noise_dbm_per_hz'?"),
        (MACRO, '"per_round"', '"sometimes"', "shadowing: input should be 'per_run' or 'per_round'"),
        (MACRO, "[path_loss]", "[path_loss", "not valid TOML"),
        (MACRO, "= 0.0\n", '= 0.0\nfading = "rice"\n', "fading: input should be 'none' or 'rayleigh' (got 'rice')"),
        (MACRO, "= -174.0", "= -inf", "noise_dbm_per_hz: input should be a finite number"),
        (MACRO, "= -174.0", "= -4000.0", "noise_dbm_per_hz: … greater than or equal to -250 (got -4000.0)"),
        (MACRO, "noise_dbm", "noise_w", "unknown key 'noise_w_per_hz', did you mean 'noise_dbm_per_hz'?"),
        (MACRO, "= 8.0", "= 8e4", "shadowing_std_db: input should be less than or equal to 60"),
        (MACRO, "[path_loss]", "[capacity]\n[path_loss]", "capacity: … either [capacity] or [path_loss]"),
        (UMI, "3.5e9", "3.5", "path_loss: carrier_hz: input should be greater than or equal to 500000000 (got 3.5)"),
        (UMI, "3.5e9", "3.5e12", "path_loss: carrier_hz: input should be less than or equal to 100000000000"),
        (UMI, "height_m = 10.0", "height_m = -10.0", "path_loss: station_height_m: … greater than 1 (got -10"),
        (UMI, "height_m = 1.5", "height_m = -1.5", "path_loss: device_height_m: … greater than or equal to 1.5"),
        (UMI, "height_m = 1.5", "height_m = 30.0", "path_loss: device_height_m: … less than or equal to 22.5"),
        (UMI, "noise_figure_db = 5.0", "", "noise_figure_db: field required"),
        (UMI, "noise_figure_db = 5.0", "noise_figure_db = -5.0", "noise_figure_db: … greater than or equal to 0"),
        (UMI, "[path_", "shadowing_std_db = 4.0\n[path_", "shadowing_std_db: … set los_shadowing_std_db and nlos_"),
        (MACRO, "[path_loss]", "snr_gap_db = -1.0\n[path_loss]", "snr_gap_db: … than or equal to 0 (got -1.0)"),
        (MACRO, "[path_loss]", "snr_gap_db = inf\n[path_loss]", "snr_gap_db: input should be a finite number"),
        (MACRO, "[path_loss]", "max_bps_per_hz = 0.0\n[path_loss]", "max_bps_per_hz: … than 0 (got 0.0)"),
        (MACRO, "[path_loss]", "max_bps_per_hz = inf\n[path_loss]", "max_bps_per_hz: input should be a finite number"),
        (MACRO, "[path_loss]", "max_bps = 5.0\n[path_loss]", "unknown key 'max_bps', did you mean 'max_bps_per_hz'?"),
    ],
)
def test_a_bad_environment_is_refused_in_one_line_that_names_file_and_key(text, before, after, said, tmp_path):
    assert before in text
    path = tmp_path / "bad.toml"
    path.write_text(text.replace(before, after))
    with in_one_line(re.escape(f"{path}: {said}").replace("…", ".*")):
        load_environment(str(path))


def test_a_missing_law_table_is_asked_for(tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text(MACRO.split("[path_loss]")[0])
    with in_one_line("path_loss: field required"):
        load_environment(str(path))


def test_an_unknown_environment_is_refused_with_those_there_are():
    with in_one_line(r"no file 'moon'; .*fedteddi-macro, free-space, inh-office"):
        load_environment("moon")


@pytest.mark.parametrize("mode", ["per_run", "per_round"])
def test_the_config_overrides_how_often_shadowing_is_drawn(mode):
    world = make_world(complete(parse({"radio": {"shadowing": mode}}, "test")), Streams(2))
    first, later = (world.gain(np.arange(5), round, 0.0, np.zeros(5, dtype=np.int64)).tolist() for round in (1, 9))
    assert (first == later) == (mode == "per_run")


def test_the_papers_cell_draws_as_its_formula_says_to_the_last_bit():
    streams, distance_m, ids = Streams(5), np.linspace(10.0, 250.0, 500), np.arange(500)
    loss_db = 128.1 + 37.6 * np.log10(distance_m / 1000.0)
    expected = np.power(10.0, -(loss_db + 8.0 * streams.normal("shadowing", ids, 3)) / 10.0)
    gain = load_environment("fedteddi-macro").mean_power_gain(distance_m, streams, ids, 3)
    assert gain.tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("name", "distance_m", "probability"),
    # TR 38.901 table 7.4.2-1 at 3.5 GHz, worked by hand from its formulas.
    [
        ("uma", 250.0, 0.0895),
        ("umi-street-canyon", 100.0, 0.2310),
        ("umi-street-canyon", 15.0, 1.0),
        ("inh-office", 20.0, 0.2115),
    ],
)
def test_devices_are_in_sight_as_often_as_the_law_says(name, distance_m, probability):
    sees = load_environment(name).line_of_sight(np.full(len(IDS), distance_m), Streams(4), IDS)
    deviation = np.sqrt(probability * (1 - probability) / len(IDS))
    # Four standard errors, and half a unit of the probability's last digit.
    assert abs(sees.mean() - probability) <= 4 * deviation + 5e-5


def test_a_law_of_one_branch_is_always_in_sight():
    macro = load_environment("fedteddi-macro")
    assert macro.line_of_sight(np.array([10.0, 5000.0]), Streams(0), [0, 1]).tolist() == [True, True]


def test_each_branch_has_the_tables_loss_and_deviation():
    # UMi at 100 m and 3.5 GHz: 85.3142 dB and 4 dB in sight, 104.6438 dB and 7.82 dB out of it.
    street, streams = load_environment("umi-street-canyon"), Streams(8)
    distance_m = np.full(len(IDS), 100.0)
    gain = street.mean_power_gain(distance_m, streams, IDS, 1)
    sees = street.line_of_sight(distance_m, streams, IDS)
    loss_db = -10 * np.log10(gain)
    assert stats.kstest(loss_db[sees], stats.norm(85.3142, 4.0).cdf).pvalue > 1e-4
    assert stats.kstest(loss_db[~sees], stats.norm(104.6438, 7.82).cdf).pvalue > 1e-4


def test_sight_stays_over_the_rounds_though_shadowing_changes():
    street, streams = load_environment("umi-street-canyon"), Streams(9)
    path_loss = street.path_loss.model_copy(update={"los_shadowing_std_db": 1e-3, "nlos_shadowing_std_db": 1e-3})
    quiet = street.model_copy(update={"path_loss": path_loss, "shadowing": "per_round"})
    gains = [quiet.mean_power_gain(np.full(50, 100.0), streams, np.arange(50), k) for k in (1, 2)]
    np.testing.assert_allclose(gains[0], gains[1], rtol=0.01)
    assert gains[0].tolist() != gains[1].tolist()
    assert np.ptp(10 * np.log10(gains[0])) > 15


def test_sight_that_the_caller_keeps_gives_the_same_gain_as_sight_drawn_anew():
    street, streams = load_environment("uma"), Streams(10)
    ids, distance_m = np.arange(300), np.linspace(20.0, 900.0, 300)
    kept = street.line_of_sight(distance_m, streams, ids)
    drawn = street.mean_power_gain(distance_m, streams, ids, 2)
    assert street.mean_power_gain(distance_m, streams, ids, 2, los=kept).tolist() == drawn.tolist()
    assert street.mean_power_gain(distance_m, streams, ids, 2, los=~kept).tolist() != drawn.tolist()


def test_the_files_deviations_override_those_of_the_table(tmp_path):
    path = tmp_path / "still.toml"
    path.write_text(UMI + "los_shadowing_std_db = 0.0\nnlos_shadowing_std_db = 0.0\n")
    gain = load_environment(str(path)).mean_power_gain(np.full(100, 100.0), Streams(0), np.arange(100), 1)
    assert sorted(set(np.round(-10 * np.log10(gain), 4).tolist())) == [85.3142, 104.6438]


def test_the_gap_multiplies_the_noise_of_uploads_alone():
    cell = environment().model_copy(update={"snr_gap_db": 10.0})
    assert cell.noise_w_per_hz == environment().noise_w_per_hz
    assert cell.link().noise_w_per_hz / environment().link().noise_w_per_hz == pytest.approx(10.0)
