"""How a study is run: reading observations, storing them, resuming, and proving that a run is complete."""
