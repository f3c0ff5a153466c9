"""Whole plug-ins with their tests: what ``edgesim new`` writes, and what the handbook shows."""
