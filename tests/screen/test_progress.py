import io

import pytest
from rich.console import Console

from edgesim.screen import progress
from edgesim.screen.progress import ROUNDS, SECONDS, Display, Extent, Message, bar

RUNS = dict.fromkeys("abcd", Extent(400, ROUNDS))


def last_line(news: dict[str, int], endings: dict[str, str], error: type[BaseException] | None) -> str:
    """What stands there once a study is over: rounds told of by running runs, how runs ended, what ended the study."""
    file = io.StringIO()
    try:
        with Display(Console(file=file, width=200), "study", RUNS) as display:
            for run, rounds in news.items():
                display.show(Message(run, rounds, 0.0, ""))
            for run, status in endings.items():
                display.ended(run, status, "a reason")
            if error:
                raise error
    except KeyboardInterrupt:
        pass
    return next(line for line in reversed(file.getvalue().splitlines()) if "rounds," in line)


@pytest.mark.parametrize(
    ("news", "endings", "error", "said"),
    [
        ({"a": 60, "b": 45}, dict.fromkeys("ab", "interrupted"), KeyboardInterrupt, "105 of 1,600 rounds, 0 of 4 runs"),
        (
            {"a": 60},
            {"a": "interrupted", "b": "not run"},
            KeyboardInterrupt,
            "60 of 1,600 rounds, 0 of 4 runs finished ",
        ),
        ({"a": 60}, {"a": "finished", "b": "failed"}, None, "60 of 1,260 rounds, 1 of 4 runs finished, 1 failed "),
        ({"a": 60, "b": 7}, {"a": "failed"}, None, "67 of 1,600 rounds, 0 of 4 runs finished, 1 failed "),
        ({}, dict.fromkeys(RUNS, "finished"), None, "1,600 of 1,600 rounds, 4 of 4 runs finished "),
    ],
)
def test_the_count_tells_the_rounds_done_and_the_runs_that_finished(news, endings, error, said):
    assert said in last_line(news, endings, error)


def last_text(extents: dict[str, Extent], news: list[Message], ended: list[str]) -> str:
    file = io.StringIO()
    with Display(Console(file=file, width=200), "study", extents) as display:
        for message in news:
            display.show(message)
        for run in ended:
            display.ended(run, "finished", "")
    return file.getvalue()


def test_runs_that_seconds_end_are_counted_in_simulated_seconds_however_many_rounds_they_make():
    extents = {"rounds": Extent(540, SECONDS), "fedasync": Extent(540, SECONDS)}
    news = [Message("rounds", 4, 240.9, ""), Message("fedasync", 124, 300.0, "")]
    assert "540 of 1,080 simulated s, 0 of 2 runs finished" in last_text(extents, news, [])
    assert "840 of 1,080 simulated s, 1 of 2 runs finished" in last_text(extents, news, ["rounds"])


def test_a_study_of_runs_by_rounds_and_by_seconds_is_counted_in_per_cent():
    extents = {"a": Extent(10, ROUNDS), "b": Extent(100, SECONDS), "c": Extent(10, ROUNDS)}
    news = [Message("a", 5, 7.0, ""), Message("b", 300, 50.0, "")]
    assert "33 of 100 %, 0 of 3 runs finished" in " ".join(last_text(extents, news, []).split())
    assert "67 of 100 %, 1 of 3 runs finished" in " ".join(last_text(extents, news, ["c"]).split())


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
