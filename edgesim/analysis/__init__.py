"""Metrics, statistics and summaries over run folders: everything here can be redone without a rerun."""
