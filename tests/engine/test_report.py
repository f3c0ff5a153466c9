"""What the engine writes about wasted work is what the tables of the same run say."""

import numpy as np
import pandas as pd
import pytest

from edgesim.analysis.waste import work_by_kind
from edgesim.config_file import parse
from edgesim.folder.records import read_table
from edgesim.simulation import composition as simulation

PAPER_CNN_BITS = 17_881_664.0
NAMES = {"seconds": "wasted_s", "bits": "wasted_bits", "joules": "wasted_j"}


def play(folder, policy="random", training="none", availability=None, **round_knobs) -> dict[str, pd.DataFrame]:
    values = {
        "seed": 5,
        "rounds": 12,
        "round": {"payload_bits": PAPER_CNN_BITS, "tmax_s": 0.8, **round_knobs},
        "learning": {"training": training, "pretrain": True},
        "selection": {"policy": policy},
        "availability": availability or {},
        "data": {"partition": "fedteddi"},
    }
    simulation.run(parse(values, "test"), folder)
    return {name: read_table(folder, name) for name in ("rounds", "activities", "updates", "metrics")}


BERNOULLI = {"model": "bernoulli", "probability": 0.7, "slot_s": 0.3}


@pytest.mark.parametrize(
    ("kinds", "knobs"),
    [
        ({"unscheduled"}, {"delay_knowledge": "known", "download_s": 0.05}),
        ({"unscheduled", "late"}, {"delay_knowledge": "planned", "plan_quantile": 0.5}),
        ({"late"}, {"delay_knowledge": "planned", "plan_quantile": 0.5, "computes": "selected"}),
        ({"unscheduled", "dropped"}, {"availability": BERNOULLI}),
        ({"unscheduled", "dropped", "late"}, {"availability": BERNOULLI, "delay_knowledge": "planned"}),
        ({"unscheduled", "dropped"}, {"availability": BERNOULLI, "delay_knowledge": "reported", "download_s": 0.02}),
        ({"unscheduled"}, {"policy": "fedteddi", "training": "real"}),
    ],
)
def test_the_engines_rows_of_wasted_work_equal_what_the_activities_and_updates_say(tmp_path, kinds, knobs):
    tables = play(tmp_path, **knobs)
    read = work_by_kind(tables["activities"], tables["updates"]).query("kind != 'useful'")
    assert set(read["kind"]) == kinds
    expected = read.melt(["round", "kind"], var_name="amount").query("value > 0")
    expected = {(row.round, NAMES[row.amount], row.kind): row.value for row in expected.itertuples()}
    rows = tables["metrics"][tables["metrics"]["name"].isin(NAMES.values())]
    found = {(row.round, row.name, row.key): row.value for row in rows.itertuples(index=False)}
    assert len(found) == len(rows)
    assert found.keys() == expected.keys()
    assert list(found.values()) == pytest.approx([expected[place] for place in found], rel=1e-12)


def test_nobodys_work_is_wasted_when_only_those_compute_whose_uploads_arrive(tmp_path):
    tables = play(tmp_path, computes="selected")
    assert work_by_kind(tables["activities"], tables["updates"]).query("kind != 'useful'").empty
    assert set(tables["metrics"]["name"]) == {"infeasible_share"}


def test_a_device_that_leaves_while_it_waits_for_the_decision_has_wasted_its_computing(tmp_path):
    tables = play(tmp_path, availability=BERNOULLI, delay_knowledge="reported")
    acts, rounds = tables["activities"], tables["rounds"].set_index("round")
    taken = acts.query("activity == 'compute' and outcome == 'done'").groupby("round").size()
    uploads = acts.query("activity == 'upload'").groupby("round").size()
    gone = taken.sub(uploads, fill_value=0)
    assert gone.sum() > 0, "the case that this test is about does not occur: choose another seed"
    assert (gone <= rounds["dropped"].reindex(gone.index)).all()
    upload_s = acts.query("activity == 'upload'").set_index(["round", "device"]).index
    silent = acts.query("activity == 'compute' and outcome == 'done'").set_index(["round", "device"])
    lost_s = (silent["t_end_s"] - silent["t_start_s"])[~silent.index.isin(upload_s)].sum()
    dropped = acts[acts["outcome"] == "dropped"]
    fates = acts.merge(dropped[["round", "device"]].drop_duplicates(), on=["round", "device"])
    written = tables["metrics"].query("name == 'wasted_s' and key == 'dropped'")["value"].sum()
    assert written == pytest.approx(float(np.sum(fates["t_end_s"] - fates["t_start_s"])) + lost_s)
