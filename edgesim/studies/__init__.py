"""Studies: grids of runs in several processes, their folders and how each run ended."""
