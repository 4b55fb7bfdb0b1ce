"""Compare a model's outputs with the golden set."""
