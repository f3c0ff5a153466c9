from collections.abc import Callable

import numpy as np
import pytest

from edgesim.config_file import parse
from edgesim.joining import make_law
from edgesim.joining.joiners import Joiners
from edgesim.joining.law import Fleet
from edgesim.streams import Streams


@pytest.fixture
def joiners() -> Callable[..., Joiners]:
    """A law of ``[joining]`` at work on devices whose speeds are given, or on 20 of one speed, in 100 rounds."""

    def make(seed=0, s_per_sample=(1.0,) * 20, rounds=100, law="fedstg", **options) -> Joiners:
        config = parse({"joining": {"law": law, **options}}, "test").joining
        return Joiners(make_law(config), Fleet(np.array(s_per_sample), rounds), Streams(seed))

    return make
