"""Two processes of one command at work on one folder, of which one is killed."""

import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from waiting import wait_for

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}


def one_killed(command: Sequence[str], cwd: Path, running: Callable[[], int]) -> None:
    """Start the command twice, and kill one once two runs are ``running``; the other has to end well."""
    pair = [
        subprocess.Popen(command, cwd=cwd, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        for _ in range(2)
    ]
    try:
        wait_for(lambda: running() >= 2, "the two never worked at once", *pair)
        pair[0].send_signal(signal.SIGKILL)
        said, _ = pair[1].communicate(timeout=300)
    finally:
        for process in pair:
            process.kill()
            process.wait()
    assert pair[1].returncode == 0, said
