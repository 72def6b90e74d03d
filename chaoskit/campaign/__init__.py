"""Floor 5: many trials. The event stream, the workers, the store, replay."""
