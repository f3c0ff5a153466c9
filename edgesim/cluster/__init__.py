"""What everything that runs on a cluster of Ray has in common: reaching it, its nodes, and code that travels there."""
