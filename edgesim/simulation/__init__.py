"""The simulation of one run: its parts put together, checks before it, notes on it, resuming and forking."""
