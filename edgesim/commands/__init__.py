"""The command edgesim and its options."""
