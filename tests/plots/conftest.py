"""Made-up runs and studies (`made_up_runs`), as fixtures."""

from collections.abc import Callable
from pathlib import Path

import pytest
from made_up_runs import write_run, write_study

Writer = Callable[..., Path]


@pytest.fixture(scope="session")
def run_writer() -> Writer:
    """Writes one run folder."""
    return write_run


@pytest.fixture(scope="session")
def study_writer() -> Writer:
    """Writes one study folder."""
    return write_study
