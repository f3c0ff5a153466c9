"""The parts that all users of a Ray cluster share: the connection, the nodes, and user code that travels there."""
