"""Floor 0: the values that flow through chaoskit. No I/O, no clock, no randomness."""
