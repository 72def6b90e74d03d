"""Floor 6: reads stored results and shows them. Runs nothing."""
