import io
from contextlib import suppress

import pytest
from rich.console import Console

from edgesim.screen import progress
from edgesim.screen.progress import ROUNDS, SECONDS, Display, Extent, Message, bar

RUNS = dict.fromkeys("abcd", Extent(400, ROUNDS))


def last_line(extents, news, endings, error=None) -> str:
    """What stands there once a study is over: what running runs told, how runs ended, what ended the study."""
    file = io.StringIO()
    with suppress(KeyboardInterrupt), Display(Console(file=file, width=200), "study", extents) as display:
        for run, (rounds, seconds) in news.items():
            display.show(Message(run, rounds, seconds, ""))
        for run, status in endings.items():
            display.ended(run, status, "a reason")
        if error:
            raise error
    return next(line for line in reversed(file.getvalue().splitlines()) if " runs finished" in line)


STOPPED = {"a": "interrupted", "b": "not run"}
SIXTY = {"a": (60, 0.0)}
IN_SECONDS = {"rounds": Extent(540, SECONDS), "fedasync": Extent(540, SECONDS)}
SECONDS_NEWS = {"rounds": (4, 240.9), "fedasync": (124, 300.0)}
MIXED = {"a": Extent(10, ROUNDS), "b": Extent(100, SECONDS), "c": Extent(10, ROUNDS)}
MIXED_NEWS = {"a": (5, 7.0), "b": (300, 50.0)}


@pytest.mark.whole_family
@pytest.mark.parametrize(
    ("extents", "news", "endings", "error", "said"),
    [
        (RUNS, SIXTY | {"b": (45, 0.0)}, STOPPED, KeyboardInterrupt, "105 of 1,600 rounds, 0 of 4 runs finished "),
        (RUNS, SIXTY, STOPPED, KeyboardInterrupt, "60 of 1,600 rounds, 0 of 4 runs finished "),
        (RUNS, SIXTY, {"a": "finished", "b": "failed"}, None, "60 of 1,260 rounds, 1 of 4 runs finished, 1 failed "),
        (RUNS, SIXTY | {"b": (7, 0.0)}, {"a": "failed"}, None, "67 of 1,600 rounds, 0 of 4 runs finished, 1 failed "),
        (RUNS, {}, dict.fromkeys(RUNS, "finished"), None, "1,600 of 1,600 rounds, 4 of 4 runs finished "),
        # Runs that seconds end, however many rounds they make; runs of both kinds are counted in per cent.
        (IN_SECONDS, SECONDS_NEWS, {}, None, "540 of 1,080 simulated s, 0 of 2 runs finished"),
        (IN_SECONDS, SECONDS_NEWS, {"rounds": "finished"}, None, "840 of 1,080 simulated s, 1 of 2 runs finished"),
        (MIXED, MIXED_NEWS, {}, None, "33 of 100 %, 0 of 3 runs finished"),
        (MIXED, MIXED_NEWS, {"c": "finished"}, None, "67 of 100 %, 1 of 3 runs finished"),
    ],
)
def test_the_count_tells_how_far_runs_are_and_which_finished(extents, news, endings, error, said):
    assert said in " ".join(last_line(extents, news, endings, error).split()) + " "


def test_a_note_about_one_thing_is_told_once_by_the_run_that_gave_it_first():
    file = io.StringIO()
    news = [("a", "range", "3 devices are far"), ("b", "range", "5 devices are far"), ("b", "band", "too many")]
    with Display(Console(file=file, width=200), "study", RUNS) as display:
        for run, about, text in news:
            display.show(Message(run, 0, 0.0, text, about))
    said = file.getvalue()
    assert "a: 3 devices are far" in said
    assert "b: too many" in said
    assert "5 devices" not in said


@pytest.fixture
def at(monkeypatch):
    """Sets the clock."""
    now_s = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now_s[0])
    return lambda t_s: now_s.__setitem__(0, 100.0 + t_s)


def test_where_no_terminal_shows_a_bar_a_line_on_stderr_stands_for_it_after_2_s_and_then_every_30_s(at, capsys):
    file = io.StringIO()
    with bar(Console(file=file), transient=True) as shown:
        task = shown.add_task("random", total=200, text="")
        for t_s in (0.0, 1.9):
            at(t_s)
            shown.update(task, text="pre-training")
        for number, t_s in enumerate((2.0, 5.0, 31.9, 32.0, 32.5, 70.0, 99.9), start=1):
            at(t_s)
            shown.update(task, completed=number, text=f"accuracy 0.5{number}")
    assert capsys.readouterr().err.splitlines() == [
        "random 1 of 200 accuracy 0.51", "random 4 of 200 accuracy 0.54", "random 6 of 200 accuracy 0.56",
    ]  # fmt: skip
    assert file.getvalue() == ""


def test_where_no_terminal_shows_a_bar_a_study_tells_how_far_it_is(at, capsys):
    with Display(Console(file=io.StringIO(), width=200), "study", RUNS) as display:
        display.ended("a", "finished", "")
        at(3.0)
        display.show(Message("b", 40, 0.0, ""))
        display.show(Message("b", 41, 0.0, ""))
    assert capsys.readouterr().err == "study 400 of 1,600 rounds, 1 of 4 runs finished\n"


def test_on_a_terminal_there_are_no_lines_beside_the_bar(at, capsys):
    with bar(Console(file=io.StringIO(), force_terminal=True)) as shown:
        task = shown.add_task("random", total=200, text="")
        at(60.0)
        shown.update(task, completed=1, text="")
    assert capsys.readouterr().err == ""
