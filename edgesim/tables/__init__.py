"""Tables of text that are made from run folders."""
