"""Around the simulation of a run: the run folder, hashes of its inputs, checks before it and notes about it."""
