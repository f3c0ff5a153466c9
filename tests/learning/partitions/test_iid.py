import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from edgesim.learning.partitions.iid import Iid
from edgesim.streams import Streams


@given(total=st.integers(5, 60), devices=st.integers(1, 40), size=st.integers(1, 5), seed=st.integers(0, 2**32))
def test_parts_are_equal_never_repeat_a_sample_and_overlap_only_when_they_must(total, devices, size, seed):
    (parts,) = Iid().divide(np.zeros(total, dtype=np.int64), 1, devices, size, Streams(seed))
    assert [len(np.unique(part)) for part in parts] == [size] * devices
    disjoint = min(devices, total // size)
    assert len(np.unique(np.concatenate(parts[:disjoint]))) == disjoint * size


def test_what_is_dealt_a_second_time_is_dealt_otherwise():
    (parts,) = Iid().divide(np.zeros(40, dtype=np.int64), 1, 8, 10, Streams(0))
    assert sorted(np.concatenate(parts[:4])) == sorted(np.concatenate(parts[4:])) == list(range(40))
    assert not {tuple(part) for part in parts[:4]} & {tuple(part) for part in parts[4:]}
