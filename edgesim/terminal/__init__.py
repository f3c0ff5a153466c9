"""The terminal: tables, progress, options, plain errors."""
