"""What a decision costs through a plug-in: the same policy, built in and by its dotted path."""

import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sizes import IS_LEAST, size

from edgesim.engine.decision import admit
from edgesim.selection import best_channel, make_selector

MOST = 1.05
"""Times the built-in one."""
DECISIONS, TURNS = size((300, 15), (3, 1))


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """The dotted path of a copy of best-channel."""
    (tmp_path / "copied_policy.py").write_text(Path(best_channel.__file__).read_text())
    monkeypatch.syspath_prepend(tmp_path)
    yield "copied_policy.BestChannel"
    sys.modules.pop("copied_policy", None)


def test_decisions_through_a_plug_in_take_as_long_as_built_in(view, copied):
    """Interleaved turns, the least time of each; the sequence of decisions is the same."""
    selectors = {name: make_selector(name, {}, len(view.ids), 0) for name in ("best-channel", copied)}
    station, bands_hz = np.zeros(len(view.ids), dtype=np.int64), np.array([50.0])
    taken, took_s = {}, {name: [] for name in selectors}
    for _ in range(TURNS):
        for name, selector in selectors.items():
            started = time.process_time()
            for _ in range(DECISIONS):
                taken[name] = admit(name, selector.choose(view), view, station, bands_hz, None)
            took_s[name].append(time.process_time() - started)
    assert taken["best-channel"].tolist() == taken[copied].tolist()
    ratio = min(took_s[copied]) / min(took_s["best-channel"])
    print(f"{1e6 * min(took_s['best-channel']) / DECISIONS:.1f} us a decision, plug-in {ratio:.3f} times that")
    assert IS_LEAST or ratio <= MOST
