"""One process for all `workers` back ends of a test: each of its own would load torch anew, for seconds."""

import multiprocessing
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

import torch

from edgesim.learning.back_ends.job_process import serve


def serve_all(requests):
    """Serve one back end after another, each until its connection is closed."""
    while True:
        try:
            share = requests.recv()
        except EOFError:
            return
        serve(share)


class Request:
    """In place of the process of a worker."""

    exitcode = pid = None

    def __init__(self, requests, target, args, **names):
        self.start = partial(requests.send, *args)

    def terminate(self):
        """Nothing: it ends when its connection is closed."""

    def join(self, timeout=None):
        """Nothing: the process lives on."""


@contextmanager
def one_process():
    """In place of the module `multiprocessing` in `edgesim.learning.back_ends.workers`."""
    context = torch.multiprocessing.get_context("spawn")
    there, here = context.Pipe(duplex=False)
    process = context.Process(target=serve_all, args=(there,), daemon=True)
    process.start()
    there.close()
    made = SimpleNamespace(Pipe=context.Pipe, Process=partial(Request, here))
    yield SimpleNamespace(get_context=lambda kind: made, current_process=multiprocessing.current_process)
    here.close()
    process.join(60)
    assert process.exitcode == 0
