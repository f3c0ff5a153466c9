import errno
import os
import stat
import sys

import pytest

from edgesim.base.on_disk import in_place_of


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_a_content_is_on_the_disk_before_its_name_and_the_name_when_all_is_done(tmp_path, monkeypatch):
    path, synced = tmp_path / "a.txt", []
    path.write_text("old")

    def fsync(handle):
        synced.append((os.readlink(f"/proc/self/fd/{handle}"), path.read_text()))

    monkeypatch.setattr(os, "fsync", fsync)
    with in_place_of(path, on_disk=True) as part:
        part.write_text("new")
    assert synced == [(f"{path}.part", "old"), (str(tmp_path), "new")]
    with in_place_of(path) as part:
        part.write_text("newer")
    assert len(synced) == 2
    assert path.read_text() == "newer"


def test_an_error_leaves_what_was_there(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def write():
        with in_place_of(path, on_disk=True) as part:
            part.write_text("ne")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write()
    assert [(left.name, left.read_text()) for left in tmp_path.iterdir()] == [("a.txt", "old")]


def test_a_file_system_that_cannot_have_names_on_the_disk_is_written_to_all_the_same(tmp_path, monkeypatch):
    real = os.fsync

    def fsync(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(number, os.strerror(number))
        real(handle)

    def write():
        with in_place_of(tmp_path / "a.txt", on_disk=True) as part:
            part.write_text("new")

    monkeypatch.setattr(os, "fsync", fsync)
    number = errno.EINVAL
    write()
    assert (tmp_path / "a.txt").read_text() == "new"
    number = errno.EIO
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        write()
