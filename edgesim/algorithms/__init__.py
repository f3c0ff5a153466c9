"""Local objectives and server updates, one per file."""
