import threading

import pytest
import torch
from torch import nn

from edgesim.learning.flat import FlatModel
from edgesim.learning.passes import rows_at_once, side_by_side

CPU = torch.device("cpu")


@pytest.mark.parametrize(("budget_mib", "rows"), [(0, 1), (1, 32), (3, 96), (1 << 20, 1024)])
def test_as_many_rows_as_the_budget_holds_of_what_is_kept_and_its_gradients(budget_mib, rows):
    # A row keeps 2,048 numbers for the linear layer and 2,048 for the tanh: 16 KiB, and 16 KiB for gradients.
    module = nn.Sequential(nn.Flatten(), nn.Linear(2048, 2048), nn.Tanh())
    model = FlatModel(module, CPU)
    assert rows_at_once(model, torch.ones(1, 1, 1, 2048), budget_mib) == rows


def test_a_convolutional_net_on_a_cpu_takes_as_many_rows_as_its_cache_holds():
    model = FlatModel(nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten()), CPU)
    assert rows_at_once(model, torch.ones(1, 1, 4, 4), 4096) == 64


@pytest.mark.parametrize(("layer", "threads"), [(nn.Conv2d(1, 2, 3), 2), (nn.Linear(4, 2), 1)])
def test_parts_of_convolutional_nets_run_on_all_cores_and_come_back_in_order(layer, threads):
    both = threading.Barrier(threads)

    def work(part):
        # Passed only by as many threads at a time.
        both.wait(30)
        return part, torch.get_num_threads()

    assert side_by_side(FlatModel(layer, CPU), 2, work, [3, 1, 2, 0]) == [(3, 1), (1, 1), (2, 1), (0, 1)]
