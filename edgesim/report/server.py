"""Server of one page over HTTP, for browsers on this machine alone."""

import errno
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from typing_extensions import override

from edgesim.base.errors import EdgesimError

LOOPBACK = "127.0.0.1"
_SILENT_S = 30
"""Longest silence of a browser on a connection, in s."""


@contextmanager
def served(page: Callable[[], str], port: int) -> Iterator[str]:
    """Within this context ``page`` is made at every request of ``/``, one at a time; gives its loopback URL.

    ``port`` 0 is any free one. Requests for anything else, or by another name of this machine, get an error. Raises
    `EdgesimError` for a port that is in use or not allowed.
    """

    making = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        timeout = _SILENT_S

        def do_GET(self) -> None:
            # A page of another site may have its own name lead to this address, and would then read what is served.
            if self.headers.get("Host") not in names:
                self.send_error(403)
            elif self.path.partition("?")[0] != "/":
                self.send_error(404)
            else:
                with making:
                    body = page().encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Cache-Control", "no-store")
                self.end_headers()
                self.wfile.write(body)

        @override
        def log_message(self, *_: object) -> None:
            pass

    class ReportServer(ThreadingHTTPServer):
        daemon_threads = True

        @override
        def handle_error(self, *_: object) -> None:
            """A browser that leaves before it has its page is no error."""

    try:
        server = ReportServer((LOOPBACK, port), Handler)
    except OSError as error:
        in_use = error.errno == errno.EADDRINUSE
        why = "is in use" if in_use else f"cannot be served: {error.strerror}"
        raise EdgesimError(f"port {port} of {LOOPBACK} {why}; give another one, or 0 for any free one") from None
    names = {f"{host}:{server.server_port}" for host in (LOOPBACK, "localhost")}
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
