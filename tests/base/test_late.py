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


def test_a_module_is_imported_when_a_name_of_it_is_first_asked_for(late):
    assert "slow_to_load" not in sys.modules
    assert late.ANSWER == [42]
    assert late.ANSWER is sys.modules["slow_to_load"].ANSWER


def test_a_name_that_is_known_is_not_looked_up_again(late, monkeypatch):
    first = late.ANSWER
    monkeypatch.setattr(sys.modules["slow_to_load"], "ANSWER", None)
    assert late.ANSWER is first


def test_a_name_that_the_module_lacks_is_an_attribute_error(late):
    with pytest.raises(AttributeError, match="NOTHING"):
        late.NOTHING  # noqa: B018 - the look-up is the test
