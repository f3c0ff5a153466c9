"""``python -m edgesim``, the same as ``edgesim``."""

from edgesim.commands.entry import main

# Processes that a run starts read this module again.
if __name__ == "__main__":
    main()
