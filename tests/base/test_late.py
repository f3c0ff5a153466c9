"""Modules that are imported at their first use."""

import sys

import pytest

from edgesim.base.late import Late


@pytest.fixture
def late(tmp_path, monkeypatch):
    (tmp_path / "slow_to_load.py").write_text("ANSWER = [42]\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield Late("slow_to_load")
    sys.modules.pop("slow_to_load", None)


def test_a_module_is_imported_when_a_name_of_it_is_first_asked_for_and_no_name_is_looked_up_twice(late, monkeypatch):
    assert "slow_to_load" not in sys.modules
    first = late.ANSWER
    assert first is sys.modules["slow_to_load"].ANSWER
    monkeypatch.setattr(sys.modules["slow_to_load"], "ANSWER", None)
    assert late.ANSWER is first == [42]
    with pytest.raises(AttributeError, match="NOTHING"):
        late.NOTHING  # noqa: B018 - the look-up is the test
