import pytest
import torch

from edgesim.errors import EdgesimError
from edgesim.learning.numerics import pick_device, reproducible


def test_settings_hold_within_and_are_restored_after():
    before = (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled())
    torch.set_num_threads(2)
    try:
        with reproducible(torch.device("cpu")):
            assert torch.get_num_threads() == 1
            assert torch.are_deterministic_algorithms_enabled()
        assert torch.get_num_threads() == 2
        assert torch.are_deterministic_algorithms_enabled() == before[1]
    finally:
        torch.set_num_threads(before[0])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_refused():
    assert pick_device("auto").type == "cpu"
    with pytest.raises(EdgesimError, match=r"learning.device: 'cuda' is not available"):
        pick_device("cuda")
