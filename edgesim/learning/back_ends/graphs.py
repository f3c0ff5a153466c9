"""Steps of small stacks as graphs of a GPU: recorded once, then replayed as a whole.

A training step of a small model is dozens of kernels of a few microseconds, less than Python and the driver take to
launch each. A graph launches them together. Large steps gain nothing: their kernels run longer than launches take.
"""

from collections import Counter
from collections.abc import Callable

import torch
from torch import Tensor

from edgesim.errors import EdgesimError
from edgesim.learning.back_ends.stack import Form, Stack
from edgesim.learning.torch_settings import is_of_memory

Step = Callable[[Stack, Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
"""Losses [n S] and logits [n S, classes] of a step that a stack takes on images [n, S, C, H, W], labels [n S] and
their shares [n S] in the loss, with keys of dropout masks [S, calls, 2]."""

Capture = Callable[[Callable[[], None]], Callable[[], None]]
"""Replays of what is given, which may run some times on the way; it only reads and writes tensors that outlive it."""

Recorder = Callable[[], Capture]
"""Captures that share memory with each other and with nothing else."""

_Shape = tuple[Form, int]
"""Of a stack, and the rows of its step."""

#: Steps of one shape before it is recorded, so that recording is paid for by steps that come again.
_MET = 10
_WARM_UPS = 3
#: Between a step and its replay, relative to the largest number.
_TOLERANCE = 1e-3


def recorder_on(device: torch.device) -> Recorder | None:
    """How a device records, or None where it does not."""
    if device.type != "cuda":
        return None
    # One stream for all: libraries keep working memory for each that they have met.
    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]

    def recorder() -> Capture:
        # Graphs write over what others of their pool left there: none relies on it. A pool ends with its last graph.
        pool = torch.cuda.graph_pool_handle()

        def capture(work: Callable[[], None]) -> Callable[[], None]:
            graph, before = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
            try:
                # Libraries set themselves up in the first runs, which a graph cannot hold; off the default stream, as
                # asked for by https://pytorch.org/docs/stable/notes/cuda.html (CUDA graphs).
                stream.wait_stream(before)
                with torch.cuda.stream(stream):
                    for _ in range(_WARM_UPS):
                        work()
                before.wait_stream(stream)
                with torch.cuda.graph(graph, pool=pool, stream=stream):
                    work()
            finally:
                # A capture that fails may leave its stream behind as the current one (torch before 2.15).
                torch.cuda.set_stream(before)
                before.wait_stream(stream)
            return graph.replay

        return capture

    return recorder


def refusal(step: Step, recorder: Recorder, stack: Stack, *inputs: Tensor) -> str | None:
    """Why steps are better not recorded: what failed in a trial, or that replays brought other numbers; else None.

    Running out of memory is no such reason: raises what torch raises.
    """
    own, replayed = stack.fixed(), stack.fixed()
    try:
        recording = _Recording(step, recorder(), replayed, *inputs)
        # Two steps: the second one shows what the first one left.
        pairs = [pair for _ in range(2) for pair in zip(step(own, *inputs), recording.run(*inputs), strict=True)]
    except RuntimeError as error:
        if is_of_memory(error):
            raise
        return _reason(error)
    for expected, found in (*pairs, *zip(own.tensors.values(), replayed.tensors.values(), strict=True)):
        noise = _TOLERANCE * float(expected.detach().abs().max().nan_to_num())
        if not torch.allclose(found, expected, rtol=0, atol=noise, equal_nan=True):
            return "replayed steps bring other numbers"
    return None


def _reason(error: BaseException) -> str:
    """What went wrong first: ending a capture that has failed is an error of its own."""
    while error.__context__ is not None:
        error = error.__context__
    return str(error).partition("\n")[0]


class _Recording:
    """A step of one fixed stack on a number of rows, and the tensors between which it runs."""

    def __init__(self, step: Step, capture: Capture, stack: Stack, *inputs: Tensor) -> None:
        self._inputs = [tensor.clone() for tensor in inputs]
        before = stack.fixed()
        # Once as it is: for the shapes of the results.
        self._results = [result.clone() for result in step(stack, *self._inputs)]

        def work() -> None:
            for place, result in zip(self._results, step(stack, *self._inputs), strict=True):
                place.copy_(result)

        self._replay = capture(work)
        stack.become(before)

    @property
    def nbytes(self) -> int:
        return sum(tensor.nbytes for tensor in (*self._inputs, *self._results))

    def run(self, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        for place, tensor in zip(self._inputs, inputs, strict=True):
            place.copy_(tensor)
        self._replay()
        losses, logits = (result.clone() for result in self._results)
        return losses, logits


class Graphs:
    """Takes steps of stacks, and replays those of shapes that were met often.

    What is recorded and when depends on the steps alone. Without a recorder nothing is; the arithmetic is the same.
    """

    def __init__(self, step: Step, recorder: Recorder | None, memory_bytes: int) -> None:
        """Fixed stacks and what goes in and out of their steps fill up to so much memory, or one of them more."""
        self._step = step
        self._recorder = recorder
        self._memory_bytes = memory_bytes
        self._forget()

    def settle(self, stack: Stack) -> Stack:
        """A stack with all that is in the given one, whose steps may be replayed: there is one of each form."""
        fixed = self._fixed.get(stack.form)
        if fixed is None:
            if self._held_bytes + stack.nbytes > self._memory_bytes:
                self._forget()
            fixed = self._fixed[stack.form] = stack.fixed()
            self._held_bytes += stack.nbytes
        else:
            fixed.become(stack)
        return fixed

    def step(self, stack: Stack, images: Tensor, labels: Tensor, shares: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """A `Step` of a stack that has settled; raises `EdgesimError` where it cannot be recorded."""
        inputs = images, labels, shares, keys
        shape = stack.form, len(images)
        if shape not in self._recorded:
            self._met[shape] += 1
            if self._capture is None or self._met[shape] < _MET:
                return self._step(stack, *inputs)
            self._record(shape, stack, *inputs)
        return self._recorded[shape].run(*inputs)

    def _record(self, shape: _Shape, stack: Stack, *inputs: Tensor) -> None:
        assert self._capture is not None
        try:
            recording = self._recorded[shape] = _Recording(self._step, self._capture, stack, *inputs)
        except RuntimeError as error:
            if is_of_memory(error):
                raise
            raise EdgesimError(
                f"recording a training step as a graph failed ({_reason(error)}); set learning.back_end = 'loop'"
            ) from error
        self._held_bytes += recording.nbytes

    def _forget(self) -> None:
        self._met: Counter[_Shape] = Counter()
        self._capture = self._recorder() if self._recorder else None
        self._fixed: dict[Form, Stack] = {}
        self._recorded: dict[_Shape, _Recording] = {}
        self._held_bytes = 0
