"""A run as an object: advanced round by round, beside others, without a folder."""

from collections import defaultdict

import pandas as pd
import pytest

from edgesim.config_file import parse
from edgesim.engine.run_state import snapshot
from edgesim.engine.server import RunEnd
from edgesim.folder.records import read_table
from edgesim.folder.run_schema import SCHEMAS
from edgesim.simulation import composition
from edgesim.simulation.complete import complete
from edgesim.simulation.simulation import Simulation

PROTOCOLS = {
    "synchronous": {"late": "keep", "over_commitment": 1.5, "count": 4, "allocator": "equal_share"},
    "buffered": {"protocol": "buffered", "count": 6, "protocol_options": {"buffer": 3}},
    "asynchronous": {"protocol": "asynchronous", "count": 6},
}


class Tables:
    """Rows of tables in memory, as columns by table and name."""

    def __init__(self):
        self.columns = defaultdict(lambda: defaultdict(list))

    def write(self, table, columns):
        for name, values in columns.items():
            self.columns[table][name] += list(values)


def config(kind, seed=0, rounds=9):
    return complete(
        parse(
            {
                "seed": seed,
                "rounds": rounds,
                "devices": {"count": 12},
                "round": {"payload_bits": 4e6, "tmax_s": 0.5, "admission": "count", **PROTOCOLS[kind]},
                "data": {"dataset": "none", "partition": "iid"},
                "learning": {"training": "none", "pretrain": False},
            },
            "test",
        )
    )


def begun(settings, tables):
    simulation = Simulation(settings)
    simulation.make_server(tables)
    simulation.learner.prepare(lambda _: None)
    simulation.begin()
    return simulation


def assert_same_rows(tables, folder):
    for name in set(SCHEMAS) - {"timing"}:
        mine = pd.DataFrame(tables.columns[name])
        pd.testing.assert_frame_equal(mine, read_table(folder, name)[[*mine]], check_dtype=False, check_exact=True)


@pytest.mark.parametrize("kind", PROTOCOLS)
def test_two_runs_advanced_in_turns_have_the_rows_of_runs_in_folders(kind, tmp_path):
    settings, tables = [config(kind, seed) for seed in (1, 2)], [Tables(), Tables()]
    pair = [begun(*of) for of in zip(settings, tables, strict=True)]
    ended = [None, None]
    for _ in range(10):
        for place, simulation in enumerate(pair):
            ended[place] = simulation.advance()
    assert [type(end) for end in ended] == [RunEnd, RunEnd]
    for simulation, own, rows in zip(pair, settings, tables, strict=True):
        simulation.server.stop()
        simulation.server.parts.report.write_row()
        simulation.close()
        folder = tmp_path / str(own.seed)
        composition.run(own, folder)
        assert len(read_table(folder, "rounds")) == 9
        assert_same_rows(rows, folder)


def test_each_advance_ends_with_a_round_and_the_last_with_the_reason():
    with begun(config("synchronous", rounds=3), Tables()) as simulation:
        rounds = [simulation.advance() for _ in range(3)]
        assert [done.round for done in rounds] == [1, 2, 3]
        assert rounds[0].t_s < rounds[1].t_s < rounds[2].t_s == simulation.server.parts.clock.now
        assert simulation.advance() == RunEnd("all rounds done")


def test_a_run_that_resumes_from_a_snapshot_has_the_rest_of_the_rows(tmp_path):
    settings, tables, rest = config("buffered"), Tables(), Tables()
    with begun(settings, tables) as first:
        for _ in range(4):
            first.advance()
        before = {name: len(columns["round"]) for name, columns in tables.columns.items() if "round" in columns}
        with Simulation(settings) as second:
            second.make_server(rest)
            second.resume(snapshot(first.server, 4))
            while not isinstance(second.advance(), RunEnd):
                pass
            second.server.stop()
    composition.run(settings, tmp_path / "whole")
    del before["timing"]
    for name, length in before.items():
        whole = read_table(tmp_path / "whole", name).iloc[length:].reset_index(drop=True)
        mine = pd.DataFrame(rest.columns[name])
        pd.testing.assert_frame_equal(mine, whole[[*mine]], check_dtype=False, check_exact=True)
