"""The run folder: its tables, their schema and checkpoints."""
