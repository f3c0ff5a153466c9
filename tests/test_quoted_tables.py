"""Tables and sentences of docs/results.md that quote no interval: each number computed anew from the committed rows.

What has an interval is found by `test_quoted_numbers.py`. Here every cell of a table is compared with the runs that its
row names, and every sentence is put together from what the rows say and looked for in its section.
"""

import tomllib
from functools import cache

import numpy as np
import optuna
import pandas as pd
import scipy
from optuna.importance import PedAnovaImportanceEvaluator
from quoted import DOCS, SEEDS, half_interval, not_said, pm, spanning, table

from edgesim.analysis.recommendation import compare, stand


@cache
def rows(study):
    return pd.read_csv(SEEDS / f"{study}.csv")


def differences(study, measure, between=None):
    found = pd.read_csv(SEEDS / f"{study}-differences.csv").query("measure == @measure")
    return found if between is None else found[found["between"] == between]


def means(study, *knobs):
    return rows(study).groupby([*knobs], dropna=False).mean(numeric_only=True)


FADING = "Fading and the band"


def test_fading():
    of = means("fading", "policy", "plan", "fading", "sharing")
    plans = {
        "no fading": ("average", "none"), "average": ("average", "rayleigh"),
        "`round.outage = 0.05`": ("outage-0.05", "rayleigh"),
    }  # fmt: skip
    shown = table(FADING, 3)
    assert len(shown) == 9
    for policy, plan, band, *cells in shown:
        row = of.loc[(policy.lower(), *plans[plan], band.replace("-", ""))]
        assert cells == [
            f"{100 * row['miss_rate']:.0f} %", f"{row['scheduled']:.1f}, {row['arrived']:.1f}",
            f"{row['seconds_to_target']:.1f}", f"{row['final_accuracy']:.3f}",
        ], (policy, plan, band)  # fmt: skip
    missed = pd.concat([differences("fading", "miss_rate", f"differences-{knob}") for knob in ("fading", "sharing")])
    fades = missed[(missed["fading"] == "rayleigh") & (missed["differing"] > 0)]
    assert len(fades)
    assert (fades["p_holm"] < 0.05).all()
    missed = of.xs(("average", "rayleigh", "reserved"), level=("plan", "fading", "sharing"))["miss_rate"]
    assert not_said(FADING, [f"{100 * missed['fedteddi']:.0f} % is slightly more than 1 - 1/e"]) == []
    assert ((missed > 1 - 1 / np.e) & (missed < 1.02 * (1 - 1 / np.e))).all()


MOBILITY = "Devices that move"


def test_mobility():
    runs, of = rows("mobility"), means("mobility", "world", "speed_mps", "plan", "policy")
    for world, plan, *cells in table(MOBILITY, 2):
        for speed, cell in zip((0.0, 1.5, 15.0), cells, strict=True):
            here = (f"deadline {world}", speed, plan)
            if not cell:
                assert here not in of.index.droplevel("policy")
                continue
            own, other = of.loc[(*here, "fedteddi")], of.loc[(*here, "random")]
            accuracies = f"{own['final_accuracy']:.3f}, {other['final_accuracy']:.3f}"
            assert cell == f"{100 * own['miss_rate']:.0f} %, {accuracies}", (here, cell)
    halves = runs[runs["policy"].isin(["fedteddi", "random"])].groupby(["world", "speed_mps", "plan", "policy"])
    halves = halves["final_accuracy"].apply(half_interval)
    accuracy = of["final_accuracy"].unstack()
    lead = accuracy["fedteddi"] - accuracy["random"]
    assert (accuracy.idxmax(axis=1) == "fedteddi").all()
    policies = differences("mobility", "final_accuracy", "differences-policy")
    told = policies["p_holm"] < 0.05
    assert ((policies["low"] > 0) | (policies["high"] < 0)).sum() == 93
    moving_present = (policies["plan"] == "present") & (policies["speed_mps"] > 0)
    assert not (told & moving_present).any()
    every = pd.read_csv(SEEDS / "mobility-differences.csv").groupby("between").size()
    missed = of["miss_rate"].unstack("plan")
    straight = missed[missed["straight"].notna()]
    saved = 100 * (1 - straight["straight"] / straight["present"])
    plans = differences("mobility", "miss_rate", "differences-plan")
    better = differences("mobility", "final_accuracy", "differences-plan")
    fast, ten = of.xs(15.0, level="speed_mps").xs("deadline 10 s"), straight.xs("deadline 10 s")["straight"]
    reserve = 100 * missed["known, outage"].dropna()
    assert [round(value) for value in (reserve.min(), reserve.max())] == [9, 11]
    assert (plans[plans["p_holm"] >= 0.05]["speed_mps"] == 1.5).all()
    assert plans[plans["p_holm"] >= 0.05]["world"].str.startswith("deadline 1 s").all()
    assert not (better["p_holm"] < 0.05).any()
    assert not_said(MOBILITY, [
        f"{len(runs)} runs", f"half widths {spanning(halves)})",
        f"in all {len(lead)} places, {spanning(lead)} above Random's",
        f"Of {len(policies)} differences 93 have intervals without 0, {told.sum()} are significant",
        f"{every['differences-policy']} comparisons of policies, {every['differences-plan']} of plans",
        f"takes away {saved.min():.0f} % (FedTeddi, 10 s, 15 m/s) to {saved.max():.0f} % of the misses",
        f"{(plans['p_holm'] < 0.05).sum()} of all {len(plans)} differences in misses are significant",
        f"In rounds of 10 s {100 * ten.min():.0f} to {100 * ten.max():.0f} % still miss",
        f"lets {spanning(fast.xs('worst')['arrived'], '{:.1f}')} updates arrive where `known` has "
        f"{spanning(fast.xs('known')['arrived'], '{:.1f}')}",
        f"add {spanning(better['difference'], '{:.3f}')} to accuracy, with {(better['low'] > 0).sum()} of "
        f"{len(better)} intervals above 0",
    ]) == []  # fmt: skip


HANDOVER = "Does motion help at the edge once the radio has a price?"


def test_handover():
    # Runs at rest have no merge, and stand once.
    of = rows("handover").fillna({"merge": "at rest"}).groupby(["radio", "merge", "speed_mps"]).mean()
    for radio, merge, missed, accuracy, _ in table(HANDOVER, 2):
        name = {"no `[handover]`": "never"}.get(merge, merge.strip("`"))
        places = [(radio, name if speed else "at rest", speed) for speed in (0, 10, 30)]
        rates = [of.loc[place, "miss_rate"] for place in places]
        assert missed == ", ".join(f"{rate:.3f}" if rate else "0" for rate in rates), (radio, merge)
        assert accuracy == ", ".join(f"{of.loc[place, 'final_accuracy']:.3f}" for place in places), (radio, merge)
    free = 100 * of.loc["free"].query("speed_mps > 0")["miss_rate"]
    fast = of.loc["priced", "where_arrived", 30]
    assert not_said(HANDOVER, [
        f"{len(rows('handover'))} runs", f"{free.min():.0f} to {free.max():.0f} % of them are late",
        f"a run has {fast['handovers']:,.0f} handovers of devices at work and {fast['uploads']:,.0f} planned uploads",
    ]) == []  # fmt: skip


CELLS = "Cells, and averaging at the edge"


def test_cells():
    of = means("cells", "aggregation", "topology", "spectrum")["scheduled"].round().astype(int)["flat"]
    seconds = differences("cells", "seconds_to_target")
    assert (seconds["p_holm"] >= 0.05).all()
    assert not_said(CELLS, [
        f"{of['one-cell', 'reused']} by one station, {of['three-cells', 'reused']} by three and "
        f"{of['seven-cells', 'reused']} by seven with 20 MHz each, {of['three-cells', 'split']} and "
        f"{of['seven-cells', 'split']} with the same spectrum in all",
    ]) == []  # fmt: skip
    first = differences("cells", "scheduled", "differences-aggregation")
    told = first[first["p_holm"] < 0.05]["difference"]
    assert not_said(CELLS, [f"schedules {told.min():.1f} to {told.max():.1f} devices more"]) == []


BAND = "Which deadline, which band?"


def test_deadline_and_band():
    runs, fresh = rows("deadline-band"), rows("deadline-band-fresh")
    cells = {key: of for key, of in runs.groupby(["tmax_s", "bandwidth_hz"]) if len(of) == 5}
    for _, tmax, band, *shown in table(BAND, 1):
        due_s, hz = float(tmax.split()[0]), 1e6 * float(band.split()[0])
        (key,) = [key for key in cells if key[1] == hz and f"{key[0]:.2f}" == f"{due_s:.2f}"]
        column = "seconds_to_target" if shown[0].endswith(" s") else "joules_to_target"
        form = "{:.1f}" if column[0] == "s" else "{:.0f}"
        new = fresh[np.isclose(fresh["tmax_s"], key[0]) & (fresh["bandwidth_hz"] == hz)]
        assert shown == [f"{pm(of[column], form)} {shown[0][-1]}" for of in (cells[key], new)]
    of = runs.groupby(["bandwidth_hz", "tmax_s"]).mean()
    reached = of[of["seconds_to_target_bound"].isna()]
    narrow = reached.loc[10e6]["seconds_to_target"].loc[0.665:]
    early = runs[(runs["bandwidth_hz"] == 10e6) & np.isclose(runs["tmax_s"], 0.34, atol=0.005)]
    flat = reached[reached["scheduled"] >= 5].reset_index().query("tmax_s >= 0.345")["joules_to_target"]
    short = reached.loc[160e6].loc[:0.345]["joules_to_target"]
    shares = importances(reached)
    fastest = of.loc[160e6].loc[0.205:0.215].iloc[0]
    assert not_said(BAND, [
        f"{len(runs)} runs",
        f"{shares['seconds_to_target']:.2f} (seconds) and {shares['joules_to_target']:.2f} (joules)",
        f"where {of.loc[160e6].loc[0.15, 'scheduled']:.1f} devices a round are taken",
        f"On 10 MHz cells from 0.67 s on take {spanning(narrow, '{:.0f}')} s; at 0.34 s "
        f"{ {2: 'two'}[early['seconds_to_target'].isna().sum()] } seeds of five never get there",
        f"{spanning(flat, '{:.0f}')} J in all cells from 0.35 s on with five devices or more",
        f"({spanning(short, '{:.0f}')} J on 160 MHz",
    ]) == []  # fmt: skip
    again = fresh[np.isclose(fresh["tmax_s"], fastest.name)]["seconds_to_target"].mean()
    assert round(10 * (again / fastest["seconds_to_target"] - 1)) == 3


def importances(cells):
    """Share of the deadline in the importance by PED-ANOVA, for each objective; the band is the place in its list."""
    due_s = optuna.distributions.FloatDistribution(0.15, 1.4)
    bands = sorted(set(cells.index.get_level_values("bandwidth_hz")))
    found = {}
    for column in ("seconds_to_target", "joules_to_target"):
        study = optuna.create_study(direction="minimize")
        for (hz, tmax_s), value in cells[column].items():
            params = {"tmax_s": tmax_s, "band": bands.index(hz)}
            kinds = {"tmax_s": due_s, "band": optuna.distributions.IntDistribution(0, len(bands) - 1)}
            study.add_trial(optuna.trial.create_trial(value=value, params=params, distributions=kinds))
        shares = optuna.importance.get_param_importances(study, evaluator=PedAnovaImportanceEvaluator())
        found[column] = shares["tmax_s"]
    return found


LEARNT = "Can a scheduler be learnt?"


def test_learned_scheduler():
    of = means("learned-scheduler", "policy")
    names = {"cross-entropy method, 6,400 decisions": "cem", "PPO, 16,384 decisions": "ppo"}
    beside = differences("learned-scheduler", "arrived", "arrived-random").set_index("policy")
    for name, arrived, difference, accuracy in table(LEARNT, 1):
        policy = names.get(name, name.lower().replace(" ", "-").removesuffix("-first").replace("least-band-first", ""))
        assert arrived == f"{of.loc[policy, 'arrived']:.2f}"
        seeds = rows("learned-scheduler").query("policy == @policy")["final_accuracy"]
        assert accuracy == pm(seeds, "{:.3f}")
        if policy != "random":
            row = beside.loc[policy]
            ends = f"({row['low_holm']:.2f} to {row['high_holm']:.2f})"
            assert difference == f"{row['difference']:+.2f} {ends}"


PROTOCOLS = "With and without rounds"


def test_protocols():
    runs, of = rows("protocols"), means("protocols", "protocol")
    names = ("synchronous", "over-committed", "refl", "fedbuff", "fedasync")
    beside = differences("protocols", "seconds_to_target").set_index("protocol")
    for name, (_, seconds, difference, stays, kilojoules, wasted) in zip(names, table(PROTOCOLS, 1), strict=True):
        mine = runs[runs["protocol"] == name]
        assert seconds == pm(mine["seconds_to_target"], "{:.0f}")
        assert stays == pm(mine["seconds_to_stay"], "{:.0f}")
        assert kilojoules == pm(mine["joules_to_target"] / 1000, "{:.1f}")
        assert wasted == f"{100 * of.loc[name, 'wasted_share_j']:.0f} %"
        if name != "synchronous":
            row = beside.loc[name]
            told = " (significant)" if row["p_holm"] < 0.05 else ""
            assert difference == f"{row['difference']:.0f} ± {row['high'] - row['difference']:.0f}{told}"
    spread = runs.groupby("protocol")["seconds_to_target"].std()
    assert not_said(PROTOCOLS, [
        f"means lie between {of['final_accuracy'].min():.3f} and {of['final_accuracy'].max():.3f}",
        f"spread in seconds is {spread['synchronous'] / spread['refl']:.1f} times",
    ]) == []  # fmt: skip


REPLAY = "A recording replayed"


def test_replay():
    runs = rows("replay").set_index(["policy", "seed"])
    longest = {policy: runs.loc[policy]["rounds_to_target"].mean() for policy in ("availability-first", "random")}
    assert round(longest["availability-first"] / longest["random"]) == 3
    ways = [runs[runs["interruption"] == way] for way in ("abort", "pause", "ignore")]
    assert all(way["rounds_to_target"].equals(ways[0]["rounds_to_target"]) for way in ways)
    apart = max(abs(way["final_accuracy"] - ways[0]["final_accuracy"]).max() for way in ways)
    assert not_said(REPLAY, [f"differ by at most {apart:.4f} in final accuracy and not in rounds"]) == []


ADAPTIVE = "Selection or aggregation?"


def test_adaptive():
    runs, of = rows("adaptive"), means("adaptive", "policy", "aggregation")
    compared = pd.read_csv(SEEDS / "adaptive-differences.csv")
    # The first rows compare selectors with Random, the others aggregations with FedAvg.
    selectors, merges = (part.set_index(["policy", "aggregation"]) for part in (compared[:20], compared[20:]))
    columns = ("fedavg", "fedstg", "afl", "mifa", "kpfl")
    assert set(selectors.index) == {(name, of) for name in ("fedteddi", "feddance", "oort", "afl") for of in columns}
    assert "fedavg" not in merges.index.get_level_values("aggregation")
    for name, *cells in table(ADAPTIVE, 1):
        policy = name.strip("`")
        for aggregation, cell in zip(columns, cells, strict=True):
            mine = runs[(runs["policy"] == policy) & (runs["aggregation"] == aggregation)]["final_accuracy"]
            lower = aggregation != "fedavg" and merges.loc[(policy, aggregation)]["p_holm"] < 0.05
            beside = None if policy == "random" else selectors.loc[(policy, aggregation)]
            told = beside is not None and beside["p_holm"] < 0.05
            sign = " -" if told and beside["difference"] < 0 else " +" if told else ""
            assert cell == pm(mine, "{:.3f}") + (" *" if lower else "") + sign, (policy, aggregation)
    lost = -merges["difference"].unstack()
    averaged = ["fedavg", "fedstg", "afl"]
    ahead = selectors["difference"].unstack()
    rounds = of["rounds_to_target"].unstack()[averaged]
    sooner = rounds.loc["random"] - rounds.loc["fedteddi"]
    shares = squares(runs)
    for aggregation in averaged:
        table_of = runs[runs["aggregation"] == aggregation].pivot(index="seed", columns="policy")["rounds_to_target"]
        # Corrected as if each of the table's comparisons had been tested in rounds.
        assert len(compared) * scipy.stats.ttest_rel(table_of["random"], table_of["fedteddi"]).pvalue < 0.05
    assert not_said(ADAPTIVE, [
        f"{len(compared)} comparisons corrected together",
        f"aggregation has {shares['aggregation']:.1f} % of the squares, policy {shares['policy']:.1f} %, both together "
        f"{shares['both']:.1f} %",
        f"MIFA ends {spanning(lost['mifa'], '{:.3f}')} below FedAvg, KPFL {spanning(lost['kpfl'], '{:.3f}')}",
        f"(at most {lost[['fedstg', 'afl']].abs().max().max():.3f} off)",
        f"FedTeddi ends {spanning(ahead.loc['fedteddi', averaged], '{:.3f}')} above Random",
        f"reaches 80 % {spanning(sooner, '{:.1f}')} rounds sooner ({rounds.loc['fedteddi', 'fedavg']:.1f} beside "
        f"{rounds.loc['random', 'fedavg']:.1f}; significant)",
        f"gains {spanning(ahead.loc['afl', averaged], '{:.3f}')} where updates are averaged",
        f"it is {-ahead.loc['afl', 'mifa']:.3f} and {-ahead.loc['afl', 'kpfl']:.3f} worse than Random",
    ]) == []  # fmt: skip


def squares(runs):
    """Shares, in per cent, of the sum of squares by aggregation, by policy and by both together."""
    accuracy = runs["final_accuracy"]
    by = {
        name: runs.groupby(knobs)["final_accuracy"].transform("mean") - accuracy.mean()
        for name, knobs in (("aggregation", "aggregation"), ("policy", "policy"), ("both", ["aggregation", "policy"]))
    }
    by["both"] -= by["aggregation"] + by["policy"]
    return {name: 100 * (of**2).sum() / ((accuracy - accuracy.mean()) ** 2).sum() for name, of in by.items()}


RADIO = "Which algorithm at which bandwidth?"


def test_radio_cost():
    runs = rows("radio-cost")
    left = standings("radio-cost", "bandwidth_hz", "algorithm").assign(out=lambda of: of["ruled_out_by"] != "")
    out = left.set_index(["cost", "bandwidth_hz", "algorithm"])["out"]
    for name, *cells in table(RADIO, 1):
        for hz, cell in zip((45e3, 180e3, 720e3), cells, strict=True):
            mine = runs[(runs["algorithm"] == name.lower()) & (runs["bandwidth_hz"] == hz)]
            mark = " *" if out["seconds", hz, name.lower()] else ""
            assert cell == f"{pm(mine['accuracy_percent'], '{:.1f}')}, {mine['rounds_made'].mean():.0f}{mark}", name
    at = {
        "MIFA": (45, 180), "SCAFFOLD": (45,), "FLwF": (180,), "CFeD": (720,), "MOON": (720,), "FedGen": (45, 180),
        "FedMD": (45, 180, 720), "FedProto": (45, 180, 720),
    }  # fmt: skip
    of = out["joules"]
    assert {key for key in of.index if of[key]} == {(1e3 * khz, name.lower()) for name, on in at.items() for khz in on}
    counts = (~left["out"]).groupby([left["cost"], left["bandwidth_hz"]]).sum()
    words = {2: "two", 13: "thirteen", 14: "fourteen", 15: "fifteen", 16: "sixteen"}
    assert not out.xs("feddyn", level="algorithm")[["seconds", "joules"]].any()
    bits = out["bits"]
    assert {name for _, name in bits.index[~bits]} == {"fedmd", "fedprox"}
    assert not_said(RADIO, [
        f"{words[counts.min()]} to {words[counts.max()]} algorithms are left at every bandwidth and budget",
        f"Holm over {len(pairs('radio-cost', 'bandwidth_hz', 'algorithm')):,} comparisons",
    ]) == []  # fmt: skip


@cache
def pairs(study, place, choice):
    return compare(pd.read_parquet(DOCS / f"papers/{study}.parquet"), [place, "cost"], choice)


@cache
def standings(study, place, choice):
    return stand(
        pd.read_parquet(DOCS / f"papers/{study}.parquet"), pairs(study, place, choice), [place, "cost"], choice
    )


CODECS = "What does a codec gain?"


def test_codecs():
    runs = rows("codecs")
    names = list(dict.fromkeys(runs["codec"]))
    # What whole rounds took.
    scores = pd.read_parquet(DOCS / "papers/codecs.parquet").query("cost == 'joules'")
    joules = scores.groupby(["band_mhz", "codec"])["spent"].mean()
    for name, (_, *cells) in zip(names, table(CODECS, 1), strict=True):
        for mhz, cell in zip((2, 20), cells, strict=True):
            mine = runs[(runs["codec"] == name) & (runs["band_mhz"] == mhz)]
            made, arrived, spent_j = mine["rounds_made"].mean(), mine["arrived"].mean(), joules[mhz][name]
            sent = f"{arrived:.1f}".replace("30.0", "30")
            accuracy = pm(mine["accuracy_percent"], "{:.1f}")
            assert cell == f"{made:.0f}, {sent}, {accuracy} %, {spent_j:.0f} J", (name, mhz)
    of = standings("codecs", "band_mhz", "codec").set_index(["cost", "band_mhz", "codec"])
    out = {key for key in of.index if of.loc[key, "ruled_out_by"]}
    behind = 100 * of.xs("topk alone", level="codec").loc["seconds", "behind"]
    dearest = max((joules[mhz] / joules[mhz]["none"]).max() for mhz in (2, 20))
    everywhere = {(cost, mhz, "topk alone") for cost in ("seconds", "bits", "joules") for mhz in (2, 20)}
    wide = {("bits", 20, name) for name in names if name not in ("stc", "randk")}
    assert out == everywhere | wide | {("seconds", 2, "none"), ("bits", 2, "topk"), ("joules", 20, "topk")}
    better = pairs("codecs", "band_mhz", "codec").query("cost == 'joules' and worse == 'none'")
    assert (better["p_holm"] >= 0.05).all()
    assert not_said(CODECS, [
        f"up to {dearest:.1f} times the joules", f"at equal seconds by {spanning(behind, '{:.0f}')} points",
    ]) == []  # fmt: skip


def test_every_section_with_rows_is_checked_here():
    checked = {FADING, MOBILITY, HANDOVER, CELLS, BAND, LEARNT, PROTOCOLS, REPLAY, ADAPTIVE, RADIO, CODECS}
    # Its tables have a test beside that of its verdicts, in scenario/test_compression.py.
    checked |= {"Coarser, less, or fewer devices?"}
    plan = tomllib.loads((DOCS / "papers/tables.toml").read_text())
    assert {of["section"] for of in plan["studies"].values() if "section" in of} == checked
