"""Floor 7: the command line."""
