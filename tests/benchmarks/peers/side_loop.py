"""The yardstick: one client after another in plain PyTorch."""

import copy
import time

import torch
from work import asked, report

work, _, threads = asked()
torch.set_num_threads(threads)
network = work.new_network()
ends_s = [time.perf_counter()]
for _ in range(work.all_rounds):
    start = copy.deepcopy(network.state_dict())
    mean = {name: torch.zeros_like(value) for name, value in start.items()}
    for client in range(len(work.clients)):
        network.load_state_dict(start)
        work.train(network, client)
        for name, value in network.state_dict().items():
            mean[name] += value / len(work.clients)
    network.load_state_dict(mean)
    ends_s.append(time.perf_counter())
report(work, ends_s, work.accuracy(network))
