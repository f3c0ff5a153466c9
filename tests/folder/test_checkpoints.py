import os
import sys

import pytest

from edgesim.folder import checkpoints
from edgesim.folder.checkpoints import About, Packed


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_when_a_checkpoint_is_written_the_names_of_those_before_get_onto_the_disk(tmp_path, monkeypatch):
    synced = []

    def fsync(handle):
        place = os.readlink(f"/proc/self/fd/{handle}")
        synced.append((place, [checkpoints.round_of(path) for path in checkpoints.files(tmp_path)]))

    monkeypatch.setattr(os, "fsync", fsync)
    for number in range(1, 5):
        about = About(number, {}, {}, {}, {}, {}, {}, {}, [1, number, None], 0.0)
        checkpoints.write(tmp_path, about, Packed(b"{}", {}))
    part, folder = str(tmp_path / "checkpoint.part"), str(tmp_path)
    there = [[], [1], [2, 1], [3, 2]]
    assert synced == [(place, rounds) for rounds in there for place in (part, folder)]
