"""Floor 2: pure functions from a history to findings. They import `chaoskit.model` only."""
