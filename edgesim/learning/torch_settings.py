"""Choice and settings of the torch device, so that a seed gives the same bytes."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.utils.deterministic

from edgesim.base.errors import EdgesimError


def pick_device(wanted: str) -> torch.device:
    """The device for ``auto`` (CUDA when there is one), ``cpu`` or ``cuda``; raises `EdgesimError`."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise EdgesimError("learning.device: 'cuda' is not available here; use 'auto' or 'cpu'")
    use_cuda = wanted == "cuda" or (wanted == "auto" and torch.cuda.is_available())
    return torch.device("cuda" if use_cuda else "cpu")


def device_kind(device: torch.device) -> str:
    """The kind of processor on which bytes are the same, such as ``cpu AVX512`` or a GPU's name."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu {torch.backends.cpu.get_cpu_capability()}"


@contextmanager
def reproducible(device: torch.device) -> Iterator[None]:
    """Set one thread on the CPU, deterministic algorithms and no TF32; restores the settings afterwards."""
    if device.type == "cuda":
        # Read by cuBLAS when its first handle is made; deterministic algorithms are refused without it.
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    threads = torch.get_num_threads()
    deterministic = torch.get_deterministic_debug_mode()
    fill = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    flags = cudnn.allow_tf32, cudnn.benchmark, matmul.allow_tf32
    try:
        torch.set_num_threads(1)
        # As torch.use_deterministic_algorithms(True), which imports the compiler of torch too: 2.4 s in every process.
        torch.set_deterministic_debug_mode("error")
        # Would overwrite every new tensor with NaN first: slow, and nothing here reads unset memory.
        torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
        cudnn.allow_tf32, cudnn.benchmark, matmul.allow_tf32 = False, False, False
        yield
    finally:
        torch.set_num_threads(threads)
        torch.set_deterministic_debug_mode(deterministic)
        torch.utils.deterministic.fill_uninitialized_memory = fill  # type: ignore[attr-defined]
        cudnn.allow_tf32, cudnn.benchmark, matmul.allow_tf32 = flags


@contextmanager
def seeded(device: torch.device, seed: int) -> Iterator[None]:
    """Seed torch's global generators (dropout masks, initial weights); restores their state afterwards."""
    devices = [torch.cuda.current_device()] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        # torch.manual_seed would do the same and format a stack trace for CUDA each time: 1 ms on a job of 1 ms.
        torch.default_generator.manual_seed(seed)
        if devices:
            torch.cuda.manual_seed(seed)
        yield


def is_of_memory(error: Exception) -> bool:
    """Whether an error reports that memory has run out."""
    # torch has a class for its GPU allocator alone; what others raise is known by its words.
    words = ("can't allocate memory", "not enough memory", "out of memory", "ALLOC_FAILED")
    classes = MemoryError, torch.cuda.OutOfMemoryError
    return isinstance(error, classes) or any(word in str(error) for word in words)


@contextmanager
def memory_lasts(what: str, remedy: str, *fields: str) -> Iterator[None]:
    """Turn errors about memory that runs out during ``what`` into an `EdgesimError` with a remedy and ``fields``."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if is_of_memory(error):
            raise EdgesimError(f"out of memory while {what}: {remedy}", *fields) from None
        raise
