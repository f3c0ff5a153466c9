"""Start models are cached once per test session, away from the user's own cache."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("EDGESIM_CACHE", str(tmp_path_factory.getbasetemp().parent / "edgesim-cache"))
    yield
    patch.undo()
