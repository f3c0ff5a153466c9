"""Entry point of the `edgesim` command: small, so that Ctrl-C prints one line even while the libraries load."""

import sys
from argparse import ArgumentError, ArgumentParser
from typing import NoReturn

from edgesim.base.loading import uncollected


def main() -> None:
    """Run the command line."""
    try:
        _refuse_dead_cluster(sys.argv[1:])
        with uncollected():
            if sys.argv[1:] == ["doctor"]:
                # It says what is missing also where that keeps the other commands from loading.
                from edgesim.commands.doctor import main as run
            elif sys.argv[1:2] == ["report"]:
                # What the other commands load takes longer than a report, or than a short run.
                from edgesim.commands.report_command import main as run
            elif sys.argv[1:2] == ["run"]:
                from edgesim.commands.run_command import main as run
            else:
                from edgesim.commands.cli import main as run
    except ImportError as error:
        print(f"error: {error}; edgesim doctor says what is missing", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        _stop()
    try:
        run()
    except KeyboardInterrupt:
        _stop()


def _stop() -> NoReturn:
    print("stopped", file=sys.stderr)
    sys.exit(130)


def _refuse_dead_cluster(words: list[str]) -> None:
    """End if a command asks for a cluster of Ray that does not answer; to load the libraries first takes longer."""
    if "--executor" not in " ".join(words) or "--help" in words:
        return
    options = ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    options.add_argument("--executor")
    options.add_argument("--address")
    try:
        given, _ = options.parse_known_args(words)
    except ArgumentError:
        # The command itself says what is wrong.
        return
    if given.executor == "ray":
        from edgesim.base.errors import EdgesimError
        from edgesim.cluster.connection import probe

        try:
            probe(given.address)
        except EdgesimError as error:
            print(f"error: {error}", file=sys.stderr)
            sys.exit(error.status)


if __name__ == "__main__":
    main()
