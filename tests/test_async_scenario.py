"""The protocols of ``scenarios/async_vs_sync.py``: what each is called is what it does."""

import runpy
from pathlib import Path

import pytest

from edgesim.config_file import parse
from edgesim.folder.records import read_table
from edgesim.simulation import composition as simulation

SCENARIO = runpy.run_path(str(Path(__file__).parents[1] / "scenarios/async_vs_sync.py"))


@pytest.fixture
def played(tmp_path):
    """Tables ``rounds`` and ``activities`` of a protocol among 60 phones that stay, four a round, nobody trains."""

    def play(protocol, rounds=30):
        sections = {key: value for key, value in SCENARIO["protocols"](4, 60.0)[protocol].items() if key != "staleness"}
        values = {
            "rounds": rounds,
            "data": {"partition": "fedteddi"},
            "devices": {"count": 60, "a_s_per_sample": 0.02, "mu_samples_per_s": 10.0},
            "radio": {"bandwidth_hz": 5e6},
            "learning": {"training": "none", "pretrain": True},
            **sections,
            "round": {"payload_bits": 17_881_664.0, "admission": "count", "count": 4} | sections["round"],
        }
        simulation.run(parse(values, protocol), tmp_path / protocol)
        return read_table(tmp_path / protocol, "rounds"), read_table(tmp_path / protocol, "activities")

    return play


def test_refl_invites_a_third_too_many_and_is_late_by_no_more_than_them(played):
    """ceil(1.3 x 4) = 6 are invited, the round closes at the fourth arrival, so two of six are late at most.

    With a deadline that follows the rounds' lengths it would fall at every round, and in the end all would be late.
    """
    rounds, _ = played("refl")
    over = played("over-committed")[0]
    for table in (rounds, over):
        assert set(table["selected"]) == {6}
        assert table["late"].max() <= 3
    assert rounds["late"].sum() < 0.4 * rounds["selected"].sum()
    # Rounds do not shrink: the second half takes about as long as the first.
    length_s = (rounds["t_end_s"] - rounds["t_start_s"]).to_numpy()
    assert length_s[15:].mean() > 0.6 * length_s[:15].mean()


def test_under_refl_a_device_rests_for_five_rounds_and_late_work_is_finished(played):
    rounds, acts = played("refl")
    starts = rounds["t_start_s"].to_numpy()

    def begun_in(rows):
        return starts.searchsorted(rows["t_start_s"].to_numpy() + 1e-9)

    computing = acts[acts["activity"] == "compute"]
    for _, own in computing.assign(begun=begun_in(computing)).groupby("device"):
        assert (own["begun"].sort_values().diff().dropna() > 5).all()
    # A latecomer's work counts in a later round than that in which it computed.
    late = computing[computing["round"].to_numpy() > begun_in(computing)]
    assert len(late) > 10
    assert (late["outcome"] == "done").mean() > 0.9


def test_the_over_committed_rounds_beside_it_drop_what_is_late(played):
    rounds, acts = played("over-committed")
    assert acts.loc[acts["outcome"] == "late", "device"].count() >= rounds["late"].sum() == 2 * len(rounds)
