"""The tables of a study's policies on the terminal."""

import io
import itertools

import pytest
from rich.console import Console

from edgesim.analysis.compare import compare
from edgesim.analysis.summary import summarise
from edgesim.tables.show import print_study


def shown(folder) -> str:
    console = Console(file=io.StringIO(), width=160)
    print_study(folder, console)
    return console.file.getvalue()


def learnt(tmp_path, write, paths):
    """A study of accuracies by policy and seed."""
    return shown(write(tmp_path / "study", paths, knobs={"tmax_s": 2.0}))


def path(rounds: int, of: int = 12) -> list[float]:
    return [0.6] * (rounds - 1) + [0.8] * (of - rounds + 1)


def test_runs_that_never_get_there_look_like_no_data(tmp_path, study_writer):
    never = [0.6] * 12
    text = learnt(
        tmp_path,
        study_writer,
        {"random": [path(6), path(8), path(7)], "fedcs": [never] * 3, "oort": [path(3), never, path(3)]},
    )
    cells = {line.split()[0]: line for line in text.splitlines()[:8] if line.strip()}
    assert "> 12.0 (0 of 3)" in cells["fedcs"]
    assert "> 24.0 (0 of 3)" in cells["fedcs"]
    assert "> 6.0 (2 of 3)" in cells["oort"]  # rounds 3, 12 and 3
    assert "7.0 ± 2.5" in cells["random"]
    assert "4 of 9 runs never reached it" in text
    # Rounds 3, 3 and more than 12 against 6, 8 and 7.
    words = " ".join(text.split())
    assert "oort 3 x0.685 (to 12) [0.1255, 3.739] 0.845 inconclusive" in words
    assert "times are compared up to the shortest one to which all these runs were tested" in words
    assert "One choice spreads more than 3 times as much over seeds as the other in" in words
    assert "rounds_to_target of oort" in words


def test_a_studys_policies_are_read_plainly_by_the_corrected_p(tmp_path, study_writer):
    """Oort needs far fewer rounds than Random on every seed, FedCS now more, now fewer, REFL the same."""
    rounds = {
        "random": [9, 10, 11, 10, 9],
        "oort": [2, 3, 3, 2, 3],
        "fedcs": [12, 7, 12, 8, 12],
        "refl": [9, 10, 11, 10, 9],
    }
    paths = {policy: [path(needed) for needed in of_seeds] for policy, of_seeds in rounds.items()}
    text = learnt(tmp_path, study_writer, paths)
    start = text.index("Rounds to accuracy 0.75")
    table = {line.split()[0]: line.split() for line in text[start : text.index("Final accuracy", start)].splitlines()}
    assert table["oort"][1:3] == ["5", "-7.2"]
    assert table["oort"][-2:] == ["<0.001", "fewer"]
    assert table["fedcs"][-2:] == ["1.000", "inconclusive"]
    assert table["refl"][-1] == "equivalent"
    assert "corrected by Holm for the 4 of 6 comparisons in which a pair differs" in text
    assert "accuracy: mean of a run's last 5 tests; stays: no test from then on is below the target" in text


def test_a_study_of_dynamic_participation_shows_we_idp_id_and_forgetting_with_their_intervals(tmp_path, study_writer):
    laws = {"always": {"model": "always"}, "markov": {"model": "markov"}}
    runs = [
        ({"availability": law}, seed, "finished", [0.8 - (law == "markov") * 0.01 * (seed + 1)] * 12)
        for law in laws
        for seed in range(3)
    ]
    configs = [{"availability": laws[knobs["availability"]]} for knobs, *_ in runs]
    text = shown(study_writer(tmp_path / "study", runs, target=None, configs=configs))
    (markov,) = [line for line in text.splitlines() if line.startswith("markov") and "+2.00 ± 2.48" in line]
    assert "78.00 ± 2.48" in markov  # t(0.975, 2) / sqrt(3) = 2.484
    assert "through rounds 7-12" in " ".join(text.split())
    assert "polynomial of degree 1" in " ".join(text.split())


def test_a_study_of_dynamic_participation_shows_the_forgetting_of_each_class_with_its_interval(tmp_path, study_writer):
    """Of 12 classes, ten in a table: class 11 falls by 10, 20 and 30 points, all others rise.

    t(0.975, 2) / sqrt(3) = 2.484, times the standard deviation 10.
    """
    runs = [({"availability": "markov"}, seed, "finished", [0.5] * 6) for seed in range(3)]
    first = dict.fromkeys(range(12), 0.5)
    classes = [[first] * 5 + [dict.fromkeys(range(12), 0.6) | {11: 0.4 - seed / 10}] for seed in range(3)]
    configs = [{"availability": {"model": "markov"}}] * 3
    folder = study_writer(tmp_path / "study", runs, target=None, configs=configs, classes=classes)
    text = shown(folder)
    headings = [line.split()[1:] for line in text.splitlines() if line.startswith("availability ")]
    assert [labels for labels in headings if "".join(labels).isdecimal()] == [list("0123456789"), ["10", "11"]]
    (line,) = [line for line in text.splitlines() if "20.0 ± 24.8" in line]
    assert line.split() == ["markov", "-10.0", "±", "0.0", "20.0", "±", "24.8"]
    summary = summarise(folder)
    assert summary["forgetting_points"].tolist() == pytest.approx([(20 - 110) / 12])
    assert summary[["forgetting_class_11", "forgetting_class_11_high"]].iloc[0].tolist() == pytest.approx(
        [20, 20 + 10 * 4.302652730 / 3**0.5]
    )


def test_a_study_in_which_all_devices_are_always_there_has_no_table_of_participation(tmp_path, study_writer):
    text = learnt(tmp_path, study_writer, {"random": [[0.6, 0.7, 0.8]] * 2})
    assert "participation" not in text
    assert "IDP" not in text


UNEQUAL = "over different deadlines at fixed rounds: runs with a Tmax of"
FIXED = [(1.0, 8, {}), (2.0, 12, {})]


def stopped(*times):
    """Deadlines and numbers of rounds with the second at which runs stop, and with their most rounds where given."""
    return [(tmax_s, rounds, dict(zip(("stop_at_s", "rounds"), ends, strict=False))) for tmax_s, rounds, *ends in times]


@pytest.mark.parametrize(
    ("times", "by", "within", "said"),
    [
        (FIXED, "tmax_s", "policy", f"{UNEQUAL} 1 s end by 16 s, those with a Tmax of 2 s"),
        (FIXED, "policy", "tmax_s", None),
        (stopped((1.0, 8, 20.0), (2.0, 12, 20.0)), "tmax_s", "policy", None),
        (stopped((1.0, 8, 16.0), (1.2, 12, 24.0)), "tmax_s", "policy", "runs with stop_at_s = 16 end by 16 s, those"),
        (stopped((0.3, 8, 50.0, 8), (1.2, 12, 50.0, 12)), "tmax_s", "policy", f"{UNEQUAL} 0.3 s end by 16 s"),
        (stopped((0.3, 8, 50.0, 99), (1.2, 12, 50.0, 99)), "tmax_s", "policy", None),
    ],
    ids=["fixed rounds", "apart", "one end", "two ends", "rounds first", "time first"],
)
def test_seconds_of_runs_that_had_unequal_time_are_noted(tmp_path, study_writer, times, by, within, said):
    """Runs at deadlines, with further keys, that make all of their rounds at 2 s each; one never gets there."""
    runs, configs = [], []
    for tmax_s, rounds, more in times:
        for policy, seed in itertools.product(("random", "fedteddi"), (0, 1)):
            accuracies = [0.6] * rounds if seed and policy == "random" else path(6, rounds)
            runs.append(({"policy": policy, "tmax_s": tmax_s}, seed, "finished", accuracies))
            configs.append({"round": {"tmax_s": tmax_s}, **more})
    folder = study_writer(tmp_path / "study", runs, configs=configs)
    notes = [note for note in compare([folder], ["seconds_to_target"], by, within=[within]).notes if "Seconds" in note]
    assert len(notes) == (said is not None)
    if said is not None:
        assert said in notes[0]
        assert "give all runs the same stop_at_s" in notes[0]
        assert said in " ".join(shown(folder).split())
        assert "Seconds" not in " ".join(compare([folder], ["rounds_to_target"], by, within=[within]).notes)
