import subprocess
import sys

import pytest
import torch
from refusals import in_one_line

from edgesim.base.errors import EdgesimError
from edgesim.learning.torch_settings import memory_lasts, pick_device, reproducible


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


@pytest.mark.slow
def test_deterministic_algorithms_do_not_load_torch_s_compiler_which_takes_seconds():
    words = (
        "import sys, torch; from edgesim.learning.torch_settings import reproducible\n"
        "with reproducible(torch.device('cpu')):\n"
        "    print(torch.are_deterministic_algorithms_enabled(), 'torch._inductor' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout == "True False\n"


def _raise(words):
    raise RuntimeError(words)


@pytest.mark.parametrize(
    "fails",
    [
        lambda: torch.empty(1 << 60),
        lambda: bytearray(1 << 62),
        # Libraries on a GPU are known by their words.
        lambda: _raise("CUDA error: out of memory"),
        lambda: _raise("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        lambda: _raise("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"),
    ],
)
@pytest.mark.whole_family
def test_memory_that_runs_out_is_one_line_with_a_remedy(fails):
    said = r"^out of memory while training device 3: set this lower$"
    with in_one_line(said), memory_lasts("training device 3", "set this lower"):
        fails()


def test_other_errors_of_torch_stay_what_they_are():
    with pytest.raises(RuntimeError, match="size"), memory_lasts("training", "set this lower"):
        torch.zeros(2) + torch.zeros(3)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_there_is_refused():
    assert pick_device("auto").type == "cpu"
    with pytest.raises(EdgesimError, match=r"learning.device: 'cuda' is not available"):
        pick_device("cuda")
