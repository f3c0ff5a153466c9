"""What ``scenarios/radio_cost.py`` compares: what algorithms send and compute costs rounds."""

import runpy
from pathlib import Path

import pandas as pd
import pytest

from edgesim.config_file import parse
from edgesim.folder.records import read_config, read_table
from edgesim.scenario import Runs
from edgesim.simulation import composition as simulation

SCENARIO = runpy.run_path(str(Path(__file__).parents[1] / "scenarios/radio_cost.py"))


def compared(seconds, algorithm, band_mhz, seeds=1):
    """What the scenario would run of an algorithm at a bandwidth."""
    runs = Runs(seeds=seeds)
    SCENARIO["add"](runs, seconds, [algorithm], [band_mhz])
    return runs.planned


@pytest.fixture
def rounds(tmp_path):
    """The table of rounds of a timing-only run of 30 s, of an algorithm at a bandwidth."""

    def play(algorithm, band_mhz):
        (planned,) = compared(30.0, algorithm, band_mhz)
        config = planned.config.model_dump(exclude_none=True)
        config["learning"]["training"] = "none"
        simulation.run(parse(config, algorithm), tmp_path / planned.folder)
        return read_table(tmp_path / planned.folder, "rounds")

    return play


def test_scaffold_sends_twice_as_much_and_makes_fewest_rounds_where_bandwidth_is_scarce(rounds):
    fedavg, scaffold, moon = (rounds(name, 0.045) for name in ("fedavg", "scaffold", "moon"))
    assert fedavg["bits_up"].tolist() == pytest.approx([10 * 77_120] * len(fedavg))
    assert moon["bits_up"].tolist() == pytest.approx([10 * 77_120] * len(moon))
    assert scaffold["bits_up"].tolist() == pytest.approx([20 * 77_120] * len(scaffold))
    assert len(scaffold) < len(moon) < len(fedavg)


def test_moon_computes_longer_and_makes_fewest_rounds_where_bandwidth_is_ample(rounds):
    fedavg, scaffold, moon = (rounds(name, 0.72) for name in ("fedavg", "scaffold", "moon"))
    assert len(moon) < len(scaffold) < len(fedavg)


def test_fedgen_waits_for_its_generator_and_fedmd_sends_logits_instead_of_models(rounds):
    fedavg, fedgen, fedmd = (rounds(name, 0.045) for name in ("fedavg", "fedgen", "fedmd"))
    # The generator's 631,808 bits at 2 bit/s/Hz; round 1 has none.
    waits_s = (fedgen["t_end_s"] - fedgen["t_start_s"]).to_numpy()[1:].mean()
    waits_s -= (fedavg["t_end_s"] - fedavg["t_start_s"]).mean()
    assert waits_s == pytest.approx(631_808 / 90e3, rel=0.1)
    assert fedmd["bits_up"].tolist() == pytest.approx([10 * 32 * 10 * 123] * len(fedmd))
    assert len(fedgen) < len(fedavg)


def test_no_update_is_ever_late_so_that_rounds_are_as_long_as_their_work(rounds):
    played = rounds("scaffold", 0.045)
    assert (played["arrived"] == 10).all()
    assert played["late"].sum() == 0


@pytest.mark.slow
def test_every_algorithm_compared_has_options_that_are_among_those_tried_and_no_tuning_seed_is_compared():
    algorithms = SCENARIO["names"](SCENARIO["ALGORITHMS"])
    assert set(SCENARIO["CHOSEN"]) == set(algorithms)
    for name, (rate, options) in SCENARIO["CHOSEN"].items():
        tried = SCENARIO["TUNED"].get(name, {})
        assert rate in SCENARIO["RATES"]
        assert options.keys() == tried.keys()
        assert all(value in tried[key] for key, value in options.items())
    runs = [run for name in algorithms for run in compared(90.0, name, 0.18, seeds=100)]
    assert not {run.seed for run in runs} & set(SCENARIO["TUNING_SEEDS"])


@pytest.mark.slow
def test_tuning_tries_every_rate_with_every_option_on_seeds_of_its_own(scenario, tmp_path):
    arguments = ["--tune", "--algorithms", "fedavg,moon", "--seconds", "3", "--jobs", "1", "--out", "out"]
    done = scenario("radio_cost.py", *arguments)
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.stdout.splitlines() if "% over 3 seeds" in line]
    rates, mus = SCENARIO["RATES"], SCENARIO["TUNED"]["moon"]["mu"]
    tried = {f"fedavg-lr{rate}" for rate in rates} | {f"moon-lr{rate}-mu{mu:g}" for rate in rates for mu in mus}
    # Where the learning rate is so high that no run of an option finishes, it is not told.
    assert {line[0] for line in lines} <= tried
    assert len(lines) >= len(tried) - len(mus) - 1
    seeds = {read_config(folder.parent)["seed"] for folder in (tmp_path / "out-tuning").glob("*/run.json")}
    assert seeds == {1000, 1001, 1002}
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_tables_recommend_an_algorithm_for_every_bandwidth_and_cost(scenario, tmp_path):
    done = scenario("radio_cost.py", "--quick", "--jobs", "1", "--out", "out")
    assert done.exit_code == 0, done.output
    pairs, standings, told = (
        pd.read_csv(tmp_path / f"out/{name}.csv") for name in ("pairs", "standings", "recommendation")
    )
    places = [(band, cost) for band in (45e3, 720e3) for cost in ("seconds", "bits", "joules")]
    assert list(zip(told["bandwidth_hz"], told["cost"], strict=True)) == places
    # At each place three algorithms stand, and each is compared with the two others.
    assert (len(standings), len(pairs)) == (len(places) * 3, len(places) * 3)
    assert (pairs["pairs"] == 2).all()
    assert "Which algorithm to take" in done.stdout
    assert (tmp_path / "out/plots/cost_curves.png").exists()
