"""Read a model's structure and report problems, without running it."""
