"""Start models are cached once per test session, away from the user's own cache."""

import os

import pytest


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    base = tmp_path_factory.getbasetemp()
    # The processes of pytest-xdist have folders of their own below that of the session.
    session = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    patch.setenv("EDGESIM_CACHE", str(session / "edgesim-cache"))
    yield
    patch.undo()
