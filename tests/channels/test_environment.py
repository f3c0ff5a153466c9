import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from edgesim.channels import Environment, load_environment, mean_power_gain
from edgesim.content import names
from edgesim.errors import EdgesimError
from edgesim.streams import Streams

CHANNELS = Path(__file__).parents[2] / "channels"
MACRO = (CHANNELS / "fedteddi-macro.toml").read_text()
IDS = np.arange(20_000)


def environment(shadowing_std_db: float = 8.0, shadowing: str = "per_round") -> Environment:
    return load_environment("fedteddi-macro").model_copy(
        update={"shadowing_std_db": shadowing_std_db, "shadowing": shadowing}
    )


@pytest.mark.parametrize("path", sorted(CHANNELS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_shipped_environment_loads_by_name_and_by_path_and_loses_power_with_distance(
    path: Path,
) -> None:
    by_name, by_path = load_environment(path.stem), load_environment(str(path))
    assert by_name == by_path
    assert by_name.name == path.stem
    loss_db = by_name.path_loss.loss_db(np.array([10.0, 100.0, 1000.0]))
    assert np.all(np.diff(loss_db) > 0)
    assert loss_db[0] > 0


def test_the_folder_ships_both_environments() -> None:
    assert {"fedteddi-macro", "free-space"} <= set(names("channels", ".toml"))


def test_fedteddis_cell_has_the_papers_numbers() -> None:
    cell = load_environment("fedteddi-macro")
    assert cell.path_loss.loss_db(250.0) == pytest.approx(105.4625, abs=5e-5)
    assert (cell.shadowing_std_db, cell.shadowing) == (8.0, "per_round")
    assert cell.noise_w_per_hz == pytest.approx(3.981071706e-21, rel=1e-9)


def test_the_noise_figure_multiplies_the_noise() -> None:
    noisy = environment().model_copy(update={"noise_figure_db": 10.0})
    assert noisy.noise_w_per_hz == pytest.approx(3.981071706e-20, rel=1e-9)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ('law = "log-distance"', 'law = "log-distence"'),
            "path_loss.law: unknown law 'log-distence', did you mean 'log-",
        ),
        (
            ('law = "log-distance"', 'law = "x"'),
            "path_loss.law: unknown law 'x', known: free-space, log-distance",
        ),
        (
            ('law = "log-distance"', ""),
            "path_loss: expected a table [path_loss] with law = one of: free-space, log-",
        ),
        (("[path_loss]", "[loss]"), "unknown key 'loss', did you mean"),
        (("shadowing_std_db = 8.0", ""), "shadowing_std_db: field required"),
        (("slope_db_per_decade = 37.6", ""), "path_loss: slope_db_per_decade: field required"),
        (("128.1\n", "nan\n"), "path_loss: loss_at_1_km_db: input should be a finite number"),
        (("= 8.0", "= inf"), "shadowing_std_db: input should be a finite number"),
        (("= 8.0", "= -8.0"), "shadowing_std_db: input should be greater than or equal to 0"),
        (("= 8.0", '= "8 dB"'), "shadowing_std_db: input should be a valid number"),
        (
            ("noise_dbm_per_hz", "noise_dbw_per_hz"),
            "unknown key 'noise_dbw_per_hz', did you mean 'noise_dbm_per_hz'?",
        ),
        (
            ("loss_at_1_km_db", "loss_at_1_m_db"),
            "path_loss: unknown key 'loss_at_1_m_db', did you mean 'loss_at_1_km_db'?",
        ),
        (('"per_round"', '"sometimes"'), "shadowing: input should be 'per_run' or 'per_round'"),
        (("[path_loss]", "[path_loss"), "not valid TOML"),
    ],
)
def test_a_bad_environment_is_refused_in_one_line_that_names_file_and_key(
    change: tuple[str, str], said: str, tmp_path: Path
) -> None:
    assert change[0] in MACRO
    path = tmp_path / "bad.toml"
    path.write_text(MACRO.replace(*change))
    with pytest.raises(EdgesimError, match=re.escape(f"{path}: {said}")) as caught:
        load_environment(str(path))
    assert "\n" not in str(caught.value)


def test_a_missing_law_table_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(MACRO.split("[path_loss]")[0])
    with pytest.raises(EdgesimError, match="path_loss: field required"):
        load_environment(str(path))


def test_an_unknown_environment_is_refused_with_those_there_are() -> None:
    with pytest.raises(EdgesimError, match=r"no file 'moon'; .*fedteddi-macro, free-space"):
        load_environment("moon")


def test_the_gain_without_shadowing_is_the_path_loss_alone() -> None:
    gain = mean_power_gain(environment(0.0), [250.0, 100.0], Streams(0), [0, 1], 1)
    # FedTeddi's law at 250 m and at 100 m: 10^-10.54625 and 10^-9.05.
    np.testing.assert_allclose(gain, [2.842795e-11, 10**-9.05], rtol=2e-7)


def test_the_shadowing_is_normal_in_decibels_with_the_stated_deviation() -> None:
    gain = mean_power_gain(environment(), np.full(len(IDS), 250.0), Streams(1), IDS, 1)
    shadow_db = -10 * np.log10(gain) - (128.1 + 37.6 * np.log10(0.25))
    assert stats.kstest(shadow_db, "norm", (0.0, 8.0)).pvalue > 1e-4


def test_shadowing_per_run_stays_and_per_round_changes() -> None:
    streams = Streams(2)
    distance_m = np.full(5, 100.0)

    def gains(mode: str, round: int) -> list[float]:
        return mean_power_gain(environment(shadowing=mode), distance_m, streams, np.arange(5), round).tolist()

    assert gains("per_run", 1) == gains("per_run", 9)
    assert not set(gains("per_round", 1)) & set(gains("per_round", 9))


def test_the_caller_overrides_how_often_shadowing_is_drawn() -> None:
    streams = Streams(2)
    ids, distance_m = np.arange(5), np.full(5, 100.0)
    cell = environment(shadowing="per_round")
    overridden = mean_power_gain(cell, distance_m, streams, ids, 7, shadowing="per_run")
    own = mean_power_gain(environment(shadowing="per_run"), distance_m, streams, ids, 1)
    assert overridden.tolist() == own.tolist()
    assert mean_power_gain(cell, distance_m, streams, ids, 7).tolist() != own.tolist()


def test_a_device_has_its_gain_whoever_else_is_asked_about() -> None:
    streams = Streams(3)
    distance_m = np.linspace(10.0, 250.0, 30)
    everyone = mean_power_gain(environment(), distance_m, streams, np.arange(30), 4)
    some = np.array([17, 3, 29])
    assert mean_power_gain(environment(), distance_m[some], streams, some, 4).tolist() == everyone[some].tolist()
