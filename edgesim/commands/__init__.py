"""What users type: the command edgesim and its options."""
