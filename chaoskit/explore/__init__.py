"""Floor 4: decides which trials are run. Pure over histories; `trial` runs what it decides."""
