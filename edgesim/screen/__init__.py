"""The terminal's console, progress bar and tables of text."""
