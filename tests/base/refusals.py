"""What is refused is refused in one line."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from edgesim.base.errors import EdgesimError


@contextmanager
def in_one_line(said: str) -> Iterator[pytest.ExceptionInfo[EdgesimError]]:
    """Asserts that what is done within raises an `EdgesimError` of one line in which the pattern occurs."""
    with pytest.raises(EdgesimError, match=said) as caught:
        yield caught
    assert len(str(caught.value).splitlines()) == 1
