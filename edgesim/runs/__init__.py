"""What a run needs and leaves beside the simulation: its folder, its inputs, its checks and notes."""
