"""Compare a model's answers with the golden set."""
