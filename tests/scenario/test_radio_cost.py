"""What ``scenarios/radio_cost.py`` compares: what algorithms send and compute costs rounds."""

import runpy
from pathlib import Path

import pytest

from edgesim.config_file import parse
from edgesim.folder.records import read_config, read_table
from edgesim.scenario import Runs
from edgesim.simulation import composition as simulation

SCENARIO = runpy.run_path(str(Path(__file__).parents[2] / "scenarios/radio_cost.py"))


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


def test_what_algorithms_send_and_compute_costs_rounds(rounds):
    """SCAFFOLD sends twice as much, FedMD logits; FedGen waits for its generator; MOON computes longer."""
    narrow = {name: rounds(name, 0.045) for name in ("fedavg", "scaffold", "moon", "fedgen", "fedmd")}
    wide = {name: len(rounds(name, 0.72)) for name in ("fedavg", "scaffold", "moon")}
    sent = {"fedavg": 77_120, "moon": 77_120, "scaffold": 2 * 77_120, "fedmd": 32 * 10 * 123}
    for name, played in narrow.items():
        assert (played["arrived"] == 10).all()
        assert played["late"].sum() == 0
        if name in sent:
            assert played["bits_up"].tolist() == pytest.approx([10 * sent[name]] * len(played))
    assert len(narrow["scaffold"]) < len(narrow["moon"]) < len(narrow["fedavg"])
    assert wide["moon"] < wide["scaffold"] < wide["fedavg"]
    # The generator's 631,808 bits at 2 bit/s/Hz; round 1 has none.
    lengths_s = {name: (narrow[name]["t_end_s"] - narrow[name]["t_start_s"]).to_numpy() for name in narrow}
    waits_s = lengths_s["fedgen"][1:].mean() - lengths_s["fedavg"].mean()
    assert waits_s == pytest.approx(631_808 / 90e3, rel=0.1)


@pytest.mark.slow
def test_every_algorithm_compared_has_options_that_are_among_those_tried_and_no_tuning_seed_is_compared():
    algorithms = SCENARIO["names"](SCENARIO["ALGORITHMS"])
    assert set(SCENARIO["CHOSEN"]) == set(algorithms)
    for name, (rate, options) in SCENARIO["CHOSEN"].items():
        tried = SCENARIO["TUNED"].get(name, {})
        assert rate in SCENARIO["RATES"]
        assert options.keys() == tried.keys()
        assert all(value in tried[key] for key, value in options.items())
    runs = [run for name in algorithms for run in compared(90.0, name, 0.18, seeds=20)]
    assert not {run.seed for run in runs} & set(SCENARIO["TUNING_SEEDS"])


@pytest.mark.slow
def test_tuning_tries_every_rate_with_every_option_on_seeds_of_its_own(scenario, tmp_path):
    arguments = ["--tune", "--algorithms", "fedavg,cfed", "--seconds", "3", "--jobs", "1", "--out", "out"]
    done = scenario("radio_cost.py", *arguments)
    assert done.exit_code == 0, done.output
    lines = [line.split() for line in done.stdout.splitlines() if "% over 3 seeds" in line]
    rates, own = SCENARIO["RATES"], SCENARIO["TUNED"]["cfed"]["strength"]
    tried = {f"fedavg-lr{rate}" for rate in rates} | {f"cfed-lr{rate}-strength{of:g}" for of in own for rate in rates}
    # Where the learning rate is so high that no run of an option finishes, it is not told.
    assert {line[0] for line in lines} <= tried
    assert len(lines) >= len(tried) - len(own) - 1
    seeds = {read_config(folder.parent)["seed"] for folder in (tmp_path / "out-tuning").glob("*/run.json")}
    assert seeds == {1000, 1001, 1002}
    assert not (tmp_path / "out").exists()
