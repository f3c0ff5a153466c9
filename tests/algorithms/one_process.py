"""One process for all `workers` back ends of a test: each of its own would load torch anew, for seconds."""

from contextlib import contextmanager

import torch

from edgesim.learning.back_ends.job_process import serve


def serve_all(requests):
    """Serve one back end after another, each until its connection is closed."""
    while True:
        try:
            connection, share = requests.recv()
        except EOFError:
            return
        serve(connection, share)


class Served:
    """In place of the process of a worker."""

    exitcode = pid = None

    def kill(self):
        """Nothing: it ends when its connection is closed."""

    def join(self, timeout=None):
        """Nothing: the process lives on."""


@contextmanager
def one_process():
    """In place of `edgesim.base.processes.start_process` in `edgesim.learning.back_ends.workers`."""
    context = torch.multiprocessing.get_context("spawn")
    there, here = context.Pipe(duplex=False)
    process = context.Process(target=serve_all, args=(there,), daemon=True)
    process.start()
    there.close()

    def start_process(target, share, name, daemon):
        assert target is serve
        ours, theirs = context.Pipe()
        here.send((theirs, share))
        theirs.close()
        return Served(), ours

    yield start_process
    here.close()
    process.join(60)
    assert process.exitcode == 0
