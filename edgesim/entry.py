"""Entry point of the `edgesim` command: small, so that Ctrl-C prints one line even while the libraries load."""

import sys


def main() -> None:
    """Run the command line."""
    try:
        if sys.argv[1:2] == ["report"]:
            # It only reads, and what the other commands load takes longer than a report.
            from edgesim.terminal.report_command import main as run
        else:
            from edgesim.cli import main as run
        run()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
