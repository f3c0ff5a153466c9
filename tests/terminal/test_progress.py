import io
from queue import Queue

import pytest
from rich.console import Console

from edgesim.terminal.progress import Display, Message

ROUNDS = {"a": 400, "b": 400, "c": 400, "d": 400}


def last_line(news: dict[str, int], endings: dict[str, str], error: type[BaseException] | None) -> str:
    """What stands there once a study is over: rounds told of by running runs, how runs ended, what ended the study."""
    file = io.StringIO()
    queue: Queue[Message] = Queue()
    try:
        with Display(Console(file=file, width=200), "study", ROUNDS) as display:
            for run, rounds in news.items():
                queue.put(Message(run, rounds, ""))
            display.listen(queue)
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
        ({"a": 60, "b": 45}, dict.fromkeys("ab", "interrupted"), KeyboardInterrupt, "105/1600 rounds, 0 of 4 runs"),
        ({"a": 60}, {"a": "interrupted", "b": "not run"}, KeyboardInterrupt, "60/1600 rounds, 0 of 4 runs finished "),
        ({"a": 60}, {"a": "finished", "b": "failed"}, None, "400/1600 rounds, 1 of 4 runs finished, 1 failed "),
        ({"a": 60, "b": 7}, {"a": "failed"}, None, "67/1600 rounds, 0 of 4 runs finished, 1 failed "),
        ({}, dict.fromkeys(ROUNDS, "finished"), None, "1600/1600 rounds, 4 of 4 runs finished "),
    ],
)
def test_the_count_tells_the_rounds_done_and_the_runs_that_finished(news, endings, error, said):
    assert said in last_line(news, endings, error)


def test_a_note_about_one_thing_is_told_once_by_the_run_that_gave_it_first():
    file = io.StringIO()
    queue: Queue[Message] = Queue()
    for news in [("a", "range", "3 devices are far"), ("b", "range", "5 devices are far"), ("b", "band", "too many")]:
        run, about, text = news
        queue.put(Message(run, 0, text, about))
    with Display(Console(file=file, width=200), "study", ROUNDS) as display:
        display.listen(queue)
        assert not display.has_started("a")
    said = file.getvalue()
    assert "a: 3 devices are far" in said
    assert "b: too many" in said
    assert "5 devices" not in said
