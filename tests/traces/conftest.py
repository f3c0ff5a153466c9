"""Where the shared recordings lie, for the tests that replay them."""

import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("EDGESIM_DATA", Path(__file__).parents[3] / "shared" / "data"))


@pytest.fixture
def recordings() -> Path:
    """The folder of real recordings; its README is the oracle of their statistics."""
    if not (DATA / "device-availability.parquet").is_file():
        pytest.skip("the real recordings are not here; set EDGESIM_DATA")
    return DATA
