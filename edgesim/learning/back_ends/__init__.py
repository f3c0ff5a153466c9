"""The back ends that run training jobs, `loop`, `workers`, `stacked` and `ray`, and the choice between them."""

from collections.abc import Callable, Mapping
from pathlib import Path

from torch import multiprocessing, nn

from edgesim.base.errors import EdgesimError
from edgesim.config import LearningConfig
from edgesim.learning.algorithms.local_half import LocalHalf
from edgesim.learning.back_ends.layers import is_shallow_and_dense, layer_by_layer
from edgesim.learning.back_ends.loop import LoopBackEnd
from edgesim.learning.back_ends.on_ray import RayBackEnd
from edgesim.learning.back_ends.probe import NotStackable
from edgesim.learning.back_ends.stacked import StackedBackEnd
from edgesim.learning.back_ends.workers import NoSharedMemory, WorkersBackEnd
from edgesim.learning.flat import FlatModel
from edgesim.learning.jobs import BackEnd
from edgesim.learning.tensors import DeviceData

#: Up to here one core that stacks is as fast as two that do not; a layer of 784 x 32 and one of 32 x 10 are below.
_SMALL = 30_000


def make_back_end(
    learning: LearningConfig,
    model: FlatModel,
    data: DeviceData,
    build: Callable[[], nn.Module],
    cores: int,
    local: LocalHalf,
    own_code: Callable[[], Mapping[str, Path]] = dict,
) -> tuple[BackEnd, str | None]:
    """The back end that a config asks for, and a warning to the user, if any.

    ``auto`` is a rule on the model and the device, never on timing. Only chains of at most three dense layers are
    stacked, whose results stay within 1e-3 of those of the loop (`is_shallow_and_dense`): on a GPU all of them, on a
    CPU those of at most 30,000 parameters. All others get `loop` on a GPU, and on a CPU `workers`, or `loop` where only
    one core may be used. The number of cores thus decides between two back ends of the same bits alone.

    ``build`` makes the module anew; ``cores`` are those that this run may keep busy; ``own_code`` gives the files of
    the user's own modules that jobs need, by module. A module that cannot be stacked gets what ``auto`` gives
    otherwise; where shared memory is short, `loop` takes the place of `workers`, unless the config names them. Raises
    `EdgesimError`.
    """
    on_cpu = data.device.type == "cpu"
    if learning.back_end == "workers" and not on_cpu:
        raise EdgesimError("learning.back_end: 'workers' is for learning.device = 'cpu'; use 'stacked' or 'loop'")
    if learning.back_end == "ray":
        return RayBackEnd(learning, model, data, build, local, own_code), None
    small = not on_cpu or model.trainable <= _SMALL
    safe = small and is_shallow_and_dense(model.module) and layer_by_layer(model) is not None
    notices: list[str] = []
    if learning.back_end == "stacked" or (learning.back_end == "auto" and safe):
        try:
            return StackedBackEnd(model, data, learning.memory_budget_mib, local), None
        except NotStackable as why:
            notices.append(f"the model cannot be stacked ({why})")
    spread = cores > 1 and on_cpu and not multiprocessing.current_process().daemon
    count = learning.workers or (cores if spread else 1)
    back_end: BackEnd | None = None
    if learning.back_end == "workers" or (learning.back_end != "loop" and count > 1 and on_cpu):
        try:
            back_end = WorkersBackEnd(model, data, build, count, local)
        except NoSharedMemory as why:
            if learning.back_end == "workers":
                raise
            notices.append(str(why))
    back_end = back_end or LoopBackEnd(model, data, local)
    return back_end, f"{'; '.join(notices)}; training uses {back_end.name!r}" if notices else None
