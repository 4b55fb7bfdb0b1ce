"""Read a model's structure and say what stands in the way, without running it."""
