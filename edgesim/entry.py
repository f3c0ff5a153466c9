"""Where the `edgesim` command begins: small, so that Ctrl-C is plain even while the libraries load."""

import sys


def main() -> None:
    """Run the command line."""
    try:
        from edgesim.cli import main as run

        run()
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
