"""Killed and stopped runs and studies leave nothing behind, and can be read and started again.

``EDGESIM_KILLS=200`` kills and stops so many instead of 3, of which the last one is a study.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ALL = int(os.environ.get("EDGESIM_KILLS", "3"))


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc"), reason="needs /proc")
def test_whatever_signal_ends_a_run_or_a_study_nothing_is_left_and_the_next_start_works():
    table = Path(__file__).with_name("kill_table.py")
    stops = ALL // 2
    words = ["--kills", str(ALL - stops), "--stops", str(stops), "--next", "2"]
    done = subprocess.run([sys.executable, str(table), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == f"{ALL} victims, 0 faults"
