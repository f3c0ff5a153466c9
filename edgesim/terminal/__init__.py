"""What users see and type on the terminal: tables, progress, options, plain errors."""
